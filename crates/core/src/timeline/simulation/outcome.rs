//! The outcome of a run.

/// The results of a poller on a workload.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PollerOutcome {
    /// Posts that were visible, by the last rung's age, from the first poll on.
    pub posts: u64,
    /// Of these, posts that are not stored.
    pub missed: u64,
    /// Of the missed ones, posts whose range is listed: as unread, as passed over, or as still to be
    /// read again.
    pub listed: u64,
    /// Requests.
    pub requests: u64,
    /// When the bound was proven, ms after the beginning; `None` if it was not.
    pub proven_after_ms: Option<i64>,
    /// Posts fetched for each post stored before the bound was proven.
    pub fetches_before: f64,
    /// The same from then on.
    pub fetches_after: f64,
    /// From visible to stored, from then on (of all, where it never was).
    pub delays: Delays,
    /// The same, of posts that were visible more than a second after their ID's time.
    pub late_delays: Delays,
    /// The changes of the plan.
    pub plans: Vec<PlanChange>,
}

/// A change of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanChange {
    /// When, ms after the beginning.
    pub at_ms: i64,
    /// The overlap, ms.
    pub overlap_ms: i64,
    /// The ages of its looks, ms.
    pub looks_ms: Vec<i64>,
    /// Whether its bound was proven.
    pub is_proven: bool,
}

/// Delays from visible to stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delays(Vec<i64>);

impl Delays {
    pub(super) fn of(mut delays_ms: Vec<i64>) -> Self {
        delays_ms.sort_unstable();
        Self(delays_ms)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The delay that this share of them does not pass, ms; zero without any.
    pub fn quantile_ms(&self, share: f64) -> i64 {
        let last = self.0.len().saturating_sub(1);
        let index = (share * self.0.len() as f64).ceil() as usize;
        self.0
            .get(index.saturating_sub(1).min(last))
            .copied()
            .unwrap_or(0)
    }
}
