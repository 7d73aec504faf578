//! Single IDs and batches beside each other.

use std::sync::Arc;

use driftline_id::{ClockPolicy, Layout, Refusal};
use driftline_server::ids::IssueError;
use tokio::task::JoinHandle;

use crate::support::{running, still};

#[tokio::test]
async fn a_batch_rises_and_spans_ticks() {
    let issuer = running(9);
    let ids = Arc::clone(&issuer).batch(20_000).await.unwrap();
    assert_eq!(ids.len(), 20_000);
    assert!(ids.is_sorted_by(|a, b| a < b));
    assert!(ids.iter().all(|id| id >> 12 & 0x3ff == 9));
    let ticks = (ids[19_999] >> 22) - (ids[0] >> 22);
    assert!(ticks >= 4, "{ticks} ticks hold no 20,000 IDs");
    assert!(issuer.one().await.unwrap() > ids[19_999]);
}

/// Single callers get their IDs between those of batches, and no ID goes to both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_and_single_ids_go_side_by_side() {
    let issuer = running(0);
    let batches: Vec<_> = (0..4)
        .map(|_| tokio::spawn(Arc::clone(&issuer).batch(100_000)))
        .collect();
    let mut all = Vec::new();
    while !batches.iter().all(JoinHandle::is_finished) {
        all.push(issuer.one().await.unwrap());
    }
    let singles = all.len();
    assert!(singles >= 10, "{singles} IDs in the time of 400,000");
    for batch in batches {
        all.extend(batch.await.unwrap().unwrap());
    }
    assert_eq!(all.len(), singles + 400_000);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), singles + 400_000, "IDs repeat");
}

/// Who asks for a few does not queue behind those who ask for many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_batches_do_not_queue() {
    let issuer = running(0);
    // The turn of a batch that cannot be made now.
    let (still, clock) = still(0, ClockPolicy::Wait { at_most_ms: 60_000 });
    still.one().await.unwrap();
    clock.advance_us(-30_000_000);
    let stuck = tokio::spawn(Arc::clone(&still).batch(50_000));
    // Others are given up too: their turns end with them, and no thread stays behind each.
    for _ in 0..50 {
        let given_up = tokio::spawn(Arc::clone(&issuer).batch(100_000));
        tokio::task::yield_now().await;
        given_up.abort();
    }
    for count in [1, 10, 16] {
        let few = Arc::clone(&issuer).batch(count).await.unwrap();
        assert_eq!(few.len(), count);
    }
    let many = Arc::clone(&issuer).batch(100_000).await.unwrap();
    assert!(many.is_sorted_by(|a, b| a < b));
    clock.advance_us(31_000_000);
    stuck.abort();
}

/// A clock that stands still has no more IDs than one tick: callers hear so in the end.
#[tokio::test]
async fn a_tick_that_never_ends_is_given_up() {
    let (issuer, _clock) = still(0, ClockPolicy::Refuse);
    for _ in 0..4_096 {
        issuer.one().await.unwrap();
    }
    assert_eq!(issuer.one().await, Err(IssueError::Exhausted));
}

#[tokio::test]
async fn refusals_name_their_kind() {
    let (issuer, clock) = still(0, ClockPolicy::Refuse);
    issuer.one().await.unwrap();
    clock.advance_us(-10_000);
    let refused = issuer.one().await.unwrap_err();
    assert_eq!(
        refused,
        IssueError::Refused(Refusal::ClockBehind { behind_ms: 10 })
    );
    assert_eq!(refused.kind(), "clock_behind");
    let batch = Arc::clone(&issuer).batch(3).await.unwrap_err();
    assert_eq!(batch, refused);
    clock.set_us(Layout::TWITTER.end_of_life_ms() * 1_000 + 1_000_000);
    let ended = issuer.one().await.unwrap_err();
    assert_eq!(ended.kind(), "layout_ended");
    issuer.retire().unwrap();
    assert_eq!(issuer.one().await.unwrap_err().kind(), "stopping");
}
