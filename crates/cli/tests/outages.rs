//! The store goes away and comes back: sources go on by themselves.
//!
//! `DRIFTLINE_OUTAGE_S=30` makes the outages of PostgreSQL that long.
#![allow(clippy::unwrap_used)]

mod support;

use std::{fs, thread::sleep, time::Duration};

use driftline_db::testing::Outage;
use driftline_sim::http::{SimServer, Timeline};
use driftline_store::{Root, SecretUrl, Store, StoreError, Target, Tx};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use support::{
    DataDir, Running, browser::client, get, quiet::steady, small_disk::SmallDisk, wait_for,
};

/// A server that reads a simulated upstream.
struct Scene {
    sim: SimServer,
    data_dir: DataDir,
    server: Running,
    base: String,
}

impl Scene {
    async fn begin(data_dir: DataDir) -> Self {
        let sim = steady(20.0).await;
        let (server, base) = data_dir.serve(&["--allow-private"]);
        let url = sim.url();
        let add = ["source", "add", &url, "--name", "sim", "--every", "200ms"];
        data_dir.json(&add);
        let scene = Self {
            sim,
            data_dir,
            server,
            base,
        };
        scene.catches_up("begun");
        scene
    }

    fn stored(&self) -> u64 {
        let ended = self.data_dir.run(&["--json", "source", "verify", "sim"]);
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
        report["posts"].as_u64().unwrap_or(0)
    }

    /// Waits until what is published by now is stored.
    fn catches_up(&self, when: &str) {
        let published = self
            .sim
            .truth(&Timeline::Public)
            .map_or(1, |truth| u64::try_from(truth.posts.len()).unwrap());
        wait_for(&format!("{published} posts are stored, {when}"), || {
            self.stored() >= published.max(1)
        });
    }

    /// Waits until nothing more is stored: not what was asked for before either.
    fn stands_still(&self) {
        wait_for("nothing more is stored", || {
            let before = self.stored();
            sleep(Duration::from_secs(2));
            self.stored() == before
        });
    }

    fn readiness(&self) -> (u16, String) {
        self.data_dir.get(&format!("{}/readyz", self.base))
    }

    /// Waits until the server says that it is not ready, and for what reason.
    fn is_unready(&self, reason: &str) {
        wait_for(reason, || {
            let (status, body) = self.readiness();
            status == 503 && body.contains(reason)
        });
    }

    /// The server is ready, has logged the outage that many times and ends in order.
    fn end(mut self, times: usize) {
        wait_for("it is ready", || self.readiness() == (200, "ok".to_owned()));
        wait_for("the end of the outage is logged", || {
            times == 0 || self.data_dir.log().contains("the store works again")
        });
        self.server.stop();
        let log = self.data_dir.log();
        for message in ["the store fails", "the store works again"] {
            let lines = log.lines().filter(|line| line.contains(message));
            assert_eq!(lines.count(), times, "{message}: {log}");
        }
        assert!(!log.contains("source=sim"), "{log}");
        assert_no_line_comes_twice(&log);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_goes_on_after_postgresql_was_stopped() {
    let mut postgres = Outage::start();
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
    let ids = "[id]\nserve = true\nlease = \"store\"\nlisten_thrift = \"none\"\n";
    data_dir.file("driftline.toml", ids);
    let scene = Scene::begin(data_dir).await;
    for seconds in outages(&[1, 2, 5]) {
        postgres.stop();
        scene.is_unready("The store cannot be read");
        sleep(Duration::from_secs(seconds));
        postgres.start_again();
        scene.catches_up(&format!("stopped for {seconds} s"));
    }
    wait_for("the window is extended again", || {
        let log = scene.data_dir.log();
        log.contains("was not extended") && log.contains("is extended again")
    });
    scene.end(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_goes_on_after_postgresql_was_frozen_and_a_server_ends_meanwhile() {
    let postgres = Outage::start();
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
    let mut scene = Scene::begin(data_dir).await;
    postgres.freeze();
    scene.is_unready("The store does not answer");
    postgres.thaw();
    scene.catches_up("thawed");
    // Nothing has failed: it only took long.
    assert!(!scene.data_dir.log().contains("the store fails"));
    postgres.freeze();
    scene.is_unready("The store does not answer");
    scene.server.signal("TERM");
    assert_eq!(scene.server.ended().code(), Some(1));
    let log = scene.data_dir.log();
    assert!(log.contains("leases were not given back"), "{log}");
    postgres.thaw();
    let (server, _) = scene.data_dir.serve(&["--allow-private"]);
    scene.server = server;
    scene.catches_up("begun again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_goes_on_after_the_disk_was_full() {
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DISK_RESERVE", "0");
    let disk = SmallDisk::mount(&data_dir.data());
    let scene = Scene::begin(data_dir).await;
    disk.fill(&scene.server);
    scene.stands_still();
    scene.is_unready("The store cannot be");
    disk.give_room(&scene.server);
    scene.catches_up("the disk was full");
    scene.end(1);
}

/// A write while the disk is full is done or refused, never half, and is done once there is room.
#[tokio::test(flavor = "multi_thread")]
async fn people_write_again_after_the_disk_was_full() {
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DISK_RESERVE", "0");
    let disk = SmallDisk::mount(&data_dir.data());
    let ben = data_dir.account("ben", PASSPHRASE)["id"].clone();
    data_dir.account("ann", PASSPHRASE);
    let scene = Scene::begin(data_dir).await;
    let ann = Ann::log_in(&scene, ben.as_str().unwrap()).await;
    disk.fill(&scene.server);
    scene.is_unready("The store cannot be");
    let mut done = [0; KINDS];
    for (kind, done) in done.iter_mut().enumerate() {
        // What fits into what is allotted already is still stored.
        loop {
            let (status, answer) = ann.write(kind, *done).await;
            if status != 200 {
                let said = answer["error"].as_str().unwrap();
                assert!(status == 503 && said.contains(" store "), "{status} {said}");
                break;
            }
            *done += 1;
        }
    }
    disk.give_room(&scene.server);
    scene.catches_up("the disk was full");
    assert_eq!(ann.kept().await, ann.expected(done));
    for (kind, done) in done.iter_mut().enumerate() {
        let (status, answer) = ann.write(kind, *done).await;
        assert_eq!(status, 200, "{kind}: {answer}");
        *done += 1;
    }
    assert_eq!(ann.kept().await, ann.expected(done));
    scene.end(1);
}

/// Somebody who is logged in with an app.
struct Ann<'a> {
    scene: &'a Scene,
    client: Client,
    grant: Value,
    token: String,
    /// A post and an account that she marks.
    post: String,
    other: String,
}

impl<'a> Ann<'a> {
    async fn log_in(scene: &'a Scene, other: &str) -> Self {
        let mut ann = Self {
            scene,
            client: client(),
            grant: Value::Null,
            token: String::new(),
            post: String::new(),
            other: other.to_owned(),
        };
        let all = "read write";
        let oob = "urn:ietf:wg:oauth:2.0:oob";
        let app = json!({ "client_name": "app", "redirect_uris": oob, "scopes": all });
        let app = answered(ann.posting("/api/v1/apps", &app)).await.1;
        ann.grant = json!({
            "grant_type": "password", "username": "ann", "password": PASSPHRASE, "scope": all,
            "client_id": app["client_id"], "client_secret": app["client_secret"],
        });
        let (status, token) = answered(ann.posting("/oauth/token", &ann.grant)).await;
        assert_eq!(status, 200, "{token}");
        ann.token = token["access_token"].as_str().unwrap().to_owned();
        let newest = ann.get("/api/v1/timelines/public?limit=1").await;
        ann.post = newest[0]["id"].as_str().unwrap().to_owned();
        ann
    }

    /// Writes the `n`th of a kind: a list, a bookmark and a mute that come and go, a token.
    async fn write(&self, kind: usize, n: usize) -> (u16, Value) {
        let un = if n.is_multiple_of(2) { "" } else { "un" };
        let (path, body) = match kind {
            0 => ("/api/v1/lists".to_owned(), json!({ "title": "own" })),
            1 => (
                format!("/api/v1/statuses/{}/{un}bookmark", self.post),
                json!({}),
            ),
            2 => (
                format!("/api/v1/accounts/{}/{un}mute", self.other),
                json!({}),
            ),
            _ => return answered(self.posting("/oauth/token", &self.grant)).await,
        };
        answered(self.posting(&path, &body).bearer_auth(&self.token)).await
    }

    /// The number of each kind that the server has.
    async fn kept(&self) -> [usize; KINDS] {
        let lists = self.get("/api/v1/lists").await;
        let own = lists.as_array().unwrap().iter();
        let bookmarks = self.get("/api/v1/bookmarks").await;
        let mutes = self.get("/api/v1/mutes").await;
        let tokens = self.scene.data_dir.json(&["account", "tokens", "ann"]);
        let count = |all: &Value| all.as_array().unwrap().len();
        [
            own.filter(|list| list["title"] == "own").count(),
            count(&bookmarks),
            count(&mutes),
            count(&tokens),
        ]
    }

    /// The numbers once so many writes of each kind are done.
    fn expected(&self, done: [usize; KINDS]) -> [usize; KINDS] {
        let [lists, bookmarks, mutes, tokens] = done;
        [lists, bookmarks % 2, mutes % 2, 1 + tokens]
    }

    fn posting(&self, path: &str, body: &Value) -> RequestBuilder {
        let request = self.client.post(format!("{}{path}", self.scene.base));
        let request = request.header("content-type", "application/json");
        request.body(body.to_string())
    }

    async fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}{path}", self.scene.base));
        answered(request.bearer_auth(&self.token)).await.1
    }
}

async fn answered(request: RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    (
        status,
        serde_json::from_str(&answer.text().await.unwrap()).unwrap(),
    )
}

const PASSPHRASE: &str = "correct horse battery";
/// The kinds of what she writes.
const KINDS: usize = 4;

/// Intake pauses before anything fails, readers are served on, and it goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn intake_pauses_while_the_disk_has_less_than_its_reserve() {
    let data_dir = DataDir::new();
    let disk = SmallDisk::mount(&data_dir.data());
    if !disk.is_mounted() {
        // Who may not mount cannot fill a disk: the next test pauses intake on any.
        return pauses_from_the_start().await;
    }
    let scene = Scene::begin(data_dir.with("DRIFTLINE_STORE__DISK_RESERVE", "8MiB")).await;
    disk.fill_but(6 << 20);
    wait_for("intake pauses", || {
        let (status, body) = scene.readiness();
        assert_eq!(status, 200, "{body}");
        body.contains("\nintake pauses: ")
    });
    scene.stands_still();
    let before = scene.stored();
    let published = || scene.sim.truth(&Timeline::Public).unwrap().posts.len();
    let published_before = published();
    wait_for("more is published", || published() > published_before + 40);
    assert_eq!(scene.stored(), before);
    let (status, posts) = get(&format!("{}/api/v1/timelines/public", scene.base));
    assert_eq!(status, 200, "{posts}");
    assert!(posts.contains("\"id\""), "{posts}");
    let row = &scene.data_dir.json(&["source", "list"])[0];
    assert_eq!(row["state"], "out_of_room", "{row}");
    let status = scene.data_dir.json(&["status"]);
    assert_eq!(status["low_disk"]["reserve_bytes"], 8 << 20, "{status}");
    let metrics = || scene.data_dir.get(&format!("{}/metrics", scene.base)).1;
    assert!(metrics().contains("\ndriftline_intake_paused 1\n"));

    fs::remove_file(scene.data_dir.data().join("filled")).unwrap();
    scene.catches_up("the disk had no room");
    assert!(metrics().contains("\ndriftline_intake_paused 0\n"));
    let log = scene.data_dir.log();
    for message in ["intake pauses: ", "intake goes on after "] {
        assert_eq!(log.matches(message).count(), 1, "{message}: {log}");
    }
    scene.end(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_on_a_disk_below_its_reserve() {
    pauses_from_the_start().await;
}

async fn pauses_from_the_start() {
    let sim = steady(20.0).await;
    let url = sim.url();
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DISK_RESERVE", "1EiB");
    let add = [
        "mirror",
        &url,
        "--name",
        "sim",
        "--allow-private",
        "--for",
        "1s",
    ];
    let ended = data_dir.run(&add);
    assert_eq!(ended.status, 3, "{ended:?}");
    assert!(ended.stdout.contains("nothing is read: "), "{ended:?}");
    let (_server, base) = data_dir.serve(&["--allow-private"]);
    let (status, body) = data_dir.get(&format!("{base}/readyz"));
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("a reserve of 1.0 EiB is kept"), "{body}");
    let report = data_dir.json(&["source", "verify", "sim"]);
    assert_eq!(report["posts"], 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_takes_over_from_a_frozen_one() {
    let postgres = Outage::start();
    let data_dir = || DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
    let scene = Scene::begin(data_dir()).await;
    let second = data_dir();
    let (mut other, _) = second.serve(&["--allow-private"]);
    let before = fence(postgres.url());
    // One that is frozen inside a transaction keeps its locks until the database ends it.
    wait_for("it is frozen between two transactions", || {
        scene.server.signal("STOP");
        sleep(Duration::from_millis(300));
        let is_between = on(postgres.url(), |tx| {
            let held = "select count(*) from pg_stat_activity
                where datname is not null and xact_start < clock_timestamp() - interval '250 ms'";
            Ok(tx.query_one(held, &[], |row| row.i64(0))? == 0)
        });
        if !is_between {
            scene.server.signal("CONT");
        }
        is_between
    });
    wait_for("the other one has claimed it", || {
        fence(postgres.url()) > before
    });
    let report = || second.json(&["source", "verify", "sim"])["posts"].as_u64();
    let then = report();
    wait_for("it stores posts", || report() > then);
    scene.server.signal("CONT");
    scene.catches_up("the first process goes on");
    let taken = fence(postgres.url());
    assert_eq!(
        taken,
        before + 1,
        "it does not come back as long as it is read"
    );
    scene.end(0);
    other.stop();
}

/// The fencing number of the source's last claim.
fn fence(url: &str) -> i64 {
    on(url, |tx| {
        let fence = "select lease_fence from source where name = 'sim'";
        Ok(tx.query_one(fence, &[], |row| row.i64(0))?)
    })
}

#[test]
fn a_server_whose_node_was_taken_ends_and_says_so() {
    let postgres = Outage::start();
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
    let ids = "[id]\nserve = true\nlease = \"store\"\nlisten_thrift = \"none\"\n";
    data_dir.file("driftline.toml", ids);
    let (mut server, _) = data_dir.serve(&[]);
    on(postgres.url(), |tx| {
        let taken = "update node_lease set lease_fence = lease_fence + 1, lease_holder = 'other'";
        Ok(tx.execute(taken, &[])?)
    });
    assert_eq!(server.ended().code(), Some(1));
    let log = data_dir.log();
    assert!(log.contains("another process's now"), "{log}");
}

/// Within a minute nothing is to be warned of twice, whoever does it.
fn assert_no_line_comes_twice(log: &str) {
    let mut lines: Vec<_> = log
        .lines()
        .filter_map(|line| line.split_once(" WARN "))
        .map(|(_, message)| message)
        .collect();
    lines.sort_unstable();
    let twice = lines.windows(2).find(|two| two[0] == two[1]);
    assert!(twice.is_none(), "{twice:?} in {log}");
}

/// Does something with a database, on a thread of its own.
fn on<T: Send + 'static>(url: &str, job: fn(&mut Tx<'_>) -> Result<T, StoreError>) -> T {
    let target = Target::Postgres {
        url: SecretUrl::new(url),
        schema: None,
    };
    let done = std::thread::spawn(move || {
        let store = Store::open(target).unwrap();
        let done = store.write_blocking(Root::none(), job);
        store.close_blocking();
        done.unwrap()
    });
    done.join().unwrap()
}

fn outages(default: &[u64]) -> Vec<u64> {
    match std::env::var("DRIFTLINE_OUTAGE_S") {
        Ok(seconds) => vec![seconds.parse().unwrap()],
        Err(_) => default.to_vec(),
    }
}
