//! The shell of a session under virtual time: it carries out what the session asks for, as the server's does, with
//! a store that fails and an upstream that is simulated.

use std::sync::{Arc, Mutex};

use driftline_core::{
    answer::{AnswerHeaders, Failure, LookUp, Page},
    clock::ClockReading,
    quota::QuotaView,
    timeline::{
        self, Machine, RequestPurpose,
        session::{
            Action, Event, Finish, GoneProof, LookUpCommit, PageCommit, PageCommitted, PageFetch,
            RequestKind, StepContext, StreamView,
        },
    },
    upstream_id::UpstreamId,
};
use driftline_store::{
    CommitLookUp, CommitMachine, CommitPage, CommitSummary, StoreError, StorePosts, commit_look_up,
    commit_machine, commit_page, entry, refresh::rechecks_after, source, source_lease::Lease,
    store_posts,
};
use rand::RngExt;

use crate::{
    faults::Operation,
    laws::{Commit, Violation},
    mutants::Mutant,
    proofs::Asker,
    settings::MINUTE_MS,
    simulation::{Ended, Simulation},
    trace::trace,
};

/// A session under its lease.
pub(crate) struct Session {
    pub(crate) session: timeline::Session,
    pub(crate) lease: Lease,
    pub(crate) stream: StreamView,
    /// Changes of stored posts by the stream or the refresher.
    pub(crate) other_changes: u64,
}

impl Session {
    pub(crate) fn machine(&self) -> &Machine {
        self.session.machine()
    }
}

impl Simulation {
    /// A session that goes on with the stored machine.
    pub(crate) fn new_session(&self, machine: Machine, lease: Lease) -> Session {
        Session {
            session: timeline::Session::new(
                machine,
                self.drawn.settings.clone(),
                self.drawn.abilities,
                self.clock(),
            ),
            lease,
            stream: StreamView::default(),
            other_changes: 0,
        }
    }

    /// One step of the session.
    pub(crate) fn step_session(&mut self, settling: bool) -> Result<(), Ended> {
        let clock = self.clock();
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let mut action = session.session.begin(&StepContext {
            clock,
            quota: QuotaView::default(),
            stream: session.stream,
            server_answered_ms: None,
            max_held_bytes: usize::MAX,
            settling,
        });
        // When a poll was sent, and its page.
        let mut polled = None;
        loop {
            trace(self.now_ms, &action);
            let event = match action {
                Action::Finish(Finish::Wait { until_ms }) => return self.wait(until_ms),
                Action::Finish(Finish::Read) => {
                    if let Some((sent_at_ms, page)) = polled.take() {
                        self.polled_at_ms = sent_at_ms;
                        self.shown_alive(&page);
                    }
                    break;
                }
                Action::Finish(Finish::Held | Finish::Failed(_)) => break,
                Action::Reserve(kind) => {
                    if kind == RequestKind::LookUp {
                        self.other_requests += 1;
                        self.quiet_since_ms = self.now_ms;
                    }
                    Event::Reserved
                }
                Action::FindAnchor(query) => {
                    let source = self.source;
                    let find =
                        move |tx: &mut driftline_store::Tx<'_>| entry::anchor(tx, source, &query);
                    let anchor = self.store.read(&mut self.now_ms, Operation::Anchor, find);
                    Event::Anchor(anchor?)
                }
                Action::FindPositions(posts) => {
                    let source = self.source;
                    let find = move |tx: &mut driftline_store::Tx<'_>| {
                        entry::positions(tx, source, &posts)
                    };
                    let positions = self.store.read(&mut self.now_ms, Operation::Anchor, find);
                    Event::Positions(positions?)
                }
                Action::FetchPage(fetch) => {
                    let sent_at_ms = self.now_ms;
                    let event = self.fetch(&fetch)?;
                    if fetch.request.purpose == RequestPurpose::Poll
                        && let Event::Page { answer, .. } = &event
                        && let Ok(page) = &**answer
                    {
                        polled = Some((sent_at_ms, page.clone()));
                    }
                    event
                }
                Action::StorePosts(pages) => self.store_posts(&pages)?,
                Action::CommitPage(commit) => self.commit_page(&commit)?,
                Action::LookUp(id) => self.look_up(&id),
                Action::ProveAbsence(id) => self.prove_absence(&id),
                Action::CommitLookUp(commit) => self.commit_look_up(&commit)?,
                Action::SaveMachine => {
                    self.save(self.machine())?;
                    Event::Saved
                }
            };
            let (clock, random) = (self.clock(), self.rng.random());
            let Some(session) = &mut self.session else {
                return Ok(());
            };
            action = session.session.handle(event, clock, random);
        }
        self.waits_in_a_row = 0;
        Ok(())
    }

    /// The clocks of the process: the wall clock may be wrong.
    pub(crate) fn clock(&self) -> ClockReading {
        ClockReading {
            wall_ms: self.now_ms + self.clock_error_ms,
            steady_ms: self.now_ms,
        }
    }

    fn wait(&mut self, until_ms: i64) -> Result<(), Ended> {
        let until_ms = until_ms.saturating_sub(self.clock_error_ms);
        if until_ms <= self.now_ms || self.waits_in_a_row > 100 {
            let text = format!("waits until {until_ms} at {}", self.now_ms);
            return Err(Ended::Violation(Violation::Stalled(text)));
        }
        if until_ms > self.now_ms + MAX_WAIT_MS {
            let text = format!("waits for {} ms", until_ms - self.now_ms);
            return Err(Ended::Violation(Violation::Stalled(text)));
        }
        // The stream is heard meanwhile.
        self.now_ms = match &self.feed {
            Some(_) => until_ms.min(self.now_ms + MINUTE_MS),
            None => until_ms,
        };
        self.waits_in_a_row += 1;
        Ok(())
    }

    fn machine(&self) -> Machine {
        let session = self.session.as_ref();
        session.map(|it| it.machine().clone()).unwrap_or_default()
    }

    pub(crate) fn fence(&self) -> Option<i64> {
        self.session.as_ref().map(|session| session.lease.fence)
    }

    fn fetch(&mut self, fetch: &PageFetch) -> Result<Event, Ended> {
        let is_poll = fetch.request.purpose == RequestPurpose::Poll;
        self.other_requests += u64::from(!is_poll);
        let access = self.drawn.access;
        let answer = access.page(&mut self.upstream, self.now_ms, &fetch.page);
        self.now_ms = self.upstream.received_at_ms();
        trace(self.now_ms, &answer.as_ref().map(ids_of));
        let machine = self.machine();
        let answer = answer.and_then(|mut page| {
            self.laws.answered(&page, &mut self.upstream);
            self.move_times(&mut page.headers);
            match self.mutant {
                Some(mutant) => mutant.answer(page, &fetch.request, &machine),
                None => Ok(page),
            }
        });
        self.laws
            .refusals
            .page(&fetch.request, answer.as_ref().err());
        // Between the answer and its commit.
        if self.rng.random() {
            self.follow()?;
        }
        let session = self.session.as_ref();
        Ok(Event::Page {
            other_changes: session.map_or(0, |session| session.other_changes),
            answer: Box::new(answer),
        })
    }

    /// Times by the process's wall clock.
    fn move_times(&self, headers: &mut AnswerHeaders) {
        headers.sent_at_ms += self.clock_error_ms;
        headers.received_at_ms += self.clock_error_ms;
    }

    fn store_posts(&mut self, pages: &Arc<[Arc<PageCommit>]>) -> Result<Event, Ended> {
        let (source, fence, now_ms) = (self.source, self.fence(), self.clock().wall_ms);
        let policy = Arc::clone(&self.refresher.policy);
        let scheme = self.machine().scheme().copied();
        let pages = Arc::clone(pages);
        let outcome = self.store.write(
            &mut self.now_ms,
            Operation::Poll,
            source::root(source),
            move |tx| {
                let Some(scheme) = &scheme else {
                    return Ok(CommitSummary::default());
                };
                let store = StorePosts {
                    source,
                    fence,
                    scheme,
                    pages: &pages,
                    policy: &policy,
                    now_ms,
                };
                store_posts(tx, &store)
            },
        );
        self.checked(&Commit::Other)?;
        let new = outcome?.new;
        Ok(Event::PostsStored { new })
    }

    fn commit_page(&mut self, commit: &Arc<PageCommit>) -> Result<Event, Ended> {
        let PageCommit {
            request,
            reading,
            page,
        } = &**commit;
        let before = self.machine();
        let is_poll = request.purpose == RequestPurpose::Poll;
        let operation = match request.purpose {
            RequestPurpose::Poll => Operation::Poll,
            RequestPurpose::Fill { .. } => Operation::Fill,
            _ => Operation::Look,
        };
        let is_history = before.is_history(request, reading);
        // A page that is not in the order of IDs says nothing of where coverage begins.
        let kind = if is_history && reading.disorder.is_none() {
            let high = match &request.purpose {
                RequestPurpose::Fill { high, .. } => Some(high),
                _ => None,
            };
            let keys = reading.keys.iter();
            let keys = keys.filter(|key| high.is_none_or(|high| *key < high));
            Commit::History(keys.cloned().collect())
        } else if is_poll {
            Commit::Poll
        } else {
            Commit::Other
        };
        let job = self.page_job(&before, commit);
        if self.mutant == Some(Mutant::CursorBeforePosts) {
            self.save(self.dry_run(job.clone()))?;
        }
        let outcome = self
            .store
            .write(&mut self.now_ms, operation, source::root(self.source), job);
        let committed = self.store.committed();
        self.checked(if committed { &kind } else { &Commit::Other })?;
        if committed {
            self.shown_alive(page);
            if is_poll {
                self.polled_at_ms = page.headers.sent_at_ms - self.clock_error_ms;
            }
        }
        let (machine, summary, rechecks_ms) = outcome?;
        if summary.revived > 0 {
            let text = format!("a deleted post returned by {request:?}");
            return Err(Ended::Violation(Violation::Content(text)));
        }
        Ok(Event::PageCommitted(Box::new(PageCommitted {
            machine,
            new: summary.new,
            missing: summary.absent + summary.left,
            rechecks_ms,
        })))
    }

    fn shown_alive(&mut self, page: &Page) {
        let sent_at_ms = page.headers.sent_at_ms - self.clock_error_ms;
        for listed in &page.listed {
            self.laws.shown_alive(&listed.post, sent_at_ms);
        }
    }

    /// The commit of a page, with what a mutant makes of it.
    #[allow(clippy::type_complexity)]
    fn page_job(
        &self,
        before: &Machine,
        commit: &Arc<PageCommit>,
    ) -> impl FnMut(
        &mut driftline_store::Tx<'_>,
    ) -> Result<(Machine, CommitSummary, Vec<Option<i64>>), StoreError>
    + Clone
    + Send
    + 'static {
        let (source, fence, mutant) = (self.source, self.fence(), self.mutant);
        let (settings, abilities) = (self.drawn.settings.clone(), self.drawn.abilities);
        let now_ms = self.clock().wall_ms;
        let (before, commit) = (before.clone(), Arc::clone(commit));
        let (policy, claims) = (
            Arc::clone(&self.refresher.policy),
            self.refresher.claims.clone(),
        );
        move |tx| {
            let PageCommit {
                request,
                reading,
                page,
            } = &*commit;
            let (machine, summary) = commit_page(
                tx,
                &CommitPage {
                    source,
                    fence,
                    machine: &before,
                    settings: &settings,
                    abilities,
                    request,
                    reading,
                    page,
                    policy: &policy,
                    claims: &claims,
                    now_ms,
                },
            )?;
            let is_poll = request.purpose == RequestPurpose::Poll;
            let rechecks = match is_poll || summary.recounted > 0 {
                true => rechecks_after(tx, source, reading, page)?,
                false => Vec::new(),
            };
            let rechecks = rechecks.into_iter().map(|it| it?.recheck_at_ms).collect();
            let wrong = mutant.and_then(|mutant| mutant.page(&machine, request, reading));
            let Some(machine) = wrong else {
                return Ok((machine, summary, rechecks));
            };
            let commit = CommitMachine {
                source,
                fence,
                machine: &machine,
            };
            commit_machine(tx, &commit)?;
            Ok((machine, summary, rechecks))
        }
    }

    /// The machine that a commit would leave.
    fn dry_run(
        &self,
        mut job: impl FnMut(
            &mut driftline_store::Tx<'_>,
        ) -> Result<(Machine, CommitSummary, Vec<Option<i64>>), StoreError>
        + Send
        + 'static,
    ) -> Machine {
        let left = Arc::new(Mutex::new(Machine::default()));
        let seen = Arc::clone(&left);
        let outcome = self
            .store
            .plain()
            .write_blocking(source::root(self.source), move |tx| {
                *seen.lock().unwrap() = job(tx)?.0;
                Err::<(), _>(StoreError::LeaseLost)
            });
        assert_eq!(outcome, Err(StoreError::LeaseLost));
        let machine = left.lock().unwrap();
        machine.clone()
    }

    fn look_up(&mut self, id: &UpstreamId) -> Event {
        let sent_at_ms = self.now_ms;
        let access = self.drawn.access;
        let answer = access.look_up(&mut self.upstream, sent_at_ms, id);
        self.laws.refusals.look_up(id, answer.as_ref().err());
        self.now_ms = self.upstream.received_at_ms();
        let mut headers = AnswerHeaders {
            sent_at_ms,
            received_at_ms: self.now_ms,
            round_trip_ms: self.now_ms - sent_at_ms,
            ..AnswerHeaders::default()
        };
        self.move_times(&mut headers);
        if let Ok(LookUp::Found(post)) = &answer {
            self.proofs.learn(post.kind(), true, self.now_ms);
        }
        Event::LookedUp(answer.map(|look_up| (look_up, headers)))
    }

    fn prove_absence(&mut self, id: &UpstreamId) -> Event {
        let mut asker = Asker {
            store: self.store.plain(),
            upstream: &mut self.upstream,
            access: self.drawn.access,
            source: self.source,
            now_ms: self.now_ms,
        };
        let proof: Result<GoneProof, Failure> = self.proofs.of(&mut asker, id);
        self.now_ms = asker.now_ms;
        Event::Proof(proof)
    }

    fn commit_look_up(&mut self, commit: &Arc<LookUpCommit>) -> Result<Event, Ended> {
        let before = self.machine();
        if self.mutant == Some(Mutant::AbsenceIgnored) {
            let mut machine = before;
            machine.looked_up(&commit.id, commit.outcome(), &commit.headers);
            self.save(machine.clone())?;
            let machine = Box::new(machine);
            return Ok(Event::LookUpCommitted { machine, left: 0 });
        }
        let (source, fence, now_ms) = (self.source, self.fence(), self.clock().wall_ms);
        let policy = Arc::clone(&self.refresher.policy);
        let keep_deleted = self.drawn.keep_deleted;
        let answered = Arc::clone(commit);
        let outcome = self.store.write(
            &mut self.now_ms,
            Operation::LookUp,
            source::root(source),
            move |tx| {
                let commit = CommitLookUp {
                    source,
                    fence,
                    machine: &before,
                    id: &answered.id,
                    look_up: &answered.look_up,
                    proof: answered.proof,
                    headers: &answered.headers,
                    policy: &policy,
                    keep_deleted,
                    now_ms,
                };
                commit_look_up(tx, &commit)
            },
        );
        self.checked(&Commit::Other)?;
        if self.store.committed() {
            let sent_at_ms = commit.headers.sent_at_ms - self.clock_error_ms;
            match &commit.look_up {
                LookUp::Found(post) => self.laws.shown_alive(post, sent_at_ms),
                LookUp::Gone if commit.proof == GoneProof::Deleted => {
                    self.laws.reported_gone(&commit.id, sent_at_ms);
                }
                LookUp::Gone | LookUp::Hidden => {}
            }
        }
        let (machine, summary) = outcome?;
        Ok(Event::LookUpCommitted {
            machine: Box::new(machine),
            left: summary.left,
        })
    }

    /// Stores a machine that changed without a page.
    fn save(&mut self, machine: Machine) -> Result<(), Ended> {
        let (source, fence) = (self.source, self.fence());
        let outcome = self.store.write(
            &mut self.now_ms,
            Operation::Failure,
            source::root(source),
            move |tx| {
                let commit = CommitMachine {
                    source,
                    fence,
                    machine: &machine,
                };
                commit_machine(tx, &commit)
            },
        );
        self.checked(&Commit::Other)?;
        Ok(outcome?)
    }

    pub(crate) fn checked(&mut self, commit: &Commit) -> Result<(), Ended> {
        self.check(commit).map_err(Ended::Violation)
    }
}

/// The longest backoff, the longest announced wait, and time for what goes on next to it: nothing waits longer,
/// whatever the clock does.
const MAX_WAIT_MS: i64 = 16 * MINUTE_MS;

fn ids_of(page: &Page) -> Vec<&UpstreamId> {
    page.listed.iter().map(|listed| &listed.position).collect()
}
