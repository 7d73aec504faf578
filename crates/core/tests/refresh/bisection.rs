//! Posts that make requests fail, and upstreams that are down.

use std::collections::BTreeSet;

use driftline_core::{
    answer::FailureKind,
    refresh::{Bisection, Blame},
};
use proptest::prelude::*;

const KINDS: [FailureKind; 4] = [
    FailureKind::Refused,
    FailureKind::ServerError,
    FailureKind::TimedOut,
    FailureKind::Forbidden,
];

/// Asks an upstream that fails each request with a poisonous post in it, with so many requests.
/// Returns what was answered, what became of the rest, and the requests.
fn drive(
    mut bisection: Bisection<usize>,
    quota: u32,
    poison: &BTreeSet<usize>,
    kind: FailureKind,
) -> (Vec<usize>, Blame<usize>, u32) {
    let mut answered = Vec::new();
    let mut asked = 0;
    while let Some(part) = bisection.part().filter(|_| asked < quota) {
        asked += 1;
        if part.iter().any(|post| poison.contains(post)) {
            bisection.failed(kind);
        } else {
            answered.extend(bisection.answered());
        }
    }
    (answered, bisection.end(), asked)
}

fn blamed(blame: &Blame<usize>) -> Vec<usize> {
    [blame.failed.clone(), blame.forbidden.clone()].concat()
}

fn fresh(posts: usize) -> Bisection<usize> {
    Bisection::new((0..posts).collect(), |_| 0, false)
}

#[test]
fn one_poisonous_post_stands_alone_after_few_requests() {
    for at in 0..100 {
        let (answered, blame, asked) =
            drive(fresh(100), 100, &BTreeSet::from([at]), FailureKind::Refused);
        assert_eq!(blame.failed, [at]);
        assert_eq!((answered.len(), blame.is_cut_short), (99, false));
        assert!(asked <= 15, "{asked}");
    }
}

#[test]
fn a_post_that_nothing_is_answered_to_stands_alone_where_others_are_answered() {
    for kind in [FailureKind::ServerError, FailureKind::TimedOut] {
        for at in 1..100 {
            let known = Bisection::new((0..100).collect(), |_| 0, true);
            let (answered, blame, asked) = drive(known, 100, &BTreeSet::from([at]), kind);
            assert_eq!(blame.failed, [at]);
            assert_eq!(answered.len(), 99);
            assert!(asked <= 16, "{asked}");
        }
    }
}

#[test]
fn an_outage_costs_one_posts_patience_a_turn_and_few_requests() {
    for kind in KINDS {
        for size in [1, 2, 20, 100] {
            let (all, none) = ((0..size).collect(), Vec::<usize>::new());
            let (answered, blame, asked) = drive(fresh(size), 1_000, &all, kind);
            assert!(blamed(&blame).len() <= 1, "{kind} {size}: {blame:?}");
            assert_eq!(answered, none);
            assert!(asked <= 9, "{asked}");
            let down = Bisection::new((0..size).collect(), |_| 0, true);
            let (_, blame, asked) = drive(down, 1_000, &all, kind);
            assert_eq!(blamed(&blame), [0], "it makes room for others");
            assert_eq!(blame.suspects, none);
            assert_eq!(asked, 1);
        }
    }
}

#[test]
fn an_outage_that_begins_within_a_claim_is_noticed() {
    let failures = |post: &usize| u32::from(*post > 0) * 9;
    let begins = Bisection::new((0..100).collect(), failures, false);
    let (answered, blame, asked) =
        drive(begins, 1_000, &(1..100).collect(), FailureKind::ServerError);
    assert_eq!(answered, [0]);
    assert!(
        blame.failed.len() <= 3 && blame.suspects.is_empty(),
        "{blame:?}"
    );
    assert!(asked <= 10, "{asked}");
}

#[test]
fn what_is_the_upstreams_fault_ends_the_search() {
    for kind in [
        FailureKind::Throttled,
        FailureKind::Unauthorized,
        FailureKind::Tls,
    ] {
        let (_, blame, asked) = drive(fresh(2), 10, &(0..2).collect(), kind);
        assert_eq!(asked, 1);
        assert!(blamed(&blame).is_empty() && blame.suspects.is_empty());
        assert!(blame.is_cut_short);
    }
}

#[test]
fn requests_that_cannot_be_sent_say_nothing_of_the_upstream() {
    let (_, blame, _) = drive(fresh(5), 100, &(0..5).collect(), FailureKind::BadId);
    assert_eq!(blame.failed, [0, 1, 2, 3, 4]);
}

#[test]
fn a_403_is_told_from_other_failures() {
    let poison = BTreeSet::from([3]);
    let (answered, blame, _) = drive(fresh(4), 100, &poison, FailureKind::Forbidden);
    assert_eq!((answered, blame.forbidden), (vec![0, 1, 2], vec![3]));
    let mut alone = fresh(1);
    alone.failed(FailureKind::Forbidden);
    assert!(alone.is_forbidden());
    assert_eq!(alone.end().forbidden, [0]);
    let mut silent = fresh(2);
    silent.failed(FailureKind::Forbidden);
    silent.failed(FailureKind::TimedOut);
    assert!(!silent.is_forbidden());
}

#[test]
fn nothing_to_ask_is_no_batch() {
    for is_after_silence in [false, true] {
        let nothing = Bisection::<u32>::new(Vec::new(), |_| 1, is_after_silence);
        assert_eq!(nothing.part(), None);
    }
}

#[test]
fn a_known_culprit_costs_one_request_more() {
    let failures = |post: &usize| if *post == 40 { 9 } else { 0 };
    let known = Bisection::new((0..100).collect(), failures, false);
    let (answered, blame, asked) =
        drive(known, 100, &BTreeSet::from([40]), FailureKind::ServerError);
    assert_eq!((answered.len(), asked), (99, 2));
    assert_eq!(blame.failed, [40]);
}

#[test]
fn after_silence_a_post_that_failed_least_comes_first() {
    let mut bisection = Bisection::new(vec![1, 2, 3, 4, 5], |id| u32::from(*id < 3), true);
    assert_eq!(bisection.part(), Some(&[3][..]));
    bisection.answered();
    assert_eq!(bisection.part(), Some(&[1, 2][..]));
}

const SHARDS: usize = 8;

/// A worker and its schedule, in turns: each claims from the shard after the last one's, oldest
/// first, and may send so many requests.
struct Schedule {
    due: Vec<u32>,
    failures: Vec<u32>,
    first: Vec<Option<u32>>,
    is_silent: bool,
}

impl Schedule {
    fn of(posts: usize) -> Self {
        Self {
            due: vec![0; posts],
            failures: vec![0; posts],
            first: vec![None; posts],
            is_silent: false,
        }
    }

    fn claim(&self, turn: u32, size: usize) -> Vec<usize> {
        let mut batch = Vec::new();
        for step in 0..SHARDS {
            let shard = (turn as usize + step) % SHARDS;
            let mut due: Vec<usize> = (shard..self.due.len())
                .step_by(SHARDS)
                .filter(|post| self.due[*post] <= turn)
                .collect();
            due.sort_by_key(|post| self.due[*post]);
            batch.extend(due.into_iter().take(size - batch.len()));
        }
        batch.sort_by_key(|post| self.due[*post]);
        batch
    }

    fn turn(
        &mut self,
        turn: u32,
        (size, quota): (usize, u32),
        (poison, kind): (&BTreeSet<usize>, FailureKind),
    ) {
        let batch = self.claim(turn, size);
        let bisection = Bisection::new(batch, |post| self.failures[*post], self.is_silent);
        let (answered, blame, _) = drive(bisection, quota, poison, kind);
        self.is_silent = answered.is_empty();
        for post in answered {
            self.first[post].get_or_insert(turn);
            self.due[post] = turn + 1;
            self.failures[post] = 0;
        }
        for post in blamed(&blame) {
            self.due[post] = turn + (1 << self.failures[post].min(10));
            self.failures[post] += 1;
        }
        for post in blame.suspects {
            self.failures[post] += 1;
        }
    }
}

proptest! {
    /// All posts are due at every moment, so that each shard has its own head and no batch mixes
    /// them: whatever is poisonous, however it fails, and however little may be asked.
    #[test]
    fn no_post_is_held_up_for_ever(
        size in prop::sample::select(vec![1usize, 5, 20]),
        quota in 1u32..12,
        poison in prop::collection::btree_set(0usize..160, 0..24),
        kind in prop::sample::select(KINDS.to_vec()),
    ) {
        let mut schedule = Schedule::of(320);
        for turn in 0..4_000 {
            schedule.turn(turn, (size, quota), (&poison, kind));
        }
        for post in (0..320).filter(|post| !poison.contains(post)) {
            prop_assert!(schedule.first[post].is_some(), "{post} was never answered");
        }
    }

    /// Whatever heads the schedule, a share of the quota that poison cannot exceed is all it costs.
    #[test]
    fn posts_that_are_refused_hold_nobody_up_for_long(
        size in prop::sample::select(vec![1usize, 2, 20, 100]),
        quota in 1u32..5,
        posts in 1usize..200,
        poison in prop::collection::btree_set(0usize..40, 0..12),
        kind in prop::sample::select(KINDS.to_vec()),
    ) {
        let poison: BTreeSet<usize> = poison.into_iter().filter(|at| *at < posts).collect();
        let mut schedule = Schedule::of(posts);
        let most = (4 * posts.div_ceil(size) + 40 * poison.len() + 4) as u32;
        for turn in 0..most {
            schedule.turn(turn, (size, quota), (&poison, kind));
            // What was answered is not asked for again.
            for post in 0..posts {
                if schedule.first[post].is_some() {
                    schedule.due[post] = u32::MAX;
                }
            }
        }
        let left = (0..posts).filter(|post| schedule.first[*post].is_none());
        prop_assert_eq!(left.collect::<BTreeSet<_>>(), poison);
    }

    #[test]
    fn every_post_is_answered_or_blamed_or_left_once(
        size in 1usize..130,
        poison in prop::collection::btree_set(0usize..130, 0..8),
        kind in prop::sample::select(KINDS.to_vec()),
    ) {
        let (answered, blame, _) = drive(fresh(size), 1_000, &poison, kind);
        let culprits = blamed(&blame);
        prop_assert!(culprits.iter().all(|post| poison.contains(post)));
        prop_assert!(answered.iter().all(|post| !poison.contains(post)));
        let named = [answered, culprits, blame.suspects].concat();
        let all: BTreeSet<usize> = named.iter().copied().collect();
        prop_assert_eq!(all.len(), named.len());
        prop_assert!(blame.is_cut_short || all.len() + 1 >= size);
    }
}
