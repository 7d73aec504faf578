//! Copies of one post, which several instances show: one place, the best content, nobody's copy changed by another.

use driftline_core::{
    answer::{Event, LookUp},
    audience::Audience,
    post::Post,
    timeline::Backfill,
};
use driftline_store::{
    LocalAccountId, LocalId, Owner, Store, find, local_ids, source,
    testing::new_source,
    timeline::{self, HomeRule, TimelinePost, Viewer},
};

use crate::world::{EVERYTHING, World, on_both, post};

/// The author's own instance, and others that show copies.
const OWN: &str = "https://sim.example";
const OTHER: &str = "https://other.example";
const THIRD: &str = "https://third.example";

fn ann() -> LocalAccountId {
    LocalAccountId::new(1 << 50)
}

fn add(store: &Store, name: &str, origin: &str, owner: Owner, audience: Audience) -> World {
    let new = source::NewSource {
        owner,
        audience,
        origin: origin.to_owned(),
        ..match owner {
            Owner::Operator => new_source(name),
            Owner::Account(account) => new_source(&format!("account{account}/{name}")),
        }
    };
    let added = store.write_blocking(local_ids::root(), move |tx| source::add(tx, &new, 1));
    let mut world = World::of(store, added.expect("a write").expect("a free name"));
    world.settings.backfill = Backfill::Count(1_000);
    world.poll(Vec::new());
    world
}

fn public_of(store: &Store, name: &str, origin: &str) -> World {
    add(store, name, origin, Owner::Operator, Audience::Public)
}

/// The post of that name, as an instance numbers and shows it.
fn copy(name: u64, id: u64, text: &str) -> Post {
    let uri = post(name, "").uri;
    Post {
        uri,
        ..post(id, text)
    }
}

fn public(world: &World, viewer: Viewer) -> Vec<TimelinePost> {
    world.read(move |tx| timeline::public(tx, &EVERYTHING, viewer))
}

fn texts(posts: &[TimelinePost]) -> Vec<String> {
    let text = |post: &TimelinePost| {
        let raw: serde_json::Value = serde_json::from_str(&post.raw).expect("JSON");
        raw["content"].as_str().expect("a text").to_owned()
    };
    posts.iter().map(text).collect()
}

fn ids(posts: &[TimelinePost]) -> Vec<LocalId> {
    posts.iter().map(|post| post.id).collect()
}

fn status(world: &World, id: LocalId, viewer: Viewer) -> Option<TimelinePost> {
    world.read(move |tx| timeline::status(tx, id, viewer))
}

fn delete(world: &mut World, id: &str) {
    world.now_ms += 1_000;
    world.stream(vec![Event::Deleted(id.into())]);
}

#[test]
fn copies_are_one_post_where_the_first_was_with_the_content_of_its_own_instance() {
    on_both(|store| {
        let mut other = public_of(store, "other", OTHER);
        let mut own = public_of(store, "own", OWN);
        other.poll(vec![copy(5, 51, "as others show it")]);
        let before = public(&own, Viewer::Anonymous);
        own.poll(vec![copy(6, 6, "next"), copy(5, 5, "as it is")]);
        let all = HomeRule {
            sources: vec![own.source.id, other.source.id],
            authors: Vec::new(),
        };
        let by_author = HomeRule {
            sources: Vec::new(),
            authors: vec![before[0].account.expect("an author")],
        };
        for viewer in [Viewer::Anonymous, Viewer::Operator, Viewer::Account(ann())] {
            let shown = public(&own, viewer);
            assert_eq!(texts(&shown), ["next", "as it is"]);
            assert_eq!(shown[1].id, before[0].id);
            assert_eq!(shown[1].upstream_id, "5");
            assert_eq!(shown[1].copies.len(), 1);
            for of_copy in [own.timeline()[1].id, before[0].id] {
                let found = status(&own, of_copy, viewer).expect("a post");
                assert_eq!((found.id, found.upstream_id.as_str()), (of_copy, "5"));
            }
            if viewer != Viewer::Anonymous {
                for rule in [all.clone(), by_author.clone()] {
                    let home =
                        own.read(move |tx| timeline::home(tx, &EVERYTHING, viewer, &rule, None));
                    assert!(home.posts.iter().any(|post| post.id == before[0].id));
                    // By their names they are two authors' here, `ann` of each instance.
                    assert!(home.posts.len() <= 2);
                }
            }
        }
        // Each source shows what its instance shows.
        assert_eq!(texts(&other.timeline()), ["as others show it"]);
        // What others show later changes nothing.
        other.now_ms += 1_000;
        other.poll(vec![copy(5, 51, "rewritten by others")]);
        assert_eq!(
            texts(&public(&own, Viewer::Anonymous)),
            ["next", "as it is"]
        );
        own.now_ms += 2_000;
        own.poll(vec![copy(6, 6, "next"), copy(5, 5, "edited")]);
        assert_eq!(texts(&public(&own, Viewer::Anonymous)), ["next", "edited"]);
    });
}

#[test]
fn a_copy_that_comes_as_history_moves_nothing() {
    on_both(|store| {
        let mut other = public_of(store, "other", OTHER);
        other.poll(vec![copy(7, 71, "seven"), copy(5, 51, "five")]);
        let before = ids(&public(&other, Viewer::Anonymous));
        // Its first page is history, below all that was shown.
        let new = source::NewSource {
            origin: OWN.to_owned(),
            ..new_source("own")
        };
        let added = store.write_blocking(local_ids::root(), move |tx| source::add(tx, &new, 1));
        let mut own = World::of(store, added.expect("a write").expect("a free name"));
        own.settings.backfill = Backfill::Count(1_000);
        own.poll(vec![
            copy(7, 7, "own seven"),
            copy(6, 6, "own six"),
            copy(5, 5, "own five"),
        ]);
        let after = public(&own, Viewer::Anonymous);
        assert_eq!(texts(&after), ["own seven", "own five", "own six"]);
        assert_eq!(ids(&after)[..2], before);
    });
}

#[test]
fn a_place_outlives_the_copy_that_took_it() {
    on_both(|store| {
        let mut other = public_of(store, "other", OTHER);
        let mut own = public_of(store, "own", OWN);
        let mut third = public_of(store, "third", THIRD);
        other.poll(vec![copy(5, 51, "other's")]);
        own.now_ms += 1_000;
        own.poll(vec![copy(6, 6, "next"), copy(5, 5, "own")]);
        let before = public(&own, Viewer::Anonymous);
        let hidden = Viewer::Account(ann());
        let home = HomeRule {
            sources: vec![own.source.id, other.source.id],
            authors: Vec::new(),
        };
        let at_home = |world: &World| {
            let rule = home.clone();
            world
                .read(move |tx| timeline::home(tx, &EVERYTHING, hidden, &rule, None))
                .posts
        };
        let home_before = at_home(&own);
        delete(&mut other, "51");
        let now = public(&own, Viewer::Anonymous);
        assert_eq!((ids(&now), texts(&now)), (ids(&before), texts(&before)));
        assert_eq!(ids(&at_home(&own)), ids(&home_before));
        assert_eq!(ids(&public(&own, hidden)), ids(&before));
        let found = status(&own, before[1].id, Viewer::Anonymous).expect("the copy that lives");
        assert_eq!(found.upstream_id, "5");
        // Once all have ended it is gone, and readers were told: a copy that comes then has a place of its own.
        own.now_ms += 2_000;
        delete(&mut own, "5");
        assert_eq!(texts(&public(&own, Viewer::Anonymous)), ["next"]);
        assert_eq!(status(&own, before[1].id, Viewer::Anonymous), None);
        assert_eq!(texts(&at_home(&own)), ["next"]);
        third.now_ms += 10_000;
        third.poll(vec![copy(5, 53, "third's")]);
        let now = public(&own, Viewer::Anonymous);
        assert_eq!(texts(&now), ["third's", "next"]);
        assert!(now[0].id > before[0].id);
    });
}

#[test]
fn a_copy_that_its_reader_may_not_see_neither_places_nor_fills_a_post() {
    on_both(|store| {
        let owner = Owner::Account(ann());
        let mut own = add(store, "home", OWN, owner, Audience::Private);
        let mut other = public_of(store, "other", OTHER);
        own.poll(vec![copy(5, 5, "for followers, in truth")]);
        let hidden = own.timeline_for(Viewer::Account(ann()))[0].id;
        other.poll(vec![copy(5, 51, "as others show it")]);
        let shown = public(&other, Viewer::Anonymous);
        assert_eq!(texts(&shown), ["as others show it"]);
        assert!(shown[0].id > hidden);
        assert_eq!(status(&other, hidden, Viewer::Anonymous), None);
        assert_eq!(status(&other, hidden, Viewer::Operator), None);
        let anns = public(&other, Viewer::Account(ann()));
        assert_eq!(texts(&anns), ["for followers, in truth"]);
        assert_eq!(anns[0].id, hidden);
    });
}

#[test]
fn the_name_of_one_post_cannot_be_given_to_many() {
    on_both(|store| {
        let mut own = public_of(store, "own", OWN);
        let mut other = public_of(store, "other", OTHER);
        own.poll(vec![copy(5, 5, "own")]);
        other.poll((51..60).rev().map(|id| copy(5, id, "again")).collect());
        let shown = public(&own, Viewer::Anonymous);
        // The first of them counts as a copy, and the others as posts of their own.
        assert_eq!(shown.len(), 9);
        assert_eq!(
            shown.iter().filter(|post| !post.copies.is_empty()).count(),
            1
        );
        assert_eq!(texts(&shown)[8], "own");
    });
}

#[test]
fn names_go_with_their_posts_and_follow_their_edits() {
    on_both(|store| {
        let mut own = public_of(store, "own", OWN);
        let mut other = public_of(store, "other", OTHER);
        own.poll(vec![copy(5, 5, "own")]);
        other.poll(vec![copy(4, 51, "other's")]);
        assert_eq!(public(&own, Viewer::Anonymous).len(), 2);
        // It claims to be the other post from now on.
        other.now_ms += 1_000;
        let edited = Post {
            edited_at_ms: Some(other.now_ms),
            ..copy(5, 51, "renamed")
        };
        other.look_up("51", LookUp::Found(Box::new(edited)));
        assert_eq!(texts(&public(&own, Viewer::Anonymous)), ["own"]);
        // It is no copy any more of what it was one of.
        let mut third = public_of(store, "third", THIRD);
        third.poll(vec![copy(4, 61, "third's")]);
        assert_eq!(texts(&public(&own, Viewer::Anonymous)), ["third's", "own"]);
        let rows = |world: &World| {
            world.read(|tx| {
                let all = tx.query("select tail from object_uri", &[], |row| row.text("tail"));
                Ok(all?.len())
            })
        };
        assert_eq!(rows(&own), 3);
        let key = other.source;
        let removed = store.write_blocking(source::root(key), move |tx| {
            source::remove(tx, key, source::LastPosts::Remove)
        });
        removed.expect("a write");
        assert_eq!(texts(&public(&own, Viewer::Anonymous)), ["third's", "own"]);
        assert_eq!(rows(&own), 2);
    });
}

#[test]
fn a_post_is_found_by_its_address_through_any_instance() {
    on_both(|store| {
        let mut other = public_of(store, "other", OTHER);
        let mut own = public_of(store, "own", OWN);
        other.poll(vec![copy(5, 51, "other's")]);
        own.poll(vec![copy(5, 5, "own")]);
        let uri = post(5, "").uri.expect("a name");
        let found = own.read(move |tx| {
            let mut found = Vec::new();
            for id in find::posts_at(tx, &uri)? {
                found.extend(timeline::at_its_place(tx, id, Viewer::Anonymous)?);
            }
            Ok(found)
        });
        let place = public(&own, Viewer::Anonymous)[0].id;
        assert_eq!(found.len(), 2);
        assert!(
            found
                .iter()
                .all(|post| post.id == place && post.upstream_id == "5")
        );
    });
}

#[test]
fn each_account_has_its_name_across_servers() {
    on_both(|store| {
        let mut own = public_of(store, "own", OWN);
        let mut named = copy(5, 5, "own");
        named.author.uri = Some(format!("{OWN}/users/ann"));
        own.poll(vec![named]);
        let known = own.read(|tx| {
            let found = tx.query(
                "select o.known from object_uri o join account a on a.id = o.object_id
                     and a.instance_id = o.instance_id
                 where o.kind = 'account' and a.uri = $1",
                &[&"https://sim.example/users/ann"],
                |row| row.text("known"),
            );
            Ok(found?)
        });
        assert_eq!(known, ["fetched"]);
    });
}
