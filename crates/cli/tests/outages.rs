//! The store goes away and comes back: sources go on by themselves.
//!
//! `DRIFTLINE_OUTAGE_S=30` makes the outages of PostgreSQL that long.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use driftline_db::testing::Outage;
use driftline_sim::{
    WorldConfig,
    http::{Clock, SimServer, Timeline},
};
use driftline_store::{Root, SecretUrl, Store, StoreError, Target, Tx, touch};
use serde_json::{Value, json};
use support::{
    DataDir, Running,
    browser::{Browser, client},
    get,
    small_disk::SmallDisk,
    wait_for,
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
        let sim = SimServer::start(WorldConfig::punctual(20.0), 1, Clock::Real);
        let sim = sim.await.unwrap();
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
        self.data_dir.get(&format!("{}/readyz", self.base))
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

    /// The server is ready, has logged the outage that many times and ends in order.
    fn end(mut self, times: usize) {
        wait_for("it is ready", || self.readiness() == (200, "ok".to_owned()));
        wait_for("the end of the outage is logged", || {
            times == 0 || self.data_dir.log().contains("the store works again")
        });
        self.server.signal("TERM");
        assert_eq!(self.server.ended().code(), Some(0));
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
async fn a_source_goes_on_after_postgresql_was_frozen() {
    let postgres = Outage::start();
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
    let scene = Scene::begin(data_dir).await;
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
async fn a_server_ends_while_postgresql_is_frozen() {
    let postgres = Outage::start();
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
    let mut scene = Scene::begin(data_dir).await;
    postgres.freeze();
    scene.is_unready("The store does not answer");
    let signalled = Instant::now();
    scene.server.signal("TERM");
    let ended = scene.server.ended();
    assert!(signalled.elapsed() < END, "{:?}", signalled.elapsed());
    assert_eq!(ended.code(), Some(1));
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

/// What people do while the disk is full is done or refused (503), and never half.
#[tokio::test(flavor = "multi_thread")]
async fn people_are_told_of_a_full_disk_and_go_on_after_it() {
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DISK_RESERVE", "0");
    data_dir.file("driftline.toml", "[accounts]\nsign_up = \"open\"\n");
    let disk = SmallDisk::mount(&data_dir.data());
    let passphrase = data_dir.file("passphrase", PASSPHRASE);
    for name in ["ann", "ben"] {
        let mail = format!("{name}@mail.example");
        let create = ["account", "create", name, "--mail", &mail];
        data_dir.json(&[&create[..], &["--passphrase-file", &passphrase]].concat());
    }
    let scene = Scene::begin(data_dir).await;
    let people = People::log_in(&scene).await;
    let (ben, post) = (people.ben().await, people.newest().await);
    let follow = |on: bool| {
        format!(
            "/api/v1/accounts/{ben}/{}follow",
            if on { "" } else { "un" }
        )
    };
    let mark = |on: bool| {
        format!(
            "/api/v1/statuses/{post}/{}bookmark",
            if on { "" } else { "un" }
        )
    };

    disk.fill(&scene.server);
    let (mut follows, mut marks, mut names, mut log_ins) = (false, false, Vec::new(), 1);
    let mut refused = [0; 5];
    let mut took = |at: usize, status: u16| {
        assert!(matches!(status, 200 | 303 | 503), "{at}: {status}");
        refused[at] += usize::from(status == 503);
        status != 503
    };
    let begun = Instant::now();
    let mut turn = 0;
    // What fits into what is allotted already is still stored.
    while turn < 3 || !scene.readiness().1.contains("The store cannot be") {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is full");
        turn += 1;
        if took(0, people.post(&follow(!follows), json!({})).await.0) {
            follows = !follows;
        }
        if took(1, people.post(&mark(!marks), json!({})).await.0) {
            marks = !marks;
        }
        let name = format!("new{turn}");
        let mut browser = Browser::new(&scene.base, "en");
        let (status, page) = browser.sign_up(&name, PASSPHRASE).await;
        if took(2, status) {
            names.push(name);
        } else {
            assert!(page.contains("The server cannot use its data"), "{page}");
        }
        let (status, _) = browser.log_in("ann", PASSPHRASE).await;
        log_ins += i32::from(took(3, status));
        let app = json!({ "client_name": "another", "redirect_uris": "urn:ietf:wg:oauth:2.0:oob" });
        took(4, people.post("/api/v1/apps", app).await.0);
        // Who reads is served.
        let (status, page) = people.get("/api/v1/timelines/home").await;
        assert_eq!(status, 200, "{page}");
    }
    assert!(refused.iter().all(|times| *times > 0), "{refused:?}");

    disk.give_room(&scene.server);
    scene.catches_up("the disk was full");
    let relations = people
        .get(&format!("/api/v1/accounts/relationships?id[]={ben}"))
        .await
        .1;
    assert_eq!(relations[0]["following"], follows, "{relations}");
    let bookmarks = people.get("/api/v1/bookmarks").await.1;
    assert_eq!(bookmarks.as_array().unwrap().len(), usize::from(marks));
    let tokens = scene.data_dir.json(&["account", "tokens", "ann"]);
    let browsers = tokens.as_array().unwrap().iter();
    let browsers = browsers.filter(|row| row["kind"] == "browser").count();
    assert_eq!(browsers + 1, usize::try_from(log_ins).unwrap(), "{tokens}");
    // A name is held by who was told that a mail is on its way, and by nobody else.
    for turn in 1..=turn {
        let name = format!("new{turn}");
        let (status, _) = Browser::new(&scene.base, "en")
            .sign_up(&name, "another passphrase")
            .await;
        let expected = if names.contains(&name) { 422 } else { 200 };
        assert_eq!(status, expected, "{name}");
    }
    for (path, on) in [(follow(!follows), !follows), (follow(true), true)] {
        let (status, relation) = people.post(&path, json!({})).await;
        assert_eq!((status, &relation["following"]), (200, &json!(on)));
    }
    scene.end(1);
}

const PASSPHRASE: &str = "correct horse battery";

/// Ann, logged in with an app.
struct People {
    client: reqwest::Client,
    base: String,
    token: String,
}

impl People {
    async fn log_in(scene: &Scene) -> Self {
        let mut people = Self {
            client: client(),
            base: scene.base.clone(),
            token: "none".to_owned(),
        };
        let all = "read write follow";
        let oob = "urn:ietf:wg:oauth:2.0:oob";
        let app = json!({ "client_name": "app", "redirect_uris": oob, "scopes": all });
        let app = people.unknown("/api/v1/apps", app).await;
        let grant = json!({
            "grant_type": "password", "client_id": app["client_id"], "scope": all,
            "client_secret": app["client_secret"], "username": "ann", "password": PASSPHRASE,
        });
        let token = people.unknown("/oauth/token", grant).await;
        people.token = token["access_token"].as_str().unwrap().to_owned();
        people
    }

    async fn unknown(&self, path: &str, body: Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request.header("content-type", "application/json");
        let (status, answer) = answered(request.body(body.to_string())).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let request = self.client.get(format!("{}{path}", self.base));
        answered(request.bearer_auth(&self.token)).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request.header("content-type", "application/json");
        answered(request.bearer_auth(&self.token).body(body.to_string())).await
    }

    async fn ben(&self) -> String {
        let found = self.get("/api/v1/accounts/lookup?acct=ben").await.1;
        found["id"].as_str().unwrap().to_owned()
    }

    async fn newest(&self) -> String {
        let page = self.get("/api/v1/timelines/public?limit=1").await.1;
        page[0]["id"].as_str().unwrap().to_owned()
    }
}

async fn answered(request: reqwest::RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap())
}

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
    // What was asked for before is stored.
    sleep(Duration::from_secs(1));
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
    let sim = SimServer::start(WorldConfig::punctual(20.0), 1, Clock::Real);
    let sim = sim.await.unwrap();
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
async fn a_source_goes_on_after_its_database_could_not_be_written() {
    // In memory a file that is open can be written whatever its flags say.
    let data_dir = DataDir::on_disk();
    let path = data_dir.data().join("driftline.db");
    let scene = Scene::begin(data_dir).await;
    // Longer than a writer waits for another one.
    let locked = std::thread::spawn({
        let path = path.clone();
        move || {
            let store = Store::open(Target::Sqlite { path }).unwrap();
            let held = store.write_blocking(Root::none(), |tx| {
                touch(tx)?;
                sleep(Duration::from_secs(7));
                Ok::<_, StoreError>(())
            });
            store.close_blocking();
            held.unwrap();
        }
    });
    scene.is_unready("The store");
    locked.join().unwrap();
    scene.catches_up("another process held the database");

    if let Some(read_only) = ReadOnly::make(&path) {
        scene.is_unready("The store cannot be");
        wait_for("it is logged", || {
            scene.data_dir.log().contains("the store fails")
        });
        drop(read_only);
        scene.catches_up("the file was read-only");
        return scene.end(1);
    }
    let times = usize::from(scene.data_dir.log().contains("the store fails"));
    scene.end(times);
}

/// A database whose files are read-only even to who has them open: for root on file systems that
/// know such files.
struct ReadOnly(Vec<PathBuf>);

impl ReadOnly {
    fn make(path: &Path) -> Option<Self> {
        let files = ["", "-wal"].map(|end| PathBuf::from(format!("{}{end}", path.display())));
        let made = Self(files.to_vec());
        made.change("+i").then_some(made)
    }

    fn change(&self, flag: &str) -> bool {
        let changed = Command::new("chattr").arg(flag).args(&self.0).output();
        changed.is_ok_and(|output| output.status.success())
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        self.change("-i");
    }
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
    other.signal("TERM");
    assert_eq!(other.ended().code(), Some(0));
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

/// How soon a server ends after the signal, with a margin for a busy machine.
const END: Duration = Duration::from_secs(15);
/// How soon a source goes on once its store is back.
const BACK: Duration = Duration::from_secs(10);
