//! Kinds of sources: the ways in which they get their posts.

named_enum! {
    /// The way in which a source gets its posts.
    #[derive(Default)]
    pub enum SourceKind: "snake_case" {
        /// A timeline of a server, which is polled.
        #[default]
        Polled,
        /// Posts that were requested one by one by their IDs. They are looked up.
        Tracked,
        /// Posts and accounts that were fetched for requests that show threads, addresses or names.
        Threads,
    }
}

impl SourceKind {
    /// True if pages of it are requested.
    pub const fn is_polled(self) -> bool {
        matches!(self, Self::Polled)
    }

    /// True if people find it by its name and see it in lists of sources.
    pub const fn is_listed(self) -> bool {
        !matches!(self, Self::Threads)
    }

    /// True if its entries have places in timelines of several sources. Posts of other sources are found in
    /// threads and by their IDs.
    pub const fn is_in_timelines(self) -> bool {
        !matches!(self, Self::Threads)
    }
}
