//! Reads one source: carries out what its session in `core` asks for.

mod look_up;

use std::sync::Arc;

use driftline_core::{
    answer::{Abilities, Failure, FailureKind},
    quota::QuotaPurpose,
    timeline::{
        self, Machine, RequestPurpose, Settings, Streaming,
        session::{
            Action, Event, Finish, PageCommit, PageCommitted, PageFetch, RequestKind, StepContext,
            StreamView,
        },
    },
    upstream_id::UpstreamId,
};
use driftline_runtime::{
    FaultLog, IndexWait, LowDisk, Weight,
    metrics::{POSTS_FETCHED, REQUEST_FAILURES, REQUESTS},
    now_ms, random, read_clocks, show_ms, steady_ms,
};
use driftline_store::{
    CommitMachine, CommitPage, CommitSummary, Store, StoreError, StorePosts, commit_machine,
    commit_page, entry, machine,
    refresh::{RecheckAfter, rechecks_after},
    source::{self, Source},
    store_posts,
};
use driftline_upstream::{ClientPurpose, Timeline, Upstream};
use tokio::sync::watch;

use crate::{
    client::{ClientError, client_of},
    commit_metrics::count,
    follower::{Follower, Following, StreamState},
    held_pages::SessionPages,
    quarantine,
    quotas::{Charge, Permit, Quota},
    source_credential::credential_of,
    upstream_access::UpstreamAccess,
};

/// Reads a source, as long as its lease lasts.
pub struct Session {
    store: Store,
    client: Upstream,
    page_quota: Quota,
    look_up_quota: Quota,
    access: UpstreamAccess,
    timeline: Timeline,
    source: Source,
    fence: Option<i64>,
    /// Decides the next action; this shell carries it out.
    session: timeline::Session,
    held_pages: SessionPages,
    stream_state: StreamState,
    connection: watch::Receiver<StreamView>,
    missing_stream: watch::Receiver<Option<Failure>>,
    /// The wait of the next request for the search index.
    index_wait: IndexWait,
    /// Failures to notify libraries.
    notify_faults: FaultLog,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// An answer was committed, or had nothing to commit.
    Read(CommitSummary),
    /// A request failed; the machine knows when to try again.
    Failed(FailureKind),
    /// No request is due before this time, Unix ms by the local clock.
    Wait {
        /// When to call [`Session::step`] again.
        until_ms: i64,
    },
}

/// Why a session cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The source has no client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The store failed, or the lease was lost.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Session {
    /// Opens a source for reading, with the lease's fencing number if there is
    /// a lease.
    ///
    /// # Errors
    /// [`SessionError`] if the source has no client or cannot be loaded.
    pub async fn open(
        store: Store,
        access: &UpstreamAccess,
        source: Source,
        fence: Option<i64>,
    ) -> Result<Self, SessionError> {
        let (client, timeline) = client_of(&source, access)?;
        let credential = credential_of(&store, &source).await?;
        let quota = |purpose| {
            let (quotas, scope) = (&access.quotas, client.scope(purpose));
            quotas.of(&credential, scope, QuotaPurpose::Poll)
        };
        let (key, kind) = (source.key(), timeline.kind());
        let machine: Machine = store
            .read(move |tx| {
                let mut machine = machine::load(tx, key)?;
                for lateness in machine::lateness_of_others(tx, key)? {
                    machine.assume(&lateness);
                }
                for (other, honoured) in machine::honoured_by(tx, key.instance)? {
                    if other.parse().is_ok_and(|of: Timeline| of.kind() == kind) {
                        machine.assume_honoured(&honoured);
                    }
                }
                Ok::<_, StoreError>(machine)
            })
            .await?;
        if let Some(scheme) = machine.scheme() {
            let reader = (&client, &timeline);
            quarantine::retry(&store, access, &source, fence, reader, *scheme).await?;
        }
        let settings = Settings {
            refreshed: access.refreshes && source.refreshing,
            ..source.settings.clone()
        };
        let session = timeline::Session::new(machine, settings, client.abilities(), read_clocks());
        let stream_state = StreamState::default();
        Ok(Self {
            store,
            page_quota: quota(ClientPurpose::Page(&timeline)),
            look_up_quota: quota(ClientPurpose::LookUp),
            client,
            held_pages: access.held_pages.session(),
            access: access.clone(),
            timeline,
            source,
            fence,
            session,
            connection: stream_state.connection(),
            missing_stream: stream_state.missing(),
            stream_state,
            index_wait: IndexWait::default(),
            notify_faults: FaultLog::default(),
        })
    }

    /// The source.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Its current machine.
    pub fn machine(&self) -> &Machine {
        self.session.machine()
    }

    /// The abilities of the upstream's timeline.
    pub fn abilities(&self) -> Abilities {
        self.session.abilities()
    }

    /// Follows the source's stream next to this session, if its settings ask for that. Polls are rarer
    /// while the stream shows every post, and return to the normal interval at once when it does not.
    pub fn follow(&self) -> Following {
        Following::start(self.follower())
    }

    fn follower(&self) -> Option<Follower> {
        if self.source.settings.stream == Streaming::Off || !self.client.streams(&self.timeline) {
            return None;
        }
        Some(Follower {
            store: self.store.clone(),
            client: self.client.clone(),
            quota: self.look_up_quota.clone(),
            access: self.access.clone(),
            timeline: self.timeline.clone(),
            source: self.source.clone(),
            fence: self.fence,
            stream_state: self.stream_state.clone(),
        })
    }

    /// Makes the next poll due now, whatever failed before.
    pub fn retry_soon(&mut self) {
        self.session.retry_soon();
    }

    /// Waits until the stream opens or ends. A [`Done::Wait`] before that is obsolete then.
    pub async fn stream_changed(&mut self) {
        // The channel stays open, since this session has a sender.
        let _ = self.connection.changed().await;
    }

    /// Why it fetches nothing for want of room on the disk; `None` while there is room.
    pub fn low_disk(&self) -> Option<LowDisk> {
        self.access.store_disk.low()
    }

    /// Sends the next due request and commits its answer, or returns when one is due. None is sent while
    /// the disk has no room for answers, nor, for a time, while many posts wait for the search index.
    ///
    /// Dropping the future is safe: an answer is committed whole or not at all.
    ///
    /// # Errors
    /// [`SessionError::Store`] if the store failed or the lease was lost. Failures of the upstream are
    /// no errors here: the machine keeps the last one.
    pub async fn step(&mut self, settling: bool) -> Result<Done, SessionError> {
        self.stream_state.set_scheme(self.machine().scheme());
        if self.missing_stream.has_changed().unwrap_or(false) {
            let missing = self.missing_stream.borrow_and_update().clone();
            self.session.stream_missing(missing.as_ref());
        }
        if self.access.store_disk.low().is_some() {
            let until_ms = now_ms().saturating_add(ROOM_LOOK_MS);
            return Ok(Done::Wait { until_ms });
        }
        let now = steady_ms();
        let index = &self.access.index_backlog;
        if let Some(until) = index.wait_until(&mut self.index_wait, now)
            && !settling
        {
            let until_ms = now_ms().saturating_add(until - now);
            return Ok(Done::Wait { until_ms });
        }
        let context = StepContext {
            clock: read_clocks(),
            quota: self.page_quota.view(),
            stream: *self.connection.borrow(),
            server_answered_ms: self.page_quota.server_answered_ms(),
            max_held_bytes: self.held_pages.max_bytes(),
            settling,
        };
        let action = self.session.begin(&context);
        let done = self.carry_out(action).await;
        self.held_pages.set(self.session.held_bytes());
        self.stream_state.set_caught_up(self.session.caught_up());
        done
    }

    /// Carries out what the session asks for, until its step is over.
    async fn carry_out(&mut self, mut action: Action) -> Result<Done, SessionError> {
        let mut charge = Charge::default();
        let mut summary = CommitSummary::default();
        let mut has_stored_posts = false;
        loop {
            let event = match action {
                Action::Finish(Finish::Read | Finish::Held) => {
                    if has_stored_posts {
                        self.stream_state.stored_backlog();
                    }
                    return Ok(Done::Read(summary));
                }
                Action::Finish(Finish::Failed(kind)) => return Ok(Done::Failed(kind)),
                Action::Finish(Finish::Wait { until_ms }) => return Ok(Done::Wait { until_ms }),
                Action::Reserve(kind) => match self.take_request(kind).await? {
                    Permit::Sent(taken) => {
                        charge = taken;
                        Event::Reserved
                    }
                    Permit::Until(until_ms) => Event::Refused { until_ms },
                },
                Action::FindAnchor(query) => {
                    let source = self.source.key();
                    let anchor = self
                        .store
                        .read(move |tx| entry::anchor(tx, source, &query))
                        .await?;
                    Event::Anchor(anchor)
                }
                Action::FindPositions(posts) => {
                    let source = self.source.key();
                    let positions = self
                        .store
                        .read(move |tx| entry::positions(tx, source, &posts))
                        .await?;
                    Event::Positions(positions)
                }
                Action::FetchPage(fetch) => self.fetch(&fetch, std::mem::take(&mut charge)).await?,
                Action::StorePosts(pages) => {
                    let stored = self.store_posts(pages).await?;
                    summary.add(&stored);
                    has_stored_posts = true;
                    Event::PostsStored { new: stored.new }
                }
                Action::CommitPage(commit) => {
                    let (committed, committed_summary) = self.commit_page(commit).await?;
                    summary.add(&committed_summary);
                    Event::PageCommitted(Box::new(committed))
                }
                Action::LookUp(id) => self.look_up(&id, std::mem::take(&mut charge)).await?,
                Action::ProveAbsence(id) => {
                    let proof = self.absence_proof().of(&id).await?;
                    Event::Proof(proof.inspect_err(|failure| self.log_failure(failure)))
                }
                Action::CommitLookUp(commit) => {
                    let (event, committed_summary) = self.commit_look_up(commit).await?;
                    summary.add(&committed_summary);
                    event
                }
                Action::SaveMachine => {
                    self.save().await?;
                    Event::Saved
                }
            };
            action = self.session.handle(event, read_clocks(), random());
        }
    }

    /// Requests that an open gap be filled. `low` is its lowest ID as reports show it. `false` if there
    /// is no such gap.
    ///
    /// # Errors
    /// As for [`Session::step`].
    pub async fn request_fill(&mut self, low: &UpstreamId) -> Result<bool, SessionError> {
        let requested = self.session.request_fill(low);
        if requested {
            self.save().await?;
            self.session.saved();
        }
        Ok(requested)
    }

    /// Stores the pages that are held, and what the machine learned since the last commit.
    ///
    /// # Errors
    /// As for [`Session::step`].
    pub async fn close(&mut self) -> Result<(), SessionError> {
        self.release().await?;
        if self.session.is_unsaved() {
            self.save().await?;
            self.session.saved();
        }
        Ok(())
    }

    /// Stores the pages that are held, also after a step that was dropped.
    ///
    /// # Errors
    /// As for [`Session::step`].
    pub async fn release(&mut self) -> Result<(), SessionError> {
        if let Some(action) = self.session.release() {
            Box::pin(self.carry_out(action)).await?;
        }
        Ok(())
    }

    /// Takes a request from the credential's quota.
    async fn take_request(&self, kind: RequestKind) -> Result<Permit, StoreError> {
        match kind {
            RequestKind::LookUp => self.look_up_quota.take(1).await,
            RequestKind::Page => {
                let posts = u32::from(self.abilities().page_limit);
                self.page_quota.take(posts).await
            }
        }
    }

    async fn fetch(&self, fetch: &PageFetch, charge: Charge) -> Result<Event, SessionError> {
        let answer = self.client.page(&self.timeline, &fetch.page).await;
        match &answer {
            Ok(page) => {
                let read = u32::try_from(page.listed.len()).unwrap_or(u32::MAX);
                self.page_quota
                    .answered(charge, read, &page.headers)
                    .await?;
                REQUESTS
                    .with([purpose_name(&fetch.request.purpose)])
                    .increment(1);
                POSTS_FETCHED.increment(page.listed.len() as u64);
            }
            Err(failure) => {
                self.page_quota.failed(charge, failure).await?;
                self.log_failure(failure);
            }
        }
        let invalidations = &self.access.cache_invalidations;
        let invalidations = invalidations.count(self.source.instance.id);
        Ok(Event::Page {
            answer: Box::new(answer),
            other_changes: self.stream_state.changes().wrapping_add(invalidations),
        })
    }

    async fn store_posts(
        &self,
        pages: Arc<[Arc<PageCommit>]>,
    ) -> Result<CommitSummary, StoreError> {
        let (source, fence) = (self.source.key(), self.fence);
        let policy = self.access.policies.of(self.source.instance.id);
        let Some(scheme) = self.machine().scheme().copied() else {
            return Ok(CommitSummary::default());
        };
        let store = self.store.clone();
        let summary = store.write(source::root(source), move |tx| {
            let store = StorePosts {
                source,
                fence,
                scheme: &scheme,
                pages: &pages,
                policy: &policy,
                now_ms: now_ms(),
            };
            store_posts(tx, &store)
        });
        let summary = summary.await?;
        count(&summary);
        Ok(summary)
    }

    async fn commit_page(
        &mut self,
        commit: Arc<PageCommit>,
    ) -> Result<(PageCommitted, CommitSummary), SessionError> {
        let (source, fence) = (self.source.key(), self.fence);
        let is_poll = commit.request.purpose == RequestPurpose::Poll;
        let abilities = self.abilities();
        let settings = Arc::clone(self.session.settings());
        let before = self.machine().clone();
        let claims = self.access.claims.clone();
        let policy = self.access.policies.of(self.source.instance.id);
        let (machine, summary, shown) = self
            .store
            .write(source::root(source), move |tx| {
                let (machine, summary) = commit_page(
                    tx,
                    &CommitPage {
                        source,
                        fence,
                        machine: &before,
                        settings: &settings,
                        abilities,
                        request: &commit.request,
                        reading: &commit.reading,
                        page: &commit.page,
                        policy: &policy,
                        claims: &claims,
                        now_ms: now_ms(),
                    },
                )?;
                let shown = if is_poll || summary.has_notes() {
                    rechecks_after(tx, source, &commit.reading, &commit.page)?
                } else {
                    Vec::new()
                };
                Ok::<_, StoreError>((machine, summary, shown))
            })
            .await?;
        count(&summary);
        if summary.has_notes() {
            self.notify_libraries(&shown).await;
        }
        let rechecks = shown.into_iter();
        let committed = PageCommitted {
            machine,
            new: summary.new,
            missing: summary.absent + summary.left,
            rechecks_ms: rechecks.map(|shown| shown?.recheck_at_ms).collect(),
        };
        Ok((committed, summary))
    }

    /// Notifies libraries of the changes that a page put into the outbox.
    async fn notify_libraries(&mut self, shown: &[Option<RecheckAfter>]) {
        let posts: Vec<_> = shown.iter().flatten().map(|shown| shown.post).collect();
        let (instance, outbox_relay) = (self.source.instance.id, &self.access.outbox_relay);
        // The page is committed, and whatever is not relayed stays in the outbox.
        match outbox_relay.notify_polled(instance, &posts, now_ms()).await {
            Ok(()) => {
                if let Some(failed_ms) = self.notify_faults.succeeded(now_ms()) {
                    tracing::warn!(source = %self.source.name, "libraries are notified of its changes again, after {}", show_ms(failed_ms));
                }
            }
            Err(error) if self.access.store_fault.takes(&error) => {}
            Err(error) => {
                if self.notify_faults.failed(Weight::Lasting, now_ms()) {
                    tracing::warn!(source = %self.source.name, %error, "libraries could not be notified of its changes; trying again");
                }
            }
        }
    }

    /// The source's health logs a failure that lasts.
    fn log_failure(&self, failure: &Failure) {
        REQUEST_FAILURES.with([failure.kind.name()]).increment(1);
        tracing::debug!(source = %self.source.name, kind = %failure.kind, "{}", failure.message);
    }

    async fn save(&self) -> Result<(), StoreError> {
        let (source, fence) = (self.source.key(), self.fence);
        let machine = self.machine().clone();
        self.store
            .write(source::root(source), move |tx| {
                commit_machine(
                    tx,
                    &CommitMachine {
                        source,
                        fence,
                        machine: &machine,
                    },
                )
            })
            .await
    }
}

fn purpose_name(purpose: &RequestPurpose) -> &'static str {
    match purpose {
        RequestPurpose::Poll => "poll",
        RequestPurpose::Fill { .. } => "fill",
        RequestPurpose::Look { rung: 0, .. } => "second_look",
        RequestPurpose::Look { .. } => "rung",
        RequestPurpose::Probe { .. } => "probe",
        RequestPurpose::Recheck { .. } => "recheck",
        RequestPurpose::Ahead => "dated_ahead",
    }
}

/// While the disk has no room.
const ROOM_LOOK_MS: i64 = 1_000;

#[cfg(test)]
mod tests {
    use driftline_core::upstream_id::Key;

    use super::*;

    #[test]
    fn requests_of_each_purpose_are_counted() {
        let (low, high) = (Key::lowest, Key::highest);
        let purposes = [
            RequestPurpose::Poll,
            RequestPurpose::Fill {
                low: low(),
                high: high(),
            },
            RequestPurpose::Look {
                rung: 0,
                low: low(),
                high: high(),
            },
            RequestPurpose::Look {
                rung: 1,
                low: low(),
                high: high(),
            },
            RequestPurpose::Probe {
                age_ms: 0,
                until_ms: 0,
            },
            RequestPurpose::Recheck {
                low: low(),
                high: high(),
            },
            RequestPurpose::Ahead,
        ];
        for purpose in &purposes {
            // A name that is not listed panics.
            REQUESTS.with([purpose_name(purpose)]).increment(1);
        }
    }
}
