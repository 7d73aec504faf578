//! What a server says of itself: its instance entity and its NodeInfo.

use driftline_core::{answer::Failure, social::InstanceProfile};
use driftline_mastodon::{RawObject, text};
use http::StatusCode;
use url::Url;

use crate::{access::Access, body};

/// What the server says of itself. A part that it does not answer, or in no known form, is left out.
///
/// # Errors
/// The [`Failure`] of the first request, if the server does not answer at all.
pub(crate) async fn fetch(access: &Access) -> Result<InstanceProfile, Failure> {
    let mut entity = object(access, access.url("/api/v2/instance"))
        .await?
        .as_deref()
        .and_then(|body| read_entity(body));
    if entity.is_none() {
        let older = object(access, access.url("/api/v1/instance")).await?;
        entity = older.as_deref().and_then(|body| read_entity(body));
    }
    let known = object(access, access.url("/.well-known/nodeinfo")).await;
    let address = known
        .ok()
        .flatten()
        .and_then(|body| node_info_address(&body, access.address().url()));
    let node_info = match address {
        Some(address) => object(access, address).await.ok().flatten(),
        None => None,
    };
    let node_info = node_info.as_deref().and_then(|body| read_node_info(body));
    // NodeInfo has a field for the software; the entity's version begins with that of the API.
    let profile = node_info
        .unwrap_or_default()
        .or(entity.unwrap_or_default());
    Ok(profile.bounded())
}

/// The body of an answer 200 that is not too long; `None` of another.
async fn object(access: &Access, url: Url) -> Result<Option<Vec<u8>>, Failure> {
    let answer = access.fetch(url).await?;
    let is_usable = answer.status == StatusCode::OK && answer.body.len() <= MAX_BODY_BYTES;
    Ok(is_usable.then_some(answer.body))
}

/// Mastodon's `Instance` of either version.
fn read_entity(json: &[u8]) -> Option<InstanceProfile> {
    let object = body::object(json).ok()?;
    let text = |name: &str| object.text(name).unwrap_or_default().into_owned();
    let contact = object.object("contact");
    let account = match object.get("contact_account").and_then(RawObject::of) {
        Some(account) => account,
        None => contact.object("account"),
    };
    let maintainer = account
        .some_text("display_name")
        .or_else(|| account.some_text("username"));
    let short = object.some_text("short_description");
    Some(InstanceProfile {
        name: text("title"),
        description: match short {
            Some(short) => short.into_owned(),
            None => text("description"),
        },
        version: text("version"),
        software_name: String::new(),
        extensions: Vec::new(),
        maintainer_name: maintainer.unwrap_or_default().into_owned(),
    })
}

/// The address of the newest NodeInfo, if it is on the same server.
fn node_info_address(json: &[u8], server: &Url) -> Option<Url> {
    let object = body::object(json).ok()?;
    let version = |link: &RawObject<'_>| {
        let rel = link.text("rel")?;
        let version = rel.rsplit_once('/')?.1.to_owned();
        matches!(&*version, "2.0" | "2.1" | "1.0" | "1.1").then_some(version)
    };
    let links = object.objects("links");
    let newest = links
        .filter_map(|link| Some((version(&link)?, link.text("href")?.into_owned())))
        .max()?;
    let address = server.join(&newest.1).ok()?;
    (address.origin() == server.origin()).then_some(address)
}

fn read_node_info(json: &[u8]) -> Option<InstanceProfile> {
    let object = body::object(json).ok()?;
    let (software, metadata) = (object.object("software"), object.object("metadata"));
    let of = |object: &RawObject<'_>, name: &str| object.text(name).unwrap_or_default().into_owned();
    let texts = |object: &RawObject<'_>, name: &str| -> Vec<String> {
        let items = object.list(name).into_iter();
        items.filter_map(text).map(|item| item.into_owned()).collect()
    };
    let maintainer = metadata.object("maintainer");
    Some(InstanceProfile {
        name: of(&metadata, "nodeName"),
        description: of(&metadata, "nodeDescription"),
        version: of(&software, "version"),
        software_name: of(&software, "name"),
        extensions: [texts(&object, "protocols"), texts(&metadata, "features")].concat(),
        maintainer_name: of(&maintainer, "name"),
    })
}

/// No server says more of itself than that; lists of rules and of blocked servers are long.
const MAX_BODY_BYTES: usize = 512 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_the_entity_are_read() {
        let v2 = br#"{"domain":"a.example","title":"A","version":"4.5.0","description":"d","contact":{"account":{"username":"ann","display_name":""}}}"#;
        let v1 = br#"{"uri":"a.example","title":"A","version":"4.5.0","short_description":"d","description":"<p>long</p>","contact_account":{"username":"ann"}}"#;
        for json in [&v2[..], v1] {
            let profile = read_entity(json).expect("an entity");
            assert_eq!(profile.name, "A");
            assert_eq!(profile.description, "d");
            assert_eq!(profile.version, "4.5.0");
            assert_eq!(profile.maintainer_name, "ann");
        }
        assert_eq!(read_entity(b"[]"), None);
        assert_eq!(read_entity(br#"{"title":7}"#), Some(InstanceProfile::default()));
    }

    #[test]
    fn node_info_is_read_on_the_same_server_only() {
        let server = Url::parse("https://a.example").expect("a URL");
        let links = |href: &str| {
            format!(
                r#"{{"links":[{{"rel":"http://nodeinfo.diaspora.software/ns/schema/2.1","href":"{href}"}},{{"rel":"http://nodeinfo.diaspora.software/ns/schema/2.0","href":"https://a.example/old"}},7,{{"rel":"x","href":1}}]}}"#
            )
        };
        let found = |href: &str| {
            node_info_address(links(href).as_bytes(), &server).map(|url| url.to_string())
        };
        let address = "https://a.example/nodeinfo/2.1";
        assert_eq!(found(address).as_deref(), Some(address));
        assert_eq!(found("/nodeinfo/2.1").as_deref(), Some(address));
        for elsewhere in [
            "https://evil.example/",
            "http://a.example/x",
            "https://a.example:81/x",
            "file:///etc/passwd",
            "http://169.254.169.254/",
        ] {
            assert_eq!(found(elsewhere), None, "{elsewhere}");
        }
        let json = br#"{"version":"2.1","software":{"name":"pleroma","version":"2.9"},"protocols":["activitypub"],"metadata":{"nodeName":"N","nodeDescription":"D","features":["polls",7],"maintainer":{"name":"M"}}}"#;
        let profile = read_node_info(json).expect("NodeInfo");
        assert_eq!(profile.extensions, ["activitypub", "polls"]);
        assert_eq!((&*profile.software_name, &*profile.version), ("pleroma", "2.9"));
        assert_eq!((&*profile.name, &*profile.maintainer_name), ("N", "M"));
    }
}
