//! Single IDs and batches next to each other.

use std::sync::Arc;

use driftline_id::{ClockPolicy, Layout, Refusal};
use driftline_id_service::IssueError;
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

/// Who asks for a few has them before those who asked for many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_batches_do_not_queue_behind_large_ones() {
    let issuer = running(0);
    let large: Vec<_> = (0..4)
        .map(|_| tokio::spawn(Arc::clone(&issuer).batch(400_000)))
        .collect();
    // The first may come before any of the large ones has begun, the last hardly.
    for count in [1, 10, 1_000, 1_000, 1_000, 1_000, 1_000] {
        let few = Arc::clone(&issuer).batch(count).await.unwrap();
        assert_eq!(few.len(), count);
    }
    assert!(!large.iter().any(JoinHandle::is_finished));
    for batch in large {
        let ids = batch.await.unwrap().unwrap();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
}

/// Batches that are given up hold no turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_given_up_make_room() {
    let issuer = running(0);
    for _ in 0..50 {
        let given_up = tokio::spawn(Arc::clone(&issuer).batch(100_000));
        tokio::task::yield_now().await;
        given_up.abort();
    }
    let ids = Arc::clone(&issuer).batch(50_000).await.unwrap();
    assert_eq!(ids.len(), 50_000);
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
