//! `index rebuild` with the real binary: on a store without texts, killed in the middle, beside a server; and the server's
//! own rebuild of a store that an earlier version filled.
#![allow(clippy::unwrap_used)]

mod support;

use driftline_core::post::Post;
use driftline_store::{
    Root, Store, StoreError, Target, Tx,
    testing::{Feed, post},
};
use support::{DataDir, wait_for};

const POSTS: u64 = 6_000;

/// A store as an earlier program made it, with posts and without their texts.
fn without_texts(data_dir: &DataDir) -> Store {
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
    let all: Vec<u64> = (1..=POSTS).collect();
    for page in all.chunks(500) {
        feed.poll(page.iter().rev().map(|id| long_post(*id)).collect());
    }
    data_dir.json(&["source", "pause", "sim"]);
    forget(&store, "true");
    store
}

fn long_post(id: u64) -> Post {
    let words = "cats &amp; dogs<br>".repeat(100);
    post(id, &format!("<p>{words}number {id}</p>"))
}

fn forget(store: &Store, which: &'static str) {
    let forget = move |tx: &mut Tx<'_>| {
        tx.execute(&format!("delete from post_text where {which}"), &[])?;
        Ok::<_, StoreError>(tx.execute("delete from index_pending", &[])?)
    };
    store.write_blocking(Root::none(), forget).unwrap();
}

fn count(store: &Store, rows: &'static str) -> u64 {
    let count = move |tx: &mut Tx<'_>| {
        let query = format!("select count(*) as found from {rows}");
        Ok::<_, StoreError>(tx.query_one(&query, &[], |row| row.i64("found"))?)
    };
    store.read_blocking(count).unwrap().unsigned_abs()
}

#[test]
fn a_rebuild_that_was_killed_goes_on_where_it_was() {
    let data_dir = DataDir::new();
    let store = without_texts(&data_dir);
    let rebuild = ["index", "rebuild"];
    let running = data_dir.start(&rebuild);
    wait_for("the first texts", || count(&store, "post_text") > 0);
    running.kill();
    let before = count(&store, "post_text");
    assert!(before < POSTS, "it was killed too late");
    let rebuilt = data_dir.json(&rebuild);
    assert_eq!(rebuilt["posts"], POSTS, "{rebuilt}");
    assert_eq!(rebuilt["texts"], POSTS - before, "{rebuilt}");
    let words = "cats & dogs\n";
    let count = |rows| count(&store, rows);
    assert_eq!(count("post_text"), POSTS);
    assert_eq!(count("index_pending"), POSTS);
    let text = store.read_blocking(|tx| {
        let query = "select text from post_text order by post_id limit 1";
        Ok::<_, StoreError>(tx.query_one(query, &[], |row| row.text("text"))?)
    });
    assert_eq!(text.unwrap(), format!("{}number 1", words.repeat(100)));
    let again = data_dir.run(&rebuild);
    let expected = format!("{POSTS} posts read, 0 texts written\n");
    assert_eq!(
        (again.status, again.stdout),
        (0, expected),
        "{}",
        again.stderr
    );

    // Neither texts of some nor a sign that the index has still to read the others.
    forget(&store, "post_id % 2 = 0");
    let (mut server, _) = data_dir.serve(&[]);
    let rebuilt = data_dir.json(&rebuild);
    assert_eq!(rebuilt["texts"], POSTS, "{rebuilt}");
    assert_eq!(count("post_text"), POSTS);
    // The server indexes what waits.
    wait_for("the index", || count("index_pending") == 0);
    assert_eq!(count("indexed_place"), POSTS);
    server.stop();

    // A server makes all that an earlier version of the extraction has made.
    let earlier = |tx: &mut Tx<'_>| {
        tx.execute("update post_text set extraction = 2", &[])?;
        Ok::<_, StoreError>(tx.execute("update index_state set extraction = 2", &[])?)
    };
    store.write_blocking(Root::none(), earlier).unwrap();
    let (mut server, _) = data_dir.serve(&[]);
    wait_for("the texts", || {
        count("index_state where extraction > 2") == 1
    });
    assert_eq!(count("post_text where extraction > 2"), POSTS);
    assert_eq!(count("index_pending"), 0);
    server.stop();
    store.close_blocking();
}
