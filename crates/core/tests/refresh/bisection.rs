//! Batches that an upstream refuses.

use std::collections::BTreeSet;

use driftline_core::refresh::Bisection;
use proptest::prelude::*;

/// Asks an upstream that refuses every part with a poisonous ID in it.
fn run(batch: Vec<u32>, poison: &BTreeSet<u32>) -> (Vec<u32>, Vec<u32>, Vec<u32>, u32) {
    let mut bisection = Bisection::new(batch);
    let mut answered = Vec::new();
    let mut asked = 0;
    while let Some(part) = bisection.part() {
        asked += 1;
        if part.iter().any(|id| poison.contains(id)) {
            bisection.refused();
        } else {
            answered.extend(bisection.accepted());
        }
        if bisection.is_outage() {
            break;
        }
    }
    let (culprits, left) = bisection.end();
    (answered, culprits, left, asked)
}

#[test]
fn one_poisonous_post_stands_alone_after_few_requests() {
    for at in 0..100 {
        let (answered, culprits, left, asked) = run((0..100).collect(), &BTreeSet::from([at]));
        assert_eq!(culprits, [at]);
        assert_eq!((answered.len(), left.len()), (99, 0));
        assert!(asked <= 15, "{asked}");
    }
}

#[test]
fn where_everything_is_refused_nobody_is_blamed_for_long() {
    let (answered, culprits, left, asked) = run((0..100).collect(), &(0..100).collect());
    assert!(answered.is_empty());
    assert_eq!(culprits.len() + left.len(), 100);
    assert!(asked <= 10, "{asked}");
}

#[test]
fn nothing_to_ask_is_no_batch() {
    assert_eq!(Bisection::<u32>::new(Vec::new()).part(), None);
}

proptest! {
    #[test]
    fn every_post_is_answered_or_blamed_or_left_once(
        size in 1u32..130,
        poison in prop::collection::btree_set(0u32..130, 0..8),
    ) {
        let (answered, culprits, left, _) = run((0..size).collect(), &poison);
        let mut all = [answered.clone(), culprits.clone(), left].concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..size).collect::<Vec<_>>());
        prop_assert!(culprits.iter().all(|id| poison.contains(id)));
        prop_assert!(answered.iter().all(|id| !poison.contains(id)));
    }
}
