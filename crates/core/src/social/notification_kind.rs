use strum::{EnumString, IntoStaticStr};

/// What a notification is of. Mastodon's API names them so, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum NotificationKind {
    /// Somebody follows the account.
    Follow,
    /// Somebody asks to follow it.
    FollowRequest,
    /// An account that it follows with `notify` wrote a post.
    Status,
}

impl NotificationKind {
    /// Its name in the store and in Mastodon's API.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
