named_enum! {
    /// The kind of a notification, with the names of Mastodon's API.
    pub enum NotificationKind: "snake_case" {
        /// Another account follows the account.
        Follow,
        /// Another account requests to follow it.
        FollowRequest,
        /// An account that it follows with `notify` has written a post.
        Status,
    }
}
