//! Threads that are fetched from their servers, for those who look at them.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse as _, Response},
    routing::get,
};
use driftline_api::App;
use driftline_core::names::audience::Audience;
use driftline_mirror::{Policies, SourceHealth, Threads, UpstreamAccess};
use driftline_net::testing::http_client;
use driftline_runtime::StoreDisk;
use driftline_server::{LocalMirror, admin::Host, testing::wait};
use driftline_store::{
    LocalAccountId, Owner, SourceKey, Tx, local_ids,
    source::{self, NewSource, TokenLocation},
    testing,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinHandle};

use crate::{
    people::{Person, people_world},
    threads::{context_of, reply, shape},
    world::{Feed, START_MS, World, id, parsed, status, with_token},
};

/// What a server answers of a thread to whom: by the token and the post.
type Answers = HashMap<Asked, Value>;

/// The token of a request, and the post whose thread it asked for.
type Asked = (Option<String>, u64);

/// The token of a request for anything else, and its path and query.
pub(crate) type AskedPath = (Option<String>, String);

/// A server whose answers wait for the test.
#[derive(Clone)]
pub(crate) struct Upstream {
    answers: Arc<Mutex<Answers>>,
    pub(crate) pages: Arc<Mutex<HashMap<AskedPath, Value>>>,
    pub(crate) fails_with: Arc<Mutex<Option<StatusCode>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    pub(crate) asked_paths: Arc<Mutex<Vec<AskedPath>>>,
    pub(crate) may_answer: Arc<Semaphore>,
}

impl Upstream {
    fn new(answers: usize) -> Upstream {
        Upstream {
            answers: Arc::default(),
            pages: Arc::default(),
            fails_with: Arc::default(),
            asked: Arc::default(),
            asked_paths: Arc::default(),
            may_answer: Arc::new(Semaphore::new(answers)),
        }
    }

    /// Serves it; its origin.
    async fn serve(&self) -> (String, JoinHandle<()>) {
        let routes = Router::new()
            .route("/api/v1/statuses/{id}/context", get(context))
            .fallback(page)
            .with_state(self.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        (origin, serving)
    }

    async fn answer(&self, answer: impl FnOnce() -> Option<Value>) -> Response {
        self.may_answer.acquire().await.unwrap().forget();
        if let Some(failure) = *self.fails_with.lock() {
            return failure.into_response();
        }
        match answer() {
            Some(answer) => answer.to_string().into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        }
    }
}

fn token_of(headers: &HeaderMap) -> Option<String> {
    let token = headers.get("authorization")?;
    Some(token.to_str().unwrap().to_owned())
}

async fn page(State(upstream): State<Upstream>, uri: Uri, headers: HeaderMap) -> Response {
    let asked = (token_of(&headers), uri.to_string());
    upstream.asked_paths.lock().push(asked.clone());
    let answer = || upstream.pages.lock().get(&asked).cloned();
    upstream.answer(answer).await
}

async fn context(
    State(upstream): State<Upstream>,
    Path(id): Path<u64>,
    headers: HeaderMap,
) -> Response {
    let asked = (token_of(&headers), id);
    upstream.asked.lock().push(asked.clone());
    let answer = || upstream.answers.lock().get(&asked).cloned();
    upstream.answer(answer).await
}

/// A post as its server answers it; of a reply with what it replies to.
pub(crate) fn json_of(n: u64, to: Option<u64>) -> Value {
    let mut json: Value = serde_json::from_str(&status(n).to_json()).unwrap();
    json["in_reply_to_id"] = json!(to.map(|to| to.to_string()));
    json
}

pub(crate) fn private(mut json: Value) -> Value {
    json["visibility"] = json!("private");
    json
}

pub(crate) fn thread(ancestors: &[Value], descendants: &[Value]) -> Value {
    json!({ "ancestors": ancestors, "descendants": descendants })
}

/// A server of people that reads one upstream.
pub(crate) struct Scene {
    world: World,
    pub(crate) upstream: Upstream,
    pub(crate) origin: String,
    serving: JoinHandle<()>,
    folder: tempfile::TempDir,
    /// Somebody without sources.
    reader: Person,
}

impl Deref for Scene {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Scene {
    /// Requests without a token are strangers'.
    pub(crate) async fn new(answers: usize) -> Scene {
        Scene::reaching(answers, true).await
    }

    /// Where accounts' sources may be in private networks or not.
    pub(crate) async fn reaching(answers: usize, accounts_reach_private: bool) -> Scene {
        let upstream = Upstream::new(answers);
        let (origin, serving) = upstream.serve().await;
        let change = |app: &mut App| {
            let access = UpstreamAccess {
                accounts_reach_private,
                ..UpstreamAccess::new(&app.store, http_client())
            };
            with_token(app);
            app.mirror = Arc::new(LocalMirror {
                store: app.store.clone(),
                host: Host::of(&app.store),
                policies: Policies::default(),
                sources: SourceHealth::default(),
                store_disk: StoreDisk::default(),
                threads: Some(Threads::new(app.store.clone(), access)),
            });
        };
        let (world, _) = people_world(change).await;
        Scene {
            reader: Person::new(&world, "reader").await,
            world,
            upstream,
            origin,
            serving,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The same with another server, next to the first.
    pub(crate) async fn moved(self) -> Scene {
        let upstream = Upstream::new(MANY);
        let (origin, serving) = upstream.serve().await;
        Scene {
            upstream,
            origin,
            serving,
            ..self
        }
    }

    pub(crate) async fn source(
        &self,
        owner: Owner,
        audience: Audience,
        token: Option<&str>,
    ) -> SourceKey {
        let token = token.map(|token| {
            let path = self.folder.path().join(token);
            std::fs::write(&path, token).unwrap();
            TokenLocation::File(path.to_str().unwrap().to_owned())
        });
        let name = match owner {
            Owner::Operator => "public".to_owned(),
            Owner::Account(account) => format!("account{account}/{audience:?}"),
        };
        let new = NewSource {
            owner,
            audience,
            upstream: self.origin.clone(),
            origin: self.origin.clone(),
            token,
            allow_private: true,
            ..testing::new_source(&name)
        };
        let add = move |tx: &mut Tx<'_>| source::add(tx, &new, START_MS);
        self.store
            .write(local_ids::root(), add)
            .await
            .unwrap()
            .unwrap()
    }

    /// The operator's public source.
    pub(crate) async fn public(&self) -> Feed {
        let key = self.source(Owner::Operator, Audience::Public, None).await;
        let mut feed = self.feed_of(key);
        feed.poll(&[]).await;
        feed
    }

    pub(crate) async fn home_of(&self, account: LocalAccountId, token: &str) {
        let owner = Owner::Account(account);
        self.source(owner, Audience::Private, Some(token)).await;
    }

    pub(crate) fn answers(&self, token: Option<&str>, n: u64, answer: Value) {
        let token = token.map(|token| format!("Bearer {token}"));
        self.upstream.answers.lock().insert((token, n), answer);
    }

    fn asked(&self) -> Vec<Asked> {
        self.upstream.asked.lock().clone()
    }

    /// The thread of a post, as somebody without sources is shown it.
    pub(crate) async fn shape(&self, local_id: u64) -> (Vec<u64>, Vec<u64>) {
        shape(&self.reader.get(&context_of(local_id)).await)
    }

    /// The same for a stranger.
    async fn shape_to_strangers(&self, local_id: u64) -> (Vec<u64>, Vec<u64>) {
        shape(&self.json(&context_of(local_id)).await)
    }

    pub(crate) async fn close(self) {
        self.serving.abort();
        self.world.close().await;
    }
}

pub(crate) const MANY: usize = 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_whole_and_in_no_timeline() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let mut feed = scene.public().await;
    feed.poll_posts(vec![reply(3, 2)]).await;
    let local_id = scene.local_id(3).await;
    let above = [json_of(1, None), json_of(2, Some(1))];
    let below = [
        json_of(4, Some(3)),
        json_of(5, Some(4)),
        private(json_of(6, Some(3))),
    ];
    scene.answers(None, 3, thread(&above, &below));
    assert_eq!(scene.shape_to_strangers(local_id).await, (vec![], vec![]));
    assert_eq!(scene.asked(), [], "nothing for strangers");
    assert_eq!(scene.shape(local_id).await, (vec![1, 2], vec![4, 5]));
    let shown = scene.shape_to_strangers(local_id).await;
    assert_eq!(shown, (vec![1, 2], vec![4, 5]), "from the store");
    let context = ann.get(&context_of(local_id)).await;
    assert_eq!(shape(&context), (vec![1, 2], vec![4, 5]));
    assert_eq!(scene.asked(), [(None, 3)], "once for all without a token");
    // Each is found by its ID, with the thread as it is stored.
    let first = id(&context["ancestors"][0]);
    assert_eq!(scene.shape(first).await, (vec![], vec![2, 3, 4, 5]));
    assert_eq!(
        context["ancestors"][1]["in_reply_to_id"],
        json!(first.to_string())
    );
    // Nobody's timelines have what was fetched for a thread.
    let public = "/api/v1/timelines/public";
    assert_eq!(scene.page(public).await.len(), 1);
    assert_eq!(ann.page(public).await.len(), 1);
    let author = context["ancestors"][0]["account"]["id"].as_str().unwrap();
    ann.post(&format!("/api/v1/accounts/{author}/follow")).await;
    assert!(ann.page("/api/v1/timelines/home").await.is_empty());
    // A source that has such a post later has it as new.
    feed.poll(&[status(1), status(11)]).await;
    assert_eq!(scene.page(public).await.len(), 3);
    assert_eq!(ann.page("/api/v1/timelines/home").await.len(), 2);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_token_shows_is_its_owners_alone() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    scene.home_of(ann.id, "ann-token").await;
    let mut feed = scene.public().await;
    feed.poll_posts(vec![reply(2, 1)]).await;
    let local_id = scene.local_id(2).await;
    let all = [json_of(3, Some(2)), private(json_of(4, Some(2)))];
    let above = [private(json_of(1, None))];
    scene.answers(Some("ann-token"), 2, thread(&above, &all));
    scene.answers(None, 2, thread(&[], &[json_of(3, Some(2))]));
    let context = ann.get(&context_of(local_id)).await;
    assert_eq!(shape(&context), (vec![1], vec![3, 4]));
    let hidden = [id(&context["ancestors"][0]), id(&context["descendants"][1])];
    let publics = [local_id, id(&context["descendants"][0])];
    for who in [Some(&bob), None] {
        let path = context_of(local_id);
        let context = match who {
            None => scene.json(&path).await,
            Some(person) => person.get(&path).await,
        };
        assert_eq!(shape(&context), (vec![], vec![3]));
        // By her IDs nobody finds anything that is hers.
        for id in hidden.into_iter().chain([publics[1]]) {
            for path in [format!("/api/v1/statuses/{id}"), context_of(id)] {
                let answer = match who {
                    None => scene.answer(&path).await,
                    Some(person) => scene.get_with(&path, &person.token).await,
                };
                assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
            }
        }
    }
    let ann_token = Some("Bearer ann-token".to_owned());
    assert_eq!(scene.asked(), [(ann_token, 2), (None, 2)]);
    let context = ann.get(&context_of(local_id)).await;
    assert_eq!(shape(&context), (vec![1], vec![3, 4]), "as before");
    scene.close().await;
}

/// Its server could show posts of others in threads.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_of_a_source_that_an_account_published_is_the_accounts_alone() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let owner = Owner::Account(ann.id);
    let key = scene.source(owner, Audience::Public, None).await;
    let mut feed = scene.feed_of(key);
    feed.poll(&[]).await;
    feed.poll_posts(vec![reply(3, 2)]).await;
    let page = ann.page("/api/v1/timelines/public").await;
    scene.answers(None, 3, thread(&[json_of(2, None)], &[json_of(4, Some(3))]));
    let context = ann.get(&context_of(id(&page[0]))).await;
    assert_eq!(shape(&context), (vec![2], vec![4]));
    for fetched in [&context["ancestors"][0], &context["descendants"][0]] {
        let path = format!("/api/v1/statuses/{}", id(fetched));
        assert_eq!(id(&ann.get(&path).await), id(fetched));
        let to_others = scene.get_with(&path, &scene.reader.token).await;
        assert_eq!(to_others.status(), StatusCode::NOT_FOUND);
        let to_strangers = scene.answer(&path).await;
        assert_eq!(to_strangers.status(), StatusCode::NOT_FOUND);
    }
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_is_not_waited_for_and_its_answer_is_stored() {
    let scene = Scene::new(0).await;
    let mut feed = scene.public().await;
    feed.poll(&[status(1)]).await;
    let local_id = scene.local_id(1).await;
    scene.answers(None, 1, thread(&[], &[json_of(2, Some(1))]));
    let began = Instant::now();
    assert_eq!(scene.shape(local_id).await, (vec![], vec![]));
    assert!(
        began.elapsed() >= Duration::from_secs(2),
        "it is waited for"
    );
    scene.upstream.may_answer.add_permits(1);
    wait("the answer", async || {
        scene.shape(local_id).await == (vec![], vec![2])
    })
    .await;
    assert_eq!(scene.asked().len(), 1);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_ask_at_once_ask_the_server_once() {
    let scene = Scene::new(0).await;
    let mut feed = scene.public().await;
    feed.poll(&[status(1)]).await;
    let local_id = scene.local_id(1).await;
    scene.answers(None, 1, thread(&[], &[json_of(2, Some(1))]));
    let url = format!("{}{}", scene.base, context_of(local_id));
    let waiting: Vec<_> = (0..10)
        .map(|_| {
            let request = scene.client.get(&url).bearer_auth(&scene.reader.token);
            tokio::spawn(async move { parsed(request.send().await.unwrap()).await })
        })
        .collect();
    scene.upstream.may_answer.add_permits(MANY);
    for answer in waiting {
        assert_eq!(shape(&answer.await.unwrap()), (vec![], vec![2]));
    }
    assert_eq!(scene.asked().len(), 1);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_or_throttles_costs_nothing_but_what_it_has() {
    let scene = Scene::new(MANY).await;
    let mut feed = scene.public().await;
    feed.poll_posts(vec![status(1).to_post(), reply(2, 1), status(3).to_post()])
        .await;
    let (first, third) = (scene.local_id(1).await, scene.local_id(3).await);
    for failure in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::UNAUTHORIZED] {
        *scene.upstream.fails_with.lock() = Some(failure);
        assert_eq!(scene.shape(first).await, (vec![], vec![2]));
    }
    assert_eq!(scene.asked().len(), 1, "it is not asked again at once");
    *scene.upstream.fails_with.lock() = Some(StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(scene.shape(third).await, (vec![], vec![]));
    // From now on the quota is used up, whatever the server would answer.
    let second = scene.local_id(2).await;
    assert_eq!(scene.shape(second).await, (vec![1], vec![]));
    assert_eq!(scene.asked(), [(None, 1), (None, 3)]);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_thread_is_bounded() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let mut feed = scene.public().await;
    feed.poll_posts(vec![status(1).to_post()]).await;
    let local_id = scene.local_id(1).await;
    let mut below: Vec<Value> = Vec::new();
    // A chain, one that turns back, and 300 posts of which nobody asked.
    below.extend((2..=200).map(|n| json_of(n, Some(n - 1))));
    below.extend([json_of(300, Some(301)), json_of(301, Some(300))]);
    below.push(json_of(1, Some(200)));
    below.push(json!({ "id": null }));
    below.extend((1_000..1_300).map(|n| json_of(n, Some(n + 5_000))));
    below.extend((400..500).map(|n| json_of(n, Some(1))));
    let above = [json_of(5_001, Some(1)), json_of(5_000, None)];
    scene.answers(None, 1, thread(&above, &below));
    let (mut above, mut below) = (Vec::new(), Vec::new());
    // On a busy machine the first answers come before all is stored.
    for _ in 0..MAX_LOOKS {
        (above, below) = shape(&ann.get(&context_of(local_id)).await);
        if below.len() >= 199 + 100 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!((above.len(), below.len()), (0, 199 + 100));
    assert!(below.iter().all(|n| (2..500).contains(n)), "{below:?}");
    // A stranger is shown what Mastodon shows strangers.
    let (above, below) = scene.shape_to_strangers(local_id).await;
    assert_eq!((above.len(), below.len()), (0, 60));
    scene.close().await;
}

/// The number of looks at a thread until all of it is stored.
const MAX_LOOKS: usize = 200;
