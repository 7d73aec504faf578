use super::value::Growth;

/// The refreshes of a stored post so far: the input for planning the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RefreshHistory {
    /// The time of its creation, in Unix ms.
    pub created_at_ms: Option<i64>,
    /// The time of its last counts, in Unix ms: of its last refresh or, before the first, of its
    /// first storage.
    pub refreshed_ms: i64,
    /// The number of its refreshes.
    pub refreshes: u32,
    /// Its engagement at that time.
    pub total: f64,
    /// The engagement at the previous answer.
    pub before: Option<EngagementSample>,
    /// The source whose learned engagement applies: the first that stored it, by its number in the store;
    /// `None` if unknown.
    pub source: Option<u64>,
}

impl RefreshHistory {
    /// The history of a post that was first stored at `at_ms`, in Unix ms, with this engagement.
    pub fn stored(created_at_ms: Option<i64>, at_ms: i64, total: f64) -> Self {
        Self {
            created_at_ms,
            refreshed_ms: at_ms,
            refreshes: 0,
            total,
            before: None,
            source: None,
        }
    }

    /// The history after a refresh at `at_ms`, in Unix ms, with this engagement.
    #[must_use]
    pub fn refreshed(self, at_ms: i64, total: f64) -> Self {
        Self {
            refreshed_ms: at_ms,
            refreshes: self.refreshes.saturating_add(1),
            total,
            before: Some(EngagementSample {
                at_ms: self.refreshed_ms,
                total: self.total,
            }),
            ..self
        }
    }

    /// The growth that such a refresh shows; `None` if the creation time is unknown.
    pub fn growth(&self, at_ms: i64, total: f64) -> Option<Growth> {
        let created_at_ms = self.created_at_ms?;
        Some(Growth {
            from_age_ms: self.refreshed_ms.saturating_sub(created_at_ms),
            from: self.total,
            to_age_ms: at_ms.saturating_sub(created_at_ms),
            to: total,
            is_first: self.refreshes == 0 && self.before.is_none(),
        })
    }
}

/// A post's engagement at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EngagementSample {
    /// The time in Unix ms.
    pub at_ms: i64,
    /// The engagement at that time.
    pub total: f64,
}
