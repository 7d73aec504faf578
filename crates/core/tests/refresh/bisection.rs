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
fn where_everything_is_refused_few_requests_tell_so() {
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

#[test]
fn a_probe_comes_first_and_clears_the_upstream() {
    let mut bisection = Bisection::with_probe(vec![1, 2, 3, 4, 5], |id| u32::from(*id < 3), 1);
    assert_eq!(bisection.part(), Some(&[3][..]), "what failed least");
    assert_eq!(bisection.accepted(), [3]);
    assert!(!bisection.is_probe_refused());
    assert_eq!(bisection.part(), Some(&[1, 2][..]));
    bisection.refused();
    bisection.refused();
    bisection.refused();
    assert!(!bisection.is_outage() && !bisection.is_probe_refused());
    let verdict = bisection.end();
    assert_eq!(
        (verdict.culprits, verdict.unasked),
        (vec![1, 2], vec![4, 5])
    );
}

#[test]
fn a_probe_may_be_all_that_failed_least() {
    let failures = |id: &u32| u32::from(*id < 5) * 2;
    let bisection = Bisection::with_probe((0..20).collect(), failures, 20);
    assert_eq!(bisection.part().map(<[u32]>::len), Some(15));
    let bisection = Bisection::with_probe((0..20).collect(), |_| 1u32, 20);
    assert_eq!(bisection.part().map(<[u32]>::len), Some(10));
}

#[test]
fn a_refused_probe_alone_is_to_blame() {
    let mut bisection = Bisection::with_probe(vec![1, 2, 3], |_| 0, 1);
    bisection.refused();
    assert!(bisection.is_probe_refused());
    let verdict = bisection.end();
    assert_eq!((verdict.culprits, verdict.unasked), (vec![1], vec![2, 3]));
    assert_eq!(
        Bisection::<u32>::with_probe(Vec::new(), |_| 0, 1).part(),
        None
    );
}

/// A worker with that many requests a turn, whatever heads the schedule: posts that are due first
/// come first, culprits wait for a while, and who failed twice in a row begins with a probe.
fn turns(size: usize, quota: u32, posts: usize, poison: &BTreeSet<usize>) -> u32 {
    let mut due: Vec<u32> = vec![0; posts];
    let mut failures = vec![0u32; posts];
    let mut answered = BTreeSet::new();
    let mut silent = 0;
    for turn in 0.. {
        let mut open: Vec<usize> = (0..posts)
            .filter(|at| !answered.contains(at) && due[*at] <= turn)
            .collect();
        open.sort_by_key(|at| due[*at]);
        open.truncate(size);
        if answered.len() + poison.len() == posts || turn > 5_000 {
            return turn;
        }
        let failed = |at: &usize| failures[*at];
        let mut bisection = match silent {
            0 | 1 => Bisection::new(open, failed),
            2 => Bisection::with_probe(open, failed, size),
            _ => Bisection::with_probe(open, failed, 1),
        };
        for _ in 0..quota {
            match bisection.part() {
                None => break,
                Some(part) if part.iter().any(|at| poison.contains(at)) => bisection.refused(),
                Some(_) => answered.extend(bisection.accepted()),
            }
            if bisection.is_outage() || bisection.is_probe_refused() {
                break;
            }
        }
        silent = if bisection.has_answers() {
            0
        } else {
            silent + 1
        };
        let is_outage = bisection.is_outage() || bisection.is_probe_refused();
        let verdict = if is_outage {
            bisection.end_in_outage()
        } else {
            bisection.end()
        };
        {
            for at in &verdict.culprits {
                due[*at] = turn + (1 << failures[*at].min(10));
            }
            for at in [verdict.culprits, verdict.suspects].concat() {
                failures[at] += 1;
            }
        }
    }
    unreachable!("turns are bounded")
}

proptest! {
    /// Whatever heads the schedule, a share of the quota that poison cannot exceed is all it costs.
    #[test]
    fn posts_that_are_refused_hold_nobody_up_for_long(
        size in prop::sample::select(vec![1usize, 2, 20, 100]),
        quota in 1u32..5,
        posts in 1usize..200,
        poison in prop::collection::btree_set(0usize..40, 0..12),
    ) {
        let poison = poison.into_iter().filter(|at| *at < posts).collect::<BTreeSet<_>>();
        let spent = turns(size, quota, posts, &poison);
        let most = 4 * posts.div_ceil(size) + 40 * poison.len() + 4;
        prop_assert!((spent as usize) < most, "{spent} turns of at most {most}");
    }

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
