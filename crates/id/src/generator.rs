use crate::batch::Batch;
use crate::clock::Clock;
use crate::node::Node;
use crate::plan::next_check;
use crate::policy::{ClockPolicy, SequenceStart};
use crate::refusal::{NotNow, StartError};
use crate::rules::{Grant, RETIRED, Rules};
use crate::run::Run;
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

    /// Starts the sequence of each tick elsewhere than at 0.
    #[must_use]
    pub fn with_sequence_start(mut self, start: SequenceStart) -> Self {
        self.rules.start = start;
        self
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

    /// Fills the slice from its beginning, and returns how far: less than all of it where the tick
    /// has fewer. An error only where there is not even one.
    pub fn fill(&mut self, ids: &mut [u64]) -> Result<usize, NotNow> {
        if ids.is_empty() {
            return Ok(0);
        }
        let batch = self.reserve(ids.len())?;
        let slots = ids.iter_mut().zip(batch);
        Ok(slots.map(|(slot, raw)| *slot = raw).count())
    }

    /// The node and, through it, the layout.
    pub fn node(&self) -> &Node {
        self.rules.window.node()
    }

    /// The end of the window in Unix µs, as extended so far.
    pub fn window_until_us(&self) -> i64 {
        self.rules.window.until_us()
    }

    /// The clock policy.
    pub fn policy(&self) -> ClockPolicy {
        self.rules.policy
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

#[cfg(feature = "std")]
impl<C: Clock> Generator<C> {
    /// An ID, after a wait if need be: for the next tick, or as long as the policy allows.
    #[inline]
    pub fn next_id(&mut self) -> Result<u64, crate::Refusal> {
        match self.try_next() {
            Ok(raw) => Ok(raw),
            Err(not_now) => crate::blocking::wait(self, not_now, |ids| ids.try_next()),
        }
    }

    /// Up to `length` IDs of one tick, after a wait if need be.
    pub fn reserve_waiting(&mut self, length: usize) -> Result<Batch, crate::Refusal> {
        match self.reserve(length) {
            Ok(batch) => Ok(batch),
            Err(not_now) => crate::blocking::wait(self, not_now, |ids| ids.reserve(length)),
        }
    }
}

#[cfg(feature = "std")]
impl<C: Clock> crate::blocking::Source for Generator<C> {
    fn limits(&self) -> (ClockPolicy, u64) {
        (self.rules.policy, self.rules.plan.unit_us)
    }

    fn fresh_us(&self) -> i64 {
        self.clock.fresh_us()
    }
}

#[cfg(feature = "tokio")]
impl<C: Clock> Generator<C> {
    /// An ID before the deadline, on a Tokio runtime with its timer enabled; [`NotNow::Wait`] if
    /// the deadline comes first. Cancel-safe: an ID is taken only when it is returned.
    ///
    /// The runtime's timer counts whole ms, so that on a busy runtime a wait may miss a tick.
    /// Where more IDs are asked for than the layout has, take many of a tick at once, by
    /// [`reserve_before`](Self::reserve_before). Waits below 50 µs give way to the runtime's other
    /// tasks instead of sleeping.
    pub async fn next_before(&mut self, deadline: tokio::time::Instant) -> Result<u64, NotNow> {
        crate::waiting::wait(deadline, || self.try_next()).await
    }

    /// Up to `length` IDs of one tick before the deadline, as
    /// [`next_before`](Self::next_before). Cancel-safe.
    pub async fn reserve_before(
        &mut self,
        length: usize,
        deadline: tokio::time::Instant,
    ) -> Result<Batch, NotNow> {
        crate::waiting::wait(deadline, || self.reserve(length)).await
    }
}
