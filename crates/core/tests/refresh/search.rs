//! Whose fault it is that posts are not answered.

use std::collections::BTreeSet;

use driftline_core::{
    answer::FailureKind,
    refresh::{Blame, CanaryResult, Next, Search},
};
use proptest::prelude::*;

/// An upstream, as a search meets it.
struct Upstream {
    poison: BTreeSet<usize>,
    /// What a request for poison fails with.
    kind: FailureKind,
    /// What a canary says, while there is quota for it.
    canary: CanaryResult,
}

/// Drives a search with so many requests; returns what was answered, what became of the rest, and
/// the requests.
fn drive(
    mut search: Search<usize>,
    quota: u32,
    upstream: &Upstream,
) -> (Vec<usize>, Blame<usize>, u32) {
    let mut answered = Vec::new();
    let mut asked = 0;
    loop {
        match search.next() {
            Next::Nothing => break,
            Next::Canary if asked == quota => search.canary_checked(CanaryResult::Unasked),
            Next::Canary => {
                asked += u32::from(upstream.canary != CanaryResult::Unasked);
                search.canary_checked(upstream.canary);
            }
            Next::Posts(_) if asked == quota => break,
            Next::Posts(part) => {
                asked += 1;
                if part.iter().any(|post| upstream.poison.contains(post)) {
                    search.failed(upstream.kind);
                } else {
                    answered.extend(search.answered());
                }
            }
        }
    }
    (answered, search.end(), asked)
}

fn all_poison(posts: usize, kind: FailureKind, canary: CanaryResult) -> Upstream {
    Upstream {
        poison: (0..posts).collect(),
        kind,
        canary,
    }
}

#[test]
fn a_witness_tells_a_batch_of_poison_from_an_outage() {
    let upstream = all_poison(5, FailureKind::ServerError, CanaryResult::Answered);
    let search = Search::new((0..20).collect(), |_| 0, 0);
    let (mut answered, blame, _) = drive(search, 100, &upstream);
    answered.sort_unstable();
    assert_eq!(answered, (5..20).collect::<Vec<_>>());
    assert_eq!(blame.failed, [0, 1, 2, 3, 4]);
    let search = Search::new((0..5).collect(), |_| 9, 3);
    assert_eq!(drive(search, 100, &upstream).1.failed.len(), 5);
}

#[test]
fn an_outage_costs_one_posts_patience_a_turn_and_few_requests() {
    for kind in [FailureKind::ServerError, FailureKind::TimedOut] {
        for canary in [CanaryResult::Failed(kind), CanaryResult::Unasked] {
            for silent in [0, 2, 3] {
                for size in [1, 2, 20, 100] {
                    let upstream = all_poison(size, kind, canary);
                    let search = Search::new((0..size).collect(), |_| 0, silent);
                    let (_, blame, asked) = drive(search, 1_000, &upstream);
                    assert!(
                        blame.failed.len() <= 1,
                        "{kind} {canary:?} {size}: {blame:?}"
                    );
                    assert!(
                        blame.suspects.is_empty(),
                        "{kind} {canary:?} {size}: {blame:?}"
                    );
                    assert!(asked <= 14, "{asked}");
                    if silent == 3 || size == 1 {
                        assert_eq!(blame.failed, [0], "it makes room for others");
                    }
                }
            }
        }
    }
}

#[test]
fn an_outage_that_begins_within_a_claim_is_noticed() {
    let upstream = Upstream {
        poison: (1..100).collect(),
        kind: FailureKind::ServerError,
        canary: CanaryResult::Failed(FailureKind::ServerError),
    };
    let search = Search::new((0..100).collect(), |post| u32::from(*post > 0) * 9, 0);
    let (answered, blame, asked) = drive(search, 1_000, &upstream);
    assert_eq!(answered, [0]);
    assert_eq!(blame.failed.len(), 1);
    assert!(asked <= 10, "{asked}");
}

#[test]
fn a_403_is_about_a_post_where_a_witness_is_answered() {
    let upstream = |canary| Upstream {
        poison: BTreeSet::from([3]),
        kind: FailureKind::Forbidden,
        canary,
    };
    let search = || Search::new((0..4).collect(), |_| 0, 0);
    let (answered, blame, _) = drive(search(), 100, &upstream(CanaryResult::Answered));
    assert_eq!((answered, blame.hidden), (vec![0, 1, 2], vec![3]));
    let (_, blame, _) = drive(search(), 100, &upstream(CanaryResult::Unasked));
    assert_eq!(blame.hidden, [3], "the others were answered");
    let refused = CanaryResult::Failed(FailureKind::Unauthorized);
    let (answered, blame, _) = drive(search(), 100, &upstream(refused));
    assert_eq!(answered, [0usize; 0]);
    assert!(blame.hidden.is_empty() && blame.failed.is_empty() && blame.suspects.is_empty());
}

#[test]
fn what_is_the_upstreams_fault_ends_the_search() {
    for kind in [
        FailureKind::Throttled,
        FailureKind::Unauthorized,
        FailureKind::Tls,
    ] {
        let mut search = Search::new(vec![1, 2], |_| 0, 0);
        search.failed(kind);
        assert_eq!(search.next(), Next::Nothing);
        let blame = search.end();
        assert!(blame.failed.is_empty() && blame.suspects.is_empty());
        assert!(blame.is_cut_short);
    }
}

const SHARDS: usize = 8;

/// A worker and its schedule, in turns: each claims from the shard after the last one's, oldest
/// first.
struct Schedule {
    due: Vec<u32>,
    failures: Vec<u32>,
    first: Vec<Option<u32>>,
    suspicion: [u32; SHARDS],
    silent: u32,
}

impl Schedule {
    fn of(posts: usize) -> Self {
        Self {
            due: (0..posts).map(|_| 0).collect(),
            failures: vec![0; posts],
            first: vec![None; posts],
            suspicion: [0; SHARDS],
            silent: 0,
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

    fn turn(&mut self, turn: u32, (size, quota): (usize, u32), upstream: &Upstream) {
        let suspicion = self.suspicion[turn as usize % SHARDS];
        let search = Search::new(
            self.claim(turn, size),
            |post| self.failures[*post],
            suspicion.max(self.silent),
        );
        let (answered, blame, _) = drive(search, quota, upstream);
        let count = |before: u32| if answered.is_empty() { before + 1 } else { 0 };
        self.silent = count(self.silent);
        self.suspicion[turn as usize % SHARDS] = count(suspicion);
        for post in answered.into_iter().chain(blame.hidden) {
            self.first[post].get_or_insert(turn);
            self.due[post] = turn + 1;
            self.failures[post] = 0;
        }
        for post in &blame.failed {
            self.due[*post] = turn + (1 << self.failures[*post].min(10));
        }
        for post in blame.failed.iter().chain(&blame.suspects) {
            self.failures[*post] += 1;
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
        kind in prop::sample::select(vec![FailureKind::ServerError, FailureKind::TimedOut, FailureKind::Forbidden]),
        canary in prop::sample::select(vec![
            CanaryResult::Answered,
            CanaryResult::Unasked,
            CanaryResult::Failed(FailureKind::TimedOut),
        ]),
    ) {
        let mut schedule = Schedule::of(320);
        let upstream = Upstream { poison, kind, canary };
        for turn in 0..4_000 {
            schedule.turn(turn, (size, quota), &upstream);
        }
        for post in (0..320).filter(|post| !upstream.poison.contains(post)) {
            prop_assert!(schedule.first[post].is_some(), "{post} was never answered");
        }
    }
}
