//! Full batches, and those whose time is over.

use driftline_core::refresh::{Batcher, Flush};
use proptest::{collection::vec, prelude::*};

#[test]
fn the_wait_begins_with_the_first_element_after_a_flush() {
    let mut batcher = Batcher::new(3, 2_000);
    assert_eq!(batcher.over_ms(), None);
    assert_eq!(batcher.tick(99_999), None);
    assert_eq!(batcher.add('a', 100), None);
    assert_eq!(batcher.add('b', 1_900), None);
    assert_eq!(batcher.over_ms(), Some(2_100));
    assert_eq!(batcher.tick(2_099), None);
    assert_eq!(batcher.tick(2_100), Some(Flush::Over(vec!['a', 'b'])));
    assert_eq!(batcher.add('c', 5_000), None);
    assert_eq!(batcher.over_ms(), Some(7_000));
    assert_eq!(batcher.add('c', 6_000), None, "it is in already");
    assert_eq!(batcher.add('d', 6_000), None);
    let full = batcher.add('e', 6_000);
    assert_eq!(full, Some(Flush::Full(vec!['c', 'd', 'e'])));
    assert_eq!(batcher.over_ms(), None);
}

proptest! {
    /// Nothing is lost or doubled, no batch is too large, and none waits too long where the clock
    /// is looked at when it was said to be over.
    #[test]
    fn every_element_leaves_once(
        steps in vec((0..3_000_i64, 0..50_u16), 1..200),
        size in 0..8_usize,
    ) {
        let mut batcher = Batcher::new(size, 1_000);
        let (mut now_ms, mut added, mut left) = (0, Vec::new(), Vec::new());
        let mut inside: Vec<u16> = Vec::new();
        let leave = |flush: Option<Flush<u16>>, inside: &mut Vec<u16>, left: &mut Vec<u16>| {
            let Some(Flush::Full(batch) | Flush::Over(batch)) = flush else { return 0 };
            inside.clear();
            left.extend(&batch);
            batch.len()
        };
        for (passed_ms, element) in steps {
            let until_ms = now_ms + passed_ms;
            while let Some(over_ms) = batcher.over_ms().filter(|over| *over <= until_ms) {
                let count = leave(batcher.tick(over_ms), &mut inside, &mut left);
                prop_assert!(count > 0 && count < size.max(1));
            }
            now_ms = until_ms;
            if !inside.contains(&element) {
                inside.push(element);
                added.push(element);
            }
            leave(batcher.add(element, now_ms), &mut inside, &mut left);
        }
        leave(batcher.tick(i64::MAX), &mut inside, &mut left);
        prop_assert_eq!(left, added);
    }
}
