use crate::batch::Batch;
use crate::clock::Clock;
use crate::grant::Grant;
use crate::plan::next_check;
use crate::policy::ClockPolicy;
use crate::refusal::{NotNow, StartError};
use crate::rules::{RETIRED, Rules};
use crate::run::Run;
use crate::shared_methods::shared_methods;
use crate::window::{Retired, Window};

/// Makes IDs for one owner. Each is larger than all before it.
///
/// The sequence restarts in each tick of the layout. When a tick's sequence is used up, the
/// next ID waits for the next tick: no ID has a time that the clock has not reached. A layout
/// without a sequence gives one ID a tick.
///
/// In a process forked by the C library the copy of a generator refuses; a process made by a
/// bare system call is not noticed, so don't use a generator in one.
///
/// ```
/// use driftline_id::clock::ManualClock;
/// use driftline_id::{ClockPolicy, Generator, Layout, Node, NotNow, Window};
///
/// let node = Node::from_fields(&Layout::TWITTER, &[("datacenter", 1), ("worker", 5)])?;
/// let window = Window::unrecorded_ids_may_repeat(node);
/// let clock = ManualClock::at_ms(1_700_000_000_000);
/// let mut ids = Generator::new(window, clock.clone(), ClockPolicy::Refuse)?;
///
/// let first = ids.try_next()?;
/// assert_eq!(Layout::TWITTER.time_ms(first.into()), 1_700_000_000_000);
/// clock.advance_us(-2_000);
/// assert!(matches!(ids.try_next(), Err(NotNow::Refused(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Generator<C> {
    run: Run,
    clock: C,
    /// The state and the ID at the beginning of the run.
    run_count: u64,
    run_raw: u64,
    rules: Rules,
}

impl<C: Clock> Generator<C> {
    /// A generator that makes the window's IDs.
    pub fn new(window: Window, clock: C, policy: ClockPolicy) -> Result<Self, StartError> {
        let rules = Rules::new(window, clock.fresh_us(), policy)?;
        Ok(Self {
            run: Run::default(),
            clock,
            run_count: rules.first_count,
            run_raw: 0,
            rules,
        })
    }

    /// An ID, if there is one at this moment. Never blocks.
    #[inline]
    pub fn try_next(&mut self) -> Result<u64, NotNow> {
        match self.run.next(self.clock.now_us()) {
            Some(raw) if !self.rules.origin.is_elsewhere() => Ok(raw),
            _ => self.try_next_run(),
        }
    }

    /// Up to `length` IDs of this tick at once, and at least one.
    pub fn reserve(&mut self, length: usize) -> Result<Batch, NotNow> {
        let grant = self.decide(length as u64)?;
        self.run_count = grant.first + grant.length;
        self.run = Run::default();
        self.run_raw = self.run.next_raw;
        Ok(self.rules.batch(&grant))
    }

    /// Ends the generator. In a forked process the proof ends no record early.
    pub fn retire(self) -> Retired {
        self.rules.retired(self.next_count())
    }

    #[cold]
    #[inline(never)]
    fn try_next_run(&mut self) -> Result<u64, NotNow> {
        let Grant { first, .. } = self.decide(1)?;
        let plan = &self.rules.plan;
        let sequence = plan.sequence_of(first);
        let length = next_check(sequence).min(plan.max_sequence() + 1) - sequence;
        let length = length.min(RETIRED - first);
        self.run = plan.run_after(&Grant { first, length });
        self.run_count = first + 1;
        self.run_raw = self.run.next_raw;
        Ok(plan.raw(first))
    }

    fn decide(&self, length: u64) -> Result<Grant, NotNow> {
        let grant = self
            .rules
            .decide(self.next_count(), self.clock.fresh_us(), length)?;
        debug_assert!(grant.first >= self.next_count() && grant.first < RETIRED);
        Ok(grant)
    }

    fn next_count(&self) -> u64 {
        self.run_count + self.rules.plan.distance(self.run_raw, self.run.next_raw)
    }
}

shared_methods!(Generator, mut);
