//! Which of the posts that are due a claim takes.

use driftline_core::refresh::{Due, Freshness, Policy};

use super::{
    claim::{DuePost, What},
    schedule::Slot,
};

/// Due posts, sorted out by a policy.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Choice {
    /// What is looked up, at most a batch.
    pub(crate) posts: Vec<DuePost>,
    /// What is not worth its refresh yet: the price rose since these were scheduled.
    pub(crate) later: Vec<Slot>,
}

/// Out of how many times a batch the most valuable posts are chosen. By age alone none are: what
/// was due first is.
pub(crate) fn reach(policy: &Policy, size: usize) -> usize {
    match policy {
        Policy::Value { .. } => size * CHOICE,
        Policy::Table { .. } | Policy::Never { .. } => size,
    }
}

/// Takes at most `size` of the due posts: what was due first or, under a policy by worth, what is
/// worth most now.
///
/// No post starves: under such a policy who waits on comes first at last, and its bound on waits
/// holds for what is put off as well.
pub(crate) fn choose(policy: &Policy, mut due: Vec<DuePost>, size: usize, now_ms: i64) -> Choice {
    let Policy::Value { .. } = policy else {
        due.truncate(size);
        return Choice {
            posts: due,
            later: Vec::new(),
        };
    };
    let mut valued = Vec::with_capacity(due.len());
    let mut later = Vec::new();
    for post in due {
        if postponed(policy, &post, now_ms).is_some() {
            later.push(post.slot);
        } else {
            valued.push((value(policy, &post, now_ms), post));
        }
    }
    valued.sort_by(|a, b| b.0.total_cmp(&a.0));
    let posts = valued.into_iter().take(size).map(|(_, post)| post);
    Choice {
        posts: posts.collect(),
        later,
    }
}

/// The posts of the most worth, of those that are worth anything.
pub(crate) fn worthiest(
    policy: &Policy,
    posts: Vec<DuePost>,
    limit: usize,
    now_ms: i64,
) -> Vec<DuePost> {
    let mut valued: Vec<(f64, DuePost)> = posts
        .into_iter()
        .filter_map(|post| {
            let value = policy.value(&post.freshness.facts(), now_ms);
            (is_calm(&post.freshness) && value > 0.0).then_some((value, post))
        })
        .collect();
    valued.sort_by(|a, b| b.0.total_cmp(&a.0));
    valued
        .into_iter()
        .take(limit)
        .map(|(_, post)| post)
        .collect()
}

/// When a scheduled post is due as the policy is now, unless it has to be asked for all the same.
pub(crate) fn planned(policy: &Policy, freshness: &Freshness) -> Option<Due> {
    is_calm(freshness).then(|| policy.due(&freshness.facts()))
}

/// Who waits before it is asked again waits for a reason.
fn is_calm(freshness: &Freshness) -> bool {
    freshness.failures == 0 && !freshness.missing
}

fn postponed(policy: &Policy, post: &DuePost, now_ms: i64) -> Option<i64> {
    if let What::Wanted { .. } = post.what {
        return None;
    }
    match planned(policy, &post.freshness)? {
        Due::At(due_at_ms) => (due_at_ms > now_ms).then_some(due_at_ms),
        Due::Retired | Due::Never => None,
    }
}

/// What looking a post up is worth; what the policy does not judge goes first.
fn value(policy: &Policy, post: &DuePost, now_ms: i64) -> f64 {
    match post.what {
        What::Wanted { .. } => f64::INFINITY,
        What::Stored(_) if post.freshness.missing => f64::INFINITY,
        What::Stored(_) => {
            let value = policy.value(&post.freshness.facts(), now_ms);
            if value > 0.0 { value } else { f64::INFINITY }
        }
    }
}

/// Wide enough to find worth, and narrow enough to read at every claim.
const CHOICE: usize = 4;
