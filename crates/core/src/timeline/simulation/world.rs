//! Posts with a time in their ID and a time of becoming visible.

use std::collections::VecDeque;

use super::workload::Workload;
use crate::{answer::Throttle, rng::Rng};

/// The posts of a workload, generated as time passes and dropped once no poller reads them.
pub(super) struct World {
    pub(super) workload: Workload,
    rng: Rng,
    /// The time of the next post, in ms after the start.
    next_ms: f64,
    /// The time up to which posts were made, in ms after the start.
    made_ms: i64,
    ends_ms: i64,
    pub(super) proven_ms: Option<i64>,
    /// Sorted by ID.
    pub(super) posts: VecDeque<Post>,
    /// The number of dropped posts.
    pub(super) gone: u64,
    /// The dropped posts that were never stored.
    missed: Vec<Post>,
    sequence: u64,
    /// The last window of the throttle.
    pub(super) window: Option<Throttle>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Post {
    /// In Mastodon's layout: ms since the epoch above 16 bits.
    pub(super) id: u64,
    pub(super) visible_at_ms: i64,
    pub(super) is_stored: bool,
}

impl World {
    pub(super) fn new(workload: Workload, seed: u64) -> Self {
        Self {
            workload,
            rng: Rng::new(seed),
            next_ms: 0.0,
            made_ms: 0,
            ends_ms: i64::MAX,
            proven_ms: None,
            posts: VecDeque::new(),
            gone: 0,
            missed: Vec::new(),
            sequence: 0,
            window: None,
        }
    }

    /// The time of the first poll in Unix ms.
    pub(super) fn first_poll_ms(&self) -> i64 {
        START_MS + self.workload.history_ms
    }

    /// Makes the posts that are written up to `now_ms`, in Unix ms.
    pub(super) fn make_until(&mut self, now_ms: i64) {
        let until_ms = (now_ms - START_MS).min(self.ends_ms);
        if until_ms <= self.made_ms {
            return;
        }
        self.made_ms = until_ms;
        while self.next_ms < until_ms as f64 {
            let at_ms = self.next_ms;
            let (step_ms, late_ms) = self.workload.draw(&mut self.rng, at_ms, self.proven_ms);
            self.next_ms += step_ms;
            self.sequence = (self.sequence + 1) & 0xffff;
            let id_ms = START_MS + at_ms as i64;
            let id = ((id_ms as u64) << 16) | self.sequence;
            // A sequence that begins again may place a post after another one of its ms.
            let above = self.posts.iter().rev().take_while(|other| other.id > id);
            let index = self.posts.len() - above.count();
            let post = Post {
                id,
                visible_at_ms: id_ms + late_ms as i64,
                is_stored: false,
            };
            self.posts.insert(index, post);
        }
    }

    /// Ends the posts at `at_ms`, in Unix ms.
    pub(super) fn end(&mut self, at_ms: i64) {
        self.ends_ms = at_ms - START_MS;
    }

    /// Drops posts older than `before_ms`, in Unix ms.
    pub(super) fn drop_older(&mut self, before_ms: i64) {
        let is_old = |post: &mut Post| time_ms(post.id) < before_ms;
        while let Some(post) = self.posts.pop_front_if(is_old) {
            self.gone += 1;
            if !post.is_stored {
                self.missed.push(post);
            }
        }
    }

    /// The posts that are not stored.
    pub(super) fn missed(&self) -> impl Iterator<Item = &Post> {
        let unread = self.posts.iter().filter(|post| !post.is_stored);
        self.missed.iter().chain(unread)
    }

    pub(super) fn first_above(&self, id: u64) -> usize {
        self.posts.partition_point(|post| post.id <= id)
    }

    pub(super) fn first_at(&self, id: u64) -> usize {
        self.posts.partition_point(|post| post.id < id)
    }
}

pub(super) fn time_ms(id: u64) -> i64 {
    (id >> 16) as i64
}

/// October 2025.
pub(super) const START_MS: i64 = 1_760_000_000_000;
