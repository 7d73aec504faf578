//! Processes on one PostgreSQL share sources and refresh buckets evenly, whoever joins, leaves, dies or
//! drains.
//!
//! `DRIFTLINE_PROCESSES=n` takes that many processes instead of 3, and ends some at each number of them.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod support;

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer, Timeline},
};
use driftline_store::testing::postgres_database;
use driftline_store::{SecretUrl, Store, StoreError, Target, source};
use serde_json::Value;
use support::{DataDir, Running, wait_for};

/// Joining one by one, a sudden end, an orderly end, a drain.
#[tokio::test(flavor = "multi_thread")]
async fn processes_share_forty_sources_evenly() {
    let asked = std::env::var("DRIFTLINE_PROCESSES").ok();
    let processes: usize = asked.as_ref().map_or(3, |text| text.parse().unwrap());
    let cluster = Cluster::start().await;
    let mut running: Vec<Option<Running>> = Vec::new();
    for number in 0..processes {
        running.push(Some(cluster.start_process(number)));
        let all = number + 1;
        let took = cluster.even(all).await;
        eprintln!("{all} processes: even {took:?} after the start");
        if all == processes || all > 1 && asked.is_some() {
            cluster.ends_one(&mut running, Signal::Kill).await;
            cluster.ends_one(&mut running, Signal::Term).await;
        }
    }
    cluster.buckets_are_even(processes);

    let drained = cluster.names().keys().next().unwrap().clone();
    let begun = Instant::now();
    let reply = cluster.data_dirs[0].json(&["node", "drain", &drained]);
    assert_eq!(reply["changed"], true, "{reply}");
    cluster.even_without(processes - 1, &drained).await;
    eprintln!("drained {:?} after the wish", begun.elapsed());
    let state = |name: &str| {
        let rows = cluster.data_dirs[0].json(&["node", "list"]);
        let row = rows
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == *name);
        row.unwrap()["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(&drained), "drained");
    cluster.data_dirs[0].json(&["node", "undrain", &drained[..drained.len() - 2]]);
    cluster.even(processes).await;

    // Another process notices a pause.
    let paused = name(0);
    cluster.data_dirs[1].json(&["source", "pause", &paused]);
    let is_read = async || cluster.holders().await.contains_key(&paused);
    cluster
        .until("it is given up", async || !is_read().await)
        .await;
    cluster.data_dirs[1].json(&["source", "resume", &paused]);
    cluster.until("it is read again", is_read).await;

    cluster.nothing_is_lost_or_doubled().await;
    for mut process in running.into_iter().flatten() {
        process.stop();
    }
    cluster.store.close().await;
}

/// An upstream that takes requests and answers none: a drain waits for a while, an end does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_flight_holds_nobody_up() {
    let cluster = Cluster::start_with(0).await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    cluster.data_dirs[0].json(&["source", "add", &address, "--name", "silent", "--no-check"]);
    let one = cluster.start_process(0);
    let _request = silent.accept().unwrap();
    let two = cluster.start_process(1);
    let (one_id, two_id) = (one.id(), two.id());
    wait_for("both take part", || cluster.names().len() == 2);
    let held = cluster.held_by(one_id).await;
    let begun = Instant::now();
    let drain = ["node", "drain", &held["silent"], "--wait", "1ms"];
    let waited = cluster.data_dirs[0].run(&drain);
    assert!(
        waited.status == 3 && waited.stderr.contains("still has 1 source"),
        "{waited:?}"
    );
    let took = cluster.taken_over(&held, begun).await;
    eprintln!("given back {took:?} after the wish");
    let _request = silent.accept().unwrap();
    cluster.data_dirs[0].json(&["node", "undrain", &held["silent"]]);
    wait_for("both take part", || cluster.names().len() == 2);
    let held = cluster.held_by(two_id).await;
    let ended = Instant::now();
    two.signal("TERM");
    let took = cluster.taken_over(&held, ended).await;
    eprintln!("taken over {took:?} after SIGTERM");
    drop((one, two));
    cluster.store.close().await;
}

/// A database file has one process, which can be drained too.
#[tokio::test(flavor = "multi_thread")]
async fn one_process_on_a_database_file_is_the_only_member() {
    let sim = SimServer::start(world(), 1, Clock::Real).await.unwrap();
    let data_dir = DataDir::new();
    data_dir.file("driftline.toml", "[upstream]\nallow_private = true\n");
    data_dir.json(&["source", "add", &sim.url(), "--name", "sim", "--no-check"]);
    let shown = data_dir.run(&["node", "list"]);
    assert!(
        shown.stdout.contains("no process has shared the work yet"),
        "{shown:?}"
    );
    let (mut server, _) = data_dir.serve(&[]);
    let row = || data_dir.json(&["node", "list"])[0].clone();
    wait_for("it reads the source", || {
        row()["sources"] == 1 && row()["buckets"] == 8
    });
    assert_eq!(
        (&row()["state"], &row()["share"]),
        (&Value::from("active"), &Value::from(1))
    );
    let name = row()["name"].as_str().unwrap().to_owned();
    let drained = data_dir.run(&["node", "drain", &name, "--wait"]);
    assert!(
        drained.status == 0 && drained.stderr.contains("no other process takes part"),
        "{drained:?}"
    );
    let idle = row();
    assert!(idle["state"] == "drained" && idle["buckets"] == 0, "{idle}");
    let again = data_dir.run(&["node", "drain", &name]);
    assert!(again.stdout.contains("drains already"), "{again:?}");
    data_dir.json(&["node", "undrain", &name]);
    wait_for("it reads the source again", || row()["sources"] == 1);
    server.stop();
    assert_eq!(row()["state"], "left");
    let gone = data_dir.run(&["node", "undrain", &name]);
    assert!(
        gone.status == 2 && gone.stderr.contains("has ended"),
        "{gone:?}"
    );
    let beyond = data_dir.run(&["serve", "--share", "1001"]);
    assert!(
        beyond.status == 2 && beyond.stderr.contains("0..=1000"),
        "{beyond:?}"
    );
    data_dir.file("driftline.toml", "[server]\nshare = 1001\n");
    let beyond = data_dir.run(&["serve"]);
    assert!(
        beyond.status == 2 && beyond.stderr.contains("from 0 to 1000"),
        "{beyond:?}"
    );
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Kill,
    Term,
}

struct Cluster {
    data_dirs: Vec<DataDir>,
    sims: Vec<SimServer>,
    store: Store,
}

impl Cluster {
    async fn start() -> Self {
        Self::start_with(SOURCES).await
    }

    async fn start_with(sources: usize) -> Self {
        let url = postgres_database();
        let data_dirs: Vec<DataDir> = (0..8).map(|_| data_dir(&url)).collect();
        let mut sims = Vec::new();
        for number in 0..sources {
            let sim = SimServer::start(world(), number as u64, Clock::Real)
                .await
                .unwrap();
            let (address, name) = (sim.url(), name(number));
            let add = [
                "source",
                "add",
                &address,
                "--name",
                &name,
                "--every",
                "1s",
                "--no-check",
            ];
            data_dirs[0].json(&add);
            sims.push(sim);
        }
        let target = Target::Postgres {
            url: SecretUrl::new(&url),
            schema: None,
        };
        let opened = tokio::task::spawn_blocking(|| Store::open(target));
        Self {
            data_dirs,
            sims,
            store: opened.await.unwrap().unwrap(),
        }
    }

    fn start_process(&self, number: usize) -> Running {
        self.data_dirs[number].serve(&[]).0
    }

    /// Asks until it is so.
    async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let begun = Instant::now();
        while !is_so().await {
            let held = self.numbers().await;
            assert!(begun.elapsed() < PATIENCE, "{what}: {held:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The live holders of the sources.
    async fn holders(&self) -> HashMap<String, String> {
        let read = |tx: &mut driftline_store::Tx<'_>| {
            let now_ms = driftline_store::database_clock::now_ms(tx)?;
            Ok::<_, StoreError>((source::list(tx)?, now_ms))
        };
        let (sources, now_ms) = self.store.read(read).await.unwrap();
        let held = sources.into_iter().filter_map(|source| {
            let holding = source.holding.filter(|holding| holding.until_ms > now_ms)?;
            Some((source.name, holding.holder))
        });
        held.collect()
    }

    async fn numbers(&self) -> BTreeMap<String, usize> {
        let mut numbers = BTreeMap::new();
        for holder in self.holders().await.into_values() {
            *numbers.entry(holder).or_default() += 1;
        }
        numbers
    }

    /// The live processes that share, with their rows.
    fn names(&self) -> BTreeMap<String, Value> {
        let rows = self.data_dirs[0].json(&["node", "list"]);
        let live = rows
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["state"] == "active");
        live.map(|row| (row["name"].as_str().unwrap().to_owned(), row.clone()))
            .collect()
    }

    /// Waits until so many processes hold all sources, within one of even.
    async fn even(&self, processes: usize) -> Duration {
        self.even_without(processes, "").await
    }

    async fn even_without(&self, processes: usize, name: &str) -> Duration {
        let begun = Instant::now();
        let (least, most) = (SOURCES / processes, SOURCES.div_ceil(processes));
        self.until(&format!("even in {processes}"), async || {
            let numbers = self.numbers().await;
            let mut all = numbers.values();
            numbers.len() == processes
                && all.all(|number| (least..=most).contains(number))
                && numbers.values().sum::<usize>() == SOURCES
                && !numbers.contains_key(name)
        })
        .await;
        begun.elapsed()
    }

    /// Ends the last process or the first one, sees others take over, and starts it again.
    async fn ends_one(&self, running: &mut [Option<Running>], signal: Signal) {
        let (name, at) = match signal {
            Signal::Kill => ("KILL", running.len() - 1),
            Signal::Term => ("TERM", 0),
        };
        let mut process = running[at].take().unwrap();
        let before = self.held_by(process.id()).await;
        let ended = Instant::now();
        process.signal(name);
        let took = self.taken_over(&before, ended).await;
        let (sources, all) = (before.len(), running.len());
        eprintln!("{all} processes: {sources} sources taken over {took:?} after SIG{name}");
        process.ended();
        self.even(running.len() - 1).await;
        running[at] = Some(self.start_process(at));
        self.even(running.len()).await;
    }

    fn buckets_are_even(&self, processes: usize) {
        wait_for("all buckets are looked at, evenly", || {
            let names = self.names();
            let buckets: Vec<u64> = names
                .values()
                .map(|row| row["buckets"].as_u64().unwrap())
                .collect();
            let (least, most) = (buckets.iter().min().unwrap(), buckets.iter().max().unwrap());
            let all = (SOURCES * 8) as u64;
            names.len() == processes && most - least <= 1 && buckets.iter().sum::<u64>() == all
        });
    }

    async fn held_by(&self, process: u32) -> HashMap<String, String> {
        let mut held = self.holders().await;
        let part = format!("-{process}-");
        held.retain(|_, holder| holder.contains(&part));
        assert!(!held.is_empty());
        held
    }

    /// Waits until others hold all of these.
    async fn taken_over(&self, before: &HashMap<String, String>, ended: Instant) -> Duration {
        self.until("others take over", async || {
            let now = self.holders().await;
            let is_taken = |(source, holder): (&String, &String)| {
                now.get(source).is_some_and(|now| now != holder)
            };
            before.iter().all(is_taken)
        })
        .await;
        ended.elapsed()
    }

    /// Each source has what was published, once.
    async fn nothing_is_lost_or_doubled(&self) {
        for (number, sim) in self.sims.iter().enumerate() {
            let published = || sim.truth(&Timeline::Public).unwrap().posts;
            let world = sim.world(&Timeline::Public).unwrap();
            let end_ms = world.lock().unwrap().config().start_ms + PUBLISHED_MS;
            let name = name(number);
            let mut found = HashMap::new();
            wait_for("all is stored", || {
                if Clock::Real.now_ms() <= end_ms {
                    return false;
                }
                found.clear();
                for row in self.data_dirs[7].export(&name) {
                    let id = row["upstream_id"].as_str().unwrap().to_owned();
                    *found.entry(id).or_insert(0) += 1;
                }
                found.len() >= published().len()
            });
            let expected: HashMap<String, i32> = published()
                .iter()
                .map(|post| (post.id.as_str().to_owned(), 1))
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}

fn name(number: usize) -> String {
    format!("source-{number:02}")
}

fn data_dir(url: &str) -> DataDir {
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", url);
    // A request that is not answered does not end by itself while a test runs.
    let config = "[upstream]\nallow_private = true\nread_timeout = \"10m\"\n";
    data_dir.file("driftline.toml", config);
    data_dir
}

fn world() -> ServerConfig {
    ServerConfig {
        world: WorldConfig {
            publish_for_ms: Some(PUBLISHED_MS),
            ..WorldConfig::punctual(1.0)
        },
        ..ServerConfig::default()
    }
}

const SOURCES: usize = 40;
const PUBLISHED_MS: i64 = 20_000;
/// Only a failing test waits that long, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
