//! A server over a store, and feeds that fill the store as pollers do.

use driftline_api::{
    App,
    auth::Authorization,
    router,
    transport::{Limits, serve},
};
use std::sync::Arc;

use driftline_core::{
    answer::{Abilities, AnswerHeaders, Listed, LookUp, Page},
    post::{Post, Visibility},
    refresh::Policy,
    timeline::{Machine, Reading, Request, Settings, Step},
    upstream_id::UpstreamId,
};
use driftline_db::testing::Fresh;
use driftline_mirror::{Policies, SourceHealth};
use driftline_server::{LocalMirror, api_description};
use driftline_sim::{SimAuthor, Status};
use driftline_store::{
    CommitLookUp, CommitPage, SourceId, Store, Tx, clock, commit_look_up, commit_page, machine,
    source::{self, NewSource},
};
use reqwest::{Client, Response, StatusCode, header::LINK};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

pub(crate) const START_MS: i64 = 1_800_000_000_000;

const ABILITIES: Abilities = Abilities {
    page_limit: 40,
    min_id: true,
};

/// A running server. It stops when this value goes.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) base: String,
    pub(crate) client: Client,
    pub(crate) ready: watch::Sender<bool>,
    _stop: oneshot::Sender<()>,
    _fresh: Fresh,
}

/// The mirror of a process that reads no sources.
pub(crate) fn mirror(store: &Store, sources: SourceHealth) -> Arc<LocalMirror> {
    Arc::new(LocalMirror {
        store: store.clone(),
        policies: Policies::default(),
        sources,
    })
}

impl World {
    pub(crate) async fn new() -> World {
        World::on(Fresh::sqlite(), |_| {}).await
    }

    /// A server whose `App` is changed before it starts.
    pub(crate) async fn on(fresh: Fresh, change: impl FnOnce(&mut App)) -> World {
        let target = fresh.target.clone();
        let store = tokio::task::spawn_blocking(move || Store::open(target));
        let store = store.await.unwrap().unwrap();
        let (ready, is_ready) = watch::channel(true);
        let mut app = App {
            store: store.clone(),
            mirror: mirror(&store, SourceHealth::default()),
            description: api_description(),
            metrics: None,
            public_base: None,
            authorization: Authorization::ThisMachine,
            ready: is_ready,
        };
        change(&mut app);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(serve(
            listener,
            router(app),
            Limits::default(),
            async move {
                let _ = stopped.await;
            },
        ));
        World {
            store,
            base,
            client: client(),
            ready,
            _stop: stop,
            _fresh: fresh,
        }
    }

    /// A source that began empty, and so is readable.
    pub(crate) async fn feed(&self, name: &str) -> Feed {
        let mut feed = self.new_feed(name).await;
        feed.poll(&[]).await;
        feed
    }

    /// A source that is being read for the first time.
    pub(crate) async fn new_feed(&self, name: &str) -> Feed {
        let new = NewSource {
            name: name.to_owned(),
            origin: "https://sim.example".to_owned(),
            api: driftline_core::api::Api::Mastodon,
            timeline: "public".to_owned(),
            upstream: "https://sim.example".to_owned(),
            settings: settings(),
            token: None,
        };
        let add = move |tx: &mut Tx<'_>| source::add(tx, &new, START_MS);
        let source = self.store.write(clock::root(), add).await.unwrap().unwrap();
        let load = move |tx: &mut Tx<'_>| machine::load(tx, source);
        Feed {
            store: self.store.clone(),
            source,
            machine: self.store.read(load).await.unwrap(),
            now_ms: START_MS,
        }
    }

    pub(crate) async fn answer(&self, path: &str) -> Response {
        let url = format!("{}{path}", self.base);
        self.client.get(url).send().await.unwrap()
    }

    /// The JSON of an answer that has to be there.
    pub(crate) async fn json(&self, path: &str) -> Value {
        let answer = self.answer(path).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let kind = answer.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with("application/json"), "{kind}");
        parsed(answer).await
    }

    pub(crate) async fn page(&self, path: &str) -> Vec<Value> {
        match self.json(path).await {
            Value::Array(items) => items,
            other => panic!("{other}"),
        }
    }

    /// Follows `Link`s of a relation to the end; every page that was not empty.
    pub(crate) async fn walk(&self, path: &str, relation: &str) -> Vec<Vec<Value>> {
        let mut pages = Vec::new();
        let mut next = Some(format!("{}{path}", self.base));
        while let Some(url) = next {
            let answer = self.client.get(url).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
            next = link(&answer, relation);
            match parsed(answer).await {
                Value::Array(items) if items.is_empty() => assert_eq!(next, None),
                Value::Array(items) => pages.push(items),
                other => panic!("{other}"),
            }
        }
        pages
    }

    pub(crate) async fn close(&self) {
        self.store.close().await;
    }
}

/// What a poller does for one source.
pub(crate) struct Feed {
    store: Store,
    pub(crate) source: SourceId,
    machine: Machine,
    pub(crate) now_ms: i64,
}

impl Feed {
    pub(crate) fn path(&self) -> String {
        format!("/api/v1/timelines/list/{}", self.source)
    }

    /// Takes in a newest page of these statuses, in whatever order they are given.
    pub(crate) async fn poll(&mut self, statuses: &[Status]) {
        self.poll_posts(statuses.iter().map(Status::to_post).collect())
            .await;
    }

    pub(crate) async fn poll_posts(&mut self, mut posts: Vec<Post>) {
        self.now_ms += 1000;
        posts.sort_by_key(|post| std::cmp::Reverse(post.id.as_str().parse::<u64>().unwrap()));
        let listed = posts.into_iter().map(|post| Listed {
            position: post.id.clone(),
            post: Post {
                hashes: driftline_mastodon::post_hashes(&post, &post.raw),
                ..post
            },
        });
        let page = Page {
            listed: listed.collect(),
            headers: self.headers(),
            ..Page::default()
        };
        let (request, settings) = (newest_page(), settings());
        let scheme = self.machine.scheme().copied();
        let reading = Reading::check(&page, &request, scheme, &settings).unwrap();
        let (source, now_ms, machine) = (self.source, self.now_ms, self.machine.clone());
        let commit = move |tx: &mut Tx<'_>| {
            let commit = CommitPage {
                source,
                fence: None,
                machine: &machine,
                settings: &settings,
                abilities: ABILITIES,
                request: &request,
                reading: &reading,
                page: &page,
                policy: &Policy::default(),
                claims: &driftline_store::refresh::Claims::default(),
                now_ms,
            };
            commit_page(tx, &commit)
        };
        let committed = self.store.write(source::root(source), commit).await;
        self.machine = committed.unwrap().0;
    }

    /// Takes in the word that a post is gone.
    pub(crate) async fn delete(&mut self, id: u64) {
        self.now_ms += 1000;
        let (source, now_ms, machine) = (self.source, self.now_ms, self.machine.clone());
        let (id, headers) = (UpstreamId::new(id.to_string()), self.headers());
        let commit = move |tx: &mut Tx<'_>| {
            let commit = CommitLookUp {
                source,
                fence: None,
                machine: &machine,
                id: &id,
                look_up: &LookUp::Gone,
                headers: &headers,
                policy: &Policy::default(),
                keep_deleted: true,
                now_ms,
            };
            commit_look_up(tx, &commit)
        };
        let committed = self.store.write(source::root(source), commit).await;
        self.machine = committed.unwrap().0;
    }

    fn headers(&self) -> AnswerHeaders {
        AnswerHeaders {
            sent_at_ms: self.now_ms,
            received_at_ms: self.now_ms,
            ..AnswerHeaders::default()
        }
    }
}

/// A public post of an account of the upstream's own.
pub(crate) fn status(id: u64) -> Status {
    Status {
        id: UpstreamId::new(id.to_string()),
        created_at_ms: START_MS - 60_000,
        edited_at_ms: None,
        visibility: Visibility::Public,
        content: format!("<p>Post {id}</p>"),
        author: author(id % 5),
        replies: 1,
        boosts: 2,
        favourites: 3,
        boost_of: None,
    }
}

pub(crate) fn author(id: u64) -> SimAuthor {
    SimAuthor {
        id: 900 + id,
        name: format!("drifter{id}"),
        host: (id % 2 == 1).then(|| "far.example".to_owned()),
    }
}

/// A post with JSON of its own making.
pub(crate) fn post_of(id: u64, json: &Value) -> Post {
    Post {
        raw: json.to_string(),
        ..status(id).to_post()
    }
}

/// The page that a relation of the `Link` header names.
pub(crate) fn link(answer: &Response, relation: &str) -> Option<String> {
    let header = answer.headers().get(LINK)?.to_str().unwrap();
    let wanted = format!("rel=\"{relation}\"");
    header.split(", ").find_map(|link| {
        let (address, rel) = link.split_once("; ").unwrap();
        let address = address.strip_prefix('<')?.strip_suffix('>')?;
        (rel == wanted).then(|| address.to_owned())
    })
}

pub(crate) fn id(status: &Value) -> u64 {
    status["id"].as_str().unwrap().parse().unwrap()
}

pub(crate) fn uri(status: &Value) -> &str {
    status["uri"].as_str().unwrap()
}

pub(crate) async fn parsed(answer: Response) -> Value {
    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
}

pub(crate) fn client() -> Client {
    // Another test of the process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

fn settings() -> Settings {
    Settings {
        id_layout: Some("none".to_owned()),
        ..Settings::default()
    }
}

fn newest_page() -> Request {
    match Machine::default().next(&Settings::default(), ABILITIES, START_MS, false) {
        Step::Fetch(fetch) => fetch.request(None, None),
        step => panic!("{step:?}"),
    }
}
