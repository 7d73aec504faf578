//! Batches that an upstream refuses.

use std::collections::BTreeSet;

use driftline_core::refresh::{Bisection, Verdict};
use proptest::prelude::*;

/// Asks an upstream that refuses every part with a poisonous ID in it.
fn run(batch: Vec<u32>, poison: &BTreeSet<u32>) -> (Vec<u32>, Vec<u32>, Vec<u32>, u32) {
    let mut bisection = Bisection::new(batch, |_| 0);
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
    let Verdict {
        culprits,
        suspects,
        unasked,
    } = bisection.end();
    (answered, culprits, [suspects, unasked].concat(), asked)
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
    assert!(asked <= 12, "{asked}");
}

#[test]
fn culprits_at_the_head_do_not_hold_the_others_up() {
    let (answered, culprits, left, _) = run((0..100).collect(), &BTreeSet::from([0, 1]));
    assert_eq!(culprits, [0, 1]);
    assert_eq!((answered.len(), left.len()), (98, 0));
}

#[test]
fn nothing_to_ask_is_no_batch() {
    assert_eq!(Bisection::<u32>::new(Vec::new(), |_| 1).part(), None);
}

#[test]
fn a_known_culprit_costs_one_request_more() {
    let mut bisection = Bisection::new((0..100).collect(), |id| if *id == 40 { 9 } else { 0 });
    assert_eq!(bisection.part().map(<[u32]>::len), Some(99));
    bisection.accepted();
    assert_eq!(bisection.part(), Some(&[40][..]));
    bisection.refused();
    assert_eq!(bisection.part(), None);
    assert_eq!(bisection.end().culprits, [40]);
}

/// The quota of each batch ends after one request.
#[test]
fn the_search_goes_on_where_the_quota_ended_it() {
    let poison = 37;
    let mut failures = [0u32; 100];
    let mut answered = [false; 100];
    for round in 0.. {
        let mut open: Vec<usize> = (0..100).filter(|at| !answered[*at]).collect();
        // What failed is due later.
        open.sort_by_key(|at| failures[*at]);
        if open == [poison] && failures[poison] > 6 {
            break;
        }
        assert!(round < 40, "{open:?}");
        let mut bisection = Bisection::new(open, |at| failures[*at]);
        let part = bisection.part().expect("a part").to_vec();
        if part.contains(&poison) {
            bisection.refused();
        } else {
            for at in bisection.accepted() {
                answered[at] = true;
            }
        }
        let verdict = bisection.end();
        for at in [verdict.culprits, verdict.suspects].concat() {
            failures[at] += 1;
        }
    }
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
