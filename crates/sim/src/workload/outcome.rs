//! The outcome of a run.

use super::server::WorkloadServer;

/// The results of a poller on a workload.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PollerOutcome {
    /// The number of posts that were visible by the last rung's age, from the first poll on.
    pub posts: u64,
    /// The number of these that are not stored.
    pub missed: u64,
    /// The number of missed posts whose range is listed as unread, as passed over, or as still to
    /// be read again.
    pub listed: u64,
    /// The number of requests.
    pub requests: u64,
    /// The time from the beginning to the proof of the bound, in ms; `None` if it was not proven.
    pub proven_after_ms: Option<i64>,
    /// The posts fetched for each post stored before the bound was proven.
    pub fetches_before: f64,
    /// The same after the proof.
    pub fetches_after: f64,
    /// The delays from visible to stored after the proof, or all delays if there was none.
    pub delays: Delays,
    /// The same delays for posts that were visible more than a second after their ID's time.
    pub late_delays: Delays,
    /// The posts that were written after the first poll and were visible within [`EARLY_MS`] of it.
    pub early: Vec<EarlyPost>,
    /// The changes of the plan.
    pub plans: Vec<PlanChange>,
}

/// A stored post of the first minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlyPost {
    /// The time from its ID to its visibility, in ms.
    pub late_ms: i64,
    /// The time from its visibility to its storage, in ms.
    pub delay_ms: i64,
}

/// Posts that are visible within this time after the first poll are early, in ms.
pub const EARLY_MS: i64 = 120_000;

/// A change of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanChange {
    /// The time since the beginning in ms.
    pub at_ms: i64,
    /// The overlap in ms.
    pub overlap_ms: i64,
    /// The ages of its looks in ms.
    pub looks_ms: Vec<i64>,
    /// True if its bound was proven.
    pub is_proven: bool,
}

/// Sorted delays from visible to stored, in ms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delays(Vec<i64>);

impl From<Vec<i64>> for Delays {
    fn from(mut delays_ms: Vec<i64>) -> Self {
        delays_ms.sort_unstable();
        Self(delays_ms)
    }
}

impl Delays {
    /// The number of delays.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The delay that this share of them does not exceed, in ms; zero if there are none.
    pub fn quantile_ms(&self, share: f64) -> i64 {
        let index = (share * self.0.len() as f64).ceil() as usize;
        let at = self.0.get(index.saturating_sub(1)).or(self.0.last());
        at.copied().unwrap_or(0)
    }
}

/// The number of posts that a poller has fetched and stored.
#[derive(Debug, Default)]
pub(super) struct Tally {
    fetched: u64,
    stored: u64,
    /// The delays from visible to stored, in ms.
    pub(super) delays: Vec<i64>,
    /// The same delays for posts that were visible more than a second after their ID's time.
    pub(super) late_delays: Vec<i64>,
    pub(super) early: Vec<EarlyPost>,
}

impl Tally {
    /// Counts the posts of an answer.
    pub(super) fn fetched(&mut self, posts: usize) {
        self.fetched += posts as u64;
    }

    /// Stores a page's posts at `now_ms`, in Unix ms, and returns for each true if it is new.
    /// Delays are counted for posts written at `from_ms` or later.
    pub(super) fn store(
        &mut self,
        server: &mut WorkloadServer,
        page: &[usize],
        now_ms: i64,
        from_ms: i64,
    ) -> Vec<bool> {
        let mut is_new = Vec::with_capacity(page.len());
        for &index in page {
            let post = &mut server.posts[index];
            is_new.push(!post.is_stored);
            if std::mem::replace(&mut post.is_stored, true) {
                continue;
            }
            self.stored += 1;
            if post.id_ms() >= from_ms {
                let delay_ms = now_ms - post.visible_at_ms;
                let late_ms = post.visible_at_ms - post.id_ms();
                self.delays.push(delay_ms);
                if late_ms > 1_000 {
                    self.late_delays.push(delay_ms);
                }
                if post.visible_at_ms < from_ms + EARLY_MS {
                    self.early.push(EarlyPost { late_ms, delay_ms });
                }
            }
        }
        is_new
    }

    /// The posts fetched for each post stored.
    pub(super) fn fetches(&self) -> f64 {
        self.fetched as f64 / self.stored.max(1) as f64
    }
}
