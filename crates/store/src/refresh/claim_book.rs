//! The memory of a process's claims. On SQLite, where the process is alone, it has the holders. On
//! PostgreSQL, it has the time of the last check for ended leases.

use std::collections::HashMap;

use driftline_core::clock::is_ahead;

/// The posts that this process has claimed, each until a time, and the times of its checks for
/// ended leases.
#[derive(Debug, Default)]
pub(crate) struct ClaimBook {
    held: HashMap<i64, Entry>,
    last_id: i64,
    looked_ms: HashMap<i64, i64>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    claim: i64,
    from_ms: i64,
    until_ms: i64,
}

impl Entry {
    /// True if the claim has not ended, neither by its end nor because the clock was set back
    /// since.
    fn lasts(self, now_ms: i64) -> bool {
        self.until_ms > now_ms && !is_ahead(self.from_ms, now_ms)
    }
}

impl ClaimBook {
    /// True if a claim that has not ended contains the post.
    pub(crate) fn holds(&self, post_id: i64, now_ms: i64) -> bool {
        self.held
            .get(&post_id)
            .is_some_and(|entry| entry.lasts(now_ms))
    }

    /// The number of claimed posts, including those of ended claims.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Removes the claims that have ended.
    pub(crate) fn clear_ended(&mut self, now_ms: i64) {
        self.held.retain(|_, entry| entry.lasts(now_ms));
    }

    /// Adds a claim; returns its ID.
    pub(crate) fn take(
        &mut self,
        posts: impl Iterator<Item = i64>,
        (from_ms, until_ms): (i64, i64),
    ) -> i64 {
        self.last_id += 1;
        let claim = self.last_id;
        let entry = Entry {
            claim,
            from_ms,
            until_ms,
        };
        self.held.extend(posts.map(|post_id| (post_id, entry)));
        claim
    }

    /// True if the claim still contains all of these posts.
    pub(crate) fn is_whole(
        &self,
        claim: i64,
        mut posts: impl Iterator<Item = i64>,
        now_ms: i64,
    ) -> bool {
        posts.all(|post_id| {
            self.held
                .get(&post_id)
                .is_some_and(|entry| entry.claim == claim && entry.lasts(now_ms))
        })
    }

    /// Removes the rest of a claim.
    pub(crate) fn end(&mut self, claim: i64, posts: impl Iterator<Item = i64>) {
        for post_id in posts {
            if self.held.get(&post_id).is_some_and(|e| e.claim == claim) {
                self.held.remove(&post_id);
            }
        }
    }

    /// True if a check for ended leases of a bucket is due. It then counts as done.
    pub(crate) fn is_time_for_ended(&mut self, bucket: i64, now_ms: i64) -> bool {
        let looked_ms = self.looked_ms.entry(bucket).or_insert(i64::MIN);
        // A clock that was set back does not stop the checks.
        let is_time = now_ms < *looked_ms || now_ms.saturating_sub(*looked_ms) >= LOOK_EVERY_MS;
        if is_time {
            *looked_ms = now_ms;
        }
        is_time
    }
}

/// Short compared to a lease.
const LOOK_EVERY_MS: i64 = 1_000;
