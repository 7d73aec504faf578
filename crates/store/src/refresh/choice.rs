//! The choice of due posts for a claim.

use driftline_core::refresh::{Due, Freshness, Policy};

use super::{
    due_post::{DuePost, LookupTarget},
    schedule::Slot,
};

/// Due posts, sorted by a policy.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Choice {
    /// The posts to look up, at most a batch.
    pub(crate) posts: Vec<DuePost>,
    /// Posts whose value is below the price, which has risen since they were scheduled.
    pub(crate) later: Vec<Slot>,
}

/// The number of posts from which a batch is chosen. Under a policy by age there is no choice: the
/// first due posts come first.
pub(crate) fn reach(policy: &Policy, size: usize) -> usize {
    match policy {
        Policy::Value { .. } => size * CHOICE,
        Policy::Table { .. } | Policy::Never { .. } => size,
    }
}

/// Takes at most `size` of the due posts. The input and the result are in order of due times. Takes
/// the first due posts or, under a policy by value, the most valuable ones.
///
/// No post starves. Under a policy by value, a quarter of the taken posts, over `turn` after turn,
/// are posts that have waited longest beyond their bound, or that failed and are due again,
/// independent of the others' value. The bound is also valid for postponed posts.
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
    let mut kept = (size + (turn % STARVING_ONE_IN) as usize) / STARVING_ONE_IN as usize;
    let valued = due
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
    let mut posts = highest(valued, size);
    posts.sort_by_key(|post| post.due_at_ms);
    Choice {
        posts,
        later: later.into_iter().map(|post| post.slot).collect(),
    }
}

/// The most valuable posts among those with any value.
pub(crate) fn most_valuable(
    policy: &Policy,
    posts: Vec<DuePost>,
    limit: usize,
    now_ms: i64,
) -> Vec<DuePost> {
    let valued = posts
        .into_iter()
        .filter_map(|post| {
            let value = policy.value(&post.freshness.refresh_history(), now_ms);
            (is_calm(&post.freshness) && value > 0.0).then_some((value, post))
        })
        .collect();
    highest(valued, limit)
}

fn highest(mut valued: Vec<(f64, DuePost)>, limit: usize) -> Vec<DuePost> {
    valued.sort_by(|a, b| b.0.total_cmp(&a.0));
    valued.truncate(limit);
    valued.into_iter().map(|(_, post)| post).collect()
}

/// The due time of a scheduled post by the present policy; `None` if it must be looked up anyway.
pub(crate) fn planned(policy: &Policy, freshness: &Freshness) -> Option<Due> {
    is_calm(freshness).then(|| policy.due(&freshness.refresh_history()))
}

/// True if the last look-up was a success. Otherwise the due time is that of a retry, which the
/// policy must not move.
fn is_calm(freshness: &Freshness) -> bool {
    freshness.failures == 0 && !freshness.missing
}

fn postponed(policy: &Policy, post: &DuePost, now_ms: i64) -> Option<i64> {
    if let LookupTarget::Pending { .. } = post.what {
        return None;
    }
    match planned(policy, &post.freshness)? {
        Due::At(due_at_ms) => (due_at_ms > now_ms).then_some(due_at_ms),
        Due::Retired | Due::Never => None,
    }
}

/// The value of looking up a post. A post without value for the policy goes first, unless it fails.
fn value(policy: &Policy, post: &DuePost, now_ms: i64) -> f64 {
    let value = policy.value(&post.freshness.refresh_history(), now_ms);
    let is_decided =
        matches!(post.what, LookupTarget::Stored(_)) && !post.freshness.missing && value > 0.0;
    if is_decided || post.freshness.failures > 0 {
        value
    } else {
        f64::INFINITY
    }
}

fn waits_too_long(policy: &Policy, post: &DuePost, now_ms: i64) -> bool {
    post.freshness.failures > 0 || policy.is_beyond_bound(&post.freshness.refresh_history(), now_ms)
}

/// Large enough to find value, and small enough to read at every claim.
const CHOICE: usize = 4;

/// One in this number of posts of a batch is chosen because it has waited beyond its bound.
const STARVING_ONE_IN: u64 = 4;
