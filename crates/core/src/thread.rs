//! The shape of threads: which posts hang below one, and in which order they are shown.

use std::collections::{HashMap, HashSet};

use crate::{post::Post, upstream_id::UpstreamId};

/// How much of a thread is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLimits {
    /// The most posts above the one that was asked for.
    pub ancestors: usize,
    /// The most posts below it.
    pub descendants: usize,
    /// How many replies down they are, at most.
    pub depth: usize,
}

impl ThreadLimits {
    /// For those who have no account: what Mastodon shows them.
    pub const STRANGER: ThreadLimits = ThreadLimits {
        ancestors: 40,
        descendants: 60,
        depth: 20,
    };
    /// For those who are logged in: what Mastodon shows them.
    pub const ACCOUNT: ThreadLimits = ThreadLimits {
        ancestors: 4_096,
        descendants: 4_096,
        depth: usize::MAX,
    };
}

/// The posts that hang below one, as they are found. Each hangs on one that was taken before, so whatever an
/// upstream says of its posts, cycles included, makes a tree.
#[derive(Debug)]
pub struct Descent {
    limits: ThreadLimits,
    /// How many replies below the first post each one is.
    depths: HashMap<String, usize>,
    taken: usize,
}

impl Descent {
    /// Below the post of that ID. Posts of the IDs `above` are its ancestors, and not below it too.
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

    /// Whether there is no room for more.
    pub fn is_full(&self) -> bool {
        self.taken >= self.limits.descendants
    }

    /// Whether a post that replies to another one is below the first, is not taken yet, and has room.
    pub fn takes(&self, id: &str, reply_to: &str) -> bool {
        let depth = self.depths.get(reply_to);
        depth.is_some_and(|depth| *depth < self.limits.depth && *depth < usize::MAX)
            && !self.depths.contains_key(id)
            && !self.is_full()
    }

    /// Takes a post; `false` if it is not taken.
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
    /// The ID of the post that it replies to.
    pub reply_to: &'a str,
    /// When it was written, Unix ms.
    pub created_at_ms: i64,
}

/// The order in which replies below a post are shown, by their indices: each before the replies to it, and of
/// the replies to one the oldest first. What does not hang on the post is left out.
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

/// What came of fetching what the store lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched {
    /// The upstream answered, and so many posts are new to whom they were fetched for.
    Stored(usize),
    /// It was fetched a short while ago.
    Recent,
    /// The fetch goes on without its requester.
    Continues,
    /// The upstream does not show it.
    Nothing,
    /// Not now: the quota is used up, too much is fetched, the store or the upstream fails.
    NotNow,
}

/// Of what an upstream says is the thread of a post, the posts that hang together with it by what they reply
/// to: nearest first above, then below. What else it sends is not taken.
pub fn connected(post: &UpstreamId, ancestors: Vec<Post>, descendants: Vec<Post>) -> Vec<Post> {
    let mut taken: HashSet<UpstreamId> = HashSet::from([post.clone()]);
    let mut connected: Vec<Post> = Vec::new();
    // Mastodon lists the nearest last. What the post itself replies to is not in the answer, so the nearest
    // is taken at its word.
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
