//! Many writers on what sources of one instance share, each with connections of its own, as processes
//! have.

use std::{
    collections::{BTreeSet, HashMap},
    thread,
};

use driftline_core::{post::Post, timeline::Backfill};
use driftline_db::testing::databases;
use driftline_store::{SourceKey, Store, export, timeline};

use crate::world::{EVERYTHING, START_MS, World, add_source, new_source, open, page, post};

const WRITERS: u64 = 16;
pub(crate) const TURNS: u64 = 12;
/// Posts of a page; the first half of them is on the pages of all writers.
const POSTS: u64 = 20;

/// A page's posts: of a shared post each turn shows a newer version than the one before.
pub(crate) fn posts_of(writer: u64, turn: u64) -> Vec<Post> {
    let shared = (1..=POSTS / 2).map(|n| {
        let id = (turn * POSTS + n) * 100;
        post(id, "text")
    });
    let edited = (1..=POSTS / 2).filter(|_| turn > 0).map(|n| {
        let id = ((turn - 1) * POSTS + n) * 100;
        let mut post = post(id, &format!("edited {turn}"));
        post.edited_at_ms = Some(START_MS + turn as i64);
        post
    });
    let own = (POSTS / 2..POSTS).map(|n| post((turn * POSTS + n + 1) * 100 + writer + 1, "own"));
    let mut posts: Vec<Post> = shared.chain(edited).chain(own).collect();
    for (n, post) in posts.iter_mut().enumerate() {
        post.author.id = format!("{}", n % 7).as_str().into();
        post.references.posts = vec![format!("named{}", n % 5).as_str().into()];
        post.references.accounts = vec![format!("account{}", n % 3).as_str().into()];
    }
    posts.sort_by_key(|post| std::cmp::Reverse(number(post)));
    posts
}

fn number(post: &Post) -> u64 {
    post.id.as_str().parse().expect("a number")
}

fn write(store: &Store, source: SourceKey, writer: u64) {
    let mut world = World::of(store, source);
    for turn in 0..TURNS {
        world.now_ms = START_MS + turn as i64 * 5000 + writer as i64;
        world.poll(posts_of(writer, turn));
    }
}

#[test]
fn writers_of_one_instance_store_each_post_and_each_edit_once() {
    for fresh in databases() {
        let stores: Vec<Store> = match fresh.name {
            // One process has the file.
            "SQLite" => vec![open(&fresh)],
            _ => (0..4).map(|_| open(&fresh)).collect(),
        };
        let first = &stores[0];
        let sources: Vec<SourceKey> = (0..WRITERS)
            .map(|n| World::readable(first, &format!("source{n}")).source)
            .collect();
        thread::scope(|scope| {
            for (writer, source) in (0..).zip(&sources) {
                let store = &stores[writer as usize % stores.len()];
                scope.spawn(move || write(store, *source, writer));
            }
        });
        let retries: u64 = stores.iter().map(|store| store.stats().retries).sum();
        assert_eq!(
            retries, 0,
            "writers locked each other out on {}",
            fresh.name
        );
        check(first, &sources);
        for store in stores {
            store.close_blocking();
        }
    }
}

#[test]
fn imports_of_one_time_take_different_ids() {
    for fresh in databases() {
        let store = open(&fresh);
        let sources: Vec<SourceKey> = (0..4)
            .map(|n| {
                let mut new = new_source(&format!("source{n}"));
                new.origin = format!("https://{n}.example");
                add_source(&store, new)
            })
            .collect();
        thread::scope(|scope| {
            for source in &sources {
                scope.spawn(|| import(&store, *source));
            }
        });
        let mut ids = BTreeSet::new();
        for source in sources {
            let rows = store.read_blocking(move |tx| export::rows(tx, source, 0, u32::MAX));
            let rows = rows.expect("rows");
            assert_eq!(rows.len() as u64, 10 * POSTS);
            ids.extend(rows.iter().map(|row| row.id.raw()));
        }
        let public = store
            .read_blocking(|tx| timeline::public(tx, &EVERYTHING, timeline::Viewer::Anonymous));
        let public = public.expect("a timeline").into_iter();
        let public: BTreeSet<u64> = public.map(|post| post.id.raw()).collect();
        assert_eq!(
            (ids.len(), public.len()),
            (40 * POSTS as usize, 40 * POSTS as usize)
        );
        store.close_blocking();
    }
}

/// Reads a history of which all posts were written in the same ms.
fn import(store: &Store, source: SourceKey) {
    let mut world = World::of(store, source);
    world.settings.backfill = Backfill::All;
    let mut newest = 10 * POSTS;
    let mut below = || {
        newest -= POSTS;
        (newest + 1..=newest + POSTS)
            .rev()
            .map(|id| Post {
                // No other instance has a copy.
                uri: Some(format!("https://{}.example/{id}", source.instance)),
                ..post(id, "text")
            })
            .collect::<Vec<_>>()
    };
    world.poll(below());
    for _ in 1..10 {
        let request = world.fill_whatever_is_due();
        let answer = page(below(), world.now_ms);
        world.commit(&request, answer).expect("a commit");
    }
}

/// That each writer's posts are stored once, as they were shown last.
pub(crate) fn check(store: &Store, sources: &[SourceKey]) {
    let mut ids: HashMap<String, BTreeSet<u64>> = HashMap::new();
    let mut all: HashMap<u64, (SourceKey, String)> = HashMap::new();
    for (writer, id) in (0..).zip(sources.iter().copied()) {
        let shown = (0..TURNS).flat_map(|turn| posts_of(writer, turn));
        let shown: BTreeSet<String> = shown.map(|post| post.id.to_string()).collect();
        let rows = store.read_blocking(move |tx| export::rows(tx, id, 0, u32::MAX));
        let rows = rows.expect("rows");
        let names: BTreeSet<String> = rows.iter().map(name).collect();
        assert_eq!((rows.len(), names), (shown.len(), shown));
        let usns: BTreeSet<i64> = rows.iter().map(|row| row.usn).collect();
        assert_eq!(usns.len(), rows.len());
        for row in rows {
            let of_post = ids.entry(name(&row)).or_default();
            of_post.insert(row.post_id.raw());
            let other = all.insert(row.id.raw(), (id, name(&row)));
            assert_eq!(other, None, "one ID twice");
        }
    }
    assert!(ids.values().all(|ids| ids.len() == 1), "a post twice");
    let public =
        store.read_blocking(|tx| timeline::public(tx, &EVERYTHING, timeline::Viewer::Anonymous));
    let public = public.expect("a timeline");
    assert_eq!(public.len(), ids.len());
    for post in &public {
        let number: u64 = post.upstream_id.parse().expect("a number");
        let turn = (number / 100 - 1) / POSTS;
        let is_shared = number.is_multiple_of(100);
        let expected = is_shared && turn + 1 < TURNS;
        let text = format!("edited {}", turn + 1);
        assert_eq!(post.raw.contains(&text), expected, "{}", post.raw);
    }
}

fn name(row: &export::ExportRow) -> String {
    row.post.upstream_id.to_string()
}
