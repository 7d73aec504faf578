//! A standby that lagged takes over from the server's database: replicas notice it, and list the changes that were lost.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use driftline_db::testing::Failover;
use reqwest::Client;
use serde_json::{Value, json};
use support::{DataDir, Ended, Running, browser::client, lines, wait_for};

const PASSPHRASE: &str = "correct horse battery";

/// A server on a database with a standby, and an account.
struct Scene {
    data_dir: DataDir,
    base: String,
    _server: Running,
    client: Client,
    token: String,
}

impl Scene {
    async fn begin(database_url: &str) -> Self {
        let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", database_url);
        data_dir.account("ann", PASSPHRASE);
        let (server, base) = data_dir.serve(&[]);
        let mut scene = Self {
            data_dir,
            base,
            _server: server,
            client: client(),
            token: String::new(),
        };
        scene.log_in().await;
        scene
    }

    /// Gets a token by the password grant, into the file `token`.
    async fn log_in(&mut self) {
        let scopes = "read write";
        let oob = "urn:ietf:wg:oauth:2.0:oob";
        let app = json!({ "client_name": "replica", "redirect_uris": oob, "scopes": scopes });
        let app = self.post("/api/v1/apps", &app).await;
        let grant = json!({
            "grant_type": "password", "username": "ann", "password": PASSPHRASE, "scope": scopes,
            "client_id": app["client_id"], "client_secret": app["client_secret"],
        });
        let token = self.post("/oauth/token", &grant).await;
        self.token = token["access_token"].as_str().unwrap().to_owned();
        self.data_dir.file("token", &self.token);
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request.header("content-type", "application/json");
        let request = match self.token.is_empty() {
            true => request,
            false => request.bearer_auth(&self.token),
        };
        let answer = request.body(body.to_string()).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status.as_u16(), 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The news of the account's library for a replica with this cursor.
    async fn news(&self, cursor: &Value) -> Value {
        let request = json!({ "libraries": [{ "library": "account", "cursor": cursor }] });
        self.post("/api/driftline/v1/sync", &request).await["news"][0].clone()
    }

    /// Runs a command on a replica.
    fn run(&self, replica: &str, arguments: &[&str]) -> Ended {
        let all = [&["--json", "replica", "--replica", replica][..], arguments].concat();
        self.data_dir.run(&all)
    }

    /// The lines of JSON of a command on a replica, which must succeed.
    fn replica(&self, replica: &str, arguments: &[&str]) -> Vec<Value> {
        let ended = self.run(replica, arguments);
        assert_eq!(ended.status, 0, "{arguments:?}: {ended:?}");
        lines(&ended.stdout)
    }

    /// Makes a replica, once the server can.
    fn init(&self, replica: &str) {
        wait_for("a replica is made", || {
            let init = ["init", &self.base, "--token-file", "token"];
            self.run(replica, &init).status == 0
        });
    }

    /// Syncs a replica, after which the server has all of its changes. Returns the report.
    fn sync(&self, replica: &str) -> Value {
        let mut synced = self.replica(replica, &["sync"]);
        let synced = synced.remove(0);
        assert_eq!(synced["dirty"], 0, "{synced}");
        synced
    }

    /// Writes a note on the post with that number.
    fn note(&self, replica: &str, post: u64, text: &str) {
        let changed = self.replica(replica, &["note", &uri(post), text]);
        assert_eq!(changed[0]["changed"], true, "{changed:?}");
    }

    /// The texts of a replica's notes, by their keys.
    fn notes(&self, replica: &str) -> BTreeMap<String, String> {
        let objects = self.replica(replica, &["show"]);
        objects
            .iter()
            .map(|object| (text(&object["key"]), text(&object["value"]["text"])))
            .collect()
    }

    /// The conflicts of a replica by their keys: the numbers, and this device's texts.
    fn lost(&self, replica: &str) -> BTreeMap<String, (i64, String)> {
        let conflicts = self.replica(replica, &["conflicts"]);
        conflicts
            .iter()
            .map(|conflict| {
                assert_eq!(conflict["reason"], "lost-by-server", "{conflict}");
                let id = conflict["id"].as_i64().unwrap();
                (
                    text(&conflict["key"]),
                    (id, text(&conflict["mine"]["text"])),
                )
            })
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_lagged_loses_nothing_silently() {
    let mut postgres = Failover::start();
    let scene = Scene::begin(postgres.url()).await;
    scene.init("one");
    scene.note("one", 1, "kept");
    scene.note("one", 2, "kept");
    scene.sync("one");
    scene.init("two");
    scene.sync("two");

    // The standby gets nothing of this.
    postgres.cut_off();
    scene.note("one", 1, "edited");
    scene.note("one", 3, "new");
    scene.sync("one");
    scene.note("two", 4, "of two");
    scene.sync("two");
    scene.sync("one");
    let before = scene.news(&Value::Null).await;
    assert_eq!(before["objects"][0]["usn"], "5", "{before}");
    assert_eq!(scene.notes("one"), scene.notes("two"));

    // The same process goes on with the other server, and gives the lost USNs to other changes.
    postgres.take_over();
    scene.init("three");
    for post in 5..=7 {
        scene.note("three", post, "of three");
    }
    scene.sync("three");
    let after = scene.news(&Value::Null).await;
    assert_eq!(after["objects"][0]["usn"], "5", "{after}");
    let told = scene.news(&before["cursor"]).await;
    assert_eq!(told["state"], "diverged", "{told}");

    scene.note("one", 2, "edited offline");
    let expected = [(1, "edited"), (3, "new"), (4, "of two")];
    let expected = expected.map(|(post, text)| (key(post), text.to_owned()));
    for replica in ["one", "two"] {
        let synced = scene.sync(replica);
        assert_eq!(synced["open_conflicts"], 3, "{replica}: {synced}");
        let lost = scene.lost(replica).into_iter();
        let lost: BTreeMap<String, String> = lost.map(|(key, (_, mine))| (key, mine)).collect();
        assert_eq!(lost, BTreeMap::from(expected.clone()), "{replica}");
    }
    scene.init("four");
    scene.sync("four");
    let fresh = scene.notes("four");
    let kept = [(1, "kept"), (2, "edited offline")];
    let kept = kept.map(|(post, text)| (key(post), text.to_owned()));
    let new = [5, 6, 7].map(|post| (key(post), "of three".to_owned()));
    let all: BTreeMap<String, String> = kept.into_iter().chain(new).collect();
    assert_eq!(fresh, all);
    for replica in ["one", "two", "three"] {
        scene.sync(replica);
        assert_eq!(scene.notes(replica), fresh, "{replica}");
    }

    // A person offers the lost changes back.
    for (id, _) in scene.lost("one").into_values() {
        scene.replica("one", &["conflicts", "resolve", &id.to_string(), "--mine"]);
    }
    scene.sync("one");
    let mut restored = fresh;
    restored.extend(expected);
    for replica in ["one", "two", "three", "four"] {
        scene.sync(replica);
        assert_eq!(scene.notes(replica), restored, "{replica}");
    }
}

fn uri(post: u64) -> String {
    format!("https://elsewhere.example/statuses/{post}")
}

fn key(post: u64) -> String {
    format!("note:{}", uri(post))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
