//! The shape of threads: the posts below a post, and their order.

use std::collections::{HashMap, HashSet};

use crate::{post::Post, upstream_id::UpstreamId};

/// The limits of a shown thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLimits {
    /// The largest number of posts above the requested one.
    pub ancestors: usize,
    /// The largest number of posts below it.
    pub descendants: usize,
    /// The largest depth of replies.
    pub depth: usize,
}

impl ThreadLimits {
    /// For readers without an account, with Mastodon's values.
    pub const STRANGER: ThreadLimits = ThreadLimits {
        ancestors: 40,
        descendants: 60,
        depth: 20,
    };
    /// For readers who are logged in, with Mastodon's values.
    pub const ACCOUNT: ThreadLimits = ThreadLimits {
        ancestors: 4_096,
        descendants: 4_096,
        depth: usize::MAX,
    };
}

/// The posts below a post, as they are found. Each belongs to a post that was taken before, so the
/// result is a tree even if an upstream sends cycles.
#[derive(Debug)]
pub struct Descent {
    limits: ThreadLimits,
    /// The depth of each post below the first one, in replies.
    depths: HashMap<String, usize>,
    taken: usize,
}

impl Descent {
    /// A search below the given post. Posts with the IDs `above` are its ancestors, and so not
    /// below it.
    pub fn below(post: &str, above: &[&str], limits: ThreadLimits) -> Self {
        let mut depths: HashMap<String, usize> = above
            .iter()
            .map(|id| ((*id).to_owned(), usize::MAX))
            .collect();
        depths.insert(post.to_owned(), 0);
        Self {
            limits,
            depths,
            taken: 0,
        }
    }

    /// True if no more posts fit.
    pub fn is_full(&self) -> bool {
        self.taken >= self.limits.descendants
    }

    /// True if a reply to another post is below the first one, is not taken yet, and fits.
    pub fn takes(&self, id: &str, reply_to: &str) -> bool {
        let depth = self.depths.get(reply_to);
        depth.is_some_and(|depth| *depth < self.limits.depth && *depth < usize::MAX)
            && !self.depths.contains_key(id)
            && !self.is_full()
    }

    /// Takes a post; returns `false` if it is not taken.
    pub fn take(&mut self, id: &str, reply_to: &str) -> bool {
        let takes = self.takes(id, reply_to);
        if takes && let Some(depth) = self.depths.get(reply_to).copied() {
            self.depths.insert(id.to_owned(), depth.saturating_add(1));
            self.taken += 1;
        }
        takes
    }
}

/// A post below another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Its ID.
    pub id: &'a str,
    /// The ID of the post to which it replies.
    pub reply_to: &'a str,
    /// The time at which it was written, in Unix ms.
    pub created_at_ms: i64,
}

/// The order of the replies below a post, by their indices. Each comes before the replies to it,
/// and replies to one post are sorted from the oldest. Posts that are not below the post are left
/// out.
pub fn depth_first(post: &str, replies: &[Reply<'_>]) -> Vec<usize> {
    let mut below: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, reply) in replies.iter().enumerate() {
        below.entry(reply.reply_to).or_default().push(index);
    }
    for indices in below.values_mut() {
        // The latest is pushed first, so that it comes last.
        indices.sort_unstable_by_key(|index| {
            let reply = &replies[*index];
            std::cmp::Reverse((reply.created_at_ms, reply.id.len(), reply.id))
        });
    }
    let mut order = Vec::with_capacity(replies.len());
    let mut shown = HashSet::from([post]);
    let mut next = below.remove(post).unwrap_or_default();
    while let Some(index) = next.pop() {
        let id = replies[index].id;
        if shown.insert(id) {
            order.push(index);
            next.extend(below.remove(id).unwrap_or_default());
        }
    }
    order
}

/// The result of fetching the posts that the store lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched {
    /// The upstream answered. The number of posts that are new to the requester.
    Stored(usize),
    /// The thread was fetched recently.
    Recent,
    /// The fetch continues without its requester.
    Continues,
    /// The upstream does not show the thread.
    Nothing,
    /// A fetch is not possible now: the quota is used up, too many fetches run, or the store or the
    /// upstream fails.
    NotNow,
}

/// The posts of an upstream's thread that are connected with a post by replies: first those above,
/// the nearest first, then those below. Other posts that it sends are dropped.
pub fn connected(post: &UpstreamId, ancestors: Vec<Post>, descendants: Vec<Post>) -> Vec<Post> {
    let mut taken: HashSet<UpstreamId> = HashSet::from([post.clone()]);
    let mut connected: Vec<Post> = Vec::new();
    // Mastodon lists the nearest last. The answer does not contain the post's own reply ID, so the
    // nearest is trusted.
    let mut next: Option<UpstreamId> = None;
    for above in ancestors.into_iter().rev() {
        let hangs = connected.is_empty() || next.as_ref() == Some(&above.id);
        if hangs && taken.insert(above.id.clone()) {
            next.clone_from(&above.reply_to);
            connected.push(above);
        }
    }
    let mut below: HashMap<UpstreamId, Vec<Post>> = HashMap::new();
    for reply in descendants {
        if let Some(answered) = reply.reply_to.clone() {
            below.entry(answered).or_default().push(reply);
        }
    }
    let mut level = vec![post.clone()];
    while let Some(answered) = level.pop() {
        for reply in below.remove(&answered).unwrap_or_default() {
            if taken.insert(reply.id.clone()) {
                level.push(reply.id.clone());
                connected.push(reply);
            }
        }
    }
    connected
}

#[cfg(test)]
mod tests;
