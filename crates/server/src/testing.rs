//! Parts of a running server, for tests.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use driftline_api::{
    App, OwnInstance,
    auth::{Authorization, OperatorToken, TokenKeys},
    feed::Feed,
    find::SearchBudget,
    people::People,
    router,
    transport::{Limits, TrustedProxies, serve},
};
use driftline_mirror::{Policies, Pollers, PollersOptions, SourceHealth, UpstreamAccess};
use driftline_runtime::{StoreDisk, StoreFault};
use driftline_store::Store;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep},
};

use crate::{LocalMirror, admin::Host, api_description};

/// Pollers that notice new sources at once.
pub fn start_pollers(store: &Store, access: UpstreamAccess) -> Pollers {
    let options = PollersOptions {
        scan: Duration::from_millis(50),
        ..PollersOptions::new("test")
    };
    Pollers::start(store.clone(), access, options)
}

/// An API that is ready and whose operator has the [token](OPERATOR_TOKEN), of a process whose sources are as healthy as that.
pub fn app(store: &Store, sources: SourceHealth) -> App {
    App {
        store: store.clone(),
        feed: Feed::new(store.clone()),
        mirror: Arc::new(LocalMirror {
            store: store.clone(),
            host: Host::of(store),
            policies: Policies::default(),
            sources,
            store_disk: StoreDisk::default(),
            threads: None,
        }),
        description: api_description(),
        metrics: None,
        public_base: None,
        proxies: TrustedProxies::default(),
        own: OwnInstance::default(),
        authorization: operator(),
        people: People::new(TokenKeys::new([1; 8], [2; 32], 0), "test"),
        search_budget: SearchBudget::REQUEST,
        store_fault: StoreFault::new(store.clone()),
        ready: watch::channel(true).1,
    }
}

/// The operator's token of [`app`].
pub const OPERATOR_TOKEN: &str = "the-token-of-the-operator-of-a-test";

fn operator() -> Authorization {
    Authorization::Operator(OperatorToken::new(&OPERATOR_TOKEN.to_owned().into()).unwrap())
}

/// An API on a free port of this machine. It also stops when this value is dropped.
#[derive(Debug)]
pub struct Served {
    /// Its address.
    pub url: String,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Served {
    /// Serves until it is stopped.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(app: App) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, mut stopped) = watch::channel(false);
        let until = async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        let serving = tokio::spawn(async move {
            let served = serve(listener, router(app), Limits::default(), until).await;
            served.unwrap();
        });
        Self { url, stop, serving }
    }

    /// Stops, and waits until it has.
    ///
    /// # Panics
    /// If it did not serve to the end.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.serving.await.unwrap();
    }
}

/// Waits until it is so.
///
/// # Panics
/// After a minute and a half.
pub async fn wait(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !is_so().await {
        assert!(Instant::now() < deadline, "timed out waiting for: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}
