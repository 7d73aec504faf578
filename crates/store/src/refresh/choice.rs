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

/// Takes at most `size` of the due posts, which come in the order of their due times and leave in
/// it: what was due first or, under a policy by value, what is worth most now.
///
/// No post starves: under such a policy a quarter of what is taken, over `turn` after turn, is what
/// has waited beyond its bound for longest, or what failed and is due again, whatever the others
/// are worth; and the bound holds for what is put off as well.
pub(crate) fn choose(
    policy: &Policy,
    mut due: Vec<DuePost>,
    size: usize,
    turn: u64,
    now_ms: i64,
) -> Choice {
    let Policy::Value { .. } = policy else {
        due.truncate(size);
        return Choice {
            posts: due,
            later: Vec::new(),
        };
    };
    let (later, due): (Vec<_>, Vec<_>) = due
        .into_iter()
        .partition(|post| postponed(policy, post, now_ms).is_some());
    let mut kept = (size + (turn % TIMEOUT) as usize) / TIMEOUT as usize;
    let mut valued: Vec<(f64, DuePost)> = due
        .into_iter()
        .map(|post| {
            let is_kept = kept > 0 && waits_too_long(policy, &post, now_ms);
            kept -= usize::from(is_kept);
            let value = if is_kept {
                f64::INFINITY
            } else {
                value(policy, &post, now_ms)
            };
            (value, post)
        })
        .collect();
    valued.sort_by(|a, b| b.0.total_cmp(&a.0));
    valued.truncate(size);
    let mut posts: Vec<DuePost> = valued.into_iter().map(|(_, post)| post).collect();
    posts.sort_by_key(|post| post.due_at_ms);
    Choice {
        posts,
        later: later.into_iter().map(|post| post.slot).collect(),
    }
}

/// The posts of the most worth, of those that are worth anything.
pub(crate) fn most_valuable(
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

/// What looking a post up is worth. What the policy does not judge goes first, as long as it does
/// not fail.
fn value(policy: &Policy, post: &DuePost, now_ms: i64) -> f64 {
    let value = policy.value(&post.freshness.facts(), now_ms);
    let is_decided = matches!(post.what, What::Stored(_)) && !post.freshness.missing && value > 0.0;
    if is_decided || post.freshness.failures > 0 {
        value
    } else {
        f64::INFINITY
    }
}

fn waits_too_long(policy: &Policy, post: &DuePost, now_ms: i64) -> bool {
    post.freshness.failures > 0 || policy.is_beyond_bound(&post.freshness.facts(), now_ms)
}

/// Wide enough to find worth, and narrow enough to read at every claim.
const CHOICE: usize = 4;

/// Of how many posts one is what has waited beyond its bound.
const TIMEOUT: u64 = 4;
