//! One source's stream being followed, beside the session that polls it.
//!
//! The stream lowers the delay from visible to stored; that nothing is missing is for the polls to
//! prove. So a stream that breaks, or that never opens, costs delay and nothing else.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use driftline_core::{
    answer::{Event, Failure, FailureKind},
    timeline::{IdScheme, Streaming, backoff_ms},
    upstream_id::UpstreamId,
};
use driftline_store::{
    Arrived, CommitEvents, InstanceId, SourceId, Store, StoreError, Summary, commit_events,
    credential::Credential, source,
};
use driftline_upstream::{
    ClientPurpose, Stream, StreamEndpoint, StreamMessage, Timeline, Upstream,
};
use metrics::{counter, gauge};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    access::Access,
    clock::{now_ms, random},
    quotas::{Permit, QuotaPurpose},
    session::count,
};

/// What a follower and its session tell each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamState {
    changes: Arc<AtomicU64>,
    scheme: watch::Sender<Option<IdScheme>>,
    connection: watch::Sender<Connection>,
}

/// Whether a stream is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Connection {
    pub(crate) is_open: bool,
    /// How often it was opened.
    pub(crate) times: u64,
}

impl StreamState {
    /// How many commits of the stream have changed stored posts: what a session remembers of such
    /// posts no longer holds.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Tells whenever the stream is opened or ends.
    pub(crate) fn connection(&self) -> watch::Receiver<Connection> {
        self.connection.subscribe()
    }

    /// Tells the follower the order of IDs, which is known with the first page.
    pub(crate) fn set_scheme(&self, scheme: Option<&IdScheme>) {
        self.scheme.send_if_modified(|told| {
            let is_news = told.as_ref() != scheme;
            *told = scheme.copied();
            is_news
        });
    }
}

/// A source whose stream is followed.
pub(crate) struct Follower {
    pub(crate) store: Store,
    pub(crate) client: Upstream,
    pub(crate) credential: Credential,
    pub(crate) access: Access,
    pub(crate) instance: InstanceId,
    pub(crate) timeline: Timeline,
    pub(crate) source: SourceId,
    /// The source's name, for people.
    pub(crate) name: String,
    pub(crate) way: Streaming,
    pub(crate) fence: Option<i64>,
    pub(crate) stream_state: StreamState,
}

/// A stream that is followed until this value goes, or until [`Following::end`].
#[derive(Debug, Default)]
pub struct Following {
    task: JoinSet<()>,
}

impl Following {
    pub(crate) fn start(follower: Option<Follower>) -> Self {
        let mut task = JoinSet::new();
        if let Some(follower) = follower {
            task.spawn(follower.run());
        }
        Self { task }
    }

    /// Ends it: nothing more is taken in. What was handed to the store before may still be stored
    /// after this, if the source's lease is still the one that it was taken in under.
    pub async fn end(&mut self) {
        self.task.shutdown().await;
    }
}

/// Why a stream is not followed any more, for now or for good.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("{}", .0.message)]
    Failure(#[from] Failure),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Follower {
    /// Follows the stream until the source's lease is lost or the source has none. Dropping the
    /// future leaves nothing half done.
    async fn run(self) {
        let mut scheme = self.stream_state.scheme.subscribe();
        let known = scheme.wait_for(Option::is_some).await.map(|known| *known);
        let Ok(Some(scheme)) = known else { return };
        let mut place = None;
        let mut gone = Gone::default();
        let mut failures = 0;
        let mut tried = 0_u64;
        loop {
            let outcome = match self.open(&mut place).await {
                Ok(None) => return,
                Ok(Some(mut stream)) => {
                    let opened = Instant::now();
                    self.note_opened(&stream, tried);
                    let connected = Connected::new(&self.stream_state);
                    let end = self.listen(&mut stream, scheme, &mut gone).await;
                    drop(connected);
                    // One that broke at once may go on doing so.
                    if opened.elapsed() >= STEADY {
                        failures = 0;
                    }
                    end
                }
                Err(end) => end,
            };
            failures += 1;
            tried += 1;
            let base_ms = match &outcome {
                End::Store(StoreError::LeaseLost | StoreError::NoSource) => return,
                // Polls meet the same store, and tell of it.
                End::Store(error) => {
                    tracing::debug!(source = %self.name, %error, "what its stream shows was not stored");
                    failures = failures.min(2);
                    RETRY_MS
                }
                End::Failure(failure) => {
                    self.note_failure(failure, failures);
                    // The place may have changed.
                    place = None;
                    retry_ms(failure.kind)
                }
            };
            let wait_ms = backoff_ms(base_ms, failures, random());
            sleep(Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0))).await;
        }
    }

    async fn open(&self, place: &mut Option<StreamEndpoint>) -> Result<Option<Stream>, End> {
        if place.is_none() {
            self.take_request().await?;
            *place = self.client.stream_endpoint().await?;
        }
        let Some(place) = place else { return Ok(None) };
        let stream = self.client.stream(&self.timeline, self.way, place).await?;
        Ok(stream)
    }

    /// Waits for a request of the credential's quota; it reads no post.
    async fn take_request(&self) -> Result<(), StoreError> {
        let scope = self.client.scope(ClientPurpose::LookUp);
        loop {
            let permit = self
                .access
                .quotas
                .take(&self.credential, scope, QuotaPurpose::Poll, 0)
                .await?;
            let Permit::Until(until_ms) = permit else {
                return Ok(());
            };
            let wait_ms = until_ms.saturating_sub(now_ms()).max(1);
            sleep(Duration::from_millis(wait_ms.unsigned_abs())).await;
        }
    }

    /// Takes in what the stream tells until it ends.
    async fn listen(&self, stream: &mut Stream, scheme: IdScheme, gone: &mut Gone) -> End {
        loop {
            let mut events = Vec::new();
            match stream.next().await {
                Ok(told) => note(told, gone, &mut events),
                Err(failure) => return End::Failure(failure),
            }
            // What comes together is stored together.
            let until = Instant::now() + TOGETHER;
            let mut ended = None;
            while !events.is_empty() && events.len() < MAX_TOGETHER {
                match timeout_at(until, stream.next()).await {
                    Ok(Ok(told)) => note(told, gone, &mut events),
                    Ok(Err(failure)) => {
                        ended = Some(failure);
                        break;
                    }
                    Err(_) => break,
                }
            }
            if let Err(error) = self.commit(events, scheme).await {
                return End::Store(error);
            }
            if let Some(failure) = ended {
                return End::Failure(failure);
            }
        }
    }

    async fn commit(&self, events: Vec<Arrived>, scheme: IdScheme) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        let (source, fence) = (self.source, self.fence);
        let policy = self.access.policies.of(self.instance);
        let keep_deleted = self.access.keep_deleted;
        let summary = self
            .store
            .write(source::root(source), move |tx| {
                commit_events(
                    tx,
                    &CommitEvents {
                        source,
                        fence,
                        scheme: &scheme,
                        events: &events,
                        policy: &policy,
                        keep_deleted,
                        now_ms: now_ms(),
                    },
                )
            })
            .await?;
        let Summary {
            edited,
            revived,
            deleted,
            ..
        } = summary;
        if edited + revived + deleted > 0 {
            self.stream_state.changes.fetch_add(1, Ordering::SeqCst);
        }
        count(&summary);
        Ok(())
    }

    fn note_opened(&self, stream: &Stream, tried: u64) {
        if tried > 0 {
            counter!("driftline_stream_reconnects_total").increment(1);
        }
        tracing::info!(source = %self.name, way = stream.way(), "following its stream");
    }

    fn note_failure(&self, failure: &Failure, failures: u32) {
        let Failure { kind, message, .. } = failure;
        counter!("driftline_stream_failures_total", "kind" => kind.name()).increment(1);
        if failures == 1 {
            tracing::info!(source = %self.name, %kind, "polled alone for now: {message}");
        } else {
            tracing::debug!(source = %self.name, %kind, "still polled alone: {message}");
        }
    }
}

fn note(told: StreamMessage, gone: &mut Gone, events: &mut Vec<Arrived>) {
    let kind = match &told {
        StreamMessage::Event(Event::Posted(_)) => "update",
        StreamMessage::Event(Event::Edited(_)) => "edit",
        StreamMessage::Event(Event::Deleted(_)) => "delete",
        StreamMessage::Other => "other",
        StreamMessage::Unusable => "unusable",
    };
    counter!("driftline_stream_events_total", "kind" => kind).increment(1);
    let StreamMessage::Event(event) = told else {
        return;
    };
    match &event {
        Event::Posted(post) if gone.holds(&post.id) => return,
        Event::Deleted(id) => gone.note(id),
        Event::Posted(_) | Event::Edited(_) => {}
    }
    events.push(Arrived {
        event,
        received_at_ms: now_ms(),
    });
}

/// The posts that the stream last told deleted: one that it tells of afterwards was late.
#[derive(Debug, Default)]
struct Gone {
    ids: HashSet<UpstreamId>,
    order: VecDeque<UpstreamId>,
}

impl Gone {
    fn holds(&self, id: &UpstreamId) -> bool {
        self.ids.contains(id)
    }

    fn note(&mut self, id: &UpstreamId) {
        if !self.ids.insert(id.clone()) {
            return;
        }
        self.order.push_back(id.clone());
        if self.order.len() > MAX_GONE
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

/// The stream is open as long as this lives, which is counted and told.
struct Connected<'l>(&'l StreamState);

impl<'l> Connected<'l> {
    fn new(stream_state: &'l StreamState) -> Self {
        gauge!("driftline_stream_connected").increment(1.0);
        stream_state.connection.send_modify(|connection| {
            connection.is_open = true;
            connection.times += 1;
        });
        Self(stream_state)
    }
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        gauge!("driftline_stream_connected").decrement(1.0);
        self.0
            .connection
            .send_modify(|connection| connection.is_open = false);
    }
}

/// How soon a stream is tried again: soon where a moment may have helped, later where the server
/// has none, or not for this token.
fn retry_ms(kind: FailureKind) -> i64 {
    match kind {
        FailureKind::Unreachable
        | FailureKind::TimedOut
        | FailureKind::ServerError
        | FailureKind::Truncated
        | FailureKind::Throttled => RETRY_MS,
        _ => RETRY_REFUSED_MS,
    }
}

const RETRY_MS: i64 = 1_000;
const RETRY_REFUSED_MS: i64 = 300_000;
/// A stream that lived so long was a good one.
const STEADY: Duration = Duration::from_secs(10);
const TOGETHER: Duration = Duration::from_millis(2);
const MAX_TOGETHER: usize = 200;
const MAX_GONE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_that_is_told_after_its_deletion_is_passed_over() {
        let mut gone = Gone::default();
        for number in 0..2 * MAX_GONE {
            gone.note(&UpstreamId::new(number.to_string()));
            gone.note(&UpstreamId::new(number.to_string()));
        }
        assert!(gone.holds(&"2047".into()) && gone.holds(&"1024".into()));
        assert!(!gone.holds(&"1023".into()) && !gone.holds(&"x".into()));
        assert_eq!(gone.ids.len(), MAX_GONE);
        let mut events = Vec::new();
        let deleted = |id: &str| StreamMessage::Event(Event::Deleted(id.into()));
        note(deleted("7"), &mut gone, &mut events);
        note(StreamMessage::Other, &mut gone, &mut events);
        assert_eq!(events.len(), 1);
        assert!(gone.holds(&"7".into()));
    }
}
