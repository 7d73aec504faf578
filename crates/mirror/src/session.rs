//! Reads one source: connects its machine, its client and the store.

mod look_up;
mod places;

use std::sync::Arc;

use driftline_core::{
    answer::{Abilities, Failure, FailureKind, Page},
    quota::QuotaPurpose,
    timeline::{
        Anchor, Cadence, Fetch, Machine, Places, Reading, Request, RequestPurpose, Settings, Step,
        Streaming,
    },
    upstream_id::UpstreamId,
};
use driftline_runtime::{
    FaultLog, LowDisk, Weight,
    metrics::{
        DELETIONS, EDITS, POSTS_FETCHED, POSTS_RECOUNTED, POSTS_STORED, REQUEST_FAILURES, REQUESTS,
    },
    now_ms, random, show_ms,
};
use driftline_store::{
    CommitMachine, CommitPage, CommitSummary, Store, StoreError, commit_machine, commit_page,
    entry, machine,
    refresh::{RecheckAfter, rechecks_after},
    source::{self, Source},
};
use driftline_upstream::{ClientPurpose, Timeline, Upstream};
use tokio::sync::watch;

use crate::{
    client::{ClientError, client_of},
    follower::{Follower, Following, StreamConnection, StreamState},
    quarantine,
    quotas::{Charge, Permit, Quota},
    recent_posts::RecentPosts,
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
    /// The source's settings, and whether this process refreshes its posts.
    settings: Settings,
    fence: Option<i64>,
    machine: Machine,
    recent_posts: RecentPosts,
    places: Places,
    stream_state: StreamState,
    connection: watch::Receiver<StreamConnection>,
    /// The stream connection that the machine and `cadence` know of.
    known: StreamConnection,
    /// How much rarer polls are while the stream is open.
    cadence: Cadence,
    /// The changes by the stream, and the invalidations by look-ups, that `recent_posts` reflects.
    changes_seen: (u64, u64),
    /// Whether the machine in memory is ahead of the stored one.
    unsaved: bool,
    /// When it was stored last, Unix ms.
    saved_ms: i64,
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
        let stream_state = StreamState::default();
        Ok(Self {
            store,
            page_quota: quota(ClientPurpose::Page(&timeline)),
            look_up_quota: quota(ClientPurpose::LookUp),
            client,
            access: access.clone(),
            timeline,
            source,
            settings,
            fence,
            machine,
            recent_posts: RecentPosts::default(),
            places: Places::default(),
            connection: stream_state.connection(),
            stream_state,
            known: StreamConnection::default(),
            cadence: Cadence::default(),
            changes_seen: (0, 0),
            unsaved: false,
            saved_ms: now_ms(),
            notify_faults: FaultLog::default(),
        })
    }

    /// The source.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Its current machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The abilities of the upstream's timeline.
    pub fn abilities(&self) -> Abilities {
        self.client.abilities()
    }

    /// Follows the source's stream next to this session, if its settings ask for that. Polls are rarer
    /// while the stream shows every post, and return to the normal interval at once when it does not.
    pub fn follow(&self) -> Following {
        Following::start(self.follower())
    }

    fn follower(&self) -> Option<Follower> {
        if self.settings.stream == Streaming::Off || !self.client.streams(&self.timeline) {
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
        self.machine.retry_soon();
    }

    /// Waits until the stream opens or ends. A [`Done::Wait`] before that is obsolete then.
    pub async fn stream_changed(&mut self) {
        // The channel stays open, since this session has a sender.
        let _ = self.connection.changed().await;
    }

    /// Adopts the state of the stream.
    fn sync_stream(&mut self) {
        self.stream_state.set_scheme(self.machine.scheme());
        let now = *self.connection.borrow();
        if now == self.known {
            return;
        }
        if now.times != self.known.times {
            // Posts before the opening were not streamed.
            self.machine.poll_soon();
            self.cadence.opened();
        }
        if !now.is_open {
            self.cadence.lost();
        }
        self.known = now;
    }

    /// Why it fetches nothing for want of room on the disk; `None` while there is room.
    pub fn low_disk(&self) -> Option<LowDisk> {
        self.access.store_disk.low()
    }

    /// Sends the next due request and commits its answer, or returns when one is due. None is sent while
    /// the disk has no room for answers.
    ///
    /// Dropping the future is safe: an answer is committed whole or not at all.
    ///
    /// # Errors
    /// [`SessionError::Store`] if the store failed or the lease was lost. Failures of the upstream are
    /// no errors here: the machine keeps the last one.
    pub async fn step(&mut self, settling: bool) -> Result<Done, SessionError> {
        self.sync_stream();
        let now = now_ms();
        if self.access.store_disk.low().is_some() {
            let until_ms = now.saturating_add(ROOM_LOOK_MS);
            return Ok(Done::Wait { until_ms });
        }
        let abilities = self.abilities();
        let settings = Settings {
            every_ms: self.cadence.every_ms(&self.settings),
            ..self.settings.clone()
        };
        self.machine.set_quota(self.page_quota.view());
        let step = self.machine.next(&settings, abilities, now, settling);
        let charge = match self.take_request(&step).await? {
            Permit::Sent(charge) => charge,
            Permit::Until(until_ms) => return Ok(Done::Wait { until_ms }),
        };
        self.machine.sent(&step, now);
        match step {
            Step::Wait { until_ms } => Ok(Done::Wait { until_ms }),
            Step::LookUp(id) => self.look_up(id, charge).await,
            Step::Fetch(fetch) => self.fetch(fetch, charge).await,
        }
    }

    /// Requests that an open gap be filled. `low` is its lowest ID as reports show it. `false` if there
    /// is no such gap.
    ///
    /// # Errors
    /// As for [`Session::step`].
    pub async fn request_fill(&mut self, low: &UpstreamId) -> Result<bool, SessionError> {
        let requested = request_fill(&mut self.machine, low);
        if requested {
            self.save().await?;
        }
        Ok(requested)
    }

    /// Stores what the machine learned since the last commit.
    ///
    /// # Errors
    /// As for [`Session::step`].
    pub async fn close(&mut self) -> Result<(), SessionError> {
        if self.unsaved {
            self.save().await?;
        }
        Ok(())
    }

    async fn fetch(&mut self, fetch: Fetch, charge: Charge) -> Result<Done, SessionError> {
        let anchor = self.anchor(&fetch).await?;
        let mut request = fetch.request(self.machine.scheme(), anchor.as_ref());
        let named = self.places.name(&request.page);
        let mut page = match self.client.page(&self.timeline, &named).await {
            Ok(page) => page,
            Err(failure) => {
                self.page_quota.failed(charge, &failure).await?;
                return self.fail(&request.purpose, &failure).await;
            }
        };
        request.page.limit = page.headers.limit.unwrap_or(request.page.limit);
        let read = u32::try_from(page.listed.len()).unwrap_or(u32::MAX);
        self.page_quota
            .answered(charge, read, &page.headers)
            .await?;
        REQUESTS.with([purpose_name(&request.purpose)]).increment(1);
        POSTS_FETCHED.increment(page.listed.len() as u64);
        self.keep_places(&mut page, &request.page).await?;
        let known = self.machine.scheme().copied();
        let reading = Reading::check(&mut page, known, &self.settings);
        self.commit(request, reading, page).await
    }

    async fn commit(
        &mut self,
        request: Request,
        reading: Reading,
        page: Page,
    ) -> Result<Done, SessionError> {
        let is_poll = request.purpose == RequestPurpose::Poll;
        if self.skip_if_unchanged(&request, &reading, &page) {
            if is_poll {
                self.cadence.polled(0, 0);
            }
            return Ok(Done::Read(CommitSummary::default()));
        }
        let (source, fence) = (self.source.key(), self.fence);
        let abilities = self.abilities();
        let settings = self.settings.clone();
        let before = self.machine.clone();
        let claims = self.access.claims.clone();
        let page = Arc::new(page);
        let shared = Arc::clone(&page);
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
                        request: &request,
                        reading: &reading,
                        page: &shared,
                        policy: &policy,
                        claims: &claims,
                        now_ms: now_ms(),
                    },
                )?;
                let shown = if is_poll || summary.recounted > 0 {
                    rechecks_after(tx, source, &reading, &shared)?
                } else {
                    Vec::new()
                };
                Ok::<_, StoreError>((machine, summary, shown))
            })
            .await?;
        if is_poll {
            let shown = machine.counters().stored - self.machine.counters().stored;
            self.cadence.polled(shown, summary.new);
        }
        self.machine = machine;
        self.saved();
        self.recent_posts.invalidate_changed(&page.listed);
        self.recent_posts.remember(&page.listed, &shown, now_ms());
        if summary.absent > 0 || summary.left > 0 {
            // The next poll is committed, so that what it shows is known to be there.
            self.recent_posts.clear();
        }
        count(&summary);
        if summary.recounted > 0 {
            self.notify_libraries(&shown).await;
        }
        Ok(Done::Read(summary))
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

    /// Skips the commit of a poll without changes that must survive a crash. `false` if the poll has to
    /// be committed.
    fn skip_if_unchanged(&mut self, request: &Request, reading: &Reading, page: &Page) -> bool {
        let cache_invalidations = self
            .access
            .cache_invalidations
            .count(self.source.instance.id);
        let changes = (self.stream_state.changes(), cache_invalidations);
        if std::mem::replace(&mut self.changes_seen, changes) != changes {
            self.recent_posts.clear();
        }
        if request.purpose != RequestPurpose::Poll
            || now_ms().saturating_sub(self.saved_ms) >= SAVED_EVERY_MS
            || !page.unreadable.is_empty()
            || !self
                .recent_posts
                .need_no_commit(&page.listed, page.headers.sent_at_ms)
        {
            return false;
        }
        let stored = driftline_core::timeline::Stored {
            new: vec![false; page.listed.len()],
            ..driftline_core::timeline::Stored::default()
        };
        let mut machine = self.machine.clone();
        machine.page(
            &self.settings,
            self.abilities(),
            request,
            reading,
            &page.headers,
            &stored,
        );
        let changes_nothing = machine.is_as_durable_as(&self.machine);
        if changes_nothing {
            self.machine = machine;
            self.unsaved = true;
        }
        changes_nothing
    }

    async fn fail(
        &mut self,
        purpose: &RequestPurpose,
        failure: &Failure,
    ) -> Result<Done, SessionError> {
        self.log_failure(failure);
        self.machine
            .failed(&self.settings, purpose, failure, now_ms(), random());
        self.save().await?;
        Ok(Done::Failed(failure.kind))
    }

    /// The source's health logs a failure that lasts.
    fn log_failure(&self, failure: &Failure) {
        REQUEST_FAILURES.with([failure.kind.name()]).increment(1);
        tracing::debug!(source = %self.source.name, kind = %failure.kind, "{}", failure.message);
    }

    async fn save(&mut self) -> Result<(), SessionError> {
        let (source, fence) = (self.source.key(), self.fence);
        let machine = self.machine.clone();
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
            .await?;
        self.saved();
        Ok(())
    }

    fn saved(&mut self) {
        self.unsaved = false;
        self.saved_ms = now_ms();
    }

    /// Takes the step's request from the credential's quota.
    async fn take_request(&self, step: &Step) -> Result<Permit, StoreError> {
        match step {
            Step::Wait { .. } => Ok(Permit::Sent(Charge::default())),
            Step::LookUp(_) => self.look_up_quota.take(1).await,
            Step::Fetch(_) => {
                let posts = u32::from(self.abilities().page_limit);
                self.page_quota.take(posts).await
            }
        }
    }

    async fn anchor(&self, fetch: &Fetch) -> Result<Option<Anchor>, SessionError> {
        let Some(query) = fetch.anchor_query().cloned() else {
            return Ok(None);
        };
        let source = self.source.key();
        Ok(self
            .store
            .read(move |tx| entry::anchor(tx, source, &query))
            .await?)
    }
}

/// Requests a fill of the open gap that begins at this ID.
pub fn request_fill(machine: &mut Machine, low: &UpstreamId) -> bool {
    let Some(key) = machine.scheme().and_then(|scheme| scheme.key(low).ok()) else {
        return false;
    };
    machine.request_fill(&key)
}

fn purpose_name(purpose: &RequestPurpose) -> &'static str {
    match purpose {
        RequestPurpose::Poll => "poll",
        RequestPurpose::Fill { .. } => "fill",
        RequestPurpose::Look { rung: 0, .. } => "second_look",
        RequestPurpose::Look { .. } => "rung",
        RequestPurpose::Probe { .. } => "probe",
        RequestPurpose::Ahead => "dated_ahead",
    }
}

pub(crate) fn count(summary: &CommitSummary) {
    POSTS_STORED.increment(summary.new);
    EDITS.increment(summary.edited);
    POSTS_RECOUNTED.increment(summary.recounted);
    DELETIONS.increment(summary.deleted);
}

/// While the disk has no room.
const ROOM_LOOK_MS: i64 = 1_000;
/// Polls without changes are stored this often, so that other processes see that it is read.
pub(crate) const SAVED_EVERY_MS: i64 = 5 * 60_000;
