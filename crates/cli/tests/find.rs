//! `find` with the real binary: without a server, beside one, and into a pipe that closes.
#![allow(clippy::unwrap_used)]

mod support;

use driftline_core::{
    post::{Post, PostHashes},
    post_text::PostText,
    social::AccountName,
};
use driftline_store::{
    LocalAccountId, Store, Target, Tx, account_id,
    social::{local_account, mute},
    testing::{Feed, START_MS, post},
};
use support::DataDir;

const POSTS: u64 = 400;

/// A store with posts about cats and dogs, which nothing has indexed.
fn fill(data_dir: &DataDir) {
    let added = [
        "source",
        "add",
        "http://127.0.0.1:1",
        "--no-check",
        "--name",
        "other",
    ];
    data_dir.json(&added);
    data_dir.json(&["source", "pause", "other"]);
    let path = data_dir.data().join("driftline.db");
    let store = Store::open(Target::Sqlite { path }).unwrap();
    let mut feed = Feed::readable(&store, "sim", |_| ());
    for page in (1..=POSTS).collect::<Vec<_>>().chunks(40) {
        feed.poll(page.iter().rev().map(|id| animal(*id)).collect());
    }
    store.close_blocking();
    data_dir.json(&["source", "pause", "sim"]);
}

fn animal(id: u64) -> Post {
    let animal = if id.is_multiple_of(4) {
        "cat \u{1b}[31m猫"
    } else {
        "dog"
    };
    let text = format!("a {animal}, number {id}");
    let raw = serde_json::json!({ "id": id.to_string(), "content": format!("<p>{text}</p>") });
    Post {
        raw: raw.to_string(),
        text: PostText::from_entries(1, [&*text]),
        hashes: PostHashes {
            content: id.cast_signed(),
            state: id.cast_signed(),
        },
        ..post(id, "")
    }
}

#[test]
fn posts_are_found_without_a_server_and_beside_one() {
    let data_dir = DataDir::new();
    fill(&data_dir);
    let all = |args: &[&str]| {
        let ran = data_dir.run(args);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        ran.stdout
    };
    let check = || {
        let text = all(&["find", "猫"]);
        assert_eq!(text.lines().count(), 40, "{text}");
        assert!(
            text.contains("number 400") && !text.contains('\u{1b}'),
            "{text}"
        );
        assert_eq!(all(&["find", "(cat OR dog) -猫", "--count"]), "300 posts\n");
        let lines = all(&["find", "cat", "--all", "--json"]);
        assert_eq!(lines.lines().count(), 100);
        let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        assert!(
            first["text"].as_str().unwrap().ends_with("number 400"),
            "{first}"
        );
        let csv = all(&["find", "cat", "--csv", "--limit", "3"]);
        assert!(
            csv.starts_with("id,uri,url,instance,author,created_at,visibility,text\n"),
            "{csv}"
        );
        assert_eq!(csv.lines().count(), 4);
        assert_eq!(
            all(&["find", "cat", "--source", "sim", "--count"]),
            "100 posts\n"
        );
    };
    check();
    let plan = all(&["find", "-(dog XOR 猫)", "--explain"]);
    assert!(plan.contains("0 posts for the index"), "{plan}");
    let (mut server, _) = data_dir.serve(&[]);
    check();
    let wrong = data_dir.run(&["find", "cat (dog"]);
    assert_eq!(wrong.status, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("column 5"), "{}", wrong.stderr);
    server.stop();
}

/// The server's public URL says which posts are by copies of its own accounts.
#[test]
fn who_mutes_an_own_account_does_not_find_its_copies() {
    let data_dir = DataDir::new().with("DRIFTLINE_SERVER__PUBLIC_URL", "https://own.example");
    for name in ["ann", "bob"] {
        data_dir.account(name, "correct horse battery");
    }
    let path = data_dir.data().join("driftline.db");
    let store = Store::open(Target::Sqlite { path }).unwrap();
    let mut feed = Feed::readable(&store, "sim", |_| ());
    let mut by_copy = animal(8);
    by_copy.author.id = "9".into();
    by_copy.author.acct = "ann@own.example".to_owned();
    feed.poll(vec![by_copy, animal(4)]);
    let [ann, bob] = ["ann", "bob"].map(|name| account(&store, name));
    let root = local_account::root(bob);
    let mute_ann = move |tx: &mut Tx<'_>| mute::set(tx, bob, account_id(ann), true, None, START_MS);
    assert!(store.write_blocking(root, mute_ann).unwrap());
    store.close_blocking();
    data_dir.json(&["source", "pause", "sim"]);
    let count = |more: &[&str]| {
        let ran = data_dir.run(&[&["find", "cat", "--count"][..], more].concat());
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        ran.stdout
    };
    let check = || {
        assert_eq!(count(&[]), "2 posts\n");
        assert_eq!(count(&["--as", "ann"]), "2 posts\n");
        assert_eq!(count(&["--as", "bob"]), "1 post\n");
    };
    check();
    let (mut server, _) = data_dir.serve(&[]);
    check();
    server.stop();
}

fn account(store: &Store, name: &str) -> LocalAccountId {
    let name = AccountName::new(name).unwrap();
    let found = store.read_blocking(move |tx| local_account::by_name(tx, &name));
    found.unwrap().unwrap().id
}
