//! The timelines that can be mirrored.

use std::{fmt, str::FromStr};

use driftline_core::{api::Api, upstream_id::UpstreamId};

use crate::{segment, tweet::is_id};

/// A timeline of an upstream, written `home`, `public`, `local`, `remote`,
/// `mentions`, `tag:NAME`, `list:ID` or `account:ID`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Timeline {
    /// What the token's owner follows.
    Home,
    /// Every public post that the server knows.
    Public,
    /// Public posts of the server's own accounts.
    Local,
    /// Public posts of other servers' accounts.
    Remote,
    /// Public posts under a hashtag, without its `#`.
    Tag(String),
    /// A list of the token's owner.
    List(UpstreamId),
    /// An account's posts.
    Account(UpstreamId),
    /// Posts that mention the token's owner, at the position of their
    /// notification.
    Mentions,
}

impl Timeline {
    /// Path and query on a Mastodon server, without a page's bounds.
    pub fn path_and_query(&self) -> String {
        match self {
            Self::Home => "/api/v1/timelines/home".to_owned(),
            Self::Public => "/api/v1/timelines/public".to_owned(),
            Self::Local => "/api/v1/timelines/public?local=true".to_owned(),
            Self::Remote => "/api/v1/timelines/public?remote=true".to_owned(),
            Self::Tag(name) => format!("/api/v1/timelines/tag/{}", segment::encoded(name)),
            Self::List(id) => format!("/api/v1/timelines/list/{}", segment::encoded(id.as_str())),
            Self::Account(id) => format!(
                "/api/v1/accounts/{}/statuses",
                segment::encoded(id.as_str())
            ),
            Self::Mentions => "/api/v1/notifications?types[]=mention".to_owned(),
        }
    }

    /// The kind of timeline, without what it is of: servers implement each in one way.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Public => "public",
            Self::Local => "local",
            Self::Remote => "remote",
            Self::Tag(_) => "tag",
            Self::List(_) => "list",
            Self::Account(_) => "account",
            Self::Mentions => "mentions",
        }
    }

    /// Whether only a log-in can see it, so that a token is needed.
    pub const fn needs_token(&self) -> bool {
        matches!(self, Self::Home | Self::List(_) | Self::Mentions)
    }

    /// Whether servers of this API can have it.
    ///
    /// # Errors
    /// [`TimelineError`] saying why not.
    pub fn check_for(&self, api: Api) -> Result<(), TimelineError> {
        match self {
            _ if api == Api::Mastodon => Ok(()),
            Self::Public | Self::Local | Self::Remote | Self::Tag(_) => {
                Err(TimelineError::NotOf(api, self.to_string()))
            }
            Self::List(id) | Self::Account(id) if !is_id(id) => {
                Err(TimelineError::NotANumber(api, id.to_string()))
            }
            Self::Home | Self::Mentions | Self::List(_) | Self::Account(_) => Ok(()),
        }
    }

    /// Whether servers that stream can stream it.
    pub const fn has_stream(&self) -> bool {
        !matches!(self, Self::Account(_) | Self::Mentions)
    }
}

impl FromStr for Timeline {
    type Err = TimelineError;

    fn from_str(text: &str) -> Result<Self, TimelineError> {
        match text {
            "home" => return Ok(Self::Home),
            "public" => return Ok(Self::Public),
            "local" => return Ok(Self::Local),
            "remote" => return Ok(Self::Remote),
            "mentions" => return Ok(Self::Mentions),
            _ => {}
        }
        match text.split_once(':') {
            Some(("tag", name)) => tag(name).map(Self::Tag),
            Some(("list", of)) => id(of).map(Self::List),
            Some(("account", of)) => id(of).map(Self::Account),
            _ => Err(TimelineError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Home => f.write_str("home"),
            Self::Public => f.write_str("public"),
            Self::Local => f.write_str("local"),
            Self::Remote => f.write_str("remote"),
            Self::Tag(name) => write!(f, "tag:{name}"),
            Self::List(id) => write!(f, "list:{id}"),
            Self::Account(id) => write!(f, "account:{id}"),
            Self::Mentions => f.write_str("mentions"),
        }
    }
}

/// A text that names no timeline.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimelineError {
    /// None of the forms.
    #[error(
        "{0:?} names no timeline; write home, public, local, remote, mentions, tag:NAME, list:ID, account:ID or account:@user@host"
    )]
    Unknown(String),
    /// A hashtag that cannot be one.
    #[error(
        "invalid hashtag {0:?}: expected letters or digits, without spaces and punctuation, for example tag:rust"
    )]
    Tag(String),
    /// An ID that cannot be one.
    #[error(
        "invalid ID {0:?}: expected one as in the server's API, for example list:42 or account:109348684"
    )]
    Id(String),
    /// A name where an ID belongs.
    #[error(
        "{0:?} is a name, not an ID; the server's /api/v1/accounts/lookup?acct=NAME shows the account's ID"
    )]
    Name(String),
    /// One that the API does not have.
    #[error(
        "servers that speak {0} have no timeline {1}; write home, mentions, list:ID or account:ID"
    )]
    NotOf(Api, String),
    /// An ID that the API cannot have given.
    #[error("invalid ID {1:?}: those of {0} are numbers")]
    NotANumber(Api, String),
}

fn tag(name: &str) -> Result<String, TimelineError> {
    let bare = name.strip_prefix('#').unwrap_or(name);
    let never_in_tags = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || (c.is_ascii_punctuation() && c != '_' && c != '-' && c != '\'')
    };
    let is_long = bare.chars().nth(MAX_TAG_CHARS).is_some();
    if is_long || !bare.contains(char::is_alphanumeric) || bare.contains(never_in_tags) {
        let shown = name.chars().take(MAX_TAG_CHARS).collect();
        return Err(TimelineError::Tag(shown));
    }
    Ok(bare.to_owned())
}

/// More than any server takes.
const MAX_TAG_CHARS: usize = 250;

fn id(text: &str) -> Result<UpstreamId, TimelineError> {
    if text.contains('@') {
        return Err(TimelineError::Name(text.to_owned()));
    }
    if !segment::is_usable(text) || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(TimelineError::Id(text.to_owned()));
    }
    Ok(UpstreamId::from(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_has_its_path() {
        for (text, path) in [
            ("home", "/api/v1/timelines/home"),
            ("public", "/api/v1/timelines/public"),
            ("local", "/api/v1/timelines/public?local=true"),
            ("remote", "/api/v1/timelines/public?remote=true"),
            ("tag:rust", "/api/v1/timelines/tag/rust"),
            ("tag:#rust", "/api/v1/timelines/tag/rust"),
            ("tag:猫", "/api/v1/timelines/tag/%E7%8C%AB"),
            ("list:42", "/api/v1/timelines/list/42"),
            ("account:01H/2", "/api/v1/accounts/01H%2F2/statuses"),
            ("mentions", "/api/v1/notifications?types[]=mention"),
        ] {
            let timeline: Timeline = text.parse().expect(text);
            assert_eq!(timeline.path_and_query(), path);
        }
    }

    #[test]
    fn what_names_no_timeline_is_refused() {
        for text in ["", "Home", "homes", "user:1", "tag", "list", "public:"] {
            assert!(matches!(
                text.parse::<Timeline>(),
                Err(TimelineError::Unknown(_))
            ));
        }
        let long = format!("tag:{}", "é".repeat(MAX_TAG_CHARS + 1));
        for text in [
            "tag:", "tag:#", "tag:a b", "tag:a/b", "tag:..", "tag:a?b", "tag:-", "tag:_'", &long,
        ] {
            assert!(
                matches!(text.parse::<Timeline>(), Err(TimelineError::Tag(_))),
                "{text}"
            );
        }
        for text in ["list:", "account:", "list:..", "account:a b", "list:é"] {
            assert!(
                matches!(text.parse::<Timeline>(), Err(TimelineError::Id(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn names_of_accounts_are_no_ids() {
        for text in ["account:@ann", "account:ann@a.example", "list:@x"] {
            let parsed = text.parse::<Timeline>();
            assert!(matches!(parsed, Err(TimelineError::Name(_))), "{text}");
        }
    }

    #[test]
    fn each_api_has_timelines_of_its_own() {
        let fits = |text: &str, api| text.parse::<Timeline>().expect(text).check_for(api).is_ok();
        for text in ["home", "mentions", "list:42", "account:42"] {
            for api in [Api::Mastodon, Api::X, Api::Twitter] {
                assert!(fits(text, api), "{text} of {api}");
            }
        }
        for text in [
            "public",
            "local",
            "remote",
            "tag:rust",
            "list:abc",
            "account:01H",
        ] {
            assert!(fits(text, Api::Mastodon), "{text}");
            assert!(!fits(text, Api::X) && !fits(text, Api::Twitter), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_text_of_a_timeline_parses_back(timeline in timelines()) {
            prop_assert_eq!(timeline.to_string().parse::<Timeline>(), Ok(timeline));
        }
    }

    fn timelines() -> impl Strategy<Value = Timeline> {
        prop_oneof![
            Just(Timeline::Home),
            Just(Timeline::Public),
            Just(Timeline::Local),
            Just(Timeline::Remote),
            Just(Timeline::Mentions),
            "[\\p{L}\\p{Nd}][\\p{L}\\p{N}_]{0,19}".prop_map(Timeline::Tag),
            "[0-9A-Za-z:_-]{1,30}".prop_map(|id| Timeline::List(id.as_str().into())),
            "[0-9A-Za-z:_-]{1,30}".prop_map(|id| Timeline::Account(id.as_str().into())),
        ]
    }
}
