use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// What somebody can mark a post as.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Mark {
    /// To be found again.
    Bookmark,
    /// Liked.
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
