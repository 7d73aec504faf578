//! What the last polls brought, so that a poll without news costs no commit.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use driftline_core::{answer::Listed, upstream_id::UpstreamId};

/// The last posts that were committed, with a hash of each as it came.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    hashes: HashMap<UpstreamId, u64>,
    order: VecDeque<UpstreamId>,
}

impl Recent {
    /// Whether each of these was committed exactly as it is now.
    pub(crate) fn holds(&self, listed: &[Listed]) -> bool {
        listed
            .iter()
            .all(|item| self.hashes.get(&item.position) == Some(&hash(item)))
    }

    /// Forgets them all: something else than a page has changed some.
    pub(crate) fn clear(&mut self) {
        self.hashes.clear();
        self.order.clear();
    }

    /// Notes posts that were committed.
    pub(crate) fn note(&mut self, listed: &[Listed]) {
        for item in listed {
            if self
                .hashes
                .insert(item.position.clone(), hash(item))
                .is_none()
            {
                self.order.push_back(item.position.clone());
            }
        }
        while self.order.len() > MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.hashes.remove(&oldest);
            }
        }
    }
}

/// Enough for the overlap of a busy source; 200 sources stay small.
const MOST: usize = 128;

fn hash(item: &Listed) -> u64 {
    let mut hasher = DefaultHasher::new();
    item.post.raw.hash(&mut hasher);
    hasher.finish()
}
