//! Follows the stream of one source, next to the session that polls it.
//!
//! The stream lowers the delay from visible to stored; only polls prove that nothing is missing. So a
//! stream that breaks, or that never opens, costs delay and nothing else.
//!
//! Posts that are streamed before polls have read what came before the stream was opened wait for that, so that they
//! do not stand below it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use driftline_core::{
    answer::{Event, Failure, FailureKind},
    timeline::{IdScheme, backoff_ms, session::StreamView},
    upstream_id::UpstreamId,
};
use driftline_runtime::{
    metrics::{STREAM_CONNECTED, STREAM_EVENTS, STREAM_FAILURES, STREAM_RECONNECTS},
    now_ms, random,
};
use driftline_store::{
    CommitEvents, CommitSummary, ReceivedEvent, Store, StoreError, commit_events,
    source::{self, Source},
};
use driftline_upstream::{Stream, StreamEndpoint, StreamMessage, Timeline, Upstream};
use indexmap::IndexSet;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::{
    commit_metrics::count,
    quotas::{Permit, Quota},
    recent_changes::RecentChanges,
    upstream_access::UpstreamAccess,
    waiting_posts::WaitingPosts,
};

/// State shared by a follower and its session.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamState {
    changes: Arc<AtomicU64>,
    scheme: watch::Sender<Option<IdScheme>>,
    connection: watch::Sender<StreamView>,
    /// Why the server is not asked for the stream for a day, if so.
    missing: watch::Sender<Option<Failure>>,
    /// The last opening of which polls have read all that came before it.
    caught_up: watch::Sender<u64>,
    /// How many backlogs were stored.
    backlogs: watch::Sender<u64>,
}

impl StreamState {
    /// How many commits of the stream have changed stored posts, so that what the session remembers
    /// of them is stale.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Changes whenever the stream opens or ends.
    pub(crate) fn connection(&self) -> watch::Receiver<StreamView> {
        self.connection.subscribe()
    }

    /// Changes when the server turns out to have no such stream, or to have it again.
    pub(crate) fn missing(&self) -> watch::Receiver<Option<Failure>> {
        self.missing.subscribe()
    }

    /// Records up to which opening of the stream polls have read all that came before it.
    pub(crate) fn set_caught_up(&self, opening: u64) {
        self.caught_up
            .send_if_modified(|current| std::mem::replace(current, opening) != opening);
    }

    /// Records that a backlog was stored: changes of its posts may have come before.
    pub(crate) fn stored_backlog(&self) {
        self.backlogs.send_modify(|count| *count += 1);
    }

    /// Waits until polls have read all that came before the stream was opened last.
    async fn catches_up(&self) {
        let opening = self.connection.borrow().openings;
        let mut caught_up = self.caught_up.subscribe();
        // The channel stays open, since this is a sender of it.
        let _ = caught_up.wait_for(|current| *current >= opening).await;
    }

    /// Passes the order of IDs to the follower; the first page reveals it.
    pub(crate) fn set_scheme(&self, scheme: Option<&IdScheme>) {
        self.scheme.send_if_modified(|current| {
            let is_new = current.as_ref() != scheme;
            *current = scheme.copied();
            is_new
        });
    }
}

/// Follows the stream of a source.
pub(crate) struct Follower {
    pub(crate) store: Store,
    pub(crate) client: Upstream,
    pub(crate) quota: Quota,
    pub(crate) access: UpstreamAccess,
    pub(crate) timeline: Timeline,
    pub(crate) source: Source,
    pub(crate) fence: Option<i64>,
    pub(crate) stream_state: StreamState,
}

/// Follows a stream until it is dropped, or until [`Following::end`].
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

    /// Stops following. A commit that was handed to the store before may still complete, if the
    /// source's lease has not changed.
    pub async fn end(&mut self) {
        self.task.shutdown().await;
    }
}

/// Why following ended, for now or for good.
#[derive(Debug, thiserror::Error)]
enum StreamEnd {
    #[error("{}", .0.message)]
    Failure(#[from] Failure),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the disk has no room for its posts")]
    LowDisk,
}

impl Follower {
    /// Follows the stream until the lease is lost, or at once if the source has no stream. Dropping
    /// the future leaves no partial commit.
    async fn run(self) {
        let mut scheme = self.stream_state.scheme.subscribe();
        let known = scheme.wait_for(Option::is_some).await.map(|known| *known);
        let Ok(Some(scheme)) = known else { return };
        let mut endpoint = None;
        let mut deletions = RecentDeletions::default();
        let mut failures = 0;
        let mut times_missing = 0;
        let mut is_retry = false;
        loop {
            self.access.store_disk.has_room().await;
            let outcome = match self.open(&mut endpoint).await {
                Ok(None) => return,
                Ok(Some(mut stream)) => {
                    let opened = Instant::now();
                    times_missing = 0;
                    self.stream_state
                        .missing
                        .send_if_modified(|missing| missing.take().is_some());
                    if is_retry {
                        STREAM_RECONNECTS.increment(1);
                    }
                    tracing::info!(source = %self.source.name, way = stream.way(), "following its stream");
                    let open_guard = OpenStreamGuard::new(&self.stream_state);
                    let end = self.listen(&mut stream, scheme, &mut deletions).await;
                    drop(open_guard);
                    // A stream that broke at once may do so again.
                    if opened.elapsed() >= STEADY {
                        failures = 0;
                    }
                    end
                }
                Err(end) => end,
            };
            failures += 1;
            is_retry = true;
            let base_ms = match &outcome {
                StreamEnd::Store(StoreError::LeaseLost | StoreError::NoSource) => return,
                // The next one is opened as soon as there is room, and polls fetch what this one misses.
                StreamEnd::LowDisk => {
                    failures = 0;
                    continue;
                }
                // Polls meet the same error and log it.
                StreamEnd::Store(error) => {
                    tracing::debug!(source = %self.source.name, %error, "events of its stream were not stored");
                    failures = failures.min(2);
                    RETRY_MS
                }
                StreamEnd::Failure(failure) => {
                    self.log_failure(failure, failures);
                    // The endpoint may have changed.
                    endpoint = None;
                    times_missing = match failure.kind {
                        FailureKind::NotFound => times_missing + 1,
                        _ => 0,
                    };
                    if is_missing(times_missing) {
                        self.stream_state
                            .missing
                            .send_replace(Some(missing(failure)));
                    }
                    retry_ms(failure.kind)
                }
            };
            let wait_ms = pause_ms(base_ms, failures, times_missing, random());
            sleep(Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0))).await;
        }
    }

    async fn open(
        &self,
        endpoint: &mut Option<StreamEndpoint>,
    ) -> Result<Option<Stream>, StreamEnd> {
        if endpoint.is_none() {
            self.take_request().await?;
            *endpoint = self.client.stream_endpoint().await?;
        }
        let Some(endpoint) = endpoint else {
            return Ok(None);
        };
        let stream = self
            .client
            .stream(&self.timeline, self.source.settings.stream, endpoint)
            .await?;
        Ok(stream)
    }

    /// Waits for a request of the credential's quota. The request reads no posts.
    async fn take_request(&self) -> Result<(), StoreError> {
        while let Permit::Until(until_ms) = self.quota.take(0).await? {
            let wait_ms = until_ms.saturating_sub(now_ms()).max(1);
            sleep(Duration::from_millis(wait_ms.unsigned_abs())).await;
        }
        Ok(())
    }

    /// Stores the events of the stream until it ends.
    async fn listen(
        &self,
        stream: &mut Stream,
        scheme: IdScheme,
        deletions: &mut RecentDeletions,
    ) -> StreamEnd {
        let mut waiting = WaitingPosts::default();
        let mut recent = RecentChanges::default();
        let mut backlogs = self.stream_state.backlogs.subscribe();
        let is_over = async {
            let caught_up = self.stream_state.catches_up();
            let _ = timeout(MAX_WAIT, caught_up).await;
        };
        tokio::pin!(is_over);
        loop {
            let mut events = Vec::new();
            let first = tokio::select! {
                first = stream.next() => first,
                () = self.access.store_disk.runs_low() => return StreamEnd::LowDisk,
                () = &mut is_over, if !waiting.is_released() => {
                    match self.commit(waiting.release(), scheme).await {
                        Ok(()) => continue,
                        Err(error) => return StreamEnd::Store(error),
                    }
                }
                Ok(()) = backlogs.changed() => {
                    match self.commit(recent.all(), scheme).await {
                        Ok(()) => continue,
                        Err(error) => return StreamEnd::Store(error),
                    }
                }
            };
            match first {
                Ok(message) => collect(message, deletions, &mut events),
                Err(failure) => return self.broke(failure, &mut waiting, scheme).await,
            }
            // Events that arrive together are committed together.
            let until = Instant::now() + TOGETHER;
            let mut ended = None;
            while !events.is_empty() && events.len() < MAX_TOGETHER {
                match timeout_at(until, stream.next()).await {
                    Ok(Ok(message)) => collect(message, deletions, &mut events),
                    Ok(Err(failure)) => {
                        ended = Some(failure);
                        break;
                    }
                    Err(_) => break,
                }
            }
            recent.add(&events, now_ms());
            if let Err(error) = self.commit(waiting.hold(events), scheme).await {
                return StreamEnd::Store(error);
            }
            if let Some(failure) = ended {
                return self.broke(failure, &mut waiting, scheme).await;
            }
        }
    }

    /// The stream broke: posts that still wait are stored, since it may be all that shows them.
    async fn broke(
        &self,
        failure: Failure,
        waiting: &mut WaitingPosts,
        scheme: IdScheme,
    ) -> StreamEnd {
        match self.commit(waiting.release(), scheme).await {
            Ok(()) => StreamEnd::Failure(failure),
            Err(error) => StreamEnd::Store(error),
        }
    }

    async fn commit(&self, events: Vec<ReceivedEvent>, scheme: IdScheme) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        let (source, fence) = (self.source.key(), self.fence);
        let policy = self.access.policies.of(self.source.instance.id);
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
        let CommitSummary {
            edited,
            revived,
            deleted,
            left,
            ..
        } = summary;
        if edited + revived + deleted + left > 0 {
            self.stream_state.changes.fetch_add(1, Ordering::SeqCst);
        }
        count(&summary);
        Ok(())
    }

    fn log_failure(&self, failure: &Failure, failures: u32) {
        let Failure { kind, message, .. } = failure;
        STREAM_FAILURES.with([kind.name()]).increment(1);
        if failures == 1 {
            tracing::info!(source = %self.source.name, %kind, "the stream failed, only polling for now: {message}");
        } else {
            tracing::debug!(source = %self.source.name, %kind, "the stream failed again, still only polling: {message}");
        }
    }
}

/// Counts a message, and adds its event unless the post was deleted before.
fn collect(
    message: StreamMessage,
    deletions: &mut RecentDeletions,
    events: &mut Vec<ReceivedEvent>,
) {
    let kind = match &message {
        StreamMessage::Event(Event::Posted(_)) => "update",
        StreamMessage::Event(Event::Edited(_)) => "edit",
        StreamMessage::Event(Event::Deleted(_)) => "delete",
        StreamMessage::Other => "other",
        StreamMessage::Unusable => "unusable",
    };
    STREAM_EVENTS.with([kind]).increment(1);
    let StreamMessage::Event(event) = message else {
        return;
    };
    match &event {
        Event::Posted(post) if deletions.0.contains(&post.id) => return,
        Event::Deleted(id) => deletions.add(id),
        Event::Posted(_) | Event::Edited(_) => {}
    }
    events.push(ReceivedEvent {
        event,
        received_at_ms: now_ms(),
    });
}

/// The last posts that the stream deleted: a later event of such a post arrived out of order.
#[derive(Debug, Default)]
struct RecentDeletions(IndexSet<UpstreamId>);

impl RecentDeletions {
    fn add(&mut self, id: &UpstreamId) {
        self.0.insert(id.clone());
        if self.0.len() > MAX_GONE {
            self.0.shift_remove_index(0);
        }
    }
}

/// Marks the stream as open until it is dropped.
struct OpenStreamGuard<'l>(&'l StreamState);

impl<'l> OpenStreamGuard<'l> {
    fn new(stream_state: &'l StreamState) -> Self {
        STREAM_CONNECTED.add(1.0);
        stream_state.connection.send_modify(|connection| {
            connection.is_open = true;
            connection.openings += 1;
        });
        Self(stream_state)
    }
}

impl Drop for OpenStreamGuard<'_> {
    fn drop(&mut self) {
        STREAM_CONNECTED.add(-1.0);
        self.0
            .connection
            .send_modify(|connection| connection.is_open = false);
    }
}

/// The pause before a stream is tried again: short after passing failures, long if the server refuses
/// streams, or refuses this token.
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

/// The pause after so many failures in a row, of which the last ones said that there is no such stream.
fn pause_ms(base_ms: i64, failures: u32, times_missing: u32, random: u64) -> i64 {
    match is_missing(times_missing) {
        true => MISSING_MS,
        false => backoff_ms(base_ms, failures, random),
    }
}

/// Whether a stream does not exist, after so many answers in a row that it does not: a front end that
/// fails may give one.
const fn is_missing(times: u32) -> bool {
    times >= MISSING_TRIES
}

/// What is said of a stream that does not exist.
fn missing(failure: &Failure) -> Failure {
    let message = format!(
        "{}; the timeline is only polled, and the stream is asked for again once a day",
        failure.message
    );
    Failure::new(failure.kind, message)
}

const MISSING_TRIES: u32 = 3;
const MISSING_MS: i64 = 86_400_000;
const RETRY_MS: i64 = 1_000;
const RETRY_REFUSED_MS: i64 = 300_000;
/// A stream that stayed open so long resets the backoff.
const STEADY: Duration = Duration::from_secs(10);
/// Streamed posts do not wait longer for the polls that have to read what came before them.
const MAX_WAIT: Duration = Duration::from_secs(30);
const TOGETHER: Duration = Duration::from_millis(2);
const MAX_TOGETHER: usize = 200;
const MAX_GONE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// Mitra, Hollo and snac: each stream was asked for every five minutes, and at once after a 501.
    #[test]
    fn a_stream_that_does_not_exist_is_asked_for_three_times_and_then_once_a_day() {
        let base_ms = retry_ms(FailureKind::NotFound);
        let pauses = (1..6).map(|times| pause_ms(base_ms, times, times, 7));
        let pauses: Vec<i64> = pauses.collect();
        let (first, later) = pauses.split_at(2);
        assert!(first.iter().all(|ms| (150_000..=300_000).contains(ms)));
        assert!(later.iter().all(|ms| *ms == 86_400_000), "{pauses:?}");
        // Others are tried again as ever.
        assert!(pause_ms(RETRY_MS, 60, 0, 7) <= 300_000);
    }

    #[test]
    fn a_stream_that_refuses_a_token_is_asked_for_rarely() {
        let refused = retry_ms(FailureKind::Unauthorized);
        let pauses = (1..6).map(|times| pause_ms(refused, times, 0, 7));
        assert!(pauses.min() > Some(100_000));
        let broken = pause_ms(retry_ms(FailureKind::Unreachable), 1, 0, 7);
        assert!(broken <= RETRY_MS, "{broken}");
    }

    #[test]
    fn an_event_of_a_deleted_post_is_ignored() {
        let mut deletions = RecentDeletions::default();
        for number in 0..2 * MAX_GONE {
            deletions.add(&UpstreamId::new(number.to_string()));
            deletions.add(&UpstreamId::new(number.to_string()));
        }
        assert!(
            deletions.0.contains::<UpstreamId>(&"2047".into())
                && deletions.0.contains::<UpstreamId>(&"1024".into())
        );
        assert!(
            !deletions.0.contains::<UpstreamId>(&"1023".into())
                && !deletions.0.contains::<UpstreamId>(&"x".into())
        );
        assert_eq!(deletions.0.len(), MAX_GONE);
        let mut events = Vec::new();
        let deleted = |id: &str| StreamMessage::Event(Event::Deleted(id.into()));
        collect(deleted("7"), &mut deletions, &mut events);
        collect(StreamMessage::Other, &mut deletions, &mut events);
        assert_eq!(events.len(), 1);
        assert!(deletions.0.contains::<UpstreamId>(&"7".into()));
    }
}
