//! `replica`: two devices of one account and its server converge, whatever is killed in between.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use driftline_sim::{
    Growth, SpanMs, WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use serde_json::{Value, json};
use support::{
    lines,
    replica_scene::{PASSPHRASE, Scene},
    wait_for,
};

impl Scene {
    /// Copies the folder of a replica.
    fn copy(&self, replica: &str, copy: &str) {
        let [from, to] = [replica, copy].map(|name| self.data_dir.folder().join(name));
        fs::create_dir(&to).unwrap();
        for file in fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }

    /// The objects of a replica: the texts of notes, and nothing of the others, by their keys.
    fn objects(&self, replica: &str) -> BTreeMap<String, Value> {
        let objects = self.replica(replica, &["show"]).into_iter();
        objects
            .map(|object| {
                let key = object["key"].as_str().unwrap().to_owned();
                (key, object["value"]["text"].clone())
            })
            .collect()
    }

    fn note(&self, replica: &str, post: usize, text: &str) {
        let file = self.data_dir.file("text", text);
        let changed = self.replica(replica, &["note", self.uri(post), "--file", &file]);
        assert_eq!(changed[0]["changed"], true, "{changed:?}");
    }

    /// The posts of the source that a replica finds, by each query.
    fn found_offline(&self, replica: &str) -> [BTreeSet<String>; 4] {
        QUERIES.map(|query| uris(&self.replica(replica, &["find", query, "--limit", "10000"])))
    }

    /// The posts of the source that the server finds, by each query. The replica has been synced to that state.
    fn found_on_server(&self, replica: &str) -> [BTreeSet<String>; 4] {
        let mut found = QUERIES.map(|_| BTreeSet::new());
        wait_for("no post is deleted meanwhile", || {
            self.replica(replica, &["sync"]);
            found = QUERIES.map(|query| {
                let find = ["--json", "find", query, "--source", "sim", "--all"];
                let ended = self.data_dir.run(&find);
                assert_eq!(ended.status, 0, "{query}: {ended:?}");
                uris(&lines(&ended.stdout))
            });
            self.replica(replica, &["sync"])[0]["removed"] == 0
        });
        found
    }

    fn note_of(&self, replica: &str, post: usize) -> String {
        let shown = self.replica(replica, &["note", self.uri(post), "--show"]);
        shown[0]["value"]["text"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_and_their_server_converge() {
    let mut scene = Scene::begin().await;
    for post in [0, 1] {
        let path = format!("/api/v1/statuses/{}/bookmark", scene.posts[post].1);
        scene.post(&path, &json!({})).await;
    }
    scene.init("one");
    scene.replica("one", &["sync"]);
    let bookmark = |post: usize| format!("bookmark:{}", scene.posts[post].0);
    let keys = scene.objects("one").into_keys();
    assert_eq!(keys.collect::<Vec<_>>(), sorted([bookmark(0), bookmark(1)]));

    // Without a network.
    scene.kill();
    scene.note("one", 0, "first\nsecond\nthird\nfourth\n");
    scene.replica("one", &["bookmark", scene.uri(1), "--remove"]);
    scene.replica("one", &["bookmark", scene.uri(2)]);
    let again = scene.replica("one", &["bookmark", scene.uri(2)]);
    assert_eq!(again[0]["changed"], false, "{again:?}");
    let failed = scene.run("one", &["sync"]);
    assert_eq!(failed.status, 1, "{failed:?}");
    assert!(failed.stderr.contains("cannot be reached"), "{failed:?}");
    assert_eq!(scene.replica("one", &["status"])[0]["dirty"], 3);

    scene.start();
    let sent = scene.replica("one", &["sync"]);
    assert_eq!(
        (&sent[0]["pushed"], &sent[0]["dirty"]),
        (&json!(3), &json!(0))
    );
    let expected = sorted([0, 2].map(|post| scene.uri(post).to_owned()));
    assert_eq!(scene.bookmarks().await, expected);
    scene.init("two");
    scene.replica("two", &["sync"]);
    assert_eq!(scene.objects("two"), scene.objects("one"));

    // Changes of different lines are both kept.
    scene.note("one", 0, "first of one\nsecond\nthird\nfourth\n");
    scene.note("two", 0, "first\nsecond\nthird\nfourth of two\n");
    scene.replica("one", &["sync"]);
    scene.kill();
    scene.start();
    scene.replica("two", &["sync"]);
    scene.replica("one", &["sync"]);
    let merged = "first of one\nsecond\nthird\nfourth of two";
    assert_eq!(scene.note_of("one", 0).trim_end(), merged);
    assert_eq!(scene.note_of("two", 0).trim_end(), merged);

    // Changes of one line are a conflict.
    scene.note("one", 0, "of one");
    scene.note("two", 0, "of two");
    scene.replica("one", &["sync"]);
    scene.kill();
    scene.start();
    let synced = scene.replica("two", &["sync"]);
    assert_eq!(synced[0]["open_conflicts"], 1, "{synced:?}");
    assert_eq!(scene.note_of("two", 0), "of one");
    let conflicts = scene.replica("two", &["conflicts"]);
    assert_eq!(conflicts.len(), 1, "{conflicts:?}");
    assert_eq!(conflicts[0]["mine"]["text"], "of two");
    let id = conflicts[0]["id"].to_string();
    let undecided = scene.run("two", &["conflicts", "resolve", &id]);
    assert_eq!(undecided.status, 2, "{undecided:?}");
    scene.replica("two", &["conflicts", "resolve", &id, "--mine"]);
    scene.replica("two", &["sync"]);
    scene.replica("one", &["sync"]);
    assert_eq!(scene.note_of("one", 0), "of two");
    assert_eq!(scene.objects("one"), scene.objects("two"));
    for replica in ["one", "two"] {
        let status = &scene.replica(replica, &["status"])[0];
        assert_eq!(status["dirty"], 0, "{status}");
        assert_eq!(status["open_conflicts"], 0, "{status}");
        let resolved = scene.run(replica, &["conflicts", "resolve", &id, "--mine"]);
        assert_eq!(resolved.status, 2, "{resolved:?}");
    }
    assert_eq!(scene.bookmarks().await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_of_one_account() {
    let mut scene = Scene::begin().await;
    let missing = scene.run("one", &["status"]);
    assert_eq!(missing.status, 10, "{missing:?}");
    assert!(missing.stderr.contains("replica init URL"), "{missing:?}");
    scene.init("one");
    let unknown = scene.run("one", &["show", "--kind", "notes"]);
    assert_eq!(unknown.status, 2, "{unknown:?}");
    assert!(unknown.stderr.contains("note, draft"), "{unknown:?}");
    scene.replica("one", &["sync"]);
    scene.replica("one", &["bookmark", scene.uri(3)]);
    let base = scene.base();
    let again = ["init", &base, "--token-file", "token"];
    let renewed = scene.replica("one", &again);
    assert_eq!(renewed[0]["outcome"], "token_renewed", "{renewed:?}");

    scene.data_dir.account("ben", PASSPHRASE);
    scene.token.clear();
    scene.log_in("ben").await;
    let other = scene.run("one", &again);
    assert_eq!(other.status, 2, "{other:?}");
    assert!(other.stderr.contains("Nothing was pushed"), "{other:?}");
    assert!(scene.bookmarks().await.is_empty());

    scene.data_dir.file("token", "no-token");
    let unknown = scene.run("one", &again);
    assert_eq!(unknown.status, 1, "{unknown:?}");
    assert!(
        unknown.stderr.contains("does not accept the token"),
        "{unknown:?}"
    );
    assert!(!unknown.stderr.contains("no-token"), "{unknown:?}");
    // The first token is still there.
    let sent = scene.replica("one", &["sync"]);
    assert_eq!(sent[0]["pushed"], 1, "{sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_and_a_restored_replica_lose_no_edit() {
    let scene = Scene::begin().await;
    scene.init("one");
    scene.note("one", 0, "of both");
    scene.replica("one", &["sync"]);
    scene.copy("one", "copy");
    scene.copy("one", "backup");
    for (replica, post) in [("one", 1), ("copy", 2)] {
        scene.note(replica, post, replica);
        let sent = scene.replica(replica, &["sync"]);
        assert_eq!(sent[0]["pushed"], 1, "{sent:?}");
    }
    fs::remove_dir_all(scene.data_dir.folder().join("one")).unwrap();
    scene.copy("backup", "one");
    scene.note("one", 3, "after the backup");
    let sent = scene.replica("one", &["sync"]);
    assert_eq!(sent[0]["pushed"], 1, "{sent:?}");
    scene.replica("copy", &["sync"]);
    let texts = ["of both", "one", "copy", "after the backup"];
    for replica in ["one", "copy"] {
        let notes: Vec<String> = (0..4).map(|post| scene.note_of(replica, post)).collect();
        assert_eq!(notes, texts, "{replica}");
        let status = &scene.replica(replica, &["status"])[0];
        assert_eq!(status["dirty"], 0, "{status}");
        assert_eq!(status["open_conflicts"], 0, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_reads_a_source_without_its_server() {
    let sim = fading().await;
    let mut scene = Scene::with_upstream(&sim, REFRESH).await;
    let base = scene.base();
    for (name, filter) in [("nowhere", "cat"), ("sim", "favourites:>1")] {
        let init = ["init", &base, "--token-file", "token", "--source", name];
        let refused = scene.run("none", &[&init[..], &["--filter", filter]].concat());
        assert_eq!(refused.status, 2, "{refused:?}");
        let folder = scene.data_dir.folder().join("none");
        assert!(!folder.exists(), "{refused:?}");
    }
    scene.init("one");
    let unknown = scene.run("one", &["subscribe", "nowhere"]);
    assert_eq!(unknown.status, 2, "{unknown:?}");
    assert!(unknown.stderr.contains("it has sim"), "{unknown:?}");
    let subscribed = scene.replica("one", &["subscribe", "sim"]);
    assert_eq!(subscribed[0]["source"], "sim", "{subscribed:?}");
    let found = scene.found_on_server("one");
    assert!(found.iter().all(|posts| posts.len() > 5), "{found:?}");

    // Without a network.
    scene.kill();
    let before = scene.found_offline("one");
    assert_eq!(before, found);
    let counted = scene.run("one", &["find", "favourites:>1"]);
    assert_eq!(counted.status, 2, "{counted:?}");
    let newest = scene.replica("one", &["timeline", "sim", "--limit", "3"]);
    let place = newest[2]["place"].as_str().unwrap();
    let next = scene.replica("one", &["timeline", "--before", place, "--limit", "3"]);
    let both = scene.replica("one", &["timeline", "--limit", "6"]);
    assert_eq!([newest, next].concat(), both);
    let uri = both[1]["uri"].as_str().unwrap();
    scene.replica("one", &["bookmark", uri]);
    scene.replica("one", &["note", uri, "to", "read"]);
    let marked = &scene.replica("one", &["timeline", "--limit", "2"])[1];
    assert_eq!(
        (&marked["bookmarked"], &marked["note"]),
        (&json!(true), &json!("to read"))
    );
    let added = scene.replica(
        "one",
        &["draft", "add", "Good", "morning", "--reply-to", uri],
    );
    let key = added[0]["key"].as_str().unwrap();
    assert_eq!(scene.replica("one", &["draft"])[0]["key"], key);
    scene.replica("one", &["draft", "edit", key, "Good", "evening"]);
    let draft = &scene.replica("one", &["draft"])[0]["value"];
    assert_eq!(
        (&draft["text"], &draft["in_reply_to"]),
        (&json!("Good evening"), &json!(uri))
    );
    scene.replica("one", &["draft", "remove", key]);
    assert!(scene.replica("one", &["draft"]).is_empty());
    let again = scene.run("one", &["draft", "remove", key]);
    assert_eq!(again.status, 1, "{again:?}");
    assert!(again.stderr.contains("no such draft"), "{again:?}");
    let words = ["replica", "--replica", "one", "timeline", "--limit", "2"];
    let words = scene.data_dir.run(&words).stdout;
    assert!(words.contains("\n* "), "{words}");
    assert!(words.ends_with("note: to read\n"), "{words}");
    // A bookmark would keep its post for a moment longer than the source.
    scene.replica("one", &["bookmark", uri, "--remove"]);

    // A post that its author deletes goes with the next sync.
    scene.start();
    wait_for("a deleted post is gone", || {
        scene.replica("one", &["sync"]);
        !before[0].is_subset(&scene.found_offline("one")[0])
    });
    let found = scene.found_on_server("one");
    let after = scene.found_offline("one");
    assert_eq!(after, found);
    assert!(after[0].is_subset(&before[0]), "{after:?}");
    let status = &scene.replica("one", &["status"])[0];
    let subscription = &status["subscriptions"][0];
    assert_eq!(subscription["entries"], after[0].len(), "{status}");
    assert_eq!(subscription["is_complete"], true, "{status}");

    // A filter leaves what it selects.
    let refused = ["subscribe", "sim", "--filter", "favourites:>1"];
    assert_eq!(scene.run("one", &refused).status, 2);
    let filtered = scene.replica("one", &["subscribe", "sim", "--filter", QUERIES[1]]);
    assert_eq!(filtered[0]["filter"], QUERIES[1], "{filtered:?}");
    let renewal = ["init", &base, "--token-file", "token", "--source", "sim"];
    scene.replica("one", &renewal);
    let status = &scene.replica("one", &["status"])[0];
    assert_eq!(status["subscriptions"][0]["filter"], QUERIES[1], "{status}");
    scene.replica("one", &["sync"]);
    let left = scene.found_offline("one");
    assert_eq!(left[0], left[1]);
    assert!(scene.replica("one", &["unsubscribe", "sim"]).is_empty());
    assert!(scene.replica("one", &["timeline"]).is_empty());
}

/// Looks posts up each second.
const REFRESH: &str = "[refresh]\nbuffer_ttl = \"200ms\"\n[refresh.ages]\n\"25h\" = \"1s\"\n";
/// The first finds all posts.
const QUERIES: [&str; 4] = [
    "{}",
    "reef OR kelp",
    "drifter -reef",
    "lang:en before:2099-01-01",
];

/// A timeline that has fallen silent, whose posts are deleted one after the other from soon on.
async fn fading() -> SimServer {
    let config = ServerConfig {
        world: WorldConfig {
            publish_for_ms: Some(24_000),
            deleted_share: 0.4,
            deleted_after_ms: SpanMs::new(60_000, 61_000),
            growth: Some(Growth {
                half_life_ms: 30_000,
                ..Growth::default()
            }),
            ..WorldConfig::punctual(5.0)
        },
        history_ms: 25_000,
        ..ServerConfig::default()
    };
    SimServer::start(config, 7, Clock::Real).await.unwrap()
}

fn uris(posts: &[Value]) -> BTreeSet<String> {
    let uris = posts.iter().map(|post| post["uri"].as_str().unwrap());
    uris.map(str::to_owned).collect()
}

fn sorted<const N: usize>(texts: [String; N]) -> Vec<String> {
    let mut texts = Vec::from(texts);
    texts.sort();
    texts
}
