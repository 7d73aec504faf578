named_enum! {
    /// The kinds of objects of an account's library. The name of an object's kind begins its key.
    pub enum ObjectKind: "kebab-case" {
        /// A bookmarked post.
        Bookmark,
        /// A favourite post.
        Favourite,
        /// A list of accounts, or a saved predicate.
        List,
        /// An account of a list.
        ListMember,
        /// A read marker of a timeline.
        Marker,
        /// A filter with its keywords and posts.
        Filter,
        /// A note on a post.
        Note,
        /// A post that is not posted yet.
        Draft,
        /// The account's own profile.
        Profile,
        /// A follow of an account, or a request to follow it.
        Follow,
        /// A block of an account.
        Block,
        /// A mute of an account.
        Mute,
        /// A note on an account.
        AccountNote,
    }
}

impl ObjectKind {
    /// True if devices delete objects of this kind.
    pub fn is_deletable(self) -> bool {
        !matches!(self, Self::Marker | Self::Profile)
    }

    /// The members of values that only the server gives.
    pub(super) fn server_members(self) -> &'static [&'static str] {
        self.rules().0
    }

    /// True if the objects are members of a set: they are added and deleted, but not changed.
    pub(super) fn is_in_set(self) -> bool {
        self.rules().1
    }

    fn rules(self) -> (&'static [&'static str], bool) {
        match self {
            Self::Bookmark => (&["post", "added", COPY], true),
            Self::Favourite => (&["post"], true),
            Self::ListMember | Self::Block => (&["account"], true),
            Self::Mute | Self::AccountNote => (&["account"], false),
            // The followed account accepts the follow.
            Self::Follow => (&["account", "requested"], false),
            Self::List | Self::Marker | Self::Filter | Self::Note | Self::Draft | Self::Profile => {
                (&[], false)
            }
        }
    }
}

/// The member of a bookmark's value that has the copy of its post.
pub(super) const COPY: &str = "status";
