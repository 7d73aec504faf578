//! Driftline's own way: parse, check, commit, with the timeline machine.

use std::{sync::Arc, time::Instant};

use driftline_core::{
    answer::{Abilities, AnswerHeaders, Page},
    timeline::{Machine, Reading, Settings, Step},
};
use driftline_store::{
    CommitPage, SourceKey, Store, Target, commit_page, local_ids,
    source::{self, NewSource},
};
use driftline_upstream::{Timeline, parse};

use super::Speed;
use crate::{failure::Failure, pages::RawPage};

/// Takes all pages in.
pub(super) fn ingest(target: Target, pages: &[RawPage]) -> Result<Speed, Failure> {
    let store = Store::open(target)?;
    let mut intake = Intake::of_host(&store, "bench", "sim", pages)?;
    let start = Instant::now();
    for raw in pages {
        intake.commit(page(raw)?)?;
    }
    let speed = Speed::since(start, pages);
    store.close_blocking();
    speed.of_all_stored(intake.machine.counters().stored)
}

/// A source that takes pages in, with its machine.
pub(crate) struct Intake {
    store: Store,
    pub(crate) source: SourceKey,
    settings: Arc<Settings>,
    machine: Machine,
}

impl Intake {
    /// Adds a source of an instance, and begins to take these pages in.
    pub(crate) fn of_host(
        store: &Store,
        name: &str,
        host: &str,
        pages: &[RawPage],
    ) -> Result<Self, Failure> {
        let source = add_source_of(store, name, &format!("https://{host}.example"))?;
        Self::start(store, source, pages.first().map_or(0, |page| page.at_ms))
    }

    /// Begins with a timeline that was seen empty: what comes after is news, not history.
    pub(crate) fn start(store: &Store, source: SourceKey, first_ms: i64) -> Result<Self, Failure> {
        let mut intake = Self {
            store: store.clone(),
            source,
            settings: Arc::default(),
            machine: Machine::default(),
        };
        intake.commit(Page {
            headers: headers(first_ms - 1_000, 2),
            ..Page::default()
        })?;
        Ok(intake)
    }

    /// Commits a page.
    pub(crate) fn commit(&mut self, mut page: Page) -> Result<(), Failure> {
        let mut machine = std::mem::take(&mut self.machine);
        let (source, settings) = (self.source, Arc::clone(&self.settings));
        let now_ms = page.headers.received_at_ms;
        // The step is not marked as sent, so that the next is a poll again.
        let Step::Fetch(fetch) = machine.next(&settings, ABILITIES, now_ms, false) else {
            return Err(Failure::new("the machine does not poll"));
        };
        let request = fetch.request(machine.scheme(), None);
        let reading = Reading::check(&mut page, machine.scheme().copied(), &settings);
        let (mut machine, _) = self.store.write_blocking(source::root(source), move |tx| {
            commit_page(
                tx,
                &CommitPage {
                    source,
                    fence: None,
                    machine: &machine,
                    settings: &settings,
                    abilities: ABILITIES,
                    request: &request,
                    reading: &reading,
                    page: &page,
                    policy: &driftline_core::refresh::Policy::default(),
                    claims: &driftline_store::refresh::Claims::default(),
                    now_ms,
                },
            )
        })?;
        // As if the ladder had been climbed: only the last ranges still wait for it.
        let gaps = machine.ledger().gaps();
        if gaps.len() > WAITING_RANGES {
            let last = gaps[gaps.len() - WAITING_RANGES..].to_vec();
            machine.restore_gaps(last);
        }
        self.machine = machine;
        Ok(())
    }
}

/// A page as it was read.
pub(crate) fn page(raw: &RawPage) -> Result<Page, Failure> {
    let items = parse::page(&raw.body, &Timeline::Public)?;
    Ok(Page {
        listed: items.listed,
        passed: items.passed,
        unreadable: items.unreadable,
        headers: headers(raw.at_ms, raw.body.len() as u64),
    })
}

/// Adds the source that the posts belong to; the peers need it too.
pub(crate) fn add_source(store: &Store) -> Result<SourceKey, Failure> {
    add_source_of(store, "bench", "https://sim.example")
}

fn add_source_of(store: &Store, name: &str, origin: &str) -> Result<SourceKey, Failure> {
    let new = new_source(name, origin);
    let added = store.write_blocking(local_ids::root(), move |tx| source::add(tx, &new, 0))?;
    added.map_err(|_| Failure::new("the source's name is refused"))
}

/// A source of the public timeline, with the default settings.
pub(crate) fn new_source(name: &str, origin: &str) -> NewSource {
    NewSource {
        name: name.to_owned(),
        origin: origin.to_owned(),
        api: driftline_core::api::Api::Mastodon,
        timeline: "public".to_owned(),
        kind: driftline_core::source_kind::SourceKind::Polled,
        upstream: origin.to_owned(),
        settings: Settings::default(),
        token: None,
        allow_private: false,
        owner: driftline_store::Owner::Operator,
        audience: driftline_core::names::audience::Audience::Public,
    }
}

fn headers(at_ms: i64, body_bytes: u64) -> AnswerHeaders {
    AnswerHeaders {
        sent_at_ms: at_ms,
        received_at_ms: at_ms + 50,
        round_trip_ms: 50,
        date_ms: Some(at_ms.div_euclid(1000) * 1000),
        body_bytes,
        ..AnswerHeaders::default()
    }
}

const ABILITIES: Abilities = Abilities {
    page_limit: crate::pages::LIMIT,
    min_id: true,
};
const WAITING_RANGES: usize = 20;
