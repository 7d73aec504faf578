use super::growth_sums::Growth;

/// What is known about a stored post when its next refresh is planned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refreshed {
    /// When it was created_at, Unix ms.
    pub created_at_ms: Option<i64>,
    /// When its counts were last looked at, Unix ms: refreshed or, before that, first stored.
    pub refreshed_ms: i64,
    /// How many refreshes it has had.
    pub refreshes: u32,
    /// Its engagement then.
    pub total: f64,
    /// The look before that.
    pub before: Option<Look>,
    /// What a change of this post's counts is worth beside others': 1 as a rule.
    pub weight: f64,
    /// The source that it grows like: the one that it was first stored by, as the store numbers
    /// it; `None` if that is unknown.
    pub source: Option<u64>,
}

impl Refreshed {
    /// A post that was first stored at that Unix ms, with so much engagement.
    pub fn stored(created_at_ms: Option<i64>, at_ms: i64, total: f64) -> Self {
        Self {
            created_at_ms,
            refreshed_ms: at_ms,
            refreshes: 0,
            total,
            before: None,
            weight: 1.0,
            source: None,
        }
    }

    /// What is known once it has been refreshed at that Unix ms and had so much engagement.
    #[must_use]
    pub fn refreshed(self, at_ms: i64, total: f64) -> Self {
        Self {
            refreshed_ms: at_ms,
            refreshes: self.refreshes.saturating_add(1),
            total,
            before: Some(Look {
                at_ms: self.refreshed_ms,
                total: self.total,
            }),
            ..self
        }
    }

    /// What that refresh shows of how posts grow; `None` if its time of birth is unknown.
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

/// A look at a post's counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// When, Unix ms.
    pub at_ms: i64,
    /// Its engagement then.
    pub total: f64,
}
