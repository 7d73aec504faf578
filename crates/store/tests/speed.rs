//! How fast pages are taken in and read, beside a bare loop: `cargo test --release --test speed --
//! --ignored --nocapture`.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    time::{Duration, Instant},
};

use driftline_core::{
    answer::{Abilities, AnswerFacts, Listed, Page},
    post::{Author, Counts, Post, Visibility},
    timeline::{Machine, Reading, Request, Settings, Step},
    upstream_id::UpstreamId,
};
use driftline_db::testing::databases;
use driftline_store::{
    CommitPage, LocalId, MIGRATIONS, SourceId, Store, Target, clock, commit_page, machine,
    source::{self, NewSource},
    timeline::{self, Range, Reader},
};

const ABILITIES: Abilities = Abilities {
    page_limit: 40,
    just_above: true,
};

#[test]
#[ignore = "a measurement"]
fn ingest_and_reads() {
    let posts: u64 = std::env::var("POSTS").map_or(100_000, |n| n.parse().expect("a number"));
    bare(posts);
    for fresh in databases() {
        let store = Store::open(fresh.target.clone()).expect("a store");
        let source = ingest(&store, posts, fresh.name);
        reads(&store, source, fresh.name);
        store.close_blocking();
        if let Target::Sqlite { path } = &fresh.target {
            let bytes = std::fs::metadata(path).expect("a file").len();
            report(&format!("{}: {} bytes a post", fresh.name, bytes / posts));
        }
    }
}

fn ingest(store: &Store, posts: u64, name: &str) -> SourceId {
    let settings = Settings {
        id_layout: Some("none".to_owned()),
        ..Settings::default()
    };
    let new = NewSource {
        name: "home".to_owned(),
        origin: "https://sim.example".to_owned(),
        timeline: "public".to_owned(),
        upstream: "https://sim.example".to_owned(),
        settings: settings.clone(),
        token: None,
    };
    let source = store
        .write_blocking(clock::root(), move |tx| source::add(tx, &new, 0))
        .expect("a write")
        .expect("a source");
    let mut state = store
        .read_blocking(move |tx| machine::load(tx, source))
        .expect("a machine");
    let mut spent = Duration::ZERO;
    for turn in 0..=posts / 40 {
        let now_ms = 1_800_000_000_000 + turn as i64 * 3000;
        let listed = if turn == 0 { Vec::new() } else { listed(turn) };
        let page = Page {
            listed,
            facts: AnswerFacts {
                sent_at_ms: now_ms,
                received_at_ms: now_ms,
                ..AnswerFacts::default()
            },
        };
        let request = newest_page();
        let reading = Reading::check(&page, &request, state.scheme().copied(), &settings);
        let (reading, settings) = (reading.expect("a good page"), settings.clone());
        let before = Instant::now();
        let (next, _) = store
            .write_blocking(source::root(source), move |tx| {
                commit_page(
                    tx,
                    &CommitPage {
                        source,
                        fence: None,
                        machine: &state,
                        settings: &settings,
                        abilities: ABILITIES,
                        request: &request,
                        reading: &reading,
                        page: &page,
                        now_ms,
                    },
                )
            })
            .expect("a commit");
        spent += before.elapsed();
        state = next;
        // As if looks had been taken: the ranges of the last minute wait.
        let gaps = state.ledger().gaps();
        let waiting = gaps[gaps.len().saturating_sub(20)..].to_vec();
        state.restore_gaps(waiting);
    }
    let rate = posts as f64 / spent.as_secs_f64();
    let gaps = state.ledger().gaps().len();
    report(&format!(
        "{name}: {rate:.0} posts/s in pages of 40, {gaps} ranges"
    ));
    source
}

fn reads(store: &Store, source: SourceId, name: &str) {
    let newest = store
        .read_blocking(|tx| {
            timeline::public(
                tx,
                &Range {
                    limit: 1,
                    ..Range::default()
                },
            )
        })
        .expect("a read")[0]
        .id
        .raw();
    let first = clock_floor();
    for (what, public) in [("public", true), ("list", false)] {
        let mut times = Vec::new();
        for turn in 0..2000_u64 {
            let mut hasher = DefaultHasher::new();
            turn.hash(&mut hasher);
            let at = first + hasher.finish() % (newest - first);
            let range = Range {
                max: Some(LocalId::new(at)),
                limit: 40,
                ..Range::default()
            };
            let before = Instant::now();
            let posts = store.read_blocking(move |tx| {
                if public {
                    timeline::public(tx, &range)
                } else {
                    timeline::source(tx, source, &range, Reader::Anyone)
                }
            });
            times.push(before.elapsed());
            assert!(posts.is_ok());
        }
        times.sort_unstable();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        report(&format!(
            "{name}: {what} page of 40: p50 {p50:?}, p99 {p99:?}"
        ));
    }
}

/// The same rows in a plain loop over the same schema, a page a transaction.
fn bare(posts: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bare.db");
    let store = Store::open(Target::Sqlite { path: path.clone() }).expect("a store");
    store.close_blocking();
    assert_eq!(MIGRATIONS.len(), 1);
    let mut connection = rusqlite::Connection::open(path).expect("a database");
    connection.set_prepared_statement_cache_capacity(64);
    connection
        .execute_batch("pragma synchronous = full; pragma temp_store = memory")
        .expect("pragmas");
    connection
        .execute_batch(
            "insert into source values (1, 1, 'a', 'b', 'c', 'd', null, 0, 1, 0, 0, null, 0, 0, '')",
        )
        .expect("a source");
    let machine = serde_json::to_string(&Machine::default()).expect("JSON");
    let mut spent = Duration::ZERO;
    let mut usn = 0_i64;
    for turn in 1..=posts / 40 {
        let listed = listed(turn);
        let before = Instant::now();
        let tx = connection.transaction().expect("a transaction");
        for item in listed.iter().rev() {
            usn += 1;
            let (id, post) = (usn << 22, &item.post);
            let upstream_id = post.id.as_str();
            tx.prepare_cached("insert into post values (?1, 1, ?2, ?3, null, 1, 1, ?4, null, ?4, 'public', null, ?1, null, 1, ?5)")
                .and_then(|mut s| s.execute((id, upstream_id, &post.uri, post.created_at_ms, &post.raw)))
                .expect("a post");
            tx.prepare_cached("insert into seen values (?1, 1, ?2)")
                .and_then(|mut s| s.execute((upstream_id, id)))
                .expect("seen");
            let position = format!("{:03}{upstream_id}", upstream_id.len());
            tx.prepare_cached("insert into entry values (1, ?1, ?1, ?2, ?3, ?3, ?4, ?1, 0, 1)")
                .and_then(|mut s| s.execute((id, position, usn, post.created_at_ms)))
                .expect("an entry");
        }
        tx.prepare_cached(
            "update local_clock set last_account_id = ?1, last_source_id = length(?2)",
        )
        .and_then(|mut s| s.execute((usn, &machine)))
        .expect("the clock");
        tx.prepare_cached("update local_clock set last_id = ?1")
            .and_then(|mut s| s.execute([usn]))
            .expect("the clock");
        tx.prepare_cached(
            "insert or replace into gap values (1, ?1, ?1, 'open', 0, 0, 0, 0, 0, 0)",
        )
        .and_then(|mut s| s.execute([(turn % 20).to_string()]))
        .expect("a range");
        tx.prepare_cached("update source set machine = ?1, update_count = ?2")
            .and_then(|mut s| s.execute((&machine, usn)))
            .expect("the source");
        tx.commit().expect("a commit");
        spent += before.elapsed();
    }
    let rate = posts as f64 / spent.as_secs_f64();
    report(&format!("bare rusqlite: {rate:.0} posts/s in pages of 40"));
}

fn listed(turn: u64) -> Vec<Listed> {
    (0..40).rev().map(|n| one(turn * 40 + n)).collect()
}

fn one(number: u64) -> Listed {
    let id = UpstreamId::new((number << 16).to_string());
    let author = number % 500;
    let content = "Lorem ipsum dolor sit amet, consectetur. ".repeat(20);
    Listed {
        position: id.clone(),
        post: Post {
            uri: Some(format!("https://sim.example/statuses/{id}")),
            url: None,
            created_at_ms: Some(1_800_000_000_000 + number as i64),
            edited_at_ms: None,
            visibility: Visibility::Public,
            author: Author {
                id: UpstreamId::new(author.to_string()),
                acct: format!("user{author}"),
                display_name: String::new(),
                url: None,
                raw: "{}".to_owned(),
            },
            boost_of: None,
            counts: Counts::default(),
            raw: format!(r#"{{"id":"{id}","content":"{content}","favourites_count":0}}"#),
            id,
        },
    }
}

fn newest_page() -> Request {
    match Machine::default().next(&Settings::default(), ABILITIES, 0, false) {
        Step::Fetch(fetch) => fetch.request(None, None),
        step => panic!("{step:?}"),
    }
}

fn clock_floor() -> u64 {
    driftline_id::Layout::PULSATE.smallest_at(1_800_000_000_000) as u64
}

#[allow(clippy::print_stderr)]
fn report(line: &str) {
    eprintln!("{line}");
}
