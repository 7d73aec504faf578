//! One generator for all callers, and the order in which it serves them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use driftline_id::{
    ClockPolicy, FieldKind, Layout, Node, NotNow, Refusal, Retired, SharedGenerator, StartError,
    Window, clock::Clock,
};
use driftline_runtime::metrics::{ID_BATCH, ID_REFUSALS, ID_WAIT};
use metrics::Counter;
use tokio::sync::Semaphore;

use super::agent::Agents;

/// A clock shared by all parts of the service.
pub type SharedClock = Arc<dyn Clock + Send + Sync>;

/// Issues the IDs of one window.
///
/// Single IDs have priority: while callers wait for one, batches leave IDs for them in each tick.
/// Batches take turns of a few ticks, in the order of their requests.
pub struct Issuer {
    generator: SharedGenerator<SharedClock>,
    clock: SharedClock,
    /// Callers of [`one`](Self::one) that wait because a tick was used up.
    waiting: AtomicUsize,
    batches: Arc<Semaphore>,
    agents: Agents,
    worker_id: i64,
    datacenter_id: i64,
}

/// Why no ID was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssueError {
    /// The issuer was retired.
    #[error("the service is stopping; use another one")]
    Stopping,
    /// The generator refused.
    #[error("{0}")]
    Refused(Refusal),
    /// Ticks were used up for the whole wait: the demand exceeds the layout.
    #[error(
        "the demand exceeds the IDs of one node in this layout; try again, or use another node as \
         well"
    )]
    Exhausted,
    /// The ID does not fit signed 64 bits.
    #[error("IDs of this layout do not fit signed 64 bits any more; take them over HTTP")]
    Unsigned,
}

impl From<Refusal> for IssueError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Retired => Self::Stopping,
            refusal => Self::Refused(refusal),
        }
    }
}

impl Issuer {
    /// An issuer of the window's IDs.
    ///
    /// # Errors
    /// The layout cannot express the time of the clock.
    pub fn new(
        window: Window,
        clock: SharedClock,
        policy: ClockPolicy,
    ) -> Result<Self, StartError> {
        let node = *window.node();
        let field = |name| node.fields().find(|field| field.0 == name);
        Ok(Self {
            worker_id: field("worker").map_or(node.number(), |field| field.1) as i64,
            datacenter_id: field("datacenter").map_or(0, |field| field.1) as i64,
            generator: SharedGenerator::new(window, clock.clone(), policy)?,
            clock,
            waiting: AtomicUsize::new(0),
            batches: Arc::new(Semaphore::new(1)),
            agents: Agents::default(),
        })
    }

    /// The node.
    pub fn node(&self) -> &Node {
        self.generator.node()
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        self.node().layout()
    }

    /// The policy.
    pub fn policy(&self) -> ClockPolicy {
        self.generator.policy()
    }

    /// The generator's clock, in Unix µs.
    pub fn now_us(&self) -> i64 {
        self.clock.exact_us()
    }

    /// The end of the recorded window, in Unix µs.
    pub fn window_until_us(&self) -> i64 {
        self.generator.window_until_us()
    }

    /// The worker as the service of 2010 defines it: the field of that name, else the whole node.
    pub const fn worker_id(&self) -> i64 {
        self.worker_id
    }

    /// The field named datacenter, else 0.
    pub const fn datacenter_id(&self) -> i64 {
        self.datacenter_id
    }

    /// An ID, without waiting.
    ///
    /// # Errors
    /// How long to wait, or why there is none.
    pub fn try_one(&self) -> Result<u64, NotNow> {
        self.generator.try_next()
    }

    /// An ID, after a wait if necessary.
    ///
    /// # Errors
    /// [`IssueError`], counted by its kind.
    pub async fn one(&self) -> Result<u64, IssueError> {
        let refused = match self.generator.try_next() {
            Ok(raw) => return Ok(raw),
            Err(NotNow::Refused(refusal)) => return Err(IssueError::from(refusal).counted()),
            Err(NotNow::Wait(_)) => self.wait().await,
        };
        refused.map_err(IssueError::counted)
    }

    /// `count` IDs, each larger than the one before.
    ///
    /// # Errors
    /// [`IssueError`], counted by its kind. IDs made before it are lost, which does no harm.
    pub async fn batch(self: Arc<Self>, count: usize) -> Result<Vec<u64>, IssueError> {
        let asked = Instant::now();
        let mut ids = Vec::with_capacity(count);
        while ids.len() < count.min(SINGLES) {
            ids.push(self.one().await?);
        }
        while ids.len() < count {
            // Not the whole batch in one turn: other batches get turns in between.
            let slice = (count - ids.len()).min(TURN_TICKS * self.tick_ids());
            let made = self.take_turn(slice).await;
            ids.extend(made.map_err(IssueError::counted)?);
        }
        ID_BATCH.record(asked.elapsed());
        Ok(ids)
    }

    /// The counter of IDs issued to an agent; see [`is_agent`](super::is_agent).
    pub fn issued_to(&self, agent: &[u8]) -> Counter {
        self.agents.counter(agent)
    }

    /// Refuses all later calls. `None` if the issuer was already retired.
    pub fn retire(&self) -> Option<Retired> {
        self.generator.retire()
    }

    /// Waits for a turn, and generates IDs in it: on a thread that may block, since a tick is shorter
    /// than the resolution of the runtime's timers. The thread owns the turn, so that there is at most
    /// one even if a caller is cancelled.
    async fn take_turn(self: &Arc<Self>, count: usize) -> Result<Vec<u64>, IssueError> {
        let turn = Arc::clone(&self.batches).acquire_owned();
        let turn = match tokio::time::timeout(MAX_TURN, turn).await {
            Ok(Ok(turn)) => turn,
            Ok(Err(_)) => return Err(IssueError::Stopping),
            Err(_) => return Err(IssueError::Exhausted),
        };
        let of_thread = Arc::clone(self);
        let made = tokio::task::spawn_blocking(move || {
            let made = of_thread.fill(count);
            drop(turn);
            made
        });
        made.await.unwrap_or(Err(IssueError::Stopping))
    }

    fn fill(&self, count: usize) -> Result<Vec<u64>, IssueError> {
        let mut ids = Vec::with_capacity(count);
        while ids.len() < count {
            let waiting = self.waiting.load(Ordering::Relaxed);
            let share = batch_share(self.tick_ids(), waiting);
            let length = share.min(count - ids.len());
            let batch = self.generator.reserve_waiting(length);
            ids.extend(batch?);
            if waiting > 0 && ids.len() < count {
                std::thread::sleep(self.tick());
            }
        }
        Ok(ids)
    }

    async fn wait(&self) -> Result<u64, IssueError> {
        let _waiting = Waiting::new(&self.waiting);
        let asked = Instant::now();
        let deadline = tokio::time::Instant::now() + self.longest_wait();
        let made = self.generator.next_before(deadline).await;
        ID_WAIT.record(asked.elapsed());
        made.map_err(|error| match error {
            NotNow::Refused(refusal) => refusal.into(),
            NotNow::Wait(wait) => wait
                .refusal()
                .map_or(IssueError::Exhausted, IssueError::from),
        })
    }

    fn longest_wait(&self) -> Duration {
        match self.policy() {
            ClockPolicy::Refuse => MAX_WAIT,
            ClockPolicy::Wait { at_most_ms } => Duration::from_millis(at_most_ms.into()),
        }
        .max(MAX_WAIT)
    }

    fn tick(&self) -> Duration {
        Duration::from_micros(self.layout().unit().us().into())
    }

    /// IDs that one tick has.
    fn tick_ids(&self) -> usize {
        let mut fields = self.layout().fields().iter();
        let sequence = fields.find(|field| field.kind() == FieldKind::Sequence);
        sequence.map_or(1, |field| 1 << field.bits().min(MAX_SEQUENCE_BITS))
    }
}

impl IssueError {
    /// The label for metrics.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Refused(Refusal::ClockBehind { .. }) => "clock_behind",
            Self::Refused(Refusal::WindowAhead { .. }) => "window_ahead",
            Self::Refused(Refusal::WindowEnded { .. }) => "window_ended",
            Self::Refused(Refusal::Time(_)) => "layout_ended",
            Self::Stopping => "stopping",
            Self::Refused(Refusal::Forked) => "forked",
            Self::Refused(Refusal::SequenceExhausted) | Self::Exhausted => "exhausted",
            Self::Unsigned => "unsigned",
            Self::Refused(_) => "other",
        }
    }

    /// Counts the error by its kind.
    pub(super) fn counted(self) -> Self {
        ID_REFUSALS.with([self.kind()]).increment(1);
        self
    }
}

/// How many of a tick's IDs a batch takes while callers wait for single ones: at least half of them,
/// and all while no caller waits.
fn batch_share(tick_ids: usize, waiting: usize) -> usize {
    let room = waiting.saturating_mul(ROOM).min(tick_ids / 2);
    tick_ids - room
}

/// Counts a waiting caller until it is dropped, also by a cancellation.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long a caller waits while ticks are used up.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// How long a batch waits for its turn.
const MAX_TURN: Duration = Duration::from_secs(10);
/// IDs that batches leave in a tick for each waiting caller, which may have sent several requests.
const ROOM: usize = 16;
/// So many IDs of each batch are issued as single ones, so that small batches need no turn.
const SINGLES: usize = 16;
/// How many ticks a batch may take in one turn.
const TURN_TICKS: usize = 4;
const MAX_SEQUENCE_BITS: u8 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_leave_ids_for_waiting_callers() {
        assert_eq!(batch_share(4_096, 0), 4_096);
        assert_eq!(batch_share(4_096, 1), 4_080);
        assert_eq!(batch_share(4_096, 50), 3_296);
        assert_eq!(batch_share(4_096, usize::MAX), 2_048);
        assert_eq!(batch_share(1, 1), 1);
    }
}
