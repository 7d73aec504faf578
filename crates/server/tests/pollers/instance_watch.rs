use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse as _, Response},
};
use driftline_core::names::audience::Audience;
use driftline_db::testing::Fresh;
use driftline_mirror::{InstanceWatch, Pollers, UpstreamAccess};
use driftline_net::testing::http_client;
use driftline_runtime::now_ms;
use driftline_server::testing::{start_pollers, wait as until};
use driftline_store::{
    InstanceId, LocalAccountId, Owner, Store, Tx, credential,
    instance_info::{self, StoredInstanceInfo},
    local_ids,
    source::{self, NewSource, TokenLocation},
    testing,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

/// The token of a request for anything but a timeline, and its path with its query.
type Asked = (Option<String>, String);

/// A server whose timelines are empty, and what it was asked besides.
#[derive(Clone, Default)]
struct Upstream {
    /// By path; what is not here is answered with `otherwise`.
    answers: Arc<Mutex<Vec<(&'static str, Value)>>>,
    otherwise: Arc<Mutex<StatusCode>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

async fn answer(State(upstream): State<Upstream>, uri: Uri, headers: HeaderMap) -> Response {
    if uri.path().starts_with("/api/v1/timelines") {
        return "[]".into_response();
    }
    let token = headers.get("authorization");
    let token = token.map(|token| token.to_str().unwrap().to_owned());
    upstream.asked.lock().push((token, uri.to_string()));
    let answers = upstream.answers.lock();
    match answers.iter().find(|(path, _)| uri == *path) {
        Some((_, answer)) => answer.to_string().into_response(),
        None => upstream.otherwise.lock().into_response(),
    }
}

struct Scene {
    upstream: Upstream,
    serving: JoinHandle<()>,
    store: Store,
    pollers: Pollers,
    access: UpstreamAccess,
    instance: InstanceId,
    _folder: tempfile::TempDir,
    _fresh: Fresh,
}

impl Scene {
    /// An account's home at that server, which is read with a token.
    async fn new(answers: Vec<(&'static str, Value)>, otherwise: StatusCode) -> Scene {
        let upstream = Upstream::default();
        *upstream.answers.lock() = answers;
        *upstream.otherwise.lock() = otherwise;
        let routes = Router::new().fallback(answer).with_state(upstream.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let fresh = Fresh::sqlite();
        let store = testing::open(&fresh);
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, "secret").unwrap();
        let new = NewSource {
            owner: Owner::Account(LocalAccountId::new(1 << 50)),
            audience: Audience::Private,
            upstream: origin.clone(),
            origin,
            token: Some(TokenLocation::File(token.to_str().unwrap().to_owned())),
            ..testing::new_source("account1/home")
        };
        let add = move |tx: &mut Tx<'_>| source::add(tx, &new, 1);
        let added = store.write(local_ids::root(), add).await.unwrap().unwrap();
        let access = UpstreamAccess {
            accounts_reach_private: true,
            ..UpstreamAccess::new(&store, http_client())
        };
        Scene {
            upstream,
            serving,
            pollers: start_pollers(&store, access.clone()),
            store,
            access,
            instance: added.instance,
            _folder: folder,
            _fresh: fresh,
        }
    }

    fn watch(&self) -> InstanceWatch {
        let (store, access) = (self.store.clone(), self.access.clone());
        InstanceWatch::start(store, access, self.pollers.clone())
    }

    async fn said(&self) -> Option<StoredInstanceInfo> {
        let all = self.store.read(instance_info::all).await.unwrap();
        all.get(&self.instance).cloned()
    }

    /// How long it is until it is asked again.
    async fn pause(&self) -> Option<Duration> {
        let id = self.instance;
        let asks_at = self.store.read(move |tx| instance_info::asks_at_ms(tx, id));
        let pause_ms = asks_at.await.unwrap()? - now_ms();
        Some(Duration::from_millis(pause_ms.try_into().unwrap()))
    }

    fn asked(&self) -> Vec<Asked> {
        self.upstream.asked.lock().clone()
    }

    async fn close(self) {
        self.pollers.stop().await;
        self.serving.abort();
        self.store.close().await;
    }
}

fn without_token(paths: &[&str]) -> Vec<Asked> {
    let paths = paths.iter();
    paths.map(|path| (None, (*path).to_owned())).collect()
}

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_asked_once_and_without_the_token_of_its_source() {
    let links = json!({ "links": [{
        "rel": "http://nodeinfo.diaspora.software/ns/schema/2.0", "href": "/nodeinfo/2.0?a=b",
    }] });
    let scene = Scene::new(
        vec![
            (
                "/api/v2/instance",
                json!({ "title": "A\u{202e}\u{1b}B", "version": "4" }),
            ),
            ("/.well-known/nodeinfo", links),
            (
                "/nodeinfo/2.0?a=b",
                json!({ "software": { "name": "sim", "version": "5" }, "protocols": ["p"] }),
            ),
        ],
        StatusCode::NOT_FOUND,
    )
    .await;
    // As two processes would that read sources of the same instance.
    let watches = [scene.watch(), scene.watch()];
    until("it has said what it is", async || {
        scene.said().await.is_some()
    })
    .await;
    let said = scene.said().await.unwrap().info;
    assert_eq!(
        (said.name(), said.version(), said.software_name()),
        ("A B", "5", "sim")
    );
    let pause = scene.pause().await.unwrap();
    assert!((21 * HOUR..27 * HOUR).contains(&pause), "{pause:?}");
    for watch in &watches {
        watch.stop().await;
    }
    let paths = [
        "/api/v2/instance",
        "/.well-known/nodeinfo",
        "/nodeinfo/2.0?a=b",
    ];
    assert_eq!(scene.asked(), without_token(&paths));
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_is_read_all_the_same() {
    for (otherwise, pause, paths) in [
        // It did not answer.
        (StatusCode::BAD_GATEWAY, HOUR, &["/api/v2/instance"][..]),
        // It says nothing to those without a token.
        (
            StatusCode::UNAUTHORIZED,
            6 * HOUR,
            &[
                "/api/v2/instance",
                "/api/v1/instance",
                "/.well-known/nodeinfo",
            ][..],
        ),
    ] {
        let scene = Scene::new(Vec::new(), otherwise).await;
        let watch = scene.watch();
        until("it was asked", async || {
            let claimed = HOUR / 6;
            scene.pause().await.is_some_and(|pause| pause > claimed)
        })
        .await;
        watch.stop().await;
        let found = scene.pause().await.unwrap();
        assert!(
            found > pause / 10 * 8 && found < pause / 10 * 12,
            "{found:?}"
        );
        assert_eq!(
            (scene.asked(), scene.said().await),
            (without_token(paths), None)
        );
        let progress = scene.pollers.progress().await;
        assert_eq!(progress.len(), 1, "it is read");
        // What may be read without a token elsewhere is not given up for it.
        let credentials = scene.store.read(credential::list).await.unwrap();
        assert!(credentials.iter().all(|it| it.quarantine.is_none()));
        scene.close().await;
    }
}
