named_enum! {
    /// What a notification is of. Mastodon's API names them so, too.
    pub enum NotificationKind: "snake_case" {
        /// Somebody follows the account.
        Follow,
        /// Somebody asks to follow it.
        FollowRequest,
        /// An account that it follows with `notify` wrote a post.
        Status,
    }
}
