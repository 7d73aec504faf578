use strum::{EnumString, IntoStaticStr};

/// The kind of a notification, with the names of Mastodon's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum NotificationKind {
    /// Another account follows the account.
    Follow,
    /// Another account requests to follow it.
    FollowRequest,
    /// An account that it follows with `notify` has written a post.
    Status,
}

impl NotificationKind {
    /// Its name in the store and in Mastodon's API.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
