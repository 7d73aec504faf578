//! The session of one source, without I/O: it accepts events and returns actions.
//!
//! A shell carries out a step as follows. It calls [`Session::begin`], performs the [`Action`], and
//! passes the result to [`Session::handle`], which returns the next action, until
//! [`Action::Finish`]. The shell decides nothing.
//!
//! A step that does not reach its end (the store fails, the process dies, the shell gives up)
//! leaves nothing half done. All data are committed with the machine in one transaction, and the
//! next `begin` drops the rest. A session whose commit failed, or may have failed, must not
//! continue, because its machine may be older than the stored one.
//!
//! The session notices steps of the wall clock between any two calls ([`ClockWatch`]) and moves all
//! times in memory, so that its waits keep their length.
//!
//! Pages of a backlog are held, and committed together in the order of their posts: see
//! [`Finish::Held`].

mod backlog;
mod event;
mod holding;
mod recent_posts;

use std::{collections::VecDeque, sync::Arc};

pub use event::{
    Action, Event, Finish, GoneProof, LookUpCommit, PageCommit, PageCommitted, PageFetch,
    RequestKind, StepContext, StreamView,
};

use super::{
    Anchor, Cadence, Fetch, LookUpOutcome, Machine, Places, Reading, Request, RequestPurpose,
    Settings, Step, Stored,
};
use crate::{
    answer::{Abilities, AnswerHeaders, Failure, LookUp, Page},
    clock::{ClockReading, ClockWatch},
    upstream_id::UpstreamId,
};
use backlog::Backlog;
use recent_posts::RecentPosts;

/// Reads one source, step by step.
#[derive(Debug, Clone)]
pub struct Session {
    machine: Machine,
    settings: Arc<Settings>,
    abilities: Abilities,
    places: Places,
    recent_posts: RecentPosts,
    cadence: Cadence,
    stream: StreamView,
    /// The changes by others that `recent_posts` includes.
    other_changes: u64,
    /// True if the machine in memory is ahead of the stored one.
    unsaved: bool,
    /// The time at which it was last stored, in Unix ms by the wall clock.
    saved_ms: i64,
    watch: ClockWatch,
    clock: ClockReading,
    now_ms: i64,
    pending: Pending,
    backlog: Option<Backlog>,
    /// The largest memory of held pages, in bytes.
    max_held_bytes: usize,
    /// The number of posts of held pages that were stored, until their poll is committed.
    stored_early: u64,
    /// True if the request in flight belongs to a backlog that was dropped.
    is_stale: bool,
    /// True if the last poll left a gap that was too long to be held.
    is_behind: bool,
    /// The number of openings of the stream when the last poll was sent.
    polled_openings: u64,
    /// The number of openings when the last poll was sent that is committed together with all posts
    /// below it.
    caught_up: u64,
}

/// The event for which the session waits, with its context.
#[derive(Debug, Clone, Default)]
enum Pending {
    #[default]
    Nothing,
    Request(Step),
    Anchor(Fetch),
    Page(Arc<PageFetch>),
    Positions(Box<(Request, Page)>),
    PostsStored(VecDeque<Arc<PageCommit>>),
    /// A page, and the pages to commit after it.
    PageCommit(Arc<PageCommit>, VecDeque<Arc<PageCommit>>),
    LookUp(UpstreamId),
    Proof(Box<(UpstreamId, AnswerHeaders)>),
    LookUpCommit,
    Save(Finish),
}

impl Session {
    /// A session that continues with a stored machine.
    pub fn new(
        mut machine: Machine,
        settings: Settings,
        abilities: Abilities,
        clock: ClockReading,
    ) -> Self {
        // The first answer shows the error of the wall clock.
        machine.poll_soon();
        Self {
            machine,
            settings: Arc::new(settings),
            abilities,
            places: Places::default(),
            recent_posts: RecentPosts::default(),
            cadence: Cadence::default(),
            stream: StreamView::default(),
            other_changes: 0,
            unsaved: false,
            saved_ms: clock.wall_ms,
            watch: ClockWatch::new(clock),
            clock,
            now_ms: clock.wall_ms,
            pending: Pending::Nothing,
            backlog: None,
            max_held_bytes: 0,
            stored_early: 0,
            is_stale: false,
            is_behind: false,
            polled_openings: 0,
            caught_up: 0,
        }
    }

    /// The machine in its current state.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The source's settings.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// The abilities of the upstream's timeline.
    pub fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// The approximate memory of the held pages, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.backlog.as_ref().map_or(0, Backlog::bytes)
    }

    /// The number of openings of the stream when the last poll was sent that is committed together
    /// with all posts below it. Posts that were streamed since that opening are above all earlier
    /// posts.
    pub fn caught_up(&self) -> u64 {
        self.caught_up
    }

    /// Starts to commit the held pages, because the session is about to end; `None` if there are
    /// none. It continues like a step.
    pub fn release(&mut self) -> Option<Action> {
        let backlog = self.backlog.take()?;
        Some(self.commit_backlog(backlog))
    }

    /// Makes the next poll due now, despite earlier failures.
    pub fn retry_soon(&mut self) {
        self.machine.retry_soon();
        if let Some(backlog) = &mut self.backlog {
            backlog.machine.retry_soon();
        }
    }

    /// Records the reason why the server is not asked for the stream for a day; `None` once it has
    /// the stream.
    pub fn stream_missing(&mut self, missing: Option<&Failure>) {
        self.machine.stream_missing(missing, self.now_ms);
        if let Some(backlog) = &mut self.backlog {
            backlog.machine.stream_missing(missing, self.now_ms);
        }
        self.unsaved = true;
    }

    /// Requests that the open gap that begins at this ID be filled. Returns `false` if there is
    /// none. The machine must be stored afterwards.
    pub fn request_fill(&mut self, low: &UpstreamId) -> bool {
        self.machine.request_fill_at(low)
    }

    /// True if the machine in memory is ahead of the stored one and must be stored before the
    /// session ends.
    pub fn is_unsaved(&self) -> bool {
        self.unsaved
    }

    /// Records that the machine was stored outside a step.
    pub fn saved(&mut self) {
        self.unsaved = false;
        self.saved_ms = self.now_ms;
    }

    /// Begins a step, and returns its first action.
    pub fn begin(&mut self, context: &StepContext) -> Action {
        self.pending = Pending::Nothing;
        self.read_clocks(context.clock);
        self.is_stale = false;
        self.sync_stream(context.stream);
        let settings = Settings {
            every_ms: self.cadence.every_ms(&self.settings),
            ..(*self.settings).clone()
        };
        self.max_held_bytes = context.max_held_bytes;
        self.machine.set_quota(context.quota);
        if let Some(at_ms) = context.server_answered_ms {
            self.machine.server_answered(&settings, at_ms);
        }
        if let Some(mut backlog) = self.backlog.take() {
            backlog.go_on_with(context.quota, context.max_held_bytes);
            return self.read_on(backlog);
        }
        let step = self
            .machine
            .next(&settings, self.abilities, self.now_ms, context.settling);
        let kind = match step {
            Step::Wait { until_ms } => return Action::Finish(self.wait(until_ms)),
            Step::Fetch(_) => RequestKind::Page,
            Step::LookUp(_) => RequestKind::LookUp,
        };
        self.pending = Pending::Request(step);
        Action::Reserve(kind)
    }

    /// Applies the result of the last action, and returns the next one. `random` is any random
    /// number. It spreads the delays of sources that fail together.
    pub fn handle(&mut self, event: Event, clock: ClockReading, random: u64) -> Action {
        let step_ms = self.read_clocks(clock);
        match (std::mem::take(&mut self.pending), event) {
            (Pending::Request(_), Event::Refused { until_ms }) => self.refused(until_ms),
            (Pending::Request(step), Event::Reserved) => self.reserved(step),
            (Pending::Anchor(fetch), Event::Anchor(anchor)) => {
                let anchor = match (&self.backlog, fetch.anchor_query()) {
                    (Some(backlog), Some(query)) => backlog.anchor(query, anchor),
                    _ => anchor,
                };
                self.fetch(fetch, anchor.as_ref())
            }
            (
                Pending::Page(fetch),
                Event::Page {
                    answer,
                    other_changes,
                },
            ) => {
                self.adopt_changes(other_changes);
                match *answer {
                    Ok(mut page) => {
                        move_times(&mut page.headers, step_ms);
                        self.answered(&fetch.request, page)
                    }
                    Err(failure) => self.failed(&fetch.request.purpose, &failure, random),
                }
            }
            (Pending::Positions(answer), Event::Positions(mut stored)) => {
                for (id, position) in self.backlog.iter().flat_map(Backlog::positions) {
                    let held = || position.clone();
                    stored.entry(id.clone()).or_insert_with(held);
                }
                let (request, mut page) = *answer;
                move_times(&mut page.headers, step_ms);
                self.places.keep(&mut page, &request.page, &stored);
                self.check(request, page)
            }
            (Pending::PostsStored(pages), Event::PostsStored { new }) => {
                self.stored_early = new;
                self.commit_next(pages, step_ms)
            }
            (Pending::PageCommit(commit, pages), Event::PageCommitted(mut committed)) => {
                committed.machine.clock_stepped(step_ms);
                self.page_committed(&commit, *committed);
                self.commit_next(pages, step_ms)
            }
            (Pending::LookUp(id), Event::LookedUp(Ok((look_up, mut headers)))) => {
                move_times(&mut headers, step_ms);
                if look_up == LookUp::Gone {
                    self.pending = Pending::Proof(Box::new((id.clone(), headers)));
                    return Action::ProveAbsence(id);
                }
                self.commit_look_up(id, look_up, GoneProof::Nothing, headers)
            }
            (Pending::Proof(asked), Event::Proof(Ok(proof))) => {
                let (id, mut headers) = *asked;
                move_times(&mut headers, step_ms);
                self.commit_look_up(id, LookUp::Gone, proof, headers)
            }
            (Pending::LookUp(id), Event::LookedUp(Err(failure))) => {
                self.look_up_failed(&id, &failure, random)
            }
            (Pending::Proof(asked), Event::Proof(Err(failure))) => {
                self.look_up_failed(&asked.0, &failure, random)
            }
            (Pending::LookUpCommit, Event::LookUpCommitted { machine, left }) => {
                self.machine = *machine;
                self.machine.clock_stepped(step_ms);
                self.saved();
                if left > 0 {
                    self.recent_posts.clear();
                }
                Action::Finish(Finish::Read)
            }
            (Pending::Save(finish), Event::Saved) => {
                self.saved();
                Action::Finish(finish)
            }
            (pending, event) => {
                debug_assert!(false, "{event:?} does not answer {pending:?}");
                // The step is abandoned, which loses nothing.
                let until_ms = self.now_ms.saturating_add(ABANDONED_MS);
                Action::Finish(Finish::Wait { until_ms })
            }
        }
    }

    /// Waits, but only for a short time if another request to the server may end a wait that it
    /// requested.
    fn wait(&self, until_ms: i64) -> Finish {
        let is_asked = self.machine.waiting(self.now_ms).is_some();
        let max_ms = if is_asked { ASKED_LOOK_MS } else { i64::MAX };
        let until_ms = until_ms.min(self.now_ms.saturating_add(max_ms));
        Finish::Wait { until_ms }
    }

    /// Adopts the present time, and returns the step of the wall clock since the last call, in ms.
    fn read_clocks(&mut self, clock: ClockReading) -> i64 {
        let step_ms = self.watch.step_ms(clock);
        self.now_ms = clock.wall_ms;
        self.clock = clock;
        if step_ms != 0 {
            // The times of its pages are wrong now, so it is read again.
            if let Some(backlog) = self.backlog.take() {
                self.machine.adopt_requests(&backlog.machine);
                self.machine.poll_soon();
                self.is_stale = true;
            }
            self.machine.clock_stepped(step_ms);
            self.recent_posts.clock_stepped(step_ms);
            self.saved_ms = self.saved_ms.saturating_add(step_ms);
        }
        step_ms
    }

    fn sync_stream(&mut self, stream: StreamView) {
        if stream == self.stream {
            return;
        }
        if stream.openings != self.stream.openings {
            // Posts before the opening were not streamed.
            self.machine.poll_soon();
            self.cadence.opened();
        }
        if !stream.is_open {
            self.cadence.lost();
        }
        self.stream = stream;
    }

    fn adopt_changes(&mut self, other_changes: u64) {
        if std::mem::replace(&mut self.other_changes, other_changes) != other_changes {
            self.recent_posts.clear();
        }
    }

    fn reserved(&mut self, step: Step) -> Action {
        if let Some(backlog) = &mut self.backlog {
            backlog.machine.sent(&step, self.now_ms);
        } else {
            self.machine.sent(&step, self.now_ms);
            if matches!(&step, Step::Fetch(fetch) if fetch.purpose == RequestPurpose::Poll) {
                self.polled_openings = self.stream.openings;
            }
        }
        match step {
            Step::Wait { until_ms } => Action::Finish(Finish::Wait { until_ms }),
            Step::LookUp(id) => {
                self.pending = Pending::LookUp(id.clone());
                Action::LookUp(id)
            }
            Step::Fetch(fetch) => match fetch.anchor_query().cloned() {
                None => self.fetch(fetch, None),
                Some(query) => {
                    self.pending = Pending::Anchor(fetch);
                    Action::FindAnchor(query)
                }
            },
        }
    }

    fn fetch(&mut self, fetch: Fetch, anchor: Option<&Anchor>) -> Action {
        let request = fetch.request(self.machine.scheme(), anchor);
        let page = self.places.name(&request.page);
        let fetch = Arc::new(PageFetch { request, page });
        self.pending = Pending::Page(Arc::clone(&fetch));
        Action::FetchPage(fetch)
    }

    fn answered(&mut self, request: &Request, page: Page) -> Action {
        let mut request = request.clone();
        request.page.limit = page.headers.limit.unwrap_or(request.page.limit);
        let movable = Places::movable(&page);
        if movable.is_empty() {
            return self.check(request, page);
        }
        self.pending = Pending::Positions(Box::new((request, page)));
        Action::FindPositions(movable)
    }

    fn check(&mut self, request: Request, mut page: Page) -> Action {
        let known = self.machine.scheme().copied();
        let reading = Reading::check(&mut page, known, &self.settings);
        let commit = PageCommit {
            request,
            reading,
            page,
        };
        if let Some(machine) = self.after_unchanged(&commit) {
            self.machine = machine;
            self.unsaved = true;
            self.cadence.polled(0, 0);
            self.caught_up = self.polled_openings;
            self.is_behind = false;
            return Action::Finish(Finish::Read);
        }
        self.take_in(Arc::new(commit))
    }

    /// The machine after a poll without changes that must survive a crash; `None` if the page must
    /// be committed.
    fn after_unchanged(&self, commit: &PageCommit) -> Option<Machine> {
        let PageCommit {
            request,
            reading,
            page,
        } = commit;
        if request.purpose != RequestPurpose::Poll
            || self.now_ms.saturating_sub(self.saved_ms) >= SAVED_EVERY_MS
            || !page.unreadable.is_empty()
            || !self
                .recent_posts
                .need_no_commit(&page.listed, page.headers.sent_at_ms)
        {
            return None;
        }
        let stored = Stored {
            new: vec![false; page.listed.len()],
            ..Stored::default()
        };
        let mut machine = self.machine.clone();
        machine.page(
            &self.settings,
            self.abilities,
            request,
            reading,
            &page.headers,
            &stored,
        );
        machine.is_as_durable_as(&self.machine).then_some(machine)
    }

    fn page_committed(&mut self, commit: &PageCommit, committed: PageCommitted) {
        if commit.request.purpose == RequestPurpose::Poll {
            let stored = |machine: &Machine| machine.counters().stored;
            let shown = stored(&committed.machine).saturating_sub(stored(&self.machine));
            let missed = committed.new + std::mem::take(&mut self.stored_early);
            self.cadence.polled(shown, missed);
            self.caught_up = self.polled_openings;
        }
        self.machine = committed.machine;
        self.saved();
        let listed = &commit.page.listed;
        self.recent_posts.invalidate_changed(listed);
        self.recent_posts
            .remember(listed, &committed.rechecks_ms, self.now_ms);
        if committed.missing > 0 {
            // The next poll is committed, so that its posts are known to exist.
            self.recent_posts.clear();
        }
    }

    fn commit_look_up(
        &mut self,
        id: UpstreamId,
        look_up: LookUp,
        proof: GoneProof,
        headers: AnswerHeaders,
    ) -> Action {
        self.pending = Pending::LookUpCommit;
        Action::CommitLookUp(Arc::new(LookUpCommit {
            id,
            look_up,
            proof,
            headers,
        }))
    }

    fn failed(&mut self, purpose: &RequestPurpose, failure: &Failure, random: u64) -> Action {
        if let Some(backlog) = &mut self.backlog {
            let machine = &mut backlog.machine;
            machine.failed(&self.settings, purpose, failure, self.now_ms, random);
            return Action::Finish(Finish::Failed(failure.kind));
        }
        if self.is_stale {
            return Action::Finish(Finish::Failed(failure.kind));
        }
        self.machine
            .failed(&self.settings, purpose, failure, self.now_ms, random);
        self.save_failure(failure)
    }

    fn look_up_failed(&mut self, id: &UpstreamId, failure: &Failure, random: u64) -> Action {
        self.machine
            .look_up_failed(&self.settings, id, failure, self.now_ms, random);
        self.save_failure(failure)
    }

    fn save_failure(&mut self, failure: &Failure) -> Action {
        self.pending = Pending::Save(Finish::Failed(failure.kind));
        Action::SaveMachine
    }
}

impl LookUpCommit {
    /// The outcome by the answer alone, for a store without other information about the post.
    pub fn outcome(&self) -> LookUpOutcome {
        match (&self.look_up, self.proof) {
            (LookUp::Found(_), _) => LookUpOutcome::Found,
            (LookUp::Gone, GoneProof::Nothing) => LookUpOutcome::NotConfirmed,
            (LookUp::Gone, GoneProof::Deleted | GoneProof::DeletedForAll) => LookUpOutcome::Gone,
            (LookUp::Gone, GoneProof::Hidden) | (LookUp::Hidden, _) => LookUpOutcome::Hidden,
        }
    }
}

/// Moves the times of an answer that was requested before a step of the wall clock, in ms.
fn move_times(headers: &mut AnswerHeaders, step_ms: i64) {
    headers.sent_at_ms = headers.sent_at_ms.saturating_add(step_ms);
    headers.received_at_ms = headers.received_at_ms.saturating_add(step_ms);
}

/// The interval at which polls without changes are stored, in ms, so that other processes see that
/// the source is read.
pub const SAVED_EVERY_MS: i64 = 5 * 60_000;
/// The interval between checks while the server has requested a wait, in ms.
const ASKED_LOOK_MS: i64 = 2_000;
/// The pause after a step that its shell did not carry out properly, in ms.
const ABANDONED_MS: i64 = 1_000;
