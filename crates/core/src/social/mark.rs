named_enum! {
    /// The kinds of marks for a post.
    pub enum Mark: "snake_case" {
        /// A bookmark.
        Bookmark,
        /// A favourite.
        Favourite,
    }
}

named_enum! {
    /// The timelines that have read markers.
    pub enum MarkedTimeline: "snake_case" {
        /// The home timeline.
        Home,
        /// Notifications.
        Notifications,
    }
}
