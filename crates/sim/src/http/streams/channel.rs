//! What can be streamed.

use serde::Deserialize;

use crate::{http::timeline::Timeline, status::Status};

/// One stream of events.
#[derive(Debug)]
pub(super) struct Channel {
    /// Its name and parameter, as messages of WebSockets carry them.
    pub(super) name: Vec<String>,
    pub(super) timeline: Timeline,
    /// Whether it shows posts of this server; `None`: of all.
    local: Option<bool>,
}

/// How a request names a stream.
#[derive(Debug, Deserialize)]
pub(super) struct StreamParams {
    pub(super) stream: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) list: Option<String>,
    pub(super) access_token: Option<String>,
}

impl Channel {
    /// The stream of that name; `None` if there is none.
    pub(super) fn of(stream: &str, params: &StreamParams) -> Option<Self> {
        let tag = || params.tag.clone().filter(|tag| !tag.is_empty());
        let (timeline, parameter, local) = match stream {
            "user" => (Timeline::Home, None, None),
            "public" => (Timeline::Public, None, None),
            "public:local" => (Timeline::Public, None, Some(true)),
            "public:remote" => (Timeline::Public, None, Some(false)),
            "hashtag" => (Timeline::Tag(tag()?), tag(), None),
            "hashtag:local" => (Timeline::Tag(tag()?), tag(), Some(true)),
            "list" => {
                let list = params.list.clone()?;
                (Timeline::List(list.parse().ok()?), Some(list), None)
            }
            _ => return None,
        };
        let mut name = vec![stream.to_owned()];
        name.extend(parameter);
        Some(Self {
            name,
            timeline,
            local,
        })
    }

    /// Whether it is for the token's owner only.
    pub(super) fn is_private(&self) -> bool {
        matches!(self.timeline, Timeline::Home | Timeline::List(_))
    }

    pub(super) fn shows(&self, status: &Status) -> bool {
        let local = status.author.host.is_none();
        self.local.is_none_or(|expected| expected == local)
    }
}
