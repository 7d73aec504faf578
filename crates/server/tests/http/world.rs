//! A server over a store, and feeds that fill the store as pollers do.

use std::ops::{Deref, DerefMut};

use driftline_api::{
    App,
    auth::{Authorization, OperatorToken},
};
use driftline_core::{
    answer::LookUp,
    names::audience::Audience,
    post::{Post, Visibility},
    upstream_id::UpstreamId,
};
use driftline_db::testing::Fresh;
use driftline_mastodon::{post_hashes, text_of_json};
use driftline_mirror::SourceHealth;
use driftline_server::testing::{OPERATOR_TOKEN, Served, app};
use driftline_sim::{SimAuthor, Status};
pub(crate) use driftline_store::testing::START_MS;
use driftline_store::{SourceKey, Store, Tx, source, testing};
use reqwest::{
    Client, Response, StatusCode,
    header::{AUTHORIZATION, HeaderMap, LINK},
};
use serde_json::{Value, value::RawValue};
use tokio::sync::watch;

pub(crate) const TOKEN: &str = "an-operators-token-of-some-length-1";

/// Gives the operator [`TOKEN`], so that whoever has none is a stranger.
pub(crate) fn with_token(app: &mut App) {
    let token = OperatorToken::new(&TOKEN.to_owned().into()).unwrap();
    app.authorization = Authorization::Operator(token);
}

/// A running server. It stops when this value goes. Its client is the operator's, unless the test chose an
/// authorization of its own.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) base: String,
    pub(crate) client: Client,
    pub(crate) is_operators: bool,
    pub(crate) ready: watch::Sender<bool>,
    _served: Served,
    pub(crate) fresh: Fresh,
}

impl World {
    pub(crate) async fn new() -> World {
        World::on(Fresh::sqlite(), |_| {}).await
    }

    /// A server whose `App` is changed before it starts.
    pub(crate) async fn on(fresh: Fresh, change: impl FnOnce(&mut App)) -> World {
        let store = testing::open(&fresh);
        let (ready, is_ready) = watch::channel(true);
        let mut app = App {
            ready: is_ready,
            ..app(&store, SourceHealth::default())
        };
        change(&mut app);
        let is_operators = app.authorization.is_operators(OPERATOR_TOKEN.as_bytes());
        let served = Served::start(app).await;
        World {
            store,
            base: served.url.clone(),
            client: match is_operators {
                true => operators_client(),
                false => client(),
            },
            is_operators,
            ready,
            _served: served,
            fresh,
        }
    }

    /// A server with an operator's token, whose readers here have none.
    pub(crate) async fn of_strangers() -> World {
        World::on(Fresh::sqlite(), with_token).await
    }

    /// A source that began empty, and so is readable.
    pub(crate) async fn feed(&self, name: &str) -> Feed {
        let mut feed = self.new_feed(name).await;
        feed.poll(&[]).await;
        feed
    }

    /// A source that is being read for the first time.
    pub(crate) async fn new_feed(&self, name: &str) -> Feed {
        Feed(testing::Feed::new(&self.store, name, read_post))
    }

    /// A source that is there already.
    pub(crate) fn feed_of(&self, source: SourceKey) -> Feed {
        Feed(testing::Feed::of(&self.store, source, read_post))
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

    /// The ID of the public post with an upstream's number.
    pub(crate) async fn local_id(&self, n: u64) -> u64 {
        let page = self.page("/api/v1/timelines/public?limit=40").await;
        let found = page.iter().find(|status| number(status) == n);
        id(found.expect("a post"))
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

/// Gives a post what reading its JSON would give.
pub(crate) fn read_post(post: &mut Post) {
    post.text = text_of_json(&post.raw);
    post.hashes = post_hashes(post);
}

/// What a poller does for one source.
pub(crate) struct Feed(testing::Feed);

impl Deref for Feed {
    type Target = testing::Feed;

    fn deref(&self) -> &testing::Feed {
        &self.0
    }
}

impl DerefMut for Feed {
    fn deref_mut(&mut self) -> &mut testing::Feed {
        &mut self.0
    }
}

impl Feed {
    pub(crate) fn path(&self) -> String {
        format!("/api/v1/timelines/list/{}", self.source.id)
    }

    /// Takes in a newest page of these statuses, in whatever order they are given.
    pub(crate) async fn poll(&mut self, statuses: &[Status]) {
        self.poll_posts(statuses.iter().map(Status::to_post).collect())
            .await;
    }

    pub(crate) async fn poll_posts(&mut self, mut posts: Vec<Post>) {
        self.now_ms += 1000;
        posts.sort_by_key(|post| std::cmp::Reverse(post.id.as_str().parse::<u64>().unwrap()));
        self.0.poll(posts);
    }

    /// Takes in the word that a post is gone.
    pub(crate) async fn delete(&mut self, id: u64) {
        self.now_ms += 1000;
        self.look_up(&id.to_string(), LookUp::Gone);
    }
}

/// Changes who may read a source.
pub(crate) async fn show(world: &World, feed: &Feed, audience: Audience) {
    let key = feed.source;
    let set = move |tx: &mut Tx<'_>| source::set_audience(tx, key, audience);
    world.store.write(source::root(key), set).await.unwrap();
}

/// A public post of an account of the upstream's own.
pub(crate) fn status(id: u64) -> Status {
    Status {
        id: UpstreamId::new(id.to_string()),
        first_id: None,
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
    let raw = RawValue::from_string(json.to_string()).unwrap();
    // What it names gets local IDs as it is stored.
    let read = driftline_mastodon::read_status(&raw);
    Post {
        references: read.map(|post| post.references).unwrap_or_default(),
        raw: raw.get().to_owned(),
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

/// The upstream's number of a post, which ends its URI.
pub(crate) fn number(status: &Value) -> u64 {
    uri(status).rsplit('/').next().unwrap().parse().unwrap()
}

pub(crate) fn numbers(page: &[Value]) -> Vec<u64> {
    page.iter().map(number).collect()
}

pub(crate) async fn parsed(answer: Response) -> Value {
    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
}

/// A client that sends the operator's token of [`app`] wherever a test sends no other.
pub(crate) fn operators_client() -> Client {
    let token = format!("Bearer {OPERATOR_TOKEN}").parse().unwrap();
    client_with(HeaderMap::from_iter([(AUTHORIZATION, token)]))
}

pub(crate) fn client() -> Client {
    client_with(HeaderMap::new())
}

fn client_with(headers: HeaderMap) -> Client {
    // Another test of the process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().default_headers(headers);
    client.build().unwrap()
}
