//! Several processes on one PostgreSQL, of which one after the other is killed and started again.

use std::{collections::HashSet, time::Duration};

use driftline_db::testing::{Node, Pooler};
use driftline_sim::http::{Clock, SimServer, Timeline};
use driftline_store::testing::postgres_database;
use driftline_store::{SecretUrl, Store, StoreError, Target, refresh::claimed_slots};
use rand::RngExt as _;

use crate::{
    cut::Address,
    number,
    readers::{Readers, listed},
    seeded,
    support::{DataDir, Running, soon},
    truth::{compare, still_there},
    world::{HISTORY_MS, LATEST_MS, SETTINGS, world},
};

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_lose_and_double_nothing_that_readers_see() {
    let database = postgres_database();
    kill_one_after_the_other(&database, &database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_behind_a_pooler_lose_and_double_nothing_that_readers_see() {
    let database = postgres_database();
    let pooler = Pooler::start(&database, 20).unwrap();
    kill_one_after_the_other(pooler.url(), &database).await;
}

/// The processes come by one URL, and the database is looked at by another.
async fn kill_one_after_the_other(url: &str, database: &str) {
    let (seed, kills, mut rng) = seeded(5);
    let processes = usize::try_from(number("DRIFTLINE_PROCESSES", 3)).unwrap();
    let address = Address::of_environment();
    let cuts = i64::from(address.is_some()) * i64::try_from(kills).unwrap() / 4;
    let publish_for_ms =
        HISTORY_MS + i64::try_from(kills).unwrap() * 1_500 + cuts * CUT_MS.end + 5_000;
    let data_dirs: Vec<DataDir> = (0..processes).map(|_| data_dir(url)).collect();
    let mut sims = Vec::new();
    for number in 0..UPSTREAMS {
        let config = world(RATE_PER_S, publish_for_ms);
        let sim = SimServer::start(config, seed.wrapping_add(number), Clock::Real);
        sims.push(sim.await.unwrap());
    }
    // Two timelines of each, so that two sources share an instance.
    let mut sources: Vec<(String, &SimServer, Timeline)> = Vec::new();
    for (number, sim) in sims.iter().enumerate() {
        let tag = Timeline::Tag("rust".into());
        for (timeline, asked) in [(Timeline::Public, "public"), (tag, "tag:rust")] {
            let (url, name) = (sim.url(), format!("{asked}-{number}").replace(':', "-"));
            let mut add = vec!["source", "add", &url, "--name", &name];
            add.extend(["--timeline", asked, "--no-check"]);
            add.extend(SETTINGS);
            data_dirs[0].json(&add);
            sources.push((name, sim, timeline));
        }
    }

    let mut running = Vec::new();
    let readers = Readers::new(processes);
    for (number, data_dir) in data_dirs.iter().enumerate() {
        running.push(start(data_dir, number, &readers));
    }
    let reading = readers.start(READERS, seed);
    // Servers of a distributed database on this machine are killed too if that is asked for.
    let nodes = match number("DRIFTLINE_NODE_KILLS", 0) {
        0 => Vec::new(),
        _ => {
            let url = url.to_owned();
            std::thread::spawn(move || Node::all(&url).unwrap())
                .join()
                .unwrap()
        }
    };
    let (mut killed_nodes, mut cut) = (0, 0);
    for _ in 0..kills {
        let victims = processes + nodes.len() + usize::from(address.is_some());
        let victim = rng.random_range(0..victims);
        // The moment is the experiment.
        let mut moment = || Duration::from_millis(rng.random_range(20..1_200));
        tokio::time::sleep(moment()).await;
        if let Some(node) = victim.checked_sub(processes) {
            if let Some(node) = nodes.get(node) {
                killed_nodes += 1;
                node.kill().unwrap();
                tokio::time::sleep(moment()).await;
                node.start().unwrap();
            } else if let Some(address) = &address {
                cut += 1;
                let _cut = address.cut_off();
                let cut_ms = rng.random_range(CUT_MS).unsigned_abs();
                tokio::time::sleep(Duration::from_millis(cut_ms)).await;
            }
            continue;
        }
        readers.set(victim, None);
        running.remove(victim).kill();
        running.insert(victim, start(&data_dirs[victim], victim, &readers));
    }

    eprintln!("of {kills} kills {killed_nodes} were of servers; {cut} cuts of the network");

    let verify = |name: &str| data_dirs[0].json(&["source", "verify", name]);
    for (name, sim, timeline) in &sources {
        let begun = sim.world(timeline).unwrap();
        let started_ms = begun.lock().unwrap().config().start_ms;
        let silent_ms = started_ms + publish_for_ms + LATEST_MS;
        let left_ms = (silent_ms - Clock::Real.now_ms()).max(0);
        tokio::time::sleep(Duration::from_millis(left_ms.unsigned_abs())).await;
        let settled = soon(|| verify(name)["settled"] == true);
        assert!(settled, "not settled: {:#}", verify(name));
        let truth = sim.truth(timeline).unwrap();
        let mut unconfirmed = Vec::new();
        let confirmed = soon(|| {
            unconfirmed = still_there(&truth, &data_dirs[0].export(name));
            unconfirmed.is_empty()
        });
        assert!(
            confirmed,
            "{name}: deleted, and still there: {unconfirmed:#?} {:#}",
            verify(name)
        );
        compare(&truth, &data_dirs[0].export(name));
    }

    let listed = listed(&readers.any(&mut rng));
    assert!(listed.len() > 100, "{}", listed.len());
    for reader in reading.end() {
        let read: HashSet<u64> = reader.read.into_iter().collect();
        let missed: Vec<&u64> = listed
            .iter()
            .filter(|id| **id > reader.began_at && !read.contains(id))
            .collect();
        assert!(missed.is_empty(), "a reader has missed {missed:?}");
        eprintln!(
            "a reader of {} posts in {} pages missed none",
            read.len(),
            reader.pages
        );
    }
    for process in &mut running {
        process.stop();
    }
    every_post_is_scheduled_once(database).await;
}

/// On the schedule, or in a lease: that of a killed process lasts for a while.
async fn every_post_is_scheduled_once(database: &str) {
    let target = Target::Postgres {
        url: SecretUrl::new(database),
        schema: None,
    };
    let opened = tokio::task::spawn_blocking(|| Store::open(target));
    let store = opened.await.unwrap().unwrap();
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

fn start(data_dir: &DataDir, number: usize, readers: &Readers) -> Running {
    let (running, url) = data_dir.serve(&["--allow-private"]);
    readers.set(number, Some(url));
    running
}

fn data_dir(url: &str) -> DataDir {
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", url);
    let refreshed = "[refresh]\nbuffer_ttl = \"300ms\"\n[refresh.ages]\n\"25h\" = \"2s\"\n";
    let config = format!("[upstream]\nallow_private = true\n{refreshed}");
    data_dir.file("driftline.toml", &config);
    data_dir
}

/// How long an address is cut off.
const CUT_MS: std::ops::Range<i64> = 5_000..10_000;
const UPSTREAMS: u64 = 2;
const RATE_PER_S: f64 = 15.0;
const READERS: u64 = 2;
