//! Entries that leave a timeline while their posts stay.

use strum::VariantArray;

/// Entries that leave a timeline from a time on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Leave {
    /// Why.
    pub cause: LeaveCause,
    /// From when on, ms after the world's start.
    pub after_ms: i64,
    /// For how long, ms; `None` for good.
    pub for_ms: Option<i64>,
    /// The share of what the cause selects from.
    pub share: f64,
}

/// Why entries leave. Look-ups find their posts all the same, except boosts that were taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum LeaveCause {
    /// The reader blocks accounts.
    Block,
    /// The reader mutes accounts.
    Mute,
    /// The reader unfollows accounts.
    Unfollow,
    /// A filter of the reader hides posts.
    Filter,
    /// Boosts are taken back: they are gone, and what they boosted stays.
    Unboost,
    /// The timeline is built again, and not all of it is there.
    Rebuild,
}

impl LeaveCause {
    /// Whether pages leave the posts out after slicing, and so come out short.
    pub(crate) const fn shortens_pages(self) -> bool {
        matches!(self, Self::Block | Self::Mute | Self::Filter)
    }

    /// Whether whole accounts are concerned.
    pub(crate) const fn is_of_accounts(self) -> bool {
        matches!(self, Self::Block | Self::Mute | Self::Unfollow)
    }
}

impl Leave {
    /// When it begins and ends, ms after the world's start.
    pub(crate) fn span_ms(&self) -> (i64, i64) {
        let until_ms = self
            .for_ms
            .map(|for_ms| self.after_ms.saturating_add(for_ms));
        (self.after_ms, until_ms.unwrap_or(i64::MAX))
    }
}
