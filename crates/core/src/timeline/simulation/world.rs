//! Posts with a time in their ID and a time at which they become visible.

use std::collections::VecDeque;

use super::workload::Workload;
use crate::rng::Rng;

/// The posts of a workload, generated as time passes and dropped once no poller reads them.
pub(super) struct World {
    workload: Workload,
    rng: Rng,
    start_ms: i64,
    /// The time of the next post, ms after the start.
    next_ms: f64,
    /// Made up to this time, ms after the start.
    made_ms: i64,
    ends_ms: i64,
    pub(super) proven_ms: Option<i64>,
    /// By ID.
    posts: VecDeque<Post>,
    /// How many were dropped.
    pub(super) gone: u64,
    /// Posts that are visible and were never stored, among those dropped.
    pub(super) missed: Vec<Post>,
    sequence: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Post {
    /// Mastodon's layout: ms since the epoch above 16 bits.
    pub(super) id: u64,
    pub(super) visible_at_ms: i64,
    pub(super) stored_at_ms: Option<i64>,
}

impl World {
    pub(super) fn new(workload: Workload, seed: u64, start_ms: i64) -> Self {
        Self {
            workload,
            rng: Rng::new(seed),
            start_ms,
            next_ms: 0.0,
            made_ms: 0,
            ends_ms: i64::MAX,
            proven_ms: None,
            posts: VecDeque::new(),
            gone: 0,
            missed: Vec::new(),
            sequence: 0,
        }
    }

    /// Makes the posts that are written up to a time, Unix ms.
    pub(super) fn make_until(&mut self, now_ms: i64) {
        let until_ms = (now_ms - self.start_ms).min(self.ends_ms);
        if until_ms <= self.made_ms {
            return;
        }
        self.made_ms = until_ms;
        while self.next_ms < until_ms as f64 {
            let at_ms = self.next_ms;
            let (step_ms, late_ms) = self.workload.draw(&mut self.rng, at_ms, self.proven_ms);
            self.next_ms += step_ms;
            self.sequence = (self.sequence + 1) & 0xffff;
            let id_ms = self.start_ms + at_ms as i64;
            self.push(Post {
                id: ((id_ms as u64) << 16) | self.sequence,
                visible_at_ms: id_ms + late_ms as i64,
                stored_at_ms: None,
            });
        }
    }

    /// Ends the posts at a time, Unix ms.
    pub(super) fn end(&mut self, at_ms: i64) {
        self.ends_ms = at_ms - self.start_ms;
    }

    /// Drops posts older than a time, Unix ms.
    pub(super) fn drop_older(&mut self, before_ms: i64) {
        while self
            .posts
            .front()
            .is_some_and(|post| time_ms(post.id) < before_ms)
        {
            if let Some(post) = self.posts.pop_front() {
                self.gone += 1;
                if post.stored_at_ms.is_none() {
                    self.missed.push(post);
                }
            }
        }
    }

    pub(super) fn first_above(&self, id: u64) -> usize {
        self.posts.partition_point(|post| post.id <= id)
    }

    pub(super) fn first_at(&self, id: u64) -> usize {
        self.posts.partition_point(|post| post.id < id)
    }

    pub(super) fn get(&self, index: usize) -> &Post {
        &self.posts[index]
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut Post {
        &mut self.posts[index]
    }

    pub(super) fn len(&self) -> usize {
        self.posts.len()
    }

    pub(super) fn posts(&self) -> impl Iterator<Item = &Post> {
        self.posts.iter()
    }

    /// In the order of IDs: a sequence that begins again may put one behind another of its ms.
    fn push(&mut self, post: Post) {
        let at = self
            .posts
            .iter()
            .rev()
            .take_while(|other| other.id > post.id)
            .count();
        let index = self.posts.len() - at;
        self.posts.insert(index, post);
    }
}

pub(super) fn time_ms(id: u64) -> i64 {
    (id >> 16) as i64
}
