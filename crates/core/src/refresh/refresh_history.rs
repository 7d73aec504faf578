use super::value::Growth;

/// The refreshes of a stored post so far: the input for planning the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RefreshHistory {
    /// When it was created, Unix ms.
    pub created_at_ms: Option<i64>,
    /// When its counts were last looked at, Unix ms: refreshed or, before that, first stored.
    pub refreshed_ms: i64,
    /// How many refreshes it has had.
    pub refreshes: u32,
    /// Its engagement then.
    pub total: f64,
    /// The engagement at the look before that.
    pub before: Option<EngagementSample>,
    /// The source whose learned engagement applies: the first to store it, by its number in the store;
    /// `None` if unknown.
    pub source: Option<u64>,
}

impl RefreshHistory {
    /// A post that was first stored at that Unix ms, with this engagement.
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

    /// The history after a refresh at that Unix ms that found this engagement.
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
    /// When, Unix ms.
    pub at_ms: i64,
    /// Its engagement then.
    pub total: f64,
}
