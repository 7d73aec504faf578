//! A process that reads one source, as the server's pollers do: the lease,
//! the session, what ends it, and how it comes back.

use driftline_core::timeline::Machine;
use driftline_db::testing::Fresh;
use driftline_sim::Upstream;
use driftline_store::{
    CommitSummary, SourceKey, StoreError, Target, local_ids, machine, source, source_lease,
    testing::new_source,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    faults::{Broken, FaultyStore, Operation},
    feed::Feed,
    laws::{Commit, Laws, Violation},
    mutants::Mutant,
    proofs::Proofs,
    refresher::Refresher,
    session::Session,
    settings::{Drawn, MINUTE_MS, SECOND_MS},
};

pub(crate) struct Simulation {
    pub(crate) drawn: Drawn,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) upstream: Upstream,
    pub(crate) store: FaultyStore,
    pub(crate) laws: Laws,
    pub(crate) source: SourceKey,
    pub(crate) session: Option<Session>,
    /// `None` without a stream.
    pub(crate) feed: Option<Feed>,
    /// What the stream's commits changed.
    pub(crate) streamed: CommitSummary,
    pub(crate) refresher: Refresher,
    /// True time, Unix ms.
    pub(crate) now_ms: i64,
    /// The process's wall clock less true time, ms.
    pub(crate) clock_error_ms: i64,
    pub(crate) waits_in_a_row: u32,
    pub(crate) rng: ChaCha8Rng,
    /// When the lease of the session that ended is over at the latest, by
    /// virtual time, Unix ms. The database's own clock does not take part.
    leased_until_ms: i64,
    /// Since when the source is not read, Unix ms.
    stalled_since_ms: i64,
    /// When the last poll that was taken in was asked for, Unix ms.
    pub(crate) polled_at_ms: i64,
    /// Since when nothing was looked up and nothing is left to read, Unix ms.
    pub(crate) quiet_since_ms: i64,
    /// Requests that were no polls, look-ups included; refreshes apart.
    pub(crate) other_requests: u64,
    /// The session's, and the process's.
    pub(crate) proofs: Proofs,
    _place: Place,
}

/// Where the store is; it goes with this value.
pub(crate) enum Place {
    Folder(tempfile::TempDir),
    Postgres(Fresh),
}

impl Place {
    /// In memory where there is such a place: what is proven here is the
    /// order of commits, not the disk.
    pub(crate) fn sqlite() -> Self {
        let memory = std::path::Path::new("/dev/shm");
        Self::Folder(if memory.is_dir() {
            tempfile::tempdir_in(memory).unwrap()
        } else {
            tempfile::tempdir().unwrap()
        })
    }

    pub(crate) fn postgres() -> Self {
        Self::Postgres(Fresh::postgres())
    }

    fn target(&self) -> Target {
        match self {
            Self::Folder(folder) => Target::Sqlite {
                path: folder.path().join("driftline.db"),
            },
            Self::Postgres(fresh) => fresh.target.clone(),
        }
    }
}

impl Simulation {
    pub(crate) fn new(drawn: Drawn) -> Self {
        Self::at(Place::sqlite(), drawn)
    }

    pub(crate) fn at(place: Place, drawn: Drawn) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(drawn.seed);
        rng.set_stream(2);
        let mut store_rng = rng.clone();
        store_rng.set_stream(4);
        let now_ms = drawn.start_ms();
        let mut store = FaultyStore::open(place.target(), store_rng);
        let new = source::NewSource {
            timeline: "home".into(),
            settings: drawn.settings.clone(),
            ..new_source("sim")
        };
        let source = store
            .plain()
            .write_blocking(local_ids::root(), move |tx| {
                Ok::<_, StoreError>(source::add(tx, &new, now_ms)?.unwrap())
            })
            .unwrap();
        store.set_faults(drawn.faults.clone());
        Self {
            upstream: Upstream::new(drawn.world.clone(), drawn.seed),
            store,
            laws: Laws::new(source, &drawn),
            source,
            session: None,
            feed: drawn.streams.then(|| Feed::new(&drawn, now_ms)),
            streamed: CommitSummary::default(),
            refresher: Refresher::new(source, &drawn),
            now_ms,
            clock_error_ms: 0,
            waits_in_a_row: 0,
            rng,
            leased_until_ms: now_ms,
            stalled_since_ms: now_ms,
            polled_at_ms: i64::MIN,
            quiet_since_ms: now_ms,
            other_requests: 0,
            proofs: Proofs::default(),
            mutant: None,
            drawn,
            _place: place,
        }
    }

    pub(crate) fn with(self, mutant: Mutant) -> Self {
        Self {
            mutant: Some(mutant),
            ..self
        }
    }

    /// Runs while the world publishes, and lets everything come of age.
    pub(crate) fn run(mut self) -> Result<(), Violation> {
        let ran = self.run_to_the_end().and_then(|()| self.check_idle());
        self.store.plain().close_blocking();
        ran
    }

    pub(crate) fn run_to_the_end(&mut self) -> Result<(), Violation> {
        self.run_until(self.drawn.start_ms() + self.drawn.runs_for_ms + MINUTE_MS)?;
        let before_ms = self.now_ms;
        let deadline_ms = self.now_ms + 24 * 60 * MINUTE_MS;
        self.store.mend(self.now_ms);
        self.upstream.change_faults(|faults| faults.outages.clear());
        while !self.is_settled(before_ms) {
            if self.now_ms > deadline_ms {
                let ledger = self
                    .session
                    .as_ref()
                    .map(|session| session.machine().ledger());
                let session = self.session.as_ref();
                let honoured = session.map(|it| it.machine().honoured());
                return Err(Violation::Unsettled(format!("{ledger:?}, {honoured:?}")));
            }
            self.step(true)?;
        }
        self.laws
            .check_end(self.store.plain(), &mut self.upstream, self.now_ms)
    }

    pub(crate) fn run_until(&mut self, end_ms: i64) -> Result<(), Violation> {
        while self.now_ms < end_ms {
            self.step(false)?;
        }
        Ok(())
    }

    /// Whether all that was published has come of age, and nothing more was
    /// looked up for so long that no look-up waits for its turn.
    fn is_settled(&mut self, before_ms: i64) -> bool {
        let rungs = self.drawn.settings.rungs.len() + 1;
        // Where nothing more can be proven, the report says why.
        let tried_ms = before_ms + self.drawn.last_age_ms() + 30 * MINUTE_MS;
        let is_tried = self.now_ms > tried_ms;
        let before_by_wall_ms = before_ms + self.clock_error_ms;
        let is_read = self.polled_at_ms >= before_ms
            && self.session.as_ref().is_some_and(|session| {
                let machine = session.machine();
                machine.is_settled(&self.drawn.settings, before_by_wall_ms, rungs)
                    || is_tried && machine.unprovable().is_some()
            });
        if !is_read {
            self.quiet_since_ms = self.now_ms;
        }
        self.now_ms > self.quiet_since_ms + 6 * MINUTE_MS
    }

    pub(crate) fn step(&mut self, settling: bool) -> Result<(), Violation> {
        self.set_clock();
        let outcome = self.attempt(settling);
        match outcome {
            Ok(()) => Ok(()),
            Err(Ended::Violation(violation)) => Err(violation),
            Err(Ended::Store) => {
                self.end_session();
                self.check(&Commit::Other)
            }
            Err(Ended::Died) => {
                self.restart();
                self.check(&Commit::Other)
            }
        }
    }

    /// Sets the process's wall clock when it is time.
    fn set_clock(&mut self) {
        let now_ms = self.now_ms;
        let steps = &mut self.drawn.clock_steps;
        let due = steps.partition_point(|(at_ms, _)| *at_ms <= now_ms);
        let by_ms: i64 = steps.drain(..due).map(|(_, by_ms)| by_ms).sum();
        self.clock_error_ms += by_ms;
    }

    fn attempt(&mut self, settling: bool) -> Result<(), Ended> {
        if self.session.is_none() {
            return self.scan();
        }
        self.follow()?;
        self.refresh()?;
        self.step_session(settling)
    }

    /// Looks for a source that is free, as the pollers do every second.
    fn scan(&mut self) -> Result<(), Ended> {
        self.now_ms += SECOND_MS;
        let fails_until_ms = self.store.fails_until_ms();
        let limit_ms = self.stalled_since_ms.max(fails_until_ms) + 10 * SECOND_MS;
        if self.now_ms > limit_ms {
            return Err(Ended::Violation(Violation::Stalled(format!(
                "not read since {}, though the store works since {fails_until_ms}; now {}",
                self.stalled_since_ms, self.now_ms
            ))));
        }
        if self.mutant == Some(Mutant::LeaseOutlivesSession) && self.store.opens(self.now_ms) {
            let held = self.leased_until_ms > self.now_ms;
            if held {
                self.leased_until_ms = self.now_ms + LEASE_MS;
            }
        }
        if self.now_ms < self.leased_until_ms {
            return Ok(());
        }
        let source = self.source;
        let claimed = self.store.write(
            &mut self.now_ms,
            Operation::Claim,
            source::root(source),
            // It is over at once by the database's clock, which runs apart.
            move |tx| source_lease::claim(tx, source, "sim", 0),
        );
        if self.store.committed() {
            self.leased_until_ms = self.now_ms + LEASE_MS;
        }
        let Some(lease) = self.tried(claimed)? else {
            return Ok(());
        };
        let Some(lease) = lease else {
            let text = "the source is neither leased nor free".to_owned();
            return Err(Ended::Violation(Violation::Stalled(text)));
        };
        match self.load()? {
            Some(machine) => {
                self.session = Some(self.new_session(machine, lease));
                self.leased_until_ms = i64::MAX;
            }
            None => self.give_back(lease),
        }
        Ok(())
    }

    fn load(&mut self) -> Result<Option<Machine>, Ended> {
        let source = self.source;
        let loaded = self
            .store
            .read(&mut self.now_ms, Operation::Load, move |tx| {
                machine::load(tx, source)
            });
        self.tried(loaded)
    }

    /// `None` where the store failed, which the scan takes for a reason to try
    /// again.
    fn tried<T>(&self, outcome: Result<T, Broken>) -> Result<Option<T>, Ended> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(Broken::Failed) => Ok(None),
            Err(broken) => Err(broken.into()),
        }
    }

    /// The session ends as the store fails it, and gives its lease back if the
    /// store takes that.
    fn end_session(&mut self) {
        if let Some(feed) = &mut self.feed {
            feed.break_off(self.now_ms);
        }
        if let Some(session) = self.session.take() {
            self.stalled_since_ms = self.now_ms;
            self.leased_until_ms = self.now_ms + LEASE_MS;
            self.give_back(session.lease);
        }
    }

    fn give_back(&mut self, lease: source_lease::Lease) {
        let root = source::root(self.source);
        let _ = self
            .store
            .write(&mut self.now_ms, Operation::Release, root, move |tx| {
                source_lease::release(tx, &lease)
            });
        if self.store.committed() {
            self.leased_until_ms = self.now_ms;
        }
    }

    /// The process died. Another one begins some time later, as soon as the
    /// store can be opened.
    fn restart(&mut self) {
        if self.session.take().is_some() {
            self.leased_until_ms = self.now_ms + LEASE_MS;
        }
        self.now_ms += self.rng.random_range(100..120_000);
        while !self.store.opens(self.now_ms) {
            self.now_ms += SECOND_MS;
        }
        if let Some(feed) = &mut self.feed {
            feed.break_off(self.now_ms);
        }
        self.refresher.die();
        self.store.reopen();
        self.stalled_since_ms = self.now_ms;
    }

    fn refresh(&mut self) -> Result<(), Ended> {
        let saved = self.refresher.step(
            &mut self.store,
            &mut self.upstream,
            (&mut self.laws, &mut self.proofs),
            &mut self.now_ms,
        );
        match saved {
            Ok(false) => Ok(()),
            Ok(true) => {
                if let Some(session) = &mut self.session {
                    session.other_changes += 1;
                }
                self.check(&Commit::Other).map_err(Ended::Violation)
            }
            // The worker tries again, and the session knows nothing of it.
            Err(Broken::Failed) => Ok(()),
            Err(broken) => Err(broken.into()),
        }
    }

    pub(crate) fn check(&mut self, commit: &Commit) -> Result<(), Violation> {
        let store = self.store.plain();
        self.laws
            .check(store, &mut self.upstream, self.now_ms, commit)
    }
}

/// Why a step did not come to its end.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The store failed: the session ends.
    Store,
    /// The process died.
    Died,
    Violation(Violation),
}

impl From<Broken> for Ended {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Failed => Self::Store,
            Broken::Refused(error) => Self::Violation(Violation::Refused(error.to_string())),
            Broken::Died => Self::Died,
        }
    }
}

/// How long a lease lasts without renewal, ms.
const LEASE_MS: i64 = 5 * SECOND_MS;
