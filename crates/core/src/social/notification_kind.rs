named_enum! {
    /// What a notification is of. Mastodon's API names them so, too.
    pub enum NotificationKind: "snake_case" {
        /// Another account follows the account.
        Follow,
        /// Another account requests to follow it.
        FollowRequest,
        /// An account that it follows with `notify` has written a post.
        Status,
    }
}
