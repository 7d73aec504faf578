//! The outcome of a run.

use super::world::{World, time_ms};

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
    /// The posts that were written after the first poll and visible within [`EARLY_MS`] of it.
    pub early: Vec<EarlyPost>,
    /// The changes of the plan.
    pub plans: Vec<PlanChange>,
}

/// A post of the first minutes that was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlyPost {
    /// From its ID's time to being visible, ms.
    pub late_ms: i64,
    /// From being visible to being stored, ms.
    pub delay_ms: i64,
}

/// Posts that are visible this soon after the first poll are early, ms.
pub const EARLY_MS: i64 = 120_000;

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

/// Delays from visible to stored, in order, ms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delays(Vec<i64>);

impl From<Vec<i64>> for Delays {
    fn from(mut delays_ms: Vec<i64>) -> Self {
        delays_ms.sort_unstable();
        Self(delays_ms)
    }
}

impl Delays {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The delay that this share of them does not pass, ms; zero without any.
    pub fn quantile_ms(&self, share: f64) -> i64 {
        let index = (share * self.0.len() as f64).ceil() as usize;
        let at = self.0.get(index.saturating_sub(1)).or(self.0.last());
        at.copied().unwrap_or(0)
    }
}

/// What a poller has fetched and stored.
#[derive(Debug, Default)]
pub(super) struct Tally {
    fetched: u64,
    stored: u64,
    /// From visible to stored, ms.
    pub(super) delays: Vec<i64>,
    /// The same, of posts that were visible more than a second after their ID's time.
    pub(super) late_delays: Vec<i64>,
    pub(super) early: Vec<EarlyPost>,
}

impl Tally {
    /// Counts the posts of an answer.
    pub(super) fn fetched(&mut self, posts: usize) {
        self.fetched += posts as u64;
    }

    /// Stores a page's posts at a time, Unix ms, and says of each whether it is new. Delays count
    /// for posts written at `from_ms` or later.
    pub(super) fn store(
        &mut self,
        world: &mut World,
        page: &[usize],
        now_ms: i64,
        from_ms: i64,
    ) -> Vec<bool> {
        let mut is_new = Vec::with_capacity(page.len());
        for &index in page {
            let post = &mut world.posts[index];
            is_new.push(!post.is_stored);
            if std::mem::replace(&mut post.is_stored, true) {
                continue;
            }
            self.stored += 1;
            if time_ms(post.id) >= from_ms {
                let delay_ms = now_ms - post.visible_at_ms;
                let late_ms = post.visible_at_ms - time_ms(post.id);
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

    /// Posts fetched for each post stored.
    pub(super) fn fetches(&self) -> f64 {
        self.fetched as f64 / self.stored.max(1) as f64
    }
}
