//! Several processes behind a connection pooler in transaction mode.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use driftline_db::testing::{Pooler, postgres_database};
use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer, Timeline},
};
use driftline_store::{Root, SecretUrl, Store, StoreError, Target, refresh::claimed_slots};
use serde_json::Value;
use support::{DataDir, Running, wait_for};

/// Each source is what was published, once, and each post is on the schedule once.
#[tokio::test(flavor = "multi_thread")]
async fn four_processes_lose_and_double_nothing() {
    let database = postgres_database();
    let pooler = Pooler::start(&database, 20).unwrap();
    let data_dirs: Vec<DataDir> = (0..4).map(|_| data_dir(pooler.url())).collect();
    let mut running: Vec<Running> = data_dirs.iter().map(start).collect();
    let mut sims = Vec::new();
    for (name, number) in SOURCES.iter().zip(1..) {
        let sim = SimServer::start(world(), number, Clock::Real)
            .await
            .unwrap();
        let url = sim.url();
        data_dirs[0].json(&["source", "add", &url, "--name", name, "--every", "200ms"]);
        sims.push(sim);
    }
    let stored = |name: &str| {
        let report = data_dirs[0].run(&["--json", "source", "verify", name]);
        serde_json::from_str(&report.stdout).unwrap_or(Value::Null)
    };
    for name in SOURCES {
        wait_for("posts arrive", || stored(name)["posts"].as_u64() > Some(20));
    }
    // It holds most of the sources: it was there when they came.
    running.remove(0).kill();
    running.push(start(&data_dirs[0]));
    for (name, sim) in SOURCES.iter().zip(&sims) {
        let published = || sim.truth(&Timeline::Public).unwrap().posts;
        let world = sim.world(&Timeline::Public).unwrap();
        let end_ms = world.lock().unwrap().config().start_ms + PUBLISHED_MS;
        wait_for("all is stored", || {
            let stored = stored(name)["posts"].as_u64();
            Clock::Real.now_ms() > end_ms && stored == Some(published().len() as u64)
        });
        let expected: HashMap<String, usize> = published()
            .iter()
            .map(|post| (post.id.as_str().to_owned(), 1))
            .collect();
        let mut found = HashMap::new();
        for row in data_dirs[1].export(name) {
            let id = row["upstream_id"].as_str().unwrap().to_owned();
            *found.entry(id).or_default() += 1;
        }
        assert!(found == expected, "{name}: {found:?}");
    }
    for process in &mut running {
        process.signal("TERM");
        assert_eq!(process.ended().code(), Some(0));
    }
    for data_dir in &data_dirs {
        let log = data_dir.log();
        assert!(log.contains("statements are not prepared"), "{log}");
    }
    every_post_is_scheduled_once(database).await;
}

/// The server is reached, and the pool has no connection left.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_says_that_it_waits_for_a_full_pool() {
    let database = postgres_database();
    let pooler = Pooler::start(&database, 1).unwrap();
    let holder = open(pooler.url()).await;
    let (held, is_held) = std::sync::mpsc::channel();
    let (free, is_free) = std::sync::mpsc::channel::<()>();
    let holding = holder.clone();
    let holds = std::thread::spawn(move || {
        holding.write_blocking(Root::none(), move |tx| {
            driftline_store::touch(tx)?;
            held.send(()).unwrap();
            let _ = is_free.recv();
            Ok::<_, StoreError>(())
        })
    });
    is_held.recv().unwrap();
    let data_dir = data_dir(pooler.url());
    let begun = Instant::now();
    let server = data_dir.start(&["--json", "serve", "--listen", "127.0.0.1:0"]);
    wait_for("the wait is logged", || {
        data_dir
            .log()
            .contains("waiting for the answer to a statement: PostgreSQL at 127.0.0.1")
    });
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(!data_dir.log().contains("serving"), "{}", data_dir.log());
    free.send(()).unwrap();
    holds.join().unwrap().unwrap();
    let mut server = server;
    assert!(server.line().contains("listening"));
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
    holder.close().await;
}

/// On the schedule, or in a lease: that of the killed process lasts for a while.
async fn every_post_is_scheduled_once(database: String) {
    let store = open(&database).await;
    let (posts, slots): (HashSet<i64>, Vec<i64>) = store
        .read(|tx| {
            let posts = "select post_id from freshness where due_at_ms is not null";
            let posts = tx.query(posts, &[], |row| row.i64(0))?;
            let claimed = claimed_slots(tx.dialect());
            let slots = format!(
                "select post_id from schedule
                 union all select post_id from ({claimed}) as claimed"
            );
            let slots = tx.query(&slots, &[], |row| row.i64(0))?;
            Ok::<_, StoreError>((posts.into_iter().collect(), slots))
        })
        .await
        .unwrap();
    let distinct: HashSet<i64> = slots.iter().copied().collect();
    assert_eq!(slots.len(), distinct.len(), "a post is scheduled twice");
    let missing: Vec<_> = posts.symmetric_difference(&distinct).collect();
    assert!(
        missing.is_empty(),
        "not scheduled, or without need: {missing:?}"
    );
    store.close().await;
}

async fn open(url: &str) -> Store {
    let target = Target::Postgres {
        url: SecretUrl::new(url),
        schema: None,
    };
    let opened = tokio::task::spawn_blocking(|| Store::open(target));
    opened.await.unwrap().unwrap()
}

fn data_dir(url: &str) -> DataDir {
    let data_dir = DataDir::new()
        .with("DRIFTLINE_STORE__DATABASE_URL", url)
        .with("RUST_LOG", "info");
    data_dir.file(
        "driftline.toml",
        "[upstream]\nallow_private = true\n[refresh]\nbuffer_ttl = \"300ms\"\n[refresh.ages]\n\"25h\" = \"2s\"\n",
    );
    data_dir
}

fn start(data_dir: &DataDir) -> Running {
    data_dir.serve(&[]).0
}

fn world() -> ServerConfig {
    ServerConfig {
        world: WorldConfig {
            publish_for_ms: Some(PUBLISHED_MS),
            ..WorldConfig::punctual(15.0)
        },
        ..ServerConfig::default()
    }
}

const PUBLISHED_MS: i64 = 12_000;
const SOURCES: [&str; 4] = ["one", "two", "three", "four"];
