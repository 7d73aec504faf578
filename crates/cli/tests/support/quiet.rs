//! Timelines without surprises, and the whole mirror of one that has fallen silent.

use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use serde_json::Value;

use super::DataDir;

/// A timeline with so many posts a second, as long as it is read.
pub async fn steady(posts_per_s: f64) -> SimServer {
    let world = WorldConfig::punctual(posts_per_s);
    SimServer::start(world, 1, Clock::Real).await.unwrap()
}

/// A timeline with 20 s of posts in it, so many a second, whose last is a second old.
pub async fn quiet(posts_per_s: f64, seed: u64) -> SimServer {
    with_history(Some(19_000), posts_per_s, seed).await
}

/// A timeline with 20 s of posts in it that goes on until it is told to fall silent.
pub async fn lively(posts_per_s: f64, seed: u64) -> SimServer {
    with_history(None, posts_per_s, seed).await
}

async fn with_history(publish_for_ms: Option<i64>, posts_per_s: f64, seed: u64) -> SimServer {
    let config = ServerConfig {
        world: WorldConfig {
            publish_for_ms,
            ..WorldConfig::punctual(posts_per_s)
        },
        history_ms: 20_000,
        ..ServerConfig::default()
    };
    SimServer::start(config, seed, Clock::Real).await.unwrap()
}

/// What `mirror` takes to read all of it in a second, and settle.
pub const FAST: [&str; 11] = [
    "--allow-private",
    "--backfill",
    "all",
    "--every",
    "100ms",
    "--spacing",
    "10ms",
    "--second-look",
    "200ms",
    "--rung",
    "1d/1h",
];

impl DataDir {
    /// Mirrors all of a quiet timeline into a source of that name. Returns its report. A busy machine needs more than
    /// one run.
    pub fn mirror(&self, url: &str, name: &str) -> Value {
        let mut arguments = vec!["--json", "mirror", url, "--name", name, "--for", "1s"];
        arguments.extend(FAST);
        let mut runs = (0..MAX_RUNS).map(|_| self.run(&arguments));
        let ended = runs.find(|ended| ended.status != INCOMPLETE);
        let ended = ended.expect("it does not get all");
        assert_eq!(ended.status, 0, "{ended:?}");
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }
}

/// The status of a run that ends before it has all.
const INCOMPLETE: i32 = 3;
const MAX_RUNS: usize = 60;
