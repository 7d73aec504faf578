//! A store with a source and a machine that reads it, for tests.

use std::panic::{AssertUnwindSafe, catch_unwind};

use driftline_core::{
    answer::{Abilities, AnswerHeaders, Listed, LookUp, Page},
    post::{Author, Counts, Post, PostHashes, Visibility},
    refresh::Policy,
    timeline::{Machine, Reading, Request, RequestPurpose, Settings, Step},
    upstream_id::UpstreamId,
};
use driftline_db::testing::databases;
use driftline_store::{
    CommitLookUp, CommitPage, CommitSummary, SourceId, Store, StoreError, Tx, clock,
    commit_look_up, commit_page, entry, export, machine,
    refresh::Claims,
    source::{self, NewSource},
    timeline::{self, Range, TimelinePost, Viewer},
};

pub(crate) const START_MS: i64 = 1_800_000_000_000;

pub(crate) const ABILITIES: Abilities = Abilities {
    page_limit: 40,
    min_id: true,
};

pub(crate) const EVERYTHING: Range = Range {
    since: None,
    min: None,
    max: None,
    limit: u16::MAX,
};

/// Runs a test on a fresh store of each kind.
pub(crate) fn on_both(test: impl Fn(&Store)) {
    for fresh in databases() {
        let store = Store::open(fresh.target.clone()).expect("a store");
        let passed = catch_unwind(AssertUnwindSafe(|| test(&store)));
        assert!(passed.is_ok(), "on {}", fresh.name);
        store.close_blocking();
    }
}

pub(crate) fn settings() -> Settings {
    Settings {
        id_layout: Some("none".to_owned()),
        ..Settings::default()
    }
}

pub(crate) fn new_source(name: &str) -> NewSource {
    NewSource {
        name: name.to_owned(),
        origin: "https://sim.example".to_owned(),
        api: driftline_core::api::Api::Mastodon,
        timeline: "public".to_owned(),
        upstream: "https://sim.example".to_owned(),
        settings: settings(),
        token: None,
    }
}

pub(crate) fn post(id: impl std::fmt::Display, text: &str) -> Post {
    let id = format!("{id}");
    hashed(Post {
        uri: Some(format!("https://sim.example/statuses/{id}")),
        url: None,
        created_at_ms: Some(START_MS - 1000),
        edited_at_ms: None,
        visibility: Visibility::Public,
        author: Author {
            id: "7".into(),
            acct: "ann".to_owned(),
            display_name: "Ann".to_owned(),
            url: None,
            raw: r#"{"id":"7"}"#.to_owned(),
        },
        boost_of: None,
        counts: Counts::default(),
        hashes: PostHashes::default(),
        viewer: None,
        raw: format!(r#"{{"id":"{id}","content":"{text}","favourites_count":0}}"#),
        id: UpstreamId::new(id),
    })
}

/// The post as reading its JSON would give it, whatever a test has changed.
pub(crate) fn hashed(mut post: Post) -> Post {
    post.hashes = driftline_mastodon::post_hashes(&post, &post.raw);
    post
}

pub(crate) fn posts(ids: impl IntoIterator<Item = u64>) -> Vec<Post> {
    ids.into_iter().map(|id| post(id, "text")).collect()
}

/// A request for the newest page, without bounds.
pub(crate) fn newest_page() -> Request {
    match Machine::default().next(&Settings::default(), ABILITIES, START_MS, false) {
        Step::Fetch(fetch) => fetch.request(None, None),
        step => panic!("{step:?}"),
    }
}

/// A page that lists posts by their own IDs, in whatever order they are given.
pub(crate) fn page(posts: Vec<Post>, now_ms: i64) -> Page {
    let listed = posts
        .into_iter()
        .map(|post| Listed {
            position: post.id.clone(),
            post: hashed(post),
        })
        .collect();
    Page {
        listed,
        headers: headers(now_ms),
        ..Page::default()
    }
}

pub(crate) fn headers(now_ms: i64) -> AnswerHeaders {
    AnswerHeaders {
        sent_at_ms: now_ms,
        received_at_ms: now_ms,
        ..AnswerHeaders::default()
    }
}

/// A source and the state of the worker that reads it.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) source: SourceId,
    pub(crate) machine: Machine,
    pub(crate) settings: Settings,
    pub(crate) fence: Option<i64>,
    pub(crate) keep_deleted: bool,
    pub(crate) claims: Claims,
    pub(crate) now_ms: i64,
}

impl World {
    /// A source that is being read for the first time: its first page is history.
    pub(crate) fn new(store: &Store, name: &str) -> World {
        let new = new_source(name);
        let source = store
            .write_blocking(clock::root(), move |tx| source::add(tx, &new, START_MS))
            .expect("a write")
            .expect("a source");
        World::of(store, source)
    }

    pub(crate) fn of(store: &Store, source: SourceId) -> World {
        let machine = store
            .read_blocking(move |tx| machine::load(tx, source))
            .expect("a machine");
        World {
            store: store.clone(),
            source,
            machine,
            settings: settings(),
            fence: None,
            keep_deleted: true,
            claims: Claims::default(),
            now_ms: START_MS,
        }
    }

    /// A source that began empty, and so is readable.
    pub(crate) fn readable(store: &Store, name: &str) -> World {
        let mut world = World::new(store, name);
        world.poll(Vec::new());
        world
    }

    /// Commits a newest page that lists these posts, the newest first.
    pub(crate) fn poll(&mut self, posts: Vec<Post>) -> CommitSummary {
        self.try_poll(posts).expect("a commit")
    }

    pub(crate) fn try_poll(&mut self, posts: Vec<Post>) -> Result<CommitSummary, StoreError> {
        let page = page(posts, self.now_ms);
        self.commit(&newest_page(), page)
    }

    pub(crate) fn commit(
        &mut self,
        request: &Request,
        page: Page,
    ) -> Result<CommitSummary, StoreError> {
        let known = self.machine.scheme().copied();
        let reading = Reading::check(&page, request, known, &self.settings).expect("a good page");
        let (source, fence, now_ms) = (self.source, self.fence, self.now_ms);
        let (machine, settings) = (self.machine.clone(), self.settings.clone());
        let (request, claims) = (request.clone(), self.claims.clone());
        let (machine, summary) = self.store.write_blocking(source::root(source), move |tx| {
            commit_page(
                tx,
                &CommitPage {
                    source,
                    fence,
                    machine: &machine,
                    settings: &settings,
                    abilities: ABILITIES,
                    request: &request,
                    reading: &reading,
                    page: &page,
                    policy: &Policy::default(),
                    claims: &claims,
                    now_ms,
                },
            )
        })?;
        self.machine = machine;
        Ok(summary)
    }

    pub(crate) fn look_up(&mut self, id: &str, look_up: LookUp) -> CommitSummary {
        let (source, fence, now_ms) = (self.source, self.fence, self.now_ms);
        let (machine, id) = (self.machine.clone(), UpstreamId::from(id));
        let keep_deleted = self.keep_deleted;
        let look_up = match look_up {
            LookUp::Found(post) => LookUp::Found(Box::new(hashed(*post))),
            LookUp::Gone => LookUp::Gone,
        };
        let (machine, summary) = self
            .store
            .write_blocking(source::root(source), move |tx| {
                commit_look_up(
                    tx,
                    &CommitLookUp {
                        source,
                        fence,
                        machine: &machine,
                        id: &id,
                        look_up: &look_up,
                        headers: &headers(now_ms),
                        policy: &Policy::default(),
                        keep_deleted,
                        now_ms,
                    },
                )
            })
            .expect("a commit");
        self.machine = machine;
        summary
    }

    /// Lets time pass until the machine requests the missing part of its history.
    pub(crate) fn fill(&mut self) -> Request {
        let request = self.next_request();
        assert!(matches!(request.purpose, RequestPurpose::Fill { .. }));
        request
    }

    /// [`World::fill`] that answers what else is due with an empty page.
    pub(crate) fn fill_whatever_is_due(&mut self) -> Request {
        loop {
            let request = self.next_request();
            if let RequestPurpose::Fill { .. } = request.purpose {
                return request;
            }
            let empty = page(Vec::new(), self.now_ms);
            self.commit(&request, empty).expect("a commit");
        }
    }

    /// Lets time pass until the machine requests a second look; the upstream has nothing in its gaps.
    pub(crate) fn second_look(&mut self) -> Request {
        loop {
            let request = self.next_request();
            if let RequestPurpose::Look { .. } = request.purpose {
                return request;
            }
            // Nothing lies below the post 1, which the page above it lists.
            let below = request.page.max_id.as_ref().map(|id| id.as_str().parse());
            let listed: Vec<u64> = match below {
                Some(Ok(2..)) => vec![1],
                _ => Vec::new(),
            };
            let page = page(posts(listed), self.now_ms);
            self.commit(&request, page).expect("a commit");
        }
    }

    fn next_request(&mut self) -> Request {
        for _ in 0..100 {
            self.now_ms += 1000;
            let step = self
                .machine
                .next(&self.settings, ABILITIES, self.now_ms, true);
            self.machine.sent(&step, self.now_ms);
            let Step::Fetch(fetch) = step else { continue };
            if fetch.purpose == RequestPurpose::Poll {
                continue;
            }
            let anchor = fetch.anchor_query().cloned().and_then(|query| {
                let source = self.source;
                self.read(move |tx| entry::anchor(tx, source, &query))
            });
            return fetch.request(self.machine.scheme(), anchor.as_ref());
        }
        panic!("nothing to ask for")
    }

    pub(crate) fn read<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> T {
        self.store.read_blocking(job).expect("a read")
    }

    pub(crate) fn write<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> T {
        self.store
            .write_blocking(source::root(self.source), job)
            .expect("a write")
    }

    /// The source's timeline as anyone may read it, the newest first.
    pub(crate) fn timeline(&self) -> Vec<TimelinePost> {
        self.timeline_for(Viewer::Anyone)
    }

    pub(crate) fn timeline_for(&self, viewer: Viewer) -> Vec<TimelinePost> {
        let source = self.source;
        self.read(move |tx| timeline::source(tx, source, &EVERYTHING, viewer))
    }

    pub(crate) fn public(&self) -> Vec<TimelinePost> {
        self.read(|tx| timeline::public(tx, &EVERYTHING))
    }

    pub(crate) fn export(&self) -> Vec<export::ExportRow> {
        let source = self.source;
        self.read(move |tx| export::rows(tx, source, 0, u32::MAX))
    }

    /// The USNs of the entries in order of arrival: (first, last).
    pub(crate) fn usns(&self) -> Vec<(i64, i64)> {
        self.export()
            .iter()
            .map(|row| (row.first_usn, row.usn))
            .collect()
    }
}

/// The posts' upstream IDs.
pub(crate) fn names(posts: &[TimelinePost]) -> Vec<&str> {
    posts.iter().map(|post| post.upstream_id.as_str()).collect()
}
