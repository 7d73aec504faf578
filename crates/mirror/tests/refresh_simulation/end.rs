//! What has to hold at the end of a run.

use std::collections::{HashMap, HashSet};

use driftline_core::{answer::FailureKind, upstream_id::UpstreamId};
use driftline_sim::Upstream;
use driftline_store::StoreError;

use super::{LEASE_MS, LONGEST, MINUTE_MS, Simulation, WINDOW_MS};

impl Simulation {
    /// How long after its due time a post may be answered at the latest, once things are calm.
    pub(super) fn bound_ms(&self, posts: usize, poisonous: usize) -> i64 {
        let limit = if self.cut {
            (self.limit / 2).max(2)
        } else {
            self.limit
        };
        // Oldest first: each has its turn when all others had theirs. What is poisonous costs
        // requests of its own, and a part of the quota stays with polling.
        let batches = (posts.div_ceil(self.batch) + 2 * poisonous) as i64 + 1;
        let round_ms = batches * WINDOW_MS / i64::from(limit);
        // Once, each of those is searched for by halving.
        let halvings = poisonous as i64 * 2 * i64::from(self.batch.ilog2());
        let search_ms = halvings * WINDOW_MS / i64::from(limit);
        3 * round_ms + search_ms + WINDOW_MS + LEASE_MS
    }

    pub(super) fn check_end(mut self, named: &HashSet<UpstreamId>) {
        let end_ms = self.now_ms;
        let mut truth = self.upstream.truth(end_ms);
        for post in &mut truth.posts {
            post.id = post.id.stable();
        }
        self.upstream
            .change_faults(|faults| faults.throttles.clear());
        let poison = |upstream: &mut Upstream, id: &UpstreamId| {
            let kinds = [
                FailureKind::ServerError,
                FailureKind::Refused,
                FailureKind::Unreachable,
            ];
            match upstream.look_up(end_ms, "token", id) {
                Err(failure) => kinds.contains(&failure.kind),
                Ok(_) => false,
            }
        };
        let every_ms = if self.by_value {
            assert!(self.postponed > 0, "nothing was put off");
            6 * MINUTE_MS * LONGEST as i64
        } else {
            6 * MINUTE_MS
        };
        let posts = named.len();
        let poisonous = named
            .iter()
            .filter(|id| poison(&mut self.upstream, id))
            .count();
        let bound_ms = every_ms + self.bound_ms(posts, poisonous);
        let standings = self.standings();
        assert_eq!(
            self.scheduled(),
            standings.values().filter(|due| due.0.is_some()).count()
        );
        let mut compared = 0;
        for post in &truth.posts {
            if !named.contains(&post.id) || post.visible_at_ms > self.calm_from_ms {
                continue;
            }
            let is_hidden = self
                .upstream
                .world()
                .hidden_at_ms(&post.id)
                .is_some_and(|at_ms| at_ms <= end_ms);
            if post
                .deleted_at_ms
                .is_some_and(|at_ms| at_ms < end_ms - bound_ms - MINUTE_MS)
            {
                let known = self.deleted.contains(&post.id);
                let poisoned = poison(&mut self.upstream, &post.id);
                let is_lost = poisoned || post.is_unreadable || post.boost_of.is_some();
                assert!(known || is_lost, "not known to be deleted: {}", post.id);
                continue;
            }
            if post.deleted_at_ms.is_some()
                || is_hidden
                || poison(&mut self.upstream, &post.id)
                || self.is_not_found(&post.id)
            {
                continue;
            }
            let Some((due, refreshed_ms, favourites)) = standings.get(&post.id) else {
                panic!("never stored: {}", post.id);
            };
            assert!(due.is_some(), "without a due time: {}", post.id);
            let age_ms = end_ms - refreshed_ms;
            assert!(
                age_ms <= bound_ms,
                "{} was not refreshed for {age_ms} ms; the bound is {bound_ms} ms; limit {}, {posts} posts, {} deaths",
                post.id,
                self.limit,
                self.deaths,
            );
            let Some((_, newest)) = self.newest.get(&post.id) else {
                // A pending look-up whose time is not over.
                continue;
            };
            assert_eq!(
                favourites, newest,
                "{}: the newest answer is not stored",
                post.id
            );
            compared += 1;
        }
        self.check_edits(&truth);
        self.due_times.check_met();
        assert!(compared > 5, "only {compared} posts were compared");
        if !self.cut {
            let unknown = self.blind.saturating_sub(self.limit);
            assert!(self.throttled <= unknown, "the quota was overrun");
        }
        self.store.close_blocking();
    }

    /// Each stored post's due time, when it was last answered, and its favourites; pending look-ups too.
    #[allow(clippy::type_complexity)]
    fn standings(&self) -> HashMap<UpstreamId, (Option<i64>, i64, Option<i64>)> {
        self.store
            .read_blocking(|tx| {
                let rows = tx.query(
                    "select coalesce(p.upstream_id, w.upstream_id), f.due_at_ms,
                         f.refreshed_at_ms, f.favourites
                     from freshness f left join post p on p.id = f.post_id
                         left join pending_lookup w on w.lookup_id = f.post_id",
                    &[],
                    |row| {
                        let id = UpstreamId::new(row.text(0)?);
                        Ok((id, (row.opt_i64(1)?, row.i64(2)?, row.opt_i64(3)?)))
                    },
                )?;
                Ok::<_, StoreError>(rows.into_iter().collect())
            })
            .unwrap()
    }

    fn scheduled(&self) -> usize {
        let count = self.store.read_blocking(|tx| {
            let count = tx.query_one("select count(*) from schedule", &[], |row| row.i64(0))?;
            Ok::<_, StoreError>(count)
        });
        usize::try_from(count.unwrap()).unwrap()
    }
}
