//! The store goes away and comes back: sources go on by themselves.
//!
//! `DRIFTLINE_OUTAGE_S=30` makes the outages of PostgreSQL that long.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use driftline_sim::{
    WorldConfig,
    http::{Clock, SimServer, Timeline},
};
use support::{Place, Running, postgres::Outage, small_disk::SmallDisk, wait_for};

/// A server that reads a simulated upstream.
struct Scene {
    sim: SimServer,
    place: Place,
    server: Running,
}

impl Scene {
    async fn begin(place: Place) -> Self {
        let sim = SimServer::start(WorldConfig::punctual(20.0), 1, Clock::Real);
        let sim = sim.await.unwrap();
        let (server, _) = place.serve(&["--allow-private"]);
        let url = sim.url();
        let add = ["source", "add", &url, "--name", "sim", "--every", "200ms"];
        place.json(&add);
        let scene = Self { sim, place, server };
        scene.catches_up("begun");
        scene
    }

    fn stored(&self) -> u64 {
        let ended = self.place.run(&["--json", "source", "verify", "sim"]);
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
        report["posts"].as_u64().unwrap_or(0)
    }

    /// What is published by now is stored within [`BACK`].
    fn catches_up(&self, when: &str) {
        let published = self
            .sim
            .truth(&Timeline::Public)
            .map_or(1, |truth| u64::try_from(truth.posts.len()).unwrap());
        let begun = Instant::now();
        loop {
            let stored = self.stored();
            if stored >= published.max(1) {
                return;
            }
            assert!(
                begun.elapsed() < BACK,
                "{when}: {stored} of {published} posts"
            );
            sleep(Duration::from_millis(100));
        }
    }

    fn end(mut self) {
        self.server.signal("TERM");
        assert_eq!(self.server.ended().code(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_goes_on_after_postgresql_was_stopped() {
    let mut postgres = Outage::start();
    let place = Place::new().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
    let scene = Scene::begin(place).await;
    for seconds in outages(&[1, 2, 5]) {
        postgres.stop();
        sleep(Duration::from_secs(seconds));
        postgres.start_again();
        scene.catches_up(&format!("stopped for {seconds} s"));
    }
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_goes_on_after_postgresql_stood_still() {
    let postgres = Outage::start();
    let place = Place::new().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
    let scene = Scene::begin(place).await;
    for seconds in outages(&[2, 7]) {
        postgres.freeze();
        sleep(Duration::from_secs(seconds));
        postgres.thaw();
        scene.catches_up(&format!("frozen for {seconds} s"));
    }
    scene.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_goes_on_after_the_disk_was_full() {
    let place = Place::new();
    let disk = SmallDisk::mount(&place.data());
    let scene = Scene::begin(place).await;
    disk.fill(&scene.server);
    let stood_still = || {
        let before = scene.stored();
        sleep(Duration::from_secs(2));
        scene.stored() == before
    };
    wait_for("nothing more is stored", stood_still);
    disk.give_room(&scene.server);
    scene.catches_up("the disk was full");
    scene.end();
}

fn outages(usual: &[u64]) -> Vec<u64> {
    match std::env::var("DRIFTLINE_OUTAGE_S") {
        Ok(seconds) => vec![seconds.parse().unwrap()],
        Err(_) => usual.to_vec(),
    }
}

/// How soon a source goes on once its store is back.
const BACK: Duration = Duration::from_secs(10);
