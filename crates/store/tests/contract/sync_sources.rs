//! Replicas of sources: each reader ends with what the source's timeline shows it, and learns of
//! nothing else.

mod counts;
mod filters;
mod replica;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::{
    answer::{Event, Listed, LookUp, Page},
    names::audience::Audience,
    post::{Post, Visibility},
    rng::Rng,
};
use driftline_store::{
    CommitSummary, Owner, Store, StoreError, Viewer,
    sync::{SourceChunk, SourceLimits, has_news, source_changes, source_newest},
    viewer::LazyReadableSources,
};

use crate::{
    audiences::ORIGINS,
    refresh::MINUTE_MS,
    world::{ANN, World, headers, newest_page, on_both, post, posts, with},
};
use replica::{MEMBER, OWNER, Replica, SourceReader, WORLD};

on_both!(
    private_posts_change_nothing_that_others_receive,
    the_end_of_a_private_post_is_told_to_its_owner_alone,
    a_post_that_is_narrowed_leaves_others_and_stays_for_the_owner,
    an_end_is_met_where_it_was_by_replicas_that_read_in_small_chunks,
    others_learn_of_no_claimed_post_of_a_published_source,
    a_chunk_reads_a_bounded_number_of_rows,
    a_post_that_is_listed_twice_ends_with_its_last_place,
    posts_of_one_name_have_different_keys,
    only_the_readers_of_a_source_have_its_library,
);

/// A source that ANN owns and everyone may read.
fn published(store: &Store, name: &str, origin: &str) -> World {
    let owner = Owner::Account(ANN);
    let mut world = World::of_server(store, name, origin, owner, Audience::Public);
    world.poll(Vec::new());
    world
}

fn home(store: &Store) -> World {
    published(store, "home", ORIGINS[0])
}

/// Polls a later page.
fn poll(world: &mut World, listed: Vec<Post>) {
    world.now_ms += MINUTE_MS;
    world.poll(listed);
}

/// A post at a place of its own.
fn listed(position: &str, id: u64) -> Listed {
    Listed {
        position: position.into(),
        post: post(id, "text"),
    }
}

/// Polls a later page that lists posts at such places.
fn commit(world: &mut World, listed: Vec<Listed>) -> CommitSummary {
    world.now_ms += 2 * MINUTE_MS;
    let page = Page {
        listed,
        headers: headers(world.now_ms),
        ..Page::default()
    };
    world.commit(&newest_page(), page).expect("a commit")
}

/// A stream reports that a post is deleted.
fn delete(world: &mut World, id: u64) {
    world.now_ms += MINUTE_MS;
    let event = Event::Deleted(id.to_string().as_str().into());
    let ended = world.stream(vec![event]);
    assert_eq!(ended.deleted, 1);
}

fn private(id: u64, text: &str) -> Post {
    with(Visibility::Private, post(id, text))
}

fn key(id: u64) -> String {
    format!("https://sim.example/statuses/{id}")
}

/// The keys of a chunk's entries and tombstones.
fn keys(chunk: &SourceChunk) -> (Vec<&str>, Vec<&str>) {
    let entries = chunk.entries.iter().map(|entry| &*entry.key);
    let gone = chunk.gone.iter().map(|tombstone| &*tombstone.key);
    (entries.collect(), gone.collect())
}

const ALL: SourceLimits = SourceLimits::new(100);
const READERS: [SourceReader; 3] = [OWNER, MEMBER, WORLD];

/// A server whose posts come, change, go and return at random.
struct Upstream {
    rng: Rng,
    turn: u64,
    listed: BTreeMap<u64, Post>,
    gone: Vec<u64>,
}

impl Upstream {
    fn new(seed: u64) -> Upstream {
        Upstream {
            rng: Rng::new(seed),
            turn: 0,
            listed: BTreeMap::new(),
            gone: Vec::new(),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.rng.share() * bound as f64) as usize
    }

    /// A new version of a post, for readers at random.
    fn version(&mut self, id: u64) -> Post {
        let all = [
            Visibility::Public,
            Visibility::Public,
            Visibility::Unlisted,
            Visibility::Private,
            Visibility::Direct,
        ];
        let visibility = all[self.below(all.len())];
        with(visibility, post(id, &self.turn.to_string()))
    }

    fn step(&mut self, world: &mut World) {
        self.turn += 1;
        let at = self.below(1 + self.listed.len());
        let drawn = self.listed.keys().nth(at).copied();
        match (self.below(10), drawn) {
            (0..=2, _) | (_, None) => {
                let new = self.version(self.turn);
                self.listed.insert(self.turn, new);
            }
            (3, Some(id)) => {
                let text = self.turn.to_string();
                let edit = |old: &mut Post| *old = with(old.visibility, post(id, &text));
                self.listed.entry(id).and_modify(edit);
            }
            (4 | 5, Some(id)) => {
                let new = self.version(id);
                self.listed.insert(id, new);
            }
            (6, Some(id)) => {
                delete(world, id);
                self.remove(id);
            }
            (7, Some(id)) => {
                let answer = match self.below(2) {
                    0 => LookUp::Gone,
                    _ => LookUp::Hidden,
                };
                world.now_ms += MINUTE_MS;
                world.look_up(&id.to_string(), answer);
                self.remove(id);
            }
            (8, Some(id)) => {
                counts::recount(world, id);
            }
            _ => {
                if let Some(id) = self.gone.pop() {
                    let new = self.version(id);
                    self.listed.insert(id, new);
                }
            }
        }
        poll(world, self.listed.values().rev().cloned().collect());
    }

    fn remove(&mut self, id: u64) {
        self.listed.remove(&id);
        self.gone.push(id);
    }
}

/// Replicas that begin at any time, and read in chunks of any size between the writes.
#[test]
fn replicas_of_each_reader_end_with_what_the_source_shows_it() {
    for seed in 0..4 {
        on_both(|store| {
            let mut world = home(store);
            let mut upstream = Upstream::new(seed);
            let mut replicas: Vec<Replica> = READERS.map(Replica::from_start).into();
            // All that each reader was ever shown.
            let mut known = READERS.map(|_| BTreeSet::new());
            let mut tombstones = 0;
            for _ in 0..60 {
                upstream.step(&mut world);
                for (by, known) in READERS.into_iter().zip(&mut known) {
                    known.extend(by.shown(&world).into_keys());
                }
                let by = READERS[upstream.below(3)];
                match upstream.below(8) {
                    0 => replicas.push(Replica::begin_full(&world, by)),
                    1 => replicas.push(Replica::from_start(by)),
                    _ => {}
                }
                for replica in &mut replicas {
                    if upstream.below(2) == 0 {
                        let limit = 1 + upstream.below(4);
                        let limits = SourceLimits::new(limit as u32);
                        let chunk = replica.pull(&world, limits);
                        let (entries, gone) = keys(&chunk);
                        tombstones += gone.len();
                        let at = READERS.iter().position(|by| *by == replica.by);
                        let known = &known[at.expect("a reader")];
                        let is_known = |key: &&str| known.contains(*key);
                        assert!(entries.iter().chain(&gone).all(is_known), "{chunk:?}");
                    }
                }
            }
            assert!(tombstones > 0);
            for by in READERS {
                replicas.push(Replica::begin_full(&world, by));
                replicas.push(Replica::from_start(by));
            }
            for mut replica in replicas {
                replica.catch_up(&world, SourceLimits::new(3));
                assert_eq!(
                    replica.posts,
                    replica.by.shown(&world),
                    "seed {seed}: {:?}",
                    replica.by
                );
                assert!(!replica.has_news(&world));
            }
        });
    }
}

/// The contents of the chunks that a member and the world receive of a source whose owner sees 50
/// private posts besides, or none.
fn received(store: &Store, origin: &str, has_private: bool) -> Vec<String> {
    let name = match has_private {
        true => "busy",
        false => "quiet",
    };
    let mut world = published(store, name, origin);
    let named = |post: Post| Post {
        uri: Some(format!("{origin}/posts/{}", post.id)),
        ..post
    };
    // Between the others, from 11 to 65.
    let mut private: BTreeSet<u64> = (11..=65).filter(|id| id % 10 != 0).collect();
    assert_eq!(private.len(), 50);
    if !has_private {
        private.clear();
    }
    let shown = |round: u64| {
        use Visibility::{Private, Public, Unlisted};
        let text = |first, from: u64| match round < from {
            true => first,
            false => "edited",
        };
        let mut all = vec![
            with(
                if round < 3 { Public } else { Private },
                post(10, text("1", 3)),
            ),
            with(Unlisted, post(20, text("2", 2))),
        ];
        all.extend((round < 3).then(|| post(30, "3")));
        all.extend((round > 1).then(|| post(40, text("4", 4))));
        all
    };
    let mut owner = Replica::from_start(OWNER);
    let mut others = [MEMBER, WORLD].map(Replica::from_start);
    let mut received = Vec::new();
    for round in 1..=5 {
        // Nothing is stored before the first round.
        let deleted = private.clone().into_iter();
        for id in deleted.filter(|id| round > 1 && id % 6 == round) {
            delete(&mut world, id);
            private.remove(&id);
        }
        if round == 3 {
            world.look_up("30", LookUp::Gone);
        }
        let hidden = private.iter().map(|id| {
            let visibility = match id % 2 {
                0 => Visibility::Private,
                _ => Visibility::Direct,
            };
            with(visibility, post(id, &format!("private {round}")))
        });
        let mut listed: Vec<Post> = shown(round).into_iter().chain(hidden).map(named).collect();
        listed.sort_by_key(|post| std::cmp::Reverse(post.id.as_str().to_owned()));
        // Times are the same in both cases.
        world.now_ms =
            crate::world::START_MS + i64::try_from(round).expect("few") * 100 * MINUTE_MS;
        world.poll(listed);
        if round == 5 {
            assert_eq!(owner.has_news(&world), has_private);
        }
        owner.catch_up(&world, ALL);
        assert_eq!(owner.posts, OWNER.shown(&world));
        for replica in &mut others {
            received.push(format!("news: {}", replica.has_news(&world)));
            for chunk in replica.catch_up(&world, SourceLimits::new(2)) {
                let entries = chunk.entries.iter().map(|entry| &entry.post);
                let entries: Vec<_> = entries.map(|post| (&post.raw, post.visibility)).collect();
                let gone = chunk.gone.iter();
                let gone: Vec<_> = gone.map(|of| of.key.trim_start_matches(origin)).collect();
                let by = replica.by.reader;
                received.push(format!("{by:?}: {entries:?} {gone:?} {}", chunk.more));
            }
            assert_eq!(replica.posts, replica.by.shown(&world));
            let count = replica.by.count(&world);
            assert_eq!(count, replica.posts.len() as u64);
            received.push(format!("count: {count}"));
        }
    }
    received
}

fn private_posts_change_nothing_that_others_receive(store: &Store) {
    let without = received(store, "https://sim.example", false);
    let with = received(store, "https://other.example", true);
    assert_eq!(with, without);
    // The last round changes private posts alone.
    let end = without.len().saturating_sub(2);
    assert_eq!(without[end..], ["World: [] [] false", "count: 1"]);
    let is_end = |text: &&String| text.contains("/posts/");
    assert_eq!(without.iter().filter(is_end).count(), 2);
}

fn the_end_of_a_private_post_is_told_to_its_owner_alone(store: &Store) {
    let mut world = home(store);
    world.poll(vec![post(3, "text"), private(2, "text"), post(1, "text")]);
    let mut replicas = READERS.map(|by| Replica::complete(&world, by));
    delete(&mut world, 2);
    assert_eq!(
        replicas.each_ref().map(|of| of.has_news(&world)),
        [true, false, false]
    );
    let [owners, members, worlds] = replicas.each_mut().map(|of| of.pull(&world, ALL));
    assert_eq!(keys(&owners), (vec![], vec![&*key(2)]));
    for chunk in [members, worlds] {
        assert_eq!(keys(&chunk), (vec![], vec![]));
        assert_eq!((chunk.end, chunk.more), (4, false));
    }
}

fn a_post_that_is_narrowed_leaves_others_and_stays_for_the_owner(store: &Store) {
    let mut world = home(store);
    world.poll(posts([3, 2, 1]));
    let mut replicas = READERS.map(|by| Replica::complete(&world, by));
    let unlisted = with(Visibility::Unlisted, post(3, "unlisted"));
    poll(
        &mut world,
        vec![unlisted.clone(), post(2, "text"), post(1, "text")],
    );
    poll(
        &mut world,
        vec![unlisted.clone(), private(2, "mine"), post(1, "text")],
    );
    let [owners, members, worlds] = replicas.each_mut().map(|of| of.pull(&world, ALL));
    let keys_of = [key(2), key(3)];
    let [second, third] = keys_of.each_ref().map(String::as_str);
    assert_eq!(keys(&owners), (vec![third, second], vec![]));
    assert_eq!(keys(&members), (vec![third], vec![second]));
    assert_eq!(keys(&worlds), (vec![], vec![third, second]));
    assert_eq!(owners.entries[1].post.visibility, Visibility::Private);
    // What the owner changes now concerns nobody else.
    poll(
        &mut world,
        vec![unlisted, private(2, "mine alone"), post(1, "text")],
    );
    delete(&mut world, 2);
    assert_eq!(
        replicas.each_ref().map(|of| of.has_news(&world)),
        [true, false, false]
    );
    for mut replica in replicas {
        replica.catch_up(&world, ALL);
        assert_eq!(replica.posts, replica.by.shown(&world));
        assert_eq!(replica.by.count(&world), replica.posts.len() as u64);
    }
}

/// The entry's own USN moves on after the reader has lost sight of it.
fn an_end_is_met_where_it_was_by_replicas_that_read_in_small_chunks(store: &Store) {
    let mut world = home(store);
    world.poll(posts([3, 2, 1]));
    let mut replicas = [MEMBER, WORLD].map(|by| Replica::complete(&world, by));
    let page = |second: Post, first: &str| vec![post(3, "text"), second, post(1, first)];
    poll(&mut world, page(private(2, "narrowed"), "text"));
    poll(&mut world, page(private(2, "narrowed"), "edited"));
    poll(&mut world, page(private(2, "once more"), "edited"));
    delete(&mut world, 2);
    for replica in &mut replicas {
        let chunk = replica.pull(&world, SourceLimits::new(1));
        assert_eq!(keys(&chunk), (vec![], vec![&*key(2)]));
        assert_eq!((chunk.gone[0].usn, chunk.end, chunk.more), (4, 4, true));
        let chunk = replica.pull(&world, SourceLimits::new(1));
        assert_eq!(keys(&chunk), (vec![&*key(1)], vec![]));
        assert_eq!((chunk.end, chunk.more), (7, false));
        assert_eq!(replica.posts, replica.by.shown(&world));
    }
    // It comes back at another place, and goes again.
    poll(&mut world, page(post(2, "back"), "edited"));
    for replica in &mut replicas {
        let chunk = replica.pull(&world, ALL);
        assert_eq!(keys(&chunk), (vec![&*key(2)], vec![]));
        assert_eq!(replica.posts, replica.by.shown(&world));
    }
    world.look_up("2", LookUp::Hidden);
    for replica in &mut replicas {
        let chunk = replica.pull(&world, ALL);
        assert_eq!(keys(&chunk), (vec![], vec![&*key(2)]));
    }
}

fn others_learn_of_no_claimed_post_of_a_published_source(store: &Store) {
    let mut world = published(store, "home", ORIGINS[1]);
    let own = Post {
        uri: Some(format!("{}/posts/1", ORIGINS[1])),
        ..post(1, "own")
    };
    world.poll(vec![post(2, "claimed"), own]);
    let mut replicas = READERS.map(|by| Replica::complete(&world, by));
    assert_eq!(replicas.each_ref().map(|of| of.posts.len()), [2, 1, 1]);
    assert_eq!(READERS.map(|by| by.count(&world)), [2, 1, 1]);
    world.now_ms += MINUTE_MS;
    world.look_up("2", LookUp::Gone);
    let [owners, members, worlds] = replicas.each_mut().map(|of| of.pull(&world, ALL));
    assert_eq!(keys(&owners), (vec![], vec![&*key(2)]));
    assert_eq!(keys(&members), (vec![], vec![]));
    assert_eq!(keys(&worlds), (vec![], vec![]));
}

fn a_chunk_reads_a_bounded_number_of_rows(store: &Store) {
    let mut world = home(store);
    let hidden = (1..=12).rev().map(|id| private(id, "text"));
    let shown = std::iter::once(post(13, "text"));
    world.poll(shown.chain(hidden).collect());
    let limits = SourceLimits {
        rows: 5,
        ..SourceLimits::new(10)
    };
    let mut from_start = Replica::from_start(WORLD);
    for end in [5, 10] {
        let chunk = from_start.pull(&world, limits);
        assert_eq!(keys(&chunk), (vec![], vec![]));
        assert_eq!((chunk.end, chunk.more), (end, true));
    }
    let chunk = from_start.pull(&world, limits);
    assert_eq!(keys(&chunk), (vec![&*key(13)], vec![]));
    assert_eq!((chunk.end, chunk.more), (13, false));
    let mut full = Replica::begin_full(&world, WORLD);
    let chunk = full.pull(&world, limits);
    assert_eq!(keys(&chunk), (vec![&*key(13)], vec![]));
    assert_eq!((chunk.end, chunk.more), (9, true));
    full.catch_up(&world, limits);
    assert_eq!(full.posts, from_start.posts);
}

fn a_post_that_is_listed_twice_ends_with_its_last_place(store: &Store) {
    let mut world = home(store);
    let all = vec![listed("13", 1), listed("12", 1), listed("11", 2)];
    assert_eq!(commit(&mut world, all).new, 3);
    for by in READERS {
        let chunk = Replica::begin_full(&world, by).pull(&world, ALL);
        assert_eq!(chunk.entries.len(), 2, "{by:?}: each post once");
    }
    let mut replicas = READERS.map(|by| Replica::complete(&world, by));
    let without = || vec![listed("13", 1), listed("11", 2)];
    assert_eq!(commit(&mut world, without()).left, 0);
    assert_eq!(commit(&mut world, without()).left, 1);
    // The place that is left.
    for replica in &mut replicas {
        let chunk = replica.pull(&world, ALL);
        assert_eq!(keys(&chunk), (vec![&*key(1)], vec![]), "{:?}", replica.by);
        assert_eq!((chunk.entries[0].usn, chunk.end), (4, 4));
        assert_eq!(replica.posts, replica.by.shown(&world));
    }
    // It leaves, is listed at another place, and leaves that while a replica pages.
    let one = SourceLimits::new(1);
    let neither = || vec![listed("20", 3), listed("11", 2)];
    for left in [0, 1] {
        assert_eq!(commit(&mut world, neither()).left, left);
    }
    let again = vec![listed("20", 3), listed("14", 1), listed("11", 2)];
    assert_eq!(commit(&mut world, again).new, 1);
    let mut paging = replicas.clone();
    for replica in &mut paging {
        let new = replica.pull(&world, one);
        assert_eq!(keys(&new), (vec![&*key(3)], vec![]), "{:?}", replica.by);
        let end = replica.pull(&world, one);
        assert_eq!(keys(&end), (vec![], vec![&*key(1)]), "{:?}", replica.by);
    }
    for left in [0, 1] {
        assert_eq!(commit(&mut world, neither()).left, left);
    }
    for mut replica in paging {
        replica.catch_up(&world, one);
        assert_eq!(replica.posts, replica.by.shown(&world));
    }
    world.look_up("2", LookUp::Hidden);
    for replica in &mut replicas {
        replica.catch_up(&world, ALL);
        assert_eq!(replica.posts.keys().collect::<Vec<_>>(), [&key(3)]);
    }
}

fn posts_of_one_name_have_different_keys(store: &Store) {
    let mut world = home(store);
    let boosted = post(1, "text");
    let boost = Post {
        uri: boosted.uri.clone(),
        boost_of: Some(Box::new(boosted.clone())),
        ..post(2, "")
    };
    let nameless = Post {
        uri: None,
        ..post(3, "text")
    };
    world.poll(vec![nameless, boost, boosted]);
    for by in READERS {
        let replica = Replica::complete(&world, by);
        let keys: Vec<&str> = replica.posts.keys().map(String::as_str).collect();
        assert_eq!(keys, [&*key(1), "upstream:2", "upstream:3"]);
    }
}

fn only_the_readers_of_a_source_have_its_library(store: &Store) {
    let mut world = home(store);
    world.poll(posts([1]));
    let source = world.source;
    let news = |viewer: Viewer| {
        let sources = move || LazyReadableSources::new(viewer);
        let changes = store.read_blocking(move |tx| {
            source_changes(tx, source, &sources(), None, 0, ALL).map(drop)
        });
        let newest = store.read_blocking(move |tx| {
            source_newest(tx, source, &sources(), None, 1, i64::MAX, ALL).map(drop)
        });
        assert_eq!(changes, newest);
        let is_news = store.read_blocking(move |tx| has_news(tx, source, &sources(), 0));
        assert_eq!(is_news.is_ok(), changes.is_ok());
        changes
    };
    for by in READERS {
        assert_eq!(news(by.viewer), Ok(()));
    }
    let refused = Err(StoreError::NoSource);
    world.set_audience(Audience::Private);
    assert_eq!(news(OWNER.viewer), Ok(()));
    assert_eq!(news(MEMBER.viewer), refused);
    assert_eq!(news(WORLD.viewer), refused);
}
