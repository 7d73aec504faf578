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
use support::{Place, Running, get, postgres::Outage, small_disk::SmallDisk, wait_for};

/// A server that reads a simulated upstream.
struct Scene {
    sim: SimServer,
    place: Place,
    server: Running,
    base: String,
}

impl Scene {
    async fn begin(place: Place) -> Self {
        let sim = SimServer::start(WorldConfig::punctual(20.0), 1, Clock::Real);
        let sim = sim.await.unwrap();
        let (server, base) = place.serve(&["--allow-private"]);
        let url = sim.url();
        let add = ["source", "add", &url, "--name", "sim", "--every", "200ms"];
        place.json(&add);
        let scene = Self {
            sim,
            place,
            server,
            base,
        };
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

    fn readiness(&self) -> (u16, String) {
        get(&format!("{}/readyz", self.base))
    }

    /// Waits until the server says that it is not ready, and for what reason.
    fn is_unready(&self, reason: &str) {
        let begun = Instant::now();
        loop {
            let (status, body) = self.readiness();
            if status == 503 && body.contains(reason) {
                return;
            }
            assert!(begun.elapsed() < BACK, "{status} {body}");
            sleep(Duration::from_millis(100));
        }
    }

    /// The server is ready, told of the outage so often and ends in order.
    fn end(mut self, times: usize) {
        wait_for("it is ready", || self.readiness() == (200, "ok".to_owned()));
        wait_for("the end of the outage is told", || {
            times == 0 || self.place.log().contains("the store works again")
        });
        self.server.signal("TERM");
        assert_eq!(self.server.ended().code(), Some(0));
        let log = self.place.log();
        for told in ["the store fails", "the store works again"] {
            let lines = log.lines().filter(|line| line.contains(told));
            assert_eq!(lines.count(), times, "{told}: {log}");
        }
        assert!(!log.contains("source=sim"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_goes_on_after_postgresql_was_stopped() {
    let mut postgres = Outage::start();
    let place = Place::new().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
    let scene = Scene::begin(place).await;
    for seconds in outages(&[1, 2, 5]) {
        postgres.stop();
        scene.is_unready("The store cannot be read");
        sleep(Duration::from_secs(seconds));
        postgres.start_again();
        scene.catches_up(&format!("stopped for {seconds} s"));
    }
    scene.end(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_goes_on_after_postgresql_stood_still() {
    let postgres = Outage::start();
    let place = Place::new().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
    let scene = Scene::begin(place).await;
    for seconds in outages(&[1, 5]) {
        postgres.freeze();
        scene.is_unready("The store does not answer");
        sleep(Duration::from_secs(seconds));
        postgres.thaw();
        scene.catches_up(&format!("frozen for {seconds} s"));
    }
    // Nothing has failed: it only took long.
    scene.end(0);
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
    scene.is_unready("The store cannot be");
    disk.give_room(&scene.server);
    scene.catches_up("the disk was full");
    scene.end(1);
}

fn outages(usual: &[u64]) -> Vec<u64> {
    match std::env::var("DRIFTLINE_OUTAGE_S") {
        Ok(seconds) => vec![seconds.parse().unwrap()],
        Err(_) => usual.to_vec(),
    }
}

/// How soon a source goes on once its store is back.
const BACK: Duration = Duration::from_secs(10);
