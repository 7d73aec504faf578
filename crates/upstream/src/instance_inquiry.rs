//! What a server says of itself: by Mastodon's API, and by NodeInfo.

use driftline_core::{
    answer::{AnswerHeaders, Failure},
    social::{InstanceInfo, InstanceSelfDescription},
};
use driftline_mastodon::{RawObject, plain_text, text};
use url::Url;

use crate::{access::Access, body};

/// Asks a server what it is, a request at a time, so that each can be counted before it is sent: for
/// [`Upstream::inquire`](crate::Upstream::inquire). What one question does not answer, the next one may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceInquiry {
    next: Option<Question>,
    said: InstanceSelfDescription,
    is_answered: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Question {
    /// Mastodon's instance entity.
    Second,
    /// Its first version, which older servers and other software have.
    First,
    /// Where NodeInfo is.
    NodeInfoLinks,
    /// NodeInfo, at this path of the server.
    NodeInfo(String),
}

impl Default for InstanceInquiry {
    fn default() -> Self {
        Self {
            next: Some(Question::Second),
            said: InstanceSelfDescription::default(),
            is_answered: false,
        }
    }
}

impl InstanceInquiry {
    /// Whether nothing is left to ask.
    pub fn is_done(&self) -> bool {
        self.next.is_none()
    }

    /// What the server says of itself; `None` if it answered nothing.
    pub fn into_info(self) -> Option<InstanceInfo> {
        self.is_answered.then(|| self.said.into())
    }

    /// Asks nothing more.
    pub(crate) fn end(&mut self) {
        self.next = None;
    }

    /// The path of the next question, with its query.
    fn path(&self) -> Option<&str> {
        Some(match self.next.as_ref()? {
            Question::Second => "/api/v2/instance",
            Question::First => "/api/v1/instance",
            Question::NodeInfoLinks => "/.well-known/nodeinfo",
            Question::NodeInfo(path) => path,
        })
    }

    /// Takes the answer to the next question, of the server at that address; `None` if it has none.
    fn take(&mut self, body: Option<&[u8]>, server: &Url) {
        let said = body.and_then(|body| body::object(body).ok());
        self.next = match (self.next.take(), &said) {
            (Some(Question::Second), None) => Some(Question::First),
            (Some(Question::Second | Question::First), said) => {
                if let Some(instance) = said {
                    take_instance(&mut self.said, instance);
                    self.is_answered = true;
                }
                Some(Question::NodeInfoLinks)
            }
            (Some(Question::NodeInfoLinks), Some(links)) => {
                node_info_path(links, server).map(Question::NodeInfo)
            }
            (Some(Question::NodeInfo(_)), Some(node_info)) => {
                take_node_info(&mut self.said, node_info);
                self.is_answered = true;
                None
            }
            _ => None,
        };
    }
}

fn take_instance(said: &mut InstanceSelfDescription, instance: &RawObject<'_>) {
    let text = |name: &str| instance.some_text(name).unwrap_or_default().into_owned();
    said.name = text("title");
    said.version = text("version");
    let short = Some(text("short_description")).filter(|text| !text.is_empty());
    said.description = readable(&short.unwrap_or_else(|| text("description")));
    let contact = match instance.object("contact").object("account") {
        account if account.get("id").is_some() => account,
        _ => instance.object("contact_account"),
    };
    let named = contact
        .some_text("display_name")
        .or_else(|| contact.some_text("username"));
    said.maintainer_name = named.unwrap_or_default().into_owned();
}

/// What NodeInfo says of the software is exact; the API's version may be the one that it is compatible with.
fn take_node_info(said: &mut InstanceSelfDescription, node_info: &RawObject<'_>) {
    let software = node_info.object("software");
    if let Some(name) = software.some_text("name") {
        said.software_name = name.into_owned();
    }
    if let Some(version) = software.some_text("version") {
        said.version = version.into_owned();
    }
    let metadata = node_info.object("metadata");
    let lists = [node_info.list("protocols"), metadata.list("features")];
    let listed = lists.into_iter().flatten().filter_map(text);
    said.extensions = listed
        .take(InstanceInfo::MAX_EXTENSIONS)
        .map(|text| text.into_owned())
        .collect();
    let missing = |known: &mut String, said: Option<String>| {
        if known.is_empty() {
            *known = said.unwrap_or_default();
        }
    };
    let text = |name: &str| metadata.some_text(name).map(|text| text.into_owned());
    missing(&mut said.name, text("nodeName"));
    missing(
        &mut said.description,
        text("nodeDescription").map(|text| readable(&text)),
    );
    let maintainer = metadata.object("maintainer");
    let maintainer = maintainer.some_text("name").map(|text| text.into_owned());
    missing(&mut said.maintainer_name, maintainer);
}

/// The path of NodeInfo 2.x, the newest that the server links, if it is a page of the same server: no other is
/// asked, whatever it names.
fn node_info_path(links: &RawObject<'_>, server: &Url) -> Option<String> {
    let mut newest: Option<(String, String)> = None;
    for link in links.objects("links").take(MAX_LINKS) {
        let (Some(rel), Some(href)) = (link.some_text("rel"), link.some_text("href")) else {
            continue;
        };
        let Some(version) = rel.strip_prefix(SCHEMA).filter(|v| v.starts_with("2.")) else {
            continue;
        };
        let Some(url) = server.join(&href).ok() else {
            continue;
        };
        let is_newer = newest.as_ref().is_none_or(|(known, _)| &**known < version);
        if url.origin() == server.origin() && is_newer {
            let path = match url.query() {
                Some(query) => format!("{}?{query}", url.path()),
                None => url.path().to_owned(),
            };
            newest = Some((version.to_owned(), path));
        }
    }
    newest.map(|(_, path)| path)
}

/// A description as plain text: some servers write HTML.
fn readable(text: &str) -> String {
    match text.contains(['<', '&']) {
        true => plain_text(text),
        false => text.to_owned(),
    }
}

/// Asks the next question of an inquiry; asks nothing if it is done.
///
/// # Errors
/// A [`Failure`] of whatever teaches nothing: throttles, servers that fail, connections that break.
pub(crate) async fn inquire(
    access: &Access,
    inquiry: &mut InstanceInquiry,
) -> Result<AnswerHeaders, Failure> {
    let Some(path) = inquiry.path() else {
        return Ok(AnswerHeaders::default());
    };
    let answer = access.fetch(access.url(path)).await?;
    let server = access.address().url();
    match answer.status.as_u16() {
        200 => inquiry.take(Some(&answer.body), server),
        400 | 401 | 403 | 404 | 405 | 406 | 410 | 422 | 501 => inquiry.take(None, server),
        _ => return Err(access.status_failure(&answer)),
    }
    Ok(answer.metadata)
}

const SCHEMA: &str = "http://nodeinfo.diaspora.software/ns/schema/";
/// The most links that are looked at.
const MAX_LINKS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(answers: &[(&str, Option<&str>)]) -> Option<InstanceInfo> {
        let server = Url::parse("https://a.example").expect("a URL");
        let mut inquiry = InstanceInquiry::default();
        for (path, body) in answers {
            assert_eq!(inquiry.path(), Some(*path));
            inquiry.take(body.map(str::as_bytes), &server);
        }
        assert!(inquiry.is_done(), "{inquiry:?}");
        inquiry.into_info()
    }

    const V2: &str = r#"{"title":"A","version":"4.3.0 (compatible; Sim 1)","description":"<p>One &amp; two</p>",
        "contact":{"email":"a@a.example","account":{"id":"1","username":"ann","display_name":"Ann"}}}"#;
    const V1: &str = r#"{"title":"Old","version":"2.7.2","short_description":"","description":"long",
        "contact_account":{"id":"1","username":"bob","display_name":""}}"#;
    const NODE_INFO: &str = r#"{"version":"2.0","software":{"name":"sim","version":"1.2"},
        "protocols":["activitypub"],"metadata":{"features":["a",7,"b"],"nodeName":"Node",
        "maintainer":{"name":"Cat"}}}"#;
    const LINKS: &str = r#"{"links":[
        {"rel":"http://nodeinfo.diaspora.software/ns/schema/2.0","href":"https://a.example/n/2.0"},
        {"rel":"http://nodeinfo.diaspora.software/ns/schema/1.0","href":"https://a.example/n/1.0"},
        {"rel":"http://nodeinfo.diaspora.software/ns/schema/2.1","href":"https://a.example/n/2.1?x=1"},
        {"rel":"http://nodeinfo.diaspora.software/ns/schema/2.2","href":"http://127.0.0.1/secret"}]}"#;

    #[test]
    fn what_a_server_says_is_put_together() {
        let info = asked(&[
            ("/api/v2/instance", Some(V2)),
            ("/.well-known/nodeinfo", Some(LINKS)),
            ("/n/2.1?x=1", Some(NODE_INFO)),
        ]);
        let info = info.expect("an answer");
        assert_eq!(
            (info.name(), info.description(), info.maintainer_name()),
            ("A", "One & two", "Ann")
        );
        assert_eq!((info.software_name(), info.version()), ("sim", "1.2"));
        assert_eq!(info.extensions(), ["activitypub", "a", "b"]);
    }

    #[test]
    fn older_servers_are_asked_by_the_first_version() {
        let info = asked(&[
            ("/api/v2/instance", None),
            ("/api/v1/instance", Some(V1)),
            ("/.well-known/nodeinfo", None),
        ]);
        let info = info.expect("an answer");
        assert_eq!(
            (info.name(), info.description(), info.maintainer_name()),
            ("Old", "long", "bob")
        );
        assert_eq!((info.software_name(), info.version()), ("", "2.7.2"));
    }

    #[test]
    fn node_info_alone_is_enough() {
        let info = asked(&[
            ("/api/v2/instance", Some("<html>")),
            ("/api/v1/instance", Some("[]")),
            ("/.well-known/nodeinfo", Some(LINKS)),
            ("/n/2.1?x=1", Some(NODE_INFO)),
        ]);
        let info = info.expect("an answer");
        assert_eq!((info.name(), info.maintainer_name()), ("Node", "Cat"));
    }

    #[test]
    fn no_other_server_is_asked() {
        for href in [
            "http://a.example/n",
            "https://a.example:8443/n",
            "https://b.example/n",
            "//b.example/n",
            "file:///etc/passwd",
            "https://a.example@b.example/n",
        ] {
            let links = format!(r#"{{"links":[{{"rel":"{SCHEMA}2.0","href":"{href}"}}]}}"#);
            let info = asked(&[
                ("/api/v2/instance", None),
                ("/api/v1/instance", None),
                ("/.well-known/nodeinfo", Some(&links)),
            ]);
            assert_eq!(info, None, "{href}");
        }
    }
}
