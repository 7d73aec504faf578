//! What processes ask of PostgreSQL while nothing is due.
//!
//! `DRIFTLINE_PROCESSES=n` counts for that many, `DRIFTLINE_SECONDS=n` for that long.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod support;

use std::time::Duration;

use driftline_db::testing::Cluster;
use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use driftline_store::{SecretUrl, Store, StoreError, Target};
use support::{DataDir, Running};

/// Forty sources are polled each second, all posts are refreshed and none is due.
#[tokio::test(flavor = "multi_thread")]
async fn idle_processes_ask_little() {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |text| text.parse::<u64>().unwrap())
    };
    let processes = number("DRIFTLINE_PROCESSES", 2);
    let seconds = number("DRIFTLINE_SECONDS", 5);
    let cluster = Cluster::start_with(&["shared_preload_libraries=pg_stat_statements"]).unwrap();
    let mut sims = Vec::new();
    let data_dirs: Vec<DataDir> = (0..processes).map(|_| data_dir(cluster.url())).collect();
    for number in 1..=SOURCES {
        let sim = SimServer::start(world(), number, Clock::Real)
            .await
            .unwrap();
        let (url, name) = (sim.url(), format!("source-{number}"));
        let add = ["source", "add", &url, "--name", &name, "--every", "1s"];
        data_dirs[0].json(&[&add[..], &["--backfill", "all"]].concat());
        sims.push(sim);
    }
    let running: Vec<Running> = data_dirs.iter().map(|dir| dir.serve(&[]).0).collect();
    let store = open(cluster.url()).await;
    let read = "select 'sources', count(distinct source_id) from entry";
    while statements(&store, read).await[0].1 < SOURCES as i64 {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // In a source's first minute second looks come in small portions, since its rate is not known.
    tokio::time::sleep(Duration::from_secs(75)).await;
    statements(&store, "create extension if not exists pg_stat_statements").await;
    statements(&store, "select pg_stat_statements_reset()::text, 0, 0").await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let found = statements(
        &store,
        "select query, calls, total_exec_time::bigint from pg_stat_statements
         where query not like 'begin%' and query not like 'commit%' and query not like '%pg_stat%'
         order by calls desc",
    )
    .await;
    let all: i64 = found.iter().map(|(_, calls)| calls).sum();
    for (query, calls) in found.iter().take(40) {
        let query: String = query.split_whitespace().collect::<Vec<_>>().join(" ");
        let start: String = query.chars().take(150).collect();
        eprintln!("{:>8.1}  {start}", *calls as f64 / seconds as f64);
    }
    let own = [
        "from member",
        "update member",
        "from sharing",
        "from schedule",
        "as overdue",
        "from outbox",
        "set lease_until_ms",
        "from instance",
        "clock_timestamp()",
    ];
    let is_own = |query: &&(String, i64)| own.iter().any(|text| query.0.contains(text));
    let besides: i64 = found.iter().filter(is_own).map(|(_, calls)| calls).sum();
    let besides = besides as f64 / (seconds * processes) as f64;
    eprintln!("{besides:.1} statements each second and process beside the polls' own");
    assert!(besides <= BESIDES, "{besides}");
    let each_second = all as f64 / seconds as f64;
    eprintln!("{each_second:.1} statements each second with {processes} processes");
    let bound = POLLS + (10 * processes) as f64;
    assert!(each_second <= bound, "{each_second} of {bound}");
    let connections = statements(
        &store,
        "select application_name, count(*) from pg_stat_activity
         where backend_type = 'client backend' group by 1",
    )
    .await;
    eprintln!("{connections:?} connections, with one or two of this test");
    drop(running);
    store.close().await;
}

async fn statements(store: &Store, sql: &'static str) -> Vec<(String, i64)> {
    let job = move |tx: &mut driftline_store::Tx<'_>| {
        if sql.starts_with("create") {
            tx.execute(sql, &[])?;
            return Ok(Vec::new());
        }
        let rows = tx.query(sql, &[], |row| Ok((row.text(0)?, row.i64(1)?)));
        rows.map_err(StoreError::from)
    };
    store
        .write(driftline_store::Root::none(), job)
        .await
        .unwrap()
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
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", url);
    data_dir.file("driftline.toml", "[upstream]\nallow_private = true\n");
    data_dir
}

fn world() -> ServerConfig {
    ServerConfig {
        world: WorldConfig {
            publish_for_ms: Some(60_000),
            ..WorldConfig::punctual(0.5)
        },
        history_ms: 60_000,
        ..ServerConfig::default()
    }
}

/// Statements of a process that do not belong to polls, each second.
const BESIDES: f64 = 7.5;
/// Statements of the polls themselves, each second. One of each asks for the names of authors.
const POLLS: f64 = 39.0;
const SOURCES: u64 = 40;
