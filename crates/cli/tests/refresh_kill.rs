//! Workers that are killed at random moments lose no post, and hold none up for longer than a lease
//! lasts.
//!
//! `DRIFTLINE_SEED=n` replays the moments, `DRIFTLINE_KILLS=n` kills that often,
//! `DRIFTLINE_POSTS=n` refreshes about that many posts.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod support;

use std::time::{Duration, Instant};

use driftline_sim::{
    FaultsConfig, Growth, ThrottleRule, WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use driftline_store::testing::postgres_database;
use driftline_store::{SecretUrl, Store, StoreError, Target, refresh::claimed_slots};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use support::{DataDir, Running};

#[tokio::test(flavor = "multi_thread")]
async fn four_workers_on_postgresql_lose_no_post() {
    let url = postgres_database();
    let data_dirs: Vec<DataDir> = (0..4)
        .map(|_| DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", &url))
        .collect();
    let target = Target::Postgres {
        url: SecretUrl::new(&url),
        schema: None,
    };
    kill_often(&data_dirs, target).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_on_sqlite_loses_no_post() {
    let data_dir = DataDir::new();
    let target = Target::Sqlite {
        path: data_dir.data().join("driftline.db"),
    };
    kill_often(&[data_dir], target).await;
}

async fn kill_often(data_dirs: &[DataDir], target: Target) {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |text| text.parse::<u64>().unwrap())
    };
    let seed = number("DRIFTLINE_SEED", rand::random());
    let kills = number("DRIFTLINE_KILLS", 10);
    let posts = number("DRIFTLINE_POSTS", 300);
    eprintln!("DRIFTLINE_SEED={seed} DRIFTLINE_KILLS={kills} DRIFTLINE_POSTS={posts}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sim = SimServer::start(world(posts), seed, Clock::Real)
        .await
        .unwrap();
    for data_dir in data_dirs {
        data_dir.file("driftline.toml", &config(posts));
    }
    let url = sim.url();
    // Pages of 40, and much time besides.
    let read_for = format!("{}s", 20 + posts / 400);
    let mirror = ["mirror", &url, "--name", "sim", "--backfill", "all"];
    let mirrored = data_dirs[0].run(
        &[
            &mirror[..],
            &["--allow-private", "--no-settle", "--for", &read_for],
        ]
        .concat(),
    );
    assert_eq!(mirrored.status, 0, "{mirrored:?}");
    let mut running: Vec<Option<Running>> = data_dirs
        .iter()
        .map(|data_dir| Some(start(data_dir)))
        .collect();
    let store = tokio::task::spawn_blocking(move || Store::open(target).unwrap())
        .await
        .unwrap();
    // All that came due meanwhile is caught up with first.
    let all = stored(&store).await.posts;
    assert!(all as u64 > posts / 2, "{all} posts");
    until(&store, posts, |now| now.oldest_ms < every_ms(posts)).await;

    let mut oldest_ms = 0;
    // Over the whole time in which each post is looked up once.
    let max_ms = (2 * every_ms(posts).unsigned_abs() / kills.max(1)).max(1_200);
    for _ in 0..kills {
        let end = Instant::now() + Duration::from_millis(rng.random_range(200..max_ms));
        while Instant::now() < end {
            oldest_ms = oldest_ms.max(stored(&store).await.oldest_ms);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let at = rng.random_range(0..data_dirs.len());
        if let Some(killed) = running[at].take() {
            killed.kill();
        }
        running[at] = Some(start(&data_dirs[at]));
    }
    let last_kill_ms = Clock::Real.now_ms();
    until(&store, posts, |now| {
        oldest_ms = oldest_ms.max(now.oldest_ms);
        now.first_ms > last_kill_ms
    })
    .await;
    let end = stored(&store).await;
    // What is left of the history on a slow machine is still being read.
    assert!(end.posts >= all, "{} of {all} posts", end.posts);
    assert_eq!(end.scheduled, end.posts, "a post has no schedule, or two");
    let bound_ms = every_ms(posts) + LEASE_MS + SLACK_MS;
    eprintln!("the oldest counts were {oldest_ms} ms old; the bound is {bound_ms} ms");
    assert!(oldest_ms <= bound_ms, "{oldest_ms} ms");
    let refused = sim.traffic().failures;
    assert_eq!(refused, 0, "the processes overran the quota together");
    for mut process in running.into_iter().flatten() {
        process.signal("TERM");
        assert_eq!(process.ended().code(), Some(0));
    }
    // What the ended processes held is due as it was, not after its lease.
    assert_eq!(stored(&store).await.leased, 0);
    store.close().await;
}

fn start(data_dir: &DataDir) -> Running {
    data_dir.serve(&["--allow-private"]).0
}

/// How the stored posts stand.
struct Stored {
    posts: usize,
    /// Posts on the schedule or in a lease, counted as often as they are there.
    scheduled: usize,
    leased: usize,
    /// When the post was refreshed whose last refresh is the longest ago, Unix ms, and how long
    /// that is ago.
    first_ms: i64,
    oldest_ms: i64,
}

async fn stored(store: &Store) -> Stored {
    let now_ms = Clock::Real.now_ms();
    store
        .read(move |tx| {
            let (posts, first_ms) = tx.query_one(
                "select count(*), coalesce(min(refreshed_at_ms), $1) from freshness",
                &[&now_ms],
                |row| Ok((row.i64(0)?, row.i64(1)?)),
            )?;
            let slots = tx.query_one("select count(*) from schedule", &[], |row| row.i64(0))?;
            let claimed = claimed_slots(tx.dialect());
            let leased = format!("select count(*) from ({claimed}) as claimed");
            let leased = tx.query_one(&leased, &[], |row| row.i64(0))?;
            Ok::<_, StoreError>(Stored {
                posts: usize::try_from(posts).unwrap(),
                scheduled: usize::try_from(slots + leased).unwrap(),
                leased: usize::try_from(leased).unwrap(),
                first_ms,
                oldest_ms: now_ms - first_ms,
            })
        })
        .await
        .unwrap()
}

async fn until(store: &Store, posts: u64, mut is_so: impl FnMut(&Stored) -> bool) {
    let rounds = Duration::from_millis(3 * every_ms(posts).unsigned_abs());
    let deadline = Instant::now() + Duration::from_secs(300) + rounds;
    loop {
        let now = stored(store).await;
        if is_so(&now) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "the oldest: {} ms",
            now.oldest_ms
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Published before the test begins.
fn world(posts: u64) -> ServerConfig {
    let published_ms = 30_000;
    ServerConfig {
        world: WorldConfig {
            rate_per_s: posts as f64 * 1_000.0 / f64::from(published_ms),
            publish_for_ms: Some(i64::from(published_ms)),
            growth: Some(Growth {
                half_life_ms: 60_000,
                ..Growth::default()
            }),
            faults: FaultsConfig {
                throttles: vec![ThrottleRule::all(limit(posts), 10_000)],
                ..FaultsConfig::default()
            },
            ..WorldConfig::default()
        },
        history_ms: i64::from(published_ms),
        ..ServerConfig::default()
    }
}

/// More posts take more time to look up.
fn every_ms(posts: u64) -> i64 {
    i64::try_from(posts * 4).unwrap().max(3_000)
}

/// Requests in 10 s: all processes together must not send more.
fn limit(posts: u64) -> u32 {
    u32::try_from(posts / 100).unwrap().max(120)
}

fn config(posts: u64) -> String {
    format!(
        "[defaults]\nspacing = \"50ms\"\n[refresh]\nbuffer_ttl = \"300ms\"\nlease = \"{LEASE_MS}ms\"\n[refresh.ages]\n\"25h\" = \"{}ms\"\n",
        every_ms(posts)
    )
}

const LEASE_MS: i64 = 5_000;
/// Between a post's due time and its answer: the wait for a full batch, a worker's wait for work, a
/// start of a process, and a loaded machine: the suite runs beside it.
const SLACK_MS: i64 = 10_000;
