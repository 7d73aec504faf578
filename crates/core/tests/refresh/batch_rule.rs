//! When batches leave.

use driftline_core::refresh::{BatchRule, Fill};

const BATCHER: (usize, i64) = (100, 2_000);

fn fill(due: usize, waited_ms: i64) -> Fill {
    let (size, ttl_ms) = BATCHER;
    BatchRule::new(size, ttl_ms).fill(due, 10_000, 10_000 + waited_ms)
}

#[test]
fn a_full_batch_leaves_at_once() {
    assert_eq!(fill(100, 0), Fill::Ready);
    assert_eq!(fill(5_000, 0), Fill::Ready);
}

#[test]
fn a_partial_batch_leaves_when_its_first_post_has_waited_long_enough() {
    assert_eq!(fill(99, 1_999), Fill::Until(12_000));
    assert_eq!(fill(99, 2_000), Fill::Ready);
    assert_eq!(fill(1, 1_999), Fill::Until(12_000));
    assert_eq!(fill(1, 2_000), Fill::Ready);
}

#[test]
fn nothing_due_is_no_batch() {
    assert_eq!(fill(0, 5_000), Fill::Empty);
}

#[test]
fn no_numbers_make_a_batch_that_never_leaves() {
    assert_eq!(
        BatchRule::new(0, -5).fill(1, i64::MAX, i64::MIN),
        Fill::Ready
    );
    assert_eq!(BatchRule::new(2, -5).fill(1, 7, 7), Fill::Ready);
    assert_eq!(
        BatchRule::new(2, i64::MAX).fill(1, 7, 7),
        Fill::Until(i64::MAX)
    );
}
