//! Stores, sources and feeds for tests.
#![allow(clippy::expect_used)]

mod index_watch;
mod new_account;
mod post_texts;
pub mod statements;

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use driftline_core::{
    answer::{Abilities, AnswerHeaders, Event, Failure, FailureKind, Listed, LookUp, Page},
    api::Api,
    names::audience::Audience,
    post::{Author, Post},
    refresh::Policy,
    source_kind::SourceKind,
    timeline::{
        AnchorQuery, IdScheme, Machine, Reading, Request, RequestPurpose, Settings, Step,
        session::PageCommit,
    },
    upstream_id::{IdOrder, Key, UpstreamId},
};
pub use driftline_db::testing::is_distributed;
use driftline_db::testing::{Fresh, databases};
pub use index_watch::IndexWatch;
pub use new_account::{new_account, passphrase_hash};
pub use post_texts::check_post_texts;

use crate::{
    CommitEvents, CommitLookUp, CommitPage, CommitSummary, GoneProof, ReceivedEvent, SecretUrl,
    SourceKey, Store, StoreError, StorePosts, Target, Tx, commit_events, commit_look_up,
    commit_page, distribution, entry, export, local_ids, machine,
    refresh::Claims,
    source::{self, NewSource},
    store_posts,
    timeline::{self, Range, TimelinePost, Viewer},
    viewer::Owner,
};

/// The beginning of the tests' time, in Unix ms.
pub const START_MS: i64 = 1_800_000_000_000;

/// The abilities of a Mastodon server.
pub const ABILITIES: Abilities = Abilities {
    page_limit: 40,
    min_id: true,
};

/// The ID scheme of [`settings`].
pub const SCHEME: IdScheme = IdScheme::untimed(IdOrder::Numeric);

/// A range of the whole timeline.
pub const EVERYTHING: Range = Range {
    since: None,
    min: None,
    max: None,
    limit: u16::MAX,
};

/// Opens a store on a test's own database.
///
/// # Panics
/// If the store does not open.
pub fn open(fresh: &Fresh) -> Store {
    let opened = Store::open(fresh.target.clone());
    let store = opened.unwrap_or_else(|error| panic!("{} does not open: {error}", fresh.name));
    if is_distributed() && fresh.is_on_shared_server {
        distribution::distribute(&store, SHARDS, |_| ())
            .unwrap_or_else(|error| panic!("{} is not distributed: {error}", fresh.name));
    }
    store
}

/// The URL of a new PostgreSQL database, like [`driftline_db::testing::postgres_database`]. It
/// contains a distributed store if the tests' stores are distributed.
///
/// # Panics
/// If there is no such server. The message has the reason.
pub fn postgres_database() -> String {
    let url = driftline_db::testing::postgres_database();
    if is_distributed() {
        let target = Target::Postgres {
            url: SecretUrl::new(&url),
            schema: None,
        };
        // On a plain thread, because the caller's thread may already drive a runtime.
        let distributed = thread::spawn(move || {
            let store = Store::open(target).expect("a store");
            distribution::distribute(&store, SHARDS, |_| ()).expect("a distributed store");
            store.close_blocking();
        });
        distributed.join().expect("no panic");
    }
    url
}

/// More than there are workers, but few, because each costs time.
const SHARDS: u32 = 4;

/// Runs a test on a fresh store of each kind.
///
/// # Panics
/// If the test panics. The message names the store.
pub fn on_both(test: impl Fn(&Store)) {
    for fresh in databases() {
        let store = open(&fresh);
        run(&store, fresh.name, &test);
    }
    // If the databases are distributed, this one is, too.
    if !is_distributed() {
        let store = open_reserving(&Fresh::postgres());
        run(&store, "PostgreSQL with reservations", &test);
    }
}

fn run(store: &Store, name: &str, test: impl Fn(&Store)) {
    let passed = catch_unwind(AssertUnwindSafe(|| test(store)));
    assert!(passed.is_ok(), "on {name}");
    store.close_blocking();
}

/// Opens a store on one PostgreSQL as a distributed one: its writes reserve their IDs, and its
/// readers apply the bound.
///
/// # Panics
/// If it cannot be opened. The message has the reason.
pub fn open_reserving(fresh: &Fresh) -> Store {
    let store = open(fresh);
    distribution::say_distributed(&store).expect("a store that counts as distributed");
    store
}

/// The settings of a source whose IDs contain no time.
pub fn settings() -> Settings {
    Settings {
        id_layout: Some("none".to_owned()),
        ..Settings::default()
    }
}

/// A public timeline of a Mastodon server, with [`settings`].
pub fn new_source(name: &str) -> NewSource {
    NewSource {
        name: name.to_owned(),
        owner: Owner::Operator,
        audience: Audience::Public,
        origin: "https://sim.example".to_owned(),
        api: Api::Mastodon,
        timeline: "public".to_owned(),
        kind: SourceKind::Polled,
        upstream: "https://sim.example".to_owned(),
        settings: settings(),
        token: None,
        allow_private: false,
    }
}

/// A public post by `ann` with this text, without hashes. A [`Feed`] adds them.
pub fn post(id: impl Display, text: &str) -> Post {
    let id = format!("{id}");
    let raw = format!(r#"{{"id":"{id}","content":"{text}","favourites_count":0}}"#);
    Post {
        uri: Some(format!("https://sim.example/statuses/{id}")),
        created_at_ms: Some(START_MS - 1000),
        author: Author {
            id: "7".into(),
            acct: "ann".to_owned(),
            display_name: "Ann".to_owned(),
            url: None,
            uri: None,
            raw: r#"{"id":"7"}"#.to_owned(),
        },
        ..Post::bare(UpstreamId::new(id), "7", raw)
    }
}

/// Posts with these IDs, in their order.
pub fn posts(ids: impl IntoIterator<Item = u64>) -> Vec<Post> {
    ids.into_iter().map(|id| post(id, "text")).collect()
}

/// A request for the newest page, without bounds.
pub fn newest_page() -> Request {
    match Machine::default().next(&Settings::default(), ABILITIES, START_MS, false) {
        Step::Fetch(fetch) => fetch.request(None, None),
        step => unreachable!("a new machine polls: {step:?}"),
    }
}

/// A page that lists posts by their own IDs, in the given order.
pub fn page(posts: Vec<Post>, now_ms: i64) -> Page {
    let listed = posts.into_iter().map(|post| Listed {
        position: post.id.clone(),
        post,
    });
    Page {
        listed: listed.collect(),
        headers: headers(now_ms),
        ..Page::default()
    }
}

/// The headers of an answer that took no time.
pub fn headers(now_ms: i64) -> AnswerHeaders {
    AnswerHeaders {
        sent_at_ms: now_ms,
        received_at_ms: now_ms,
        ..AnswerHeaders::default()
    }
}

/// A function that gives a post the hashes and the text that follow from its fields and its JSON,
/// like the crate that reads the JSON.
pub type ReadPost = fn(&mut Post);

/// A source and the state of the worker that reads it.
#[derive(Debug)]
pub struct Feed {
    /// The store of the source.
    pub store: Store,
    /// The source.
    pub source: SourceKey,
    /// The function that completes each committed post.
    pub read_post: ReadPost,
    /// The machine of the last commit.
    pub machine: Machine,
    /// The source's settings.
    pub settings: Settings,
    /// The fence of the lease under which it commits; `None` requires no lease.
    pub fence: Option<i64>,
    /// The proof of a look-up's [`LookUp::Gone`].
    pub proof: GoneProof,
    /// True if look-ups keep the text of deleted posts.
    pub keep_deleted: bool,
    /// The claims of the process.
    pub claims: Claims,
    /// The time of the next commit, in Unix ms.
    pub now_ms: i64,
}

impl Feed {
    /// A source that is read for the first time: its first page is history.
    pub fn new(store: &Store, name: &str, read_post: ReadPost) -> Feed {
        let new = new_source(name);
        let source = store
            .write_blocking(local_ids::root(), move |tx| source::add(tx, &new, START_MS))
            .expect("a write")
            .expect("a source");
        Feed::of(store, source, read_post)
    }

    /// A source that already exists.
    pub fn of(store: &Store, source: SourceKey, read_post: ReadPost) -> Feed {
        let machine = store.read_blocking(move |tx| machine::load(tx, source));
        Feed {
            store: store.clone(),
            source,
            read_post,
            machine: machine.expect("a machine"),
            settings: settings(),
            fence: None,
            proof: GoneProof::Deleted,
            keep_deleted: true,
            claims: Claims::default(),
            now_ms: START_MS,
        }
    }

    /// A source that began empty, and so is readable.
    pub fn readable(store: &Store, name: &str, read_post: ReadPost) -> Feed {
        let mut feed = Feed::new(store, name, read_post);
        feed.poll(Vec::new());
        feed
    }

    /// Commits a newest page that lists these posts, the newest first.
    pub fn poll(&mut self, posts: Vec<Post>) -> CommitSummary {
        self.try_poll(posts).expect("a commit")
    }

    /// [`Feed::poll`] with its result.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database fails.
    pub fn try_poll(&mut self, posts: Vec<Post>) -> Result<CommitSummary, StoreError> {
        let page = page(posts, self.now_ms);
        self.commit(&newest_page(), page)
    }

    /// Commits an answer to a request.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database fails.
    pub fn commit(
        &mut self,
        request: &Request,
        mut page: Page,
    ) -> Result<CommitSummary, StoreError> {
        let known = self.machine.scheme().copied();
        let reading = Reading::check(&mut page, known, &self.settings);
        let job = self.page_job(request, reading, page);
        let root = source::root(self.source);
        let (machine, summary) = self.store.write_blocking(root, job)?;
        self.machine = machine;
        Ok(summary)
    }

    /// The transaction that commits a page, with the resulting machine.
    pub fn page_job(
        &self,
        request: &Request,
        reading: Reading,
        mut page: Page,
    ) -> impl FnMut(&mut Tx<'_>) -> Result<(Machine, CommitSummary), StoreError> + Send + 'static
    {
        let (source, fence, now_ms) = (self.source, self.fence, self.now_ms);
        let (machine, settings) = (self.machine.clone(), self.settings.clone());
        let (request, claims) = (request.clone(), self.claims.clone());
        for listed in &mut page.listed {
            (self.read_post)(&mut listed.post);
        }
        move |tx| {
            let commit = CommitPage {
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
            };
            commit_page(tx, &commit)
        }
    }

    /// Commits the look-up of a post.
    pub fn look_up(&mut self, id: &str, mut look_up: LookUp) -> CommitSummary {
        if let LookUp::Found(post) = &mut look_up {
            (self.read_post)(post);
        }
        let (source, fence, now_ms) = (self.source, self.fence, self.now_ms);
        let (machine, id) = (self.machine.clone(), UpstreamId::from(id));
        let (keep_deleted, proof) = (self.keep_deleted, self.proof);
        let (machine, summary) = self.write(move |tx| {
            let commit = CommitLookUp {
                source,
                fence,
                machine: &machine,
                id: &id,
                look_up: &look_up,
                proof,
                headers: &headers(now_ms),
                policy: &Policy::default(),
                keep_deleted,
                now_ms,
            };
            commit_look_up(tx, &commit)
        });
        self.machine = machine;
        summary
    }

    /// Advances the time until the machine requests the missing part of its history.
    pub fn fill(&mut self) -> Request {
        let request = self.next_request(false);
        assert!(matches!(request.purpose, RequestPurpose::Fill { .. }));
        request
    }

    /// [`Feed::fill`] that answers other due requests with an empty page.
    pub fn fill_whatever_is_due(&mut self) -> Request {
        let is_fill = |purpose: &_| matches!(purpose, RequestPurpose::Fill { .. });
        self.request_of(is_fill, |_| Vec::new())
    }

    /// Advances the time until the machine requests a second look. The upstream has no posts in its
    /// gaps.
    pub fn second_look(&mut self) -> Request {
        let is_look = |purpose: &_| matches!(purpose, RequestPurpose::Look { .. });
        // No post is below the post 1, which the page above it lists.
        self.request_of(is_look, |request| {
            let below = request.page.max_id.as_ref().map(|id| id.as_str().parse());
            if matches!(below, Some(Ok(2_u64..))) {
                posts([1])
            } else {
                Vec::new()
            }
        })
    }

    /// The next request for a purpose. Earlier requests are answered.
    fn request_of(
        &mut self,
        is_it: fn(&RequestPurpose) -> bool,
        answer: fn(&Request) -> Vec<Post>,
    ) -> Request {
        loop {
            let request = self.next_request(true);
            if is_it(&request.purpose) {
                return request;
            }
            let page = page(answer(&request), self.now_ms);
            self.commit(&request, page).expect("a commit");
        }
    }

    /// The next due request except polls. With `settling`, looks come early.
    fn next_request(&mut self, settling: bool) -> Request {
        for _ in 0..100 {
            self.now_ms += 1000;
            let step = self
                .machine
                .next(&self.settings, ABILITIES, self.now_ms, settling);
            self.machine.sent(&step, self.now_ms);
            let fetch = match step {
                Step::Fetch(fetch) if fetch.purpose != RequestPurpose::Poll => fetch,
                Step::Fetch(_) | Step::Wait { .. } => continue,
                Step::LookUp(id) => {
                    let failure = Failure::new(FailureKind::TimedOut, "no answer");
                    let (settings, now_ms) = (&self.settings, self.now_ms);
                    self.machine
                        .look_up_failed(settings, &id, &failure, now_ms, 0);
                    continue;
                }
            };
            let anchor = fetch.anchor_query().cloned().and_then(|query| {
                let source = self.source;
                self.read(move |tx| entry::anchor(tx, source, &query))
            });
            return fetch.request(self.machine.scheme(), anchor.as_ref());
        }
        panic!("nothing to ask for")
    }

    /// Reads from the store.
    pub fn read<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> T {
        self.store.read_blocking(job).expect("a read")
    }

    /// Writes below the source's root.
    pub fn write<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> T {
        self.store
            .write_blocking(source::root(self.source), job)
            .expect("a write")
    }

    /// The source's timeline as everyone may read it, the newest first.
    pub fn timeline(&self) -> Vec<TimelinePost> {
        self.timeline_for(Viewer::Anonymous)
    }

    /// The source's timeline as `viewer` may read it, the newest first.
    pub fn timeline_for(&self, viewer: Viewer) -> Vec<TimelinePost> {
        let source = self.source;
        self.read(move |tx| timeline::source(tx, source, &EVERYTHING, viewer))
    }

    /// The public timeline, the newest first.
    pub fn public(&self) -> Vec<TimelinePost> {
        self.read(|tx| timeline::public(tx, &EVERYTHING, Viewer::Anonymous))
    }

    /// Every entry, in the order of arrival.
    pub fn export(&self) -> Vec<export::ExportRow> {
        let source = self.source;
        self.read(move |tx| export::rows(tx, source, 0, u32::MAX))
    }

    /// The USNs of the entries in order of arrival: (first, last).
    pub fn usns(&self) -> Vec<(i64, i64)> {
        self.export()
            .iter()
            .map(|row| (row.first_usn, row.usn))
            .collect()
    }

    /// Commits events of the stream that arrive now.
    pub fn stream(&self, events: Vec<Event>) -> CommitSummary {
        self.try_stream(events).expect("a commit")
    }

    /// [`Feed::stream`] with its result.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database fails.
    pub fn try_stream(&self, events: Vec<Event>) -> Result<CommitSummary, StoreError> {
        let (source, fence, now_ms) = (self.source, self.fence, self.now_ms);
        let arrived = |mut event| {
            if let Event::Posted(post) | Event::Edited(post) = &mut event {
                (self.read_post)(post);
            }
            ReceivedEvent {
                event,
                received_at_ms: now_ms,
            }
        };
        let events: Vec<ReceivedEvent> = events.into_iter().map(arrived).collect();
        self.store.write_blocking(source::root(source), move |tx| {
            let commit = CommitEvents {
                source,
                fence,
                scheme: &SCHEME,
                events: &events,
                policy: &Policy::default(),
                keep_deleted: true,
                now_ms,
            };
            commit_events(tx, &commit)
        })
    }

    /// Stores the posts of pages before they are committed. Each page lists its newest post first.
    pub fn store_posts(&self, pages: Vec<Vec<Post>>) -> CommitSummary {
        let (source, fence, now_ms) = (self.source, self.fence, self.now_ms);
        let held = |posts: Vec<Post>| {
            let mut page = page(posts, now_ms);
            for listed in &mut page.listed {
                (self.read_post)(&mut listed.post);
            }
            let reading = Reading::check(&mut page, Some(SCHEME), &self.settings);
            Arc::new(PageCommit {
                request: newest_page(),
                reading,
                page,
            })
        };
        let pages: Vec<Arc<PageCommit>> = pages.into_iter().map(held).collect();
        self.write(move |tx| {
            let store = StorePosts {
                source,
                fence,
                scheme: &SCHEME,
                pages: &pages,
                policy: &Policy::default(),
                now_ms,
            };
            store_posts(tx, &store)
        })
    }

    /// The newest post that a page has shown.
    pub fn anchor(&self) -> Option<String> {
        let source = self.source;
        let query = AnchorQuery::Newest {
            at_most: Key::highest(),
            skip: 0,
        };
        self.read(move |tx| entry::anchor(tx, source, &query))
            .map(|anchor| SCHEME.id(&anchor.key).to_string())
    }
}

/// The posts' upstream IDs.
pub fn names(posts: &[TimelinePost]) -> Vec<&str> {
    posts.iter().map(|post| post.upstream_id.as_str()).collect()
}
