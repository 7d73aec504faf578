//! A session, step by step: what the machine asks for, the upstream's answer,
//! its commit. As `server::Session`, under virtual time.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex},
};

use driftline_core::{
    answer::{AnswerHeaders, Failure, Listed, LookUp, Page, PageRequest},
    timeline::{
        Cadence, Fetch, LookUpOutcome, Machine, Places, Reading, Request, RequestPurpose, Settings,
        Step, Stored,
    },
    upstream_id::UpstreamId,
};
use driftline_store::{
    CommitLookUp, CommitMachine, CommitPage, CommitSummary, GoneProof, StoreError, commit_look_up,
    commit_machine, commit_page, entry, source, source_lease::Lease,
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

pub(crate) struct Session {
    pub(crate) machine: Machine,
    pub(crate) lease: Lease,
    pub(crate) cadence: Cadence,
    places: Places,
    /// Posts as the last polls committed them, and when.
    recent: HashMap<UpstreamId, (u64, i64)>,
}

impl Session {
    pub(crate) fn new(machine: Machine, lease: Lease) -> Self {
        Self {
            machine,
            lease,
            cadence: Cadence::default(),
            places: Places::default(),
            recent: HashMap::new(),
        }
    }

    /// Something else than a page has changed stored posts.
    pub(crate) fn forget(&mut self) {
        self.recent.clear();
    }

    fn note(&mut self, listed: &[Listed], is_poll: bool, now_ms: i64) {
        for item in listed {
            let hash = hash(item);
            if is_poll {
                self.recent.insert(item.position.clone(), (hash, now_ms));
            } else if self
                .recent
                .get(&item.position)
                .is_some_and(|note| note.0 != hash)
            {
                self.recent.remove(&item.position);
            }
        }
    }

    /// The machine after a poll that brought nothing which must be committed.
    fn after_no_news(
        &self,
        settings: &Settings,
        abilities: driftline_core::answer::Abilities,
        request: &Request,
        reading: &Reading,
        page: &Page,
    ) -> Option<Machine> {
        let asked_at_ms = page.headers.sent_at_ms;
        let is_known = |item: &Listed| {
            self.recent
                .get(&item.position)
                .is_some_and(|(known, at_ms)| {
                    *known == hash(item) && asked_at_ms < at_ms + 10 * MINUTE_MS
                })
        };
        if request.purpose != RequestPurpose::Poll || !page.listed.iter().all(is_known) {
            return None;
        }
        let stored = Stored {
            new: vec![false; page.listed.len()],
            ..Stored::default()
        };
        let mut machine = self.machine.clone();
        machine.page(
            settings,
            abilities,
            request,
            reading,
            &page.headers,
            &stored,
        );
        machine.is_as_durable_as(&self.machine).then_some(machine)
    }
}

fn ids_of(page: &Page) -> Vec<&UpstreamId> {
    page.listed.iter().map(|listed| &listed.position).collect()
}

fn hash(item: &Listed) -> u64 {
    let mut hasher = DefaultHasher::new();
    item.post.raw.hash(&mut hasher);
    hasher.finish()
}

impl Simulation {
    pub(crate) fn step_session(&mut self, settling: bool) -> Result<(), Ended> {
        let abilities = self.drawn.abilities;
        let mut settings = self.settings();
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        if self.drawn.cadence {
            settings.every_ms = session.cadence.every_ms(&settings);
        }
        let step = session
            .machine
            .next(&settings, abilities, self.now_ms, settling);
        session.machine.sent(&step, self.now_ms);
        trace(self.now_ms, &step);
        match step {
            Step::Wait { until_ms } => {
                if until_ms <= self.now_ms || self.waits_in_a_row > 100 {
                    let text = format!("waits until {until_ms} at {}", self.now_ms);
                    return Err(Ended::Violation(Violation::Stalled(text)));
                }
                // The stream is heard meanwhile.
                self.now_ms = match &self.feed {
                    Some(_) => until_ms.min(self.now_ms + MINUTE_MS),
                    None => until_ms,
                };
                self.waits_in_a_row += 1;
                return Ok(());
            }
            Step::LookUp(id) => {
                self.other_requests += 1;
                self.quiet_since_ms = self.now_ms;
                self.look_up(&id)?;
            }
            Step::Fetch(fetch) => {
                self.other_requests += u64::from(fetch.purpose != RequestPurpose::Poll);
                self.fetch(fetch)?;
            }
        }
        self.waits_in_a_row = 0;
        Ok(())
    }

    fn settings(&self) -> Settings {
        let settings = self.drawn.settings.clone();
        match self.mutant.and_then(Mutant::overlap) {
            Some(overlap) => Settings {
                overlap,
                ..settings
            },
            None => settings,
        }
    }

    fn machine(&self) -> Machine {
        let session = self.session.as_ref();
        session
            .map(|session| session.machine.clone())
            .unwrap_or_default()
    }

    pub(crate) fn fence(&self) -> Option<i64> {
        self.session.as_ref().map(|session| session.lease.fence)
    }

    fn keep(&mut self, machine: Machine) {
        if let Some(session) = &mut self.session {
            session.machine = machine;
        }
    }

    fn fetch(&mut self, fetch: Fetch) -> Result<(), Ended> {
        let (source, machine) = (self.source, self.machine());
        let anchor = match fetch.anchor_query().cloned() {
            Some(query) => self
                .store
                .read(&mut self.now_ms, Operation::Anchor, move |tx| {
                    entry::anchor(tx, source, &query)
                })?,
            None => None,
        };
        let request = fetch.request(machine.scheme(), anchor.as_ref());
        let access = self.drawn.access;
        let named = match &self.session {
            Some(session) => session.places.name(&request.page),
            None => request.page.clone(),
        };
        let answer = access.page(&mut self.upstream, self.now_ms, &named);
        self.now_ms = self.upstream.received_at_ms();
        let answer = match answer {
            Ok(page) => Ok(self.keep_places(page, &request.page)?),
            Err(failure) => Err(failure),
        };
        let settings = self.settings();
        trace(self.now_ms, &answer.as_ref().map(ids_of));
        let checked = answer.and_then(|page| {
            self.laws.answered(&page, &mut self.upstream);
            let mut page = match self.mutant {
                Some(mutant) => mutant.answer(page, &request, &machine)?,
                None => page,
            };
            let known = machine.scheme().copied();
            let reading = Reading::check(&mut page, known, &settings);
            Ok((page, reading))
        });
        self.laws.refusals.page(&request, checked.as_ref().err());
        // Between the answer and its commit.
        if self.rng.random() {
            self.follow()?;
        }
        match checked {
            Ok((page, reading)) => self.take_in(&request, reading, page),
            Err(failure) => {
                let random = self.rng.random();
                let mut machine = machine;
                machine.failed(&settings, &request.purpose, &failure, self.now_ms, random);
                self.save(machine)
            }
        }
    }

    fn keep_places(&mut self, mut page: Page, request: &PageRequest) -> Result<Page, Ended> {
        let movable = Places::movable(&page);
        if movable.is_empty() {
            return Ok(page);
        }
        let source = self.source;
        let stored = self
            .store
            .read(&mut self.now_ms, Operation::Anchor, move |tx| {
                entry::positions(tx, source, &movable)
            })?;
        if let Some(session) = &mut self.session {
            session.places.keep(&mut page, request, &stored);
        }
        Ok(page)
    }

    fn take_in(&mut self, request: &Request, reading: Reading, page: Page) -> Result<(), Ended> {
        let (settings, abilities, before) = (self.settings(), self.drawn.abilities, self.machine());
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        if let Some(machine) = session.after_no_news(&settings, abilities, request, &reading, &page)
        {
            session.machine = machine;
            session.cadence.polled(0, 0);
            self.polled_at_ms = page.headers.sent_at_ms;
            for listed in &page.listed {
                self.laws.shown_alive(&listed.post, page.headers.sent_at_ms);
            }
            return Ok(());
        }
        let is_poll = request.purpose == RequestPurpose::Poll;
        let operation = match request.purpose {
            RequestPurpose::Poll => Operation::Poll,
            RequestPurpose::Fill { .. } => Operation::Fill,
            _ => Operation::Look,
        };
        let is_history = before.is_history(request, &reading);
        // A page that is not in the order of IDs says nothing of where coverage begins.
        let commit = if is_history && reading.disorder.is_none() {
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
        let page = Arc::new(page);
        let job = self.page_job(&before, request, reading, &page);
        if self.mutant == Some(Mutant::CursorBeforePosts) {
            self.save(self.dry_run(job.clone()))?;
        }
        let outcome = self
            .store
            .write(&mut self.now_ms, operation, source::root(self.source), job);
        let committed = self.store.committed();
        self.checked(if committed { &commit } else { &Commit::Other })?;
        if committed {
            for listed in &page.listed {
                self.laws.shown_alive(&listed.post, page.headers.sent_at_ms);
            }
        }
        let (machine, summary) = outcome?;
        if summary.revived > 0 {
            let text = format!("a deleted post returned by {request:?}");
            return Err(Ended::Violation(Violation::Content(text)));
        }
        let now_ms = self.now_ms;
        if is_poll {
            self.polled_at_ms = page.headers.sent_at_ms;
        }
        if let Some(session) = &mut self.session {
            if is_poll {
                let shown = machine.counters().stored - session.machine.counters().stored;
                session.cadence.polled(shown, summary.new);
            }
            session.note(&page.listed, is_poll, now_ms);
            if summary.absent > 0 || summary.left > 0 {
                session.forget();
            }
        }
        self.keep(machine);
        Ok(())
    }

    /// The commit of a page, with what a mutant makes of it.
    #[allow(clippy::type_complexity)]
    fn page_job(
        &self,
        before: &Machine,
        request: &Request,
        reading: Reading,
        page: &Arc<Page>,
    ) -> impl FnMut(&mut driftline_store::Tx<'_>) -> Result<(Machine, CommitSummary), StoreError>
    + Clone
    + Send
    + 'static {
        let (source, fence, mutant) = (self.source, self.fence(), self.mutant);
        let (settings, abilities, now_ms) = (self.settings(), self.drawn.abilities, self.now_ms);
        let (before, request, page) = (before.clone(), request.clone(), Arc::clone(page));
        let (policy, claims) = (
            Arc::clone(&self.refresher.policy),
            self.refresher.claims.clone(),
        );
        move |tx| {
            let commit = CommitPage {
                source,
                fence,
                machine: &before,
                settings: &settings,
                abilities,
                request: &request,
                reading: &reading,
                page: &page,
                policy: &policy,
                claims: &claims,
                now_ms,
            };
            let (machine, summary) = commit_page(tx, &commit)?;
            let wrong = mutant.and_then(|mutant| mutant.page(&machine, &request, &reading));
            let Some(machine) = wrong else {
                return Ok((machine, summary));
            };
            let commit = CommitMachine {
                source,
                fence,
                machine: &machine,
            };
            commit_machine(tx, &commit)?;
            Ok((machine, summary))
        }
    }

    /// The machine that a commit would leave.
    fn dry_run(
        &self,
        mut job: impl FnMut(
            &mut driftline_store::Tx<'_>,
        ) -> Result<(Machine, CommitSummary), StoreError>
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

    fn look_up(&mut self, id: &UpstreamId) -> Result<(), Ended> {
        let sent_at_ms = self.now_ms;
        let before = self.machine();
        let access = self.drawn.access;
        let answer = access.look_up(&mut self.upstream, sent_at_ms, id);
        self.laws.refusals.look_up(id, answer.as_ref().err());
        self.now_ms = self.upstream.received_at_ms();
        let look_up = match answer {
            Ok(look_up) => look_up,
            Err(failure) => return self.look_up_failed(id, &failure),
        };
        let headers = AnswerHeaders {
            sent_at_ms,
            received_at_ms: self.now_ms,
            round_trip_ms: self.now_ms - sent_at_ms,
            ..AnswerHeaders::default()
        };
        if self.mutant == Some(Mutant::AbsenceIgnored) {
            let mut machine = before;
            let outcome = match look_up {
                LookUp::Found(_) => LookUpOutcome::Found,
                LookUp::Gone => LookUpOutcome::Gone,
                LookUp::Hidden => LookUpOutcome::Hidden,
            };
            machine.looked_up(id, outcome, &headers);
            return self.save(machine);
        }
        let proof = match &look_up {
            LookUp::Found(post) => {
                self.proofs.learn(post.kind(), true, self.now_ms);
                GoneProof::Nothing
            }
            LookUp::Hidden => GoneProof::Nothing,
            LookUp::Gone => {
                let mut asker = Asker {
                    store: self.store.plain(),
                    upstream: &mut self.upstream,
                    access,
                    source: self.source,
                    now_ms: self.now_ms,
                };
                let proof = self.proofs.of(&mut asker, id);
                self.now_ms = asker.now_ms;
                match proof {
                    Ok(proof) => proof,
                    Err(failure) => return self.look_up_failed(id, &failure),
                }
            }
        };
        let (source, fence, now_ms) = (self.source, self.fence(), self.now_ms);
        let policy = Arc::clone(&self.refresher.policy);
        let keep_deleted = self.drawn.keep_deleted;
        let (asked, found) = (id.clone(), look_up.clone());
        let outcome = self.store.write(
            &mut self.now_ms,
            Operation::LookUp,
            source::root(source),
            move |tx| {
                let commit = CommitLookUp {
                    source,
                    fence,
                    machine: &before,
                    id: &asked,
                    look_up: &found,
                    proof,
                    headers: &headers,
                    policy: &policy,
                    keep_deleted,
                    now_ms,
                };
                commit_look_up(tx, &commit)
            },
        );
        self.checked(&Commit::Other)?;
        if self.store.committed() {
            match &look_up {
                LookUp::Found(post) => self.laws.shown_alive(post, sent_at_ms),
                LookUp::Gone if proof == GoneProof::Deleted => {
                    self.laws.reported_gone(id, sent_at_ms);
                }
                LookUp::Gone | LookUp::Hidden => {}
            }
        }
        let (machine, summary) = outcome?;
        if let Some(session) = self.session.as_mut().filter(|_| summary.left > 0) {
            session.forget();
        }
        self.keep(machine);
        Ok(())
    }

    fn look_up_failed(&mut self, id: &UpstreamId, failure: &Failure) -> Result<(), Ended> {
        let (random, settings, mut machine) = (self.rng.random(), self.settings(), self.machine());
        machine.look_up_failed(&settings, id, failure, self.now_ms, random);
        self.save(machine)
    }

    /// Keeps a machine that changed without a page.
    fn save(&mut self, machine: Machine) -> Result<(), Ended> {
        let (source, fence) = (self.source, self.fence());
        let kept = machine.clone();
        let outcome = self.store.write(
            &mut self.now_ms,
            Operation::Failure,
            source::root(source),
            move |tx| {
                let commit = CommitMachine {
                    source,
                    fence,
                    machine: &kept,
                };
                commit_machine(tx, &commit)
            },
        );
        self.checked(&Commit::Other)?;
        outcome?;
        self.keep(machine);
        Ok(())
    }

    pub(crate) fn checked(&mut self, commit: &Commit) -> Result<(), Ended> {
        self.check(commit).map_err(Ended::Violation)
    }
}
