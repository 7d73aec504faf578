//! Two processes on one PostgreSQL: when the one that reads a source dies, the
//! other takes it over within seconds.

use std::{
    env,
    process::{Child, Command, Stdio},
    time::Duration,
};

use driftline_mirror::{Pollers, PollersOptions, UpstreamAccess};
use driftline_net::testing::http_client;
use driftline_server::admin::{self, AddSource, Request as _};
use driftline_sim::http::Timeline as SimTimeline;
use driftline_store::testing::postgres_database;
use driftline_store::{SecretUrl, Store, StoreError, Target, completeness, machine, source};
use tokio::time::{Instant, sleep};

use crate::{
    running::{settings, upstream},
    world,
};

const URL: &str = "DRIFTLINE_TEST_TAKEOVER";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_takes_over_a_dead_ones_source_within_seconds() {
    let url = postgres_database();
    let store = open(&url);
    let sim = upstream(world(15_000)).await;
    let add = AddSource {
        owner: None,
        name: Some("shared".into()),
        address: sim.url(),
        api: driftline_core::api::Api::Mastodon,
        timeline: "public".into(),
        token: None,
        settings: settings(),
        allow_private: false,
        audience: Some(driftline_core::audience::Audience::Public),
        check: false,
    };
    add.execute(&admin::Host::of(&store)).await.unwrap();
    let mut first = start_process(&url);
    wait(&store, "the first process reads", |state| state.entries > 0).await;
    let before = state(&store).await;
    assert!(before.holder.contains("process"), "{}", before.holder);

    let second = Pollers::start(
        store.clone(),
        UpstreamAccess::new(&store, http_client()),
        PollersOptions::new("survivor"),
    );
    first.kill().unwrap();
    first.wait().unwrap();
    let died = Instant::now();
    wait(&store, "the second process reads", |state| {
        state.holder == "survivor" && state.entries > before.entries
    })
    .await;
    assert!(
        died.elapsed() < Duration::from_secs(10),
        "{:?}",
        died.elapsed()
    );
    assert!(state(&store).await.fence > before.fence);

    let published = || sim.truth(&SimTimeline::Public).unwrap().posts.len() as u64;
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let now = state(&store).await;
        if now.settled && now.entries >= published() {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "{} of {} posts",
            now.entries,
            published()
        );
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(
        state(&store).await.entries,
        published(),
        "none is missed, none is doubled"
    );
    second.stop().await;
    store.close().await;
    sim.shutdown().await;
}

/// Run by the test above in a process of its own, until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_that_is_killed() {
    let Ok(url) = env::var(URL) else { return };
    let store = open(&url);
    let holder = format!("process {}", std::process::id());
    let _pollers = Pollers::start(
        store.clone(),
        UpstreamAccess::new(&store, http_client()),
        PollersOptions::new(holder),
    );
    std::future::pending::<()>().await;
}

struct State {
    holder: String,
    fence: i64,
    entries: u64,
    settled: bool,
}

fn start_process(url: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "takeover::process_that_is_killed"])
        .env(URL, url)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn open(url: &str) -> Store {
    let url = SecretUrl::new(url);
    Store::open(Target::Postgres { url, schema: None }).unwrap()
}

async fn state(store: &Store) -> State {
    store
        .read(|tx| {
            let source = source::by_name(tx, "shared")?.unwrap();
            let machine = machine::load(tx, source.key())?;
            let entries = completeness::counts(tx, source.key())?.entries;
            let holding = source.holding.clone();
            Ok::<_, StoreError>(State {
                holder: holding
                    .as_ref()
                    .map_or_else(String::new, |held| held.holder.clone()),
                fence: holding.map_or(0, |held| held.fence),
                entries,
                settled: machine.ledger().frontier().is_some()
                    && machine.is_settled(&source.settings, driftline_runtime::now_ms(), 2),
            })
        })
        .await
        .unwrap()
}

async fn wait(store: &Store, what: &str, condition: impl Fn(&State) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition(&state(store).await) {
        assert!(Instant::now() < deadline, "not in 30 s: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}
