use driftline_core::{feed::ChangeKind, post::Visibility};
use driftline_store::{LocalId, timeline::Viewer};

use crate::feed::FeedEvent;

/// What a client subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) timeline: Timeline,
    /// Only posts with media.
    pub(super) only_media: bool,
}

/// The timeline of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeline {
    Public,
    /// All posts come from other servers.
    Remote,
    /// Nothing is written here.
    Local,
    /// A source for the operator, and a list of its own for an account.
    List(LocalId),
    /// The home timeline, and notifications.
    User,
    /// Notifications alone.
    Notifications,
}

impl Channel {
    /// The channel of a name in a message or a query; `None` if there is none.
    pub(super) fn named(name: &str, list: Option<&str>) -> Option<Channel> {
        let (name, only_media) = match name.strip_suffix(":media") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let timeline = match name {
            "public" => Timeline::Public,
            "public:remote" => Timeline::Remote,
            "public:local" => Timeline::Local,
            "list" if !only_media => Timeline::List(list?.parse().ok()?),
            "user" if !only_media => Timeline::User,
            "user:notification" if !only_media => Timeline::Notifications,
            _ => return None,
        };
        Some(Channel {
            timeline,
            only_media,
        })
    }

    /// As messages name it.
    pub(super) fn names(self) -> Vec<String> {
        let media = if self.only_media { ":media" } else { "" };
        match self.timeline {
            Timeline::Public => vec![format!("public{media}")],
            Timeline::Remote => vec![format!("public:remote{media}")],
            Timeline::Local => vec![format!("public:local{media}")],
            Timeline::List(id) => vec!["list".to_owned(), id.to_string()],
            Timeline::User => vec!["user".to_owned()],
            Timeline::Notifications => vec!["user:notification".to_owned()],
        }
    }

    /// Whether notifications come there.
    pub(super) fn has_notifications(self) -> bool {
        matches!(self.timeline, Timeline::User | Timeline::Notifications)
    }

    /// Returns true if it is the channel of a list.
    pub(super) fn is_list(self) -> bool {
        matches!(self.timeline, Timeline::List(_))
    }

    /// Whether a change may be shown there, as far as can be said without the status.
    pub(super) fn may_show(self, viewer: Viewer, event: &FeedEvent) -> bool {
        let change = &event.change;
        match self.timeline {
            Timeline::Local | Timeline::Notifications => false,
            // Only the store knows.
            Timeline::User => true,
            // Only the store knows an account's lists.
            Timeline::List(list) => viewer.account().is_some() || list.raw() == event.source.raw(),
            // It is shown at one entry alone, which only the status names, if there still is one.
            Timeline::Public | Timeline::Remote => {
                (event.is_public || viewer != Viewer::Anonymous)
                    && change.row.post.visibility == Visibility::Public
                    && change.kind != ChangeKind::Left
            }
        }
    }
}
