use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The kinds of marks for a post.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Mark {
    /// A bookmark.
    Bookmark,
    /// A favourite.
    Favourite,
}

/// The timelines that have read markers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum MarkedTimeline {
    /// The home timeline.
    Home,
    /// Notifications.
    Notifications,
}

impl Mark {
    /// Its name in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl MarkedTimeline {
    /// Its name in Mastodon's API and in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
