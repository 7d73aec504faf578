//! Searchable texts, and what the search index learns of: each version that somebody may be shown has one text, and
//! each post that has changed is pending. The first law is checked after every test of this suite.

use driftline_core::{
    answer::{Event, LookUp},
    names::audience::Audience,
    post::{Post, Visibility},
    refresh::Policy,
};
use driftline_mastodon::{TEXT_EXTRACTION, text_of_json};
use driftline_sim::seeds;
use driftline_store::{
    Owner, Root, SourceKey, Store, Tx, index_pending, instance,
    refresh::{Claimed, LookupAnswer, LookupTarget},
    source::LastPosts,
    testing::{IndexWatch, check_post_texts},
    text_rebuild::{self, PORTION_POSTS},
    tracked,
};
use rand::{RngExt as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;

use crate::{
    audiences::ORIGINS,
    refresh::{MINUTE_MS, Workers, found, liked},
    world::{ANN, BOB, START_MS, World, edited, hashed, on_both, post, posts, read, relay, write},
};

on_both!(
    a_text_ends_with_the_last_version_that_has_it,
    counts_are_no_news_for_the_index,
    labels_that_change_without_an_edit_are_news_for_the_index,
    a_text_of_two_scopes_has_the_labels_of_both,
    a_change_that_the_index_has_not_read_is_not_forgotten,
    texts_that_lack_or_are_old_are_made_again,
    a_rebuild_goes_on_where_it_was_cut_short,
);

fn texts(store: &Store) -> Vec<String> {
    let mut texts = read(store, |tx| {
        let query = "select text from post_text";
        Ok(tx.query(query, &[], |row| row.text("text"))?)
    });
    texts.sort_unstable();
    texts
}

fn a_text_ends_with_the_last_version_that_has_it(store: &Store) {
    let mut world = World::readable(store, "home");
    let mut ann = World::with_token(
        store,
        "anns",
        "https://sim.example",
        Owner::Account(ANN),
        Audience::Private,
    );
    world.poll(vec![post(1, "one")]);
    ann.poll(vec![edited(1, "two", START_MS)]);
    assert_eq!(texts(store), ["one", "two"]);
    world.now_ms += 1;
    world.poll(vec![edited(1, "two", START_MS)]);
    assert_eq!(texts(store), ["two"]);
    world.now_ms += 1;
    world.poll(vec![edited(1, "three", START_MS + 1)]);
    assert_eq!(texts(store), ["three", "two"]);
    ann.remove(LastPosts::Remove);
    assert_eq!(texts(store), ["three"]);
    world.look_up("1", LookUp::Gone);
    assert!(texts(store).is_empty());
    world.now_ms += 1_000;
    world.poll(vec![edited(1, "three", START_MS + 1)]);
    assert_eq!(texts(store), ["three"]);
    world.remove(LastPosts::Remove);
    assert!(texts(store).is_empty());
}

fn counts_are_no_news_for_the_index(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![liked(2, 0), liked(1, 0)]);
    let mut watch = IndexWatch::default();
    assert_eq!(watch.check(store), 2);
    let workers = Workers::of(&world);
    let now_ms = START_MS + 4 * MINUTE_MS;
    workers.refresh(&[found(1, 7), found(2, 0)], now_ms);
    world.now_ms = now_ms + 4 * MINUTE_MS;
    world.poll(vec![liked(2, 3), liked(1, 9)]);
    relay(&[&world]);
    assert_eq!(watch.check(store), 0);
    let mut edited = liked(1, 9);
    edited.raw = edited.raw.replace("text", "better");
    workers.refresh(
        &[(1, LookupAnswer::Found(Box::new(edited)))],
        now_ms + 60 * MINUTE_MS,
    );
    assert_eq!(watch.check(store), 1);
}

/// A post with a mention.
fn mentioning(id: u64, acct: &str) -> Post {
    with_members(id, &format!(r#""mentions":[{{"acct":"{acct}"}}]"#))
}

fn with_members(id: u64, members: &str) -> Post {
    let mut shown = post(id, "text");
    shown.raw = shown.raw.replacen('{', &format!("{{{members},"), 1);
    hashed(shown)
}

/// The labels of all texts, in order.
fn labels(store: &Store) -> Vec<String> {
    let mut labels = read(store, |tx| {
        let query = "select labels from post_text";
        Ok(tx.query(query, &[], |row| row.text("labels"))?)
    });
    labels.sort_unstable();
    labels
        .iter()
        .map(|labels| labels.replace('\u{1f}', " "))
        .collect()
}

fn labels_that_change_without_an_edit_are_news_for_the_index(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![mentioning(2, "two"), mentioning(1, "one")]);
    let mut watch = IndexWatch::default();
    assert_eq!(watch.check(store), 2);
    let workers = Workers::of(&world);
    let found = |id, tag| (id, LookupAnswer::Found(Box::new(mentioning(id, tag))));
    let now_ms = START_MS + 4 * MINUTE_MS;
    workers.refresh(&[found(1, "uno"), found(2, "two")], now_ms);
    assert_eq!(watch.check(store), 1);
    assert_eq!(labels(store), ["mentions:two", "mentions:uno mentions:one"]);
    // A page shows them again.
    world.now_ms = now_ms + 4 * MINUTE_MS;
    world.poll(vec![mentioning(2, "dos"), mentioning(1, "one")]);
    assert_eq!(watch.check(store), 1);
    let all = ["mentions:dos mentions:two", "mentions:uno mentions:one"];
    assert_eq!(labels(store), all);
    world.now_ms += 4 * MINUTE_MS;
    world.poll(vec![mentioning(2, "two"), mentioning(1, "uno")]);
    assert_eq!(watch.check(store), 0);
    assert_eq!(labels(store), all);
    // An edit begins with its own labels.
    world.now_ms += 4 * MINUTE_MS;
    let edited = Post {
        edited_at_ms: Some(world.now_ms),
        ..mentioning(1, "eins")
    };
    world.poll(vec![mentioning(2, "two"), hashed(edited)]);
    assert_eq!(
        labels(store),
        ["mentions:dos mentions:two", "mentions:eins"]
    );
}

fn a_text_of_two_scopes_has_the_labels_of_both(store: &Store) {
    let mut world = World::readable(store, "home");
    let mut ann = World::with_token(
        store,
        "anns",
        "https://sim.example",
        Owner::Account(ANN),
        Audience::Private,
    );
    let quote =
        r#""quote":{"quoted_status":{"id":"9","content":"x"}},"mentions":[{"acct":"hers"}]"#;
    world.poll(vec![mentioning(1, "everybodys")]);
    ann.poll(vec![with_members(1, quote)]);
    assert_eq!(labels(store), ["mentions:hers mentions:everybodys"]);
    write(store, Root::none(), |tx| {
        Ok(tx.execute("update post_text set extraction = 0, labels = ''", &[])?)
    });
    rebuild(store, 9);
    assert_eq!(labels(store), ["mentions:everybodys mentions:hers"]);
}

fn a_change_that_the_index_has_not_read_is_not_forgotten(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([2, 1]));
    let unindexed = || read(store, |tx| index_pending::unindexed(tx, 10));
    let instance = world.source.instance;
    let forget = |read: Vec<_>| {
        write(store, Root::none(), move |tx| {
            index_pending::forget_indexed(tx, instance, &read)
        });
    };
    let before = unindexed();
    assert_eq!(before.len(), 2);
    // Many changes of one millisecond, and a clock that was ahead.
    write(store, Root::none(), |tx| {
        Ok(tx.execute(
            "update index_pending set since_ms = since_ms + 3600000",
            &[],
        )?)
    });
    let before = unindexed();
    world.now_ms += 1;
    for text in ["a", "b", "c"] {
        world.now_ms += 1;
        world.poll(vec![post(1, text)]);
    }
    let after = unindexed();
    forget(before);
    let left = unindexed();
    assert_eq!(left.len(), 1);
    assert!(after.contains(&left[0]));
    forget(left);
    assert!(unindexed().is_empty());
}

/// Runs a rebuild, at most of so many portions; returns how many posts and texts it had.
fn rebuild(store: &Store, portions: usize) -> (u64, u64) {
    let (mut after, mut done) = (None, (0, 0));
    for _ in 0..portions {
        let portion = read(store, move |tx| {
            text_rebuild::next_portion(tx, after, TEXT_EXTRACTION)
        });
        let Some(portion) = portion else { break };
        done.0 += portion.posts;
        after = Some(portion.last);
        for (id, posts) in portion.outdated {
            done.1 += write(store, instance::root(id), move |tx| {
                text_rebuild::rebuild(tx, id, &posts, text_of_json)
            });
        }
    }
    done
}

fn texts_that_lack_or_are_old_are_made_again(store: &Store) {
    let mut world = World::readable(store, "home");
    let mut ann = World::with_token(
        store,
        "anns",
        "https://sim.example",
        Owner::Account(ANN),
        Audience::Private,
    );
    let mut other = World::with_token(
        store,
        "other",
        "https://other.example",
        Owner::Operator,
        Audience::Public,
    );
    world.poll((1..=6).rev().map(|id| post(id, "text")).collect());
    ann.poll(vec![edited(2, "for Ann", START_MS)]);
    other.poll(vec![post(1, "elsewhere")]);
    world.look_up("6", LookUp::Gone);
    let mut watch = IndexWatch::default();
    watch.check(store);
    let all = "insert into index_pending (instance_id, post_id, since_ms)
         select instance_id, id, 1 from post where deleted_at_ms is null";
    write(store, Root::none(), move |tx| Ok(tx.execute(all, &[])?));
    crate::search::index(store, 100);
    assert_eq!(rebuild(store, 9), (7, 0));
    assert_eq!(watch.check(store), 0);
    let lost = [
        "delete from post_text where text = 'for Ann'",
        "delete from post_text where text = 'elsewhere'",
        "update post_text set extraction = 0, text = 'old' where post_id in
             (select post_id from upstream_post where upstream_id = '3')",
        "insert into post_text (post_id, instance_id, content_hash, extraction, text, labels)
         select post_id, instance_id, 5, 0, 'of no version', '' from upstream_post where upstream_id = '3'",
    ];
    for sql in lost {
        let lose = move |tx: &mut Tx<'_>| Ok(tx.execute(sql, &[])?);
        assert_eq!(write(store, Root::none(), lose), 1, "{sql}");
    }
    // The content of the post for the world, and that for Ann, are both made again.
    assert_eq!(rebuild(store, 9), (7, 4));
    assert_eq!(watch.check(store), 3);
    check_post_texts(store, text_of_json);
    assert_eq!(rebuild(store, 9), (7, 0));
}

fn a_rebuild_goes_on_where_it_was_cut_short(store: &Store) {
    let mut world = World::readable(store, "home");
    let portion = u64::from(PORTION_POSTS);
    let all = 2 * portion + 10;
    world.poll((1..=all).rev().map(|id| post(id, "text")).collect());
    assert_eq!(read(store, text_rebuild::count_posts), all);
    write(store, Root::none(), |tx| {
        Ok(tx.execute("delete from post_text", &[])?)
    });
    assert_eq!(rebuild(store, 1), (portion, portion));
    assert_eq!(rebuild(store, 9), (all, all - portion));
}

#[test]
fn whatever_happens_the_texts_are_right_and_the_index_learns_of_it() {
    seeds::run(4, |seed| on_both(|store| Case::new(store, seed).run()));
}

/// Sources of two instances, and what happens to their posts.
struct Case {
    rng: ChaCha8Rng,
    store: Store,
    worlds: Vec<World>,
    workers: Workers,
    watch: IndexWatch,
    now_ms: i64,
    added: u64,
}

impl Case {
    fn new(store: &Store, seed: u64) -> Case {
        let mut world = World::with_token(
            store,
            "first",
            ORIGINS[0],
            Owner::Operator,
            Audience::Public,
        );
        world.poll(Vec::new());
        let mut case = Case {
            rng: ChaCha8Rng::seed_from_u64(seed),
            store: store.clone(),
            workers: Workers::of(&world),
            worlds: vec![world],
            watch: IndexWatch::default(),
            now_ms: START_MS,
            added: 0,
        };
        for _ in 0..4 {
            case.add_source();
        }
        case
    }

    fn run(mut self) {
        for _ in 0..STEPS {
            self.now_ms += self.rng.random_range(1..10 * MINUTE_MS);
            for world in &mut self.worlds {
                world.now_ms = self.now_ms;
            }
            self.step();
            check_post_texts(&self.store, text_of_json);
            self.watch.check(&self.store);
        }
        for world in std::mem::take(&mut self.worlds) {
            world.remove(LastPosts::Remove);
            check_post_texts(&self.store, text_of_json);
            self.watch.check(&self.store);
        }
    }

    fn add_source(&mut self) {
        self.added += 1;
        let owners = [Owner::Operator, Owner::Account(ANN), Owner::Account(BOB)];
        let owner = *owners.choose(&mut self.rng).expect("one");
        let origin = *ORIGINS.choose(&mut self.rng).expect("one");
        let (name, audience) = (format!("source{}", self.added), self.audience());
        let mut world = World::with_token(&self.store, &name, origin, owner, audience);
        world.claims = self.workers.claims.clone();
        world.now_ms = self.now_ms;
        self.worlds.push(world);
    }

    fn audience(&mut self) -> Audience {
        let all = [Audience::Private, Audience::Members, Audience::Public];
        *all.choose(&mut self.rng).expect("one")
    }

    fn post(&mut self) -> Post {
        let id = self.rng.random_range(1..=POSTS);
        let text = *["one", "two", "three"].choose(&mut self.rng).expect("one");
        let all = [
            Visibility::Public,
            Visibility::Public,
            Visibility::Unlisted,
            Visibility::Private,
        ];
        Post {
            edited_at_ms: self.rng.random_bool(0.3).then_some(self.now_ms),
            visibility: *all.choose(&mut self.rng).expect("one"),
            ..post(id, text)
        }
    }

    fn posts(&mut self) -> Vec<Post> {
        let mut posts: Vec<Post> = (0..3).map(|_| self.post()).collect();
        posts.sort_by_key(|post| std::cmp::Reverse(number(post)));
        posts.dedup_by_key(|post| number(post));
        posts
    }

    fn step(&mut self) {
        let at = self.rng.random_range(0..self.worlds.len());
        let id = self.rng.random_range(1..=POSTS).to_string();
        match self.rng.random_range(0..20) {
            0..8 => {
                let posts = self.posts();
                self.worlds[at].poll(posts);
            }
            8..11 => {
                let post = self.post();
                let event = match self.rng.random_range(0..3) {
                    0 => Event::Deleted(id.as_str().into()),
                    1 => Event::Edited(Box::new(post)),
                    _ => Event::Posted(Box::new(post)),
                };
                self.worlds[at].stream(vec![event]);
            }
            11..13 => {
                self.worlds[at].keep_deleted = self.rng.random_bool(0.5);
                let answer = match self.rng.random_bool(0.7) {
                    true => LookUp::Gone,
                    false => LookUp::Found(Box::new(Post {
                        id: id.as_str().into(),
                        ..self.post()
                    })),
                };
                self.worlds[at].look_up(&id, answer);
            }
            13..15 => {
                let audience = self.audience();
                self.worlds[at].set_audience(audience);
            }
            15 => {
                let source = self.worlds[at].source;
                self.track(source, id);
            }
            16 if self.worlds.len() > 3 => {
                let last = match self.rng.random_bool(0.3) {
                    true => LastPosts::Keep,
                    false => LastPosts::Remove,
                };
                self.worlds.swap_remove(at).remove(last);
                self.add_source();
            }
            _ => self.refresh(),
        }
    }

    fn track(&self, source: SourceKey, id: String) {
        let (ids, now_ms) = (vec![id], self.now_ms);
        write(
            &self.store,
            driftline_store::source::root(source),
            move |tx| tracked::add_lookups(tx, source, &ids, false, &Policy::default(), now_ms),
        );
    }

    /// Saves the answers to due look-ups, and tells the sources.
    fn refresh(&mut self) {
        let now_ms = self.now_ms;
        let Claimed::Batch(claim) = self.workers.ask(now_ms, 3_600_000) else {
            return;
        };
        self.workers.keep_deleted = self.rng.random_bool(0.5);
        let mut answers = Vec::new();
        for due in &claim.posts {
            if let (LookupTarget::Stored(_), Ok(id)) = (due.what, due.upstream_id.parse()) {
                let answer = match self.rng.random_range(0..4) {
                    0 => LookupAnswer::Gone,
                    _ => LookupAnswer::Found(Box::new(Post {
                        id: due.upstream_id.as_str().into(),
                        ..self.post()
                    })),
                };
                answers.push((id, answer));
            }
        }
        self.workers.save(&claim, &answers, now_ms);
        let instance = self.workers.instance;
        let worlds = self.worlds.iter();
        let worlds = worlds.filter(|world| world.source.instance == instance);
        relay(&worlds.collect::<Vec<_>>());
    }
}

fn number(post: &Post) -> u64 {
    post.id.as_str().parse().expect("a number")
}

const POSTS: u64 = 6;
const STEPS: usize = 80;
