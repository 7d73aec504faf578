//! The store with what goes wrong with it: outages that last for a while of
//! virtual time, and the death of the process at a commit.

use std::collections::HashMap;

use driftline_db::DbError;
use driftline_store::{Root, Store, StoreError, Target, Tx};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// What the store is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Claim,
    Load,
    Anchor,
    Poll,
    Fill,
    Look,
    LookUp,
    Failure,
    Events,
    RefreshClaim,
    RefreshSave,
    Release,
}

impl Operation {
    pub(crate) const ALL: [Self; 12] = [
        Self::Claim,
        Self::Load,
        Self::Anchor,
        Self::Poll,
        Self::Fill,
        Self::Look,
        Self::LookUp,
        Self::Failure,
        Self::Events,
        Self::RefreshClaim,
        Self::RefreshSave,
        Self::Release,
    ];

    fn writes(self) -> bool {
        !matches!(self, Self::Load | Self::Anchor | Self::RefreshClaim)
    }
}

/// How the store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No connection: nothing works. What is under way as it begins may have
    /// been committed all the same.
    Down,
    /// The disk is full: a write fails as it is committed.
    Full,
    /// A write fails before it runs.
    ReadOnly,
    /// Everything works, each operation after up to three seconds.
    Slow,
}

impl Fault {
    pub(crate) const ALL: [Self; 4] = [Self::Down, Self::Full, Self::ReadOnly, Self::Slow];
}

/// How long outages last, ms.
pub(crate) const OUTAGES_MS: [i64; 4] = [1_000, 2_000, 5_000, 30_000];

/// A while in which the store fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outage {
    pub(crate) fault: Fault,
    pub(crate) begins: Begins,
    pub(crate) for_ms: i64,
}

/// When an outage begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// With the first operation from this time on, Unix ms.
    At(i64),
    /// With the operation of this kind and number, counted from 1.
    With(Operation, u64),
}

/// On which side of a commit the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// What is to go wrong.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    pub(crate) outages: Vec<Outage>,
    /// The share of commits at which the process dies, half of them before.
    pub(crate) death_share: f64,
    /// The commit, counted from 1, at which it dies.
    pub(crate) death: Option<(u64, Side)>,
}

/// Why an operation brought nothing.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The store failed, as it was to.
    Failed,
    /// The store refused it, though nothing was to fail.
    Refused(StoreError),
    /// The process died.
    Died,
}

/// What an operation meets.
enum Verdict {
    Runs,
    /// It fails before it runs.
    Refused,
    /// It runs, and its commit fails.
    RolledBack,
    /// It is committed, and the answer is lost.
    Unanswered,
}

pub(crate) struct FaultyStore {
    store: Store,
    target: Target,
    faults: Faults,
    /// What has begun: how it fails, from when and until when.
    begun: Vec<(Fault, i64, i64)>,
    counts: HashMap<Operation, u64>,
    commits: u64,
    /// Whether the last write is in the store, whatever its caller was answered.
    committed: bool,
    rng: ChaCha8Rng,
}

impl FaultyStore {
    pub(crate) fn open(target: Target, rng: ChaCha8Rng) -> Self {
        Self {
            store: Store::open(target.clone()).unwrap(),
            target,
            faults: Faults::default(),
            begun: Vec::new(),
            counts: HashMap::new(),
            commits: 0,
            committed: false,
            rng,
        }
    }

    /// The store without faults.
    pub(crate) fn plain(&self) -> &Store {
        &self.store
    }

    pub(crate) fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Nothing goes wrong any more.
    pub(crate) fn mend(&mut self, now_ms: i64) {
        self.faults = Faults::default();
        for (_, _, until_ms) in &mut self.begun {
            *until_ms = (*until_ms).min(now_ms);
        }
    }

    /// The commits so far at which the process could have died.
    pub(crate) fn commits(&self) -> u64 {
        self.commits
    }

    /// Whether the last write is in the store.
    pub(crate) fn committed(&self) -> bool {
        self.committed
    }

    /// The outages that have begun.
    pub(crate) fn outages(&self) -> usize {
        self.begun.len()
    }

    /// When the last outage that has begun ends, Unix ms.
    pub(crate) fn fails_until_ms(&self) -> i64 {
        let ends = self.begun.iter().map(|(_, _, until_ms)| *until_ms);
        ends.max().unwrap_or(i64::MIN)
    }

    /// Whether it may be opened, which takes a write.
    pub(crate) fn opens(&self, now_ms: i64) -> bool {
        matches!(self.fault(now_ms), None | Some(Fault::Slow))
    }

    /// Ends this process's part of it and begins it again.
    pub(crate) fn reopen(&mut self) {
        self.store.close_blocking();
        self.store = Store::open(self.target.clone()).unwrap();
    }

    pub(crate) fn read<T: Send + 'static>(
        &mut self,
        now_ms: &mut i64,
        operation: Operation,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Broken> {
        self.run(now_ms, operation, |store| store.read_blocking(job))
    }

    pub(crate) fn write<T: Send + 'static>(
        &mut self,
        now_ms: &mut i64,
        operation: Operation,
        root: Root,
        mut job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Broken> {
        self.committed = false;
        let verdict = self.verdict(now_ms, operation);
        let death = self.death();
        let fails = matches!(verdict, Verdict::RolledBack) || death == Some(Side::Before);
        if matches!(verdict, Verdict::Refused) {
            return Err(Broken::Failed);
        }
        let outcome = self.store.write_blocking(root, move |tx| {
            let value = job(tx)?;
            // Everything is written but the commit.
            if fails { Err(full()) } else { Ok(value) }
        });
        self.committed = outcome.is_ok();
        if death.is_some() {
            return Err(Broken::Died);
        }
        match verdict {
            Verdict::Unanswered if self.committed => Err(Broken::Failed),
            Verdict::RolledBack => outcome.map_err(|_| Broken::Failed),
            _ => outcome.map_err(Broken::Refused),
        }
    }

    /// Runs an operation that brings its own transactions. It fails before it
    /// runs, or its answer is lost.
    pub(crate) fn run<T>(
        &mut self,
        now_ms: &mut i64,
        operation: Operation,
        job: impl FnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<T, Broken> {
        self.committed = false;
        match self.verdict(now_ms, operation) {
            Verdict::Refused | Verdict::RolledBack => Err(Broken::Failed),
            verdict => {
                let outcome = job(&self.store);
                self.committed = outcome.is_ok();
                match verdict {
                    Verdict::Unanswered if self.committed => Err(Broken::Failed),
                    _ => outcome.map_err(Broken::Refused),
                }
            }
        }
    }

    fn verdict(&mut self, now_ms: &mut i64, operation: Operation) -> Verdict {
        let count = self.counts.entry(operation).or_default();
        *count += 1;
        let (at_ms, number) = (*now_ms, *count);
        let mut first = false;
        let begun = &mut self.begun;
        self.faults.outages.retain(|outage| {
            let begins = match outage.begins {
                Begins::At(ms) => ms <= at_ms,
                Begins::With(kind, which) => kind == operation && which <= number,
            };
            if begins {
                first = true;
                begun.push((outage.fault, at_ms, at_ms + outage.for_ms));
            }
            !begins
        });
        match self.fault(at_ms) {
            None => Verdict::Runs,
            Some(Fault::Slow) => {
                *now_ms += self.rng.random_range(100..3_000);
                Verdict::Runs
            }
            Some(Fault::Full | Fault::ReadOnly) if !operation.writes() => Verdict::Runs,
            Some(Fault::Full) => Verdict::RolledBack,
            Some(Fault::ReadOnly) => Verdict::Refused,
            Some(Fault::Down) if first && operation.writes() => match self.rng.random_range(0..3) {
                0 => Verdict::Refused,
                1 => Verdict::RolledBack,
                _ => Verdict::Unanswered,
            },
            Some(Fault::Down) => Verdict::Refused,
        }
    }

    fn fault(&self, now_ms: i64) -> Option<Fault> {
        self.begun
            .iter()
            .find(|(_, from_ms, until_ms)| (*from_ms..*until_ms).contains(&now_ms))
            .map(|(fault, ..)| *fault)
    }

    fn death(&mut self) -> Option<Side> {
        self.commits += 1;
        if let Some((at, side)) = self.faults.death {
            return (at == self.commits).then_some(side);
        }
        let share = self.faults.death_share;
        if share <= 0.0 || !self.rng.random_bool(share) {
            return None;
        }
        Some(if self.rng.random() {
            Side::Before
        } else {
            Side::After
        })
    }
}

fn full() -> StoreError {
    StoreError::Db(DbError::Constraint(
        "a commit that the simulation fails".to_owned(),
    ))
}
