//! Copies of one post, which several instances show: one place, the best content, nobody's copy changed by another.

use driftline_core::{
    answer::{Event, LookUp},
    names::audience::Audience,
    post::{Author, Post, References, Visibility},
    timeline::Backfill,
};
use driftline_store::{
    LocalId, Owner, Store, find, source,
    timeline::{self, HomeRule, TimelinePost, Viewer},
    viewer::ReadableSources,
};

use crate::world::{ANN, EVERYTHING, World, home_of, post, with, write};

on_both!(
    copies_are_one_post_where_the_first_was_with_the_content_of_its_own_instance,
    a_copy_that_comes_as_history_moves_nothing,
    a_place_outlives_the_copy_that_took_it,
    the_name_of_one_post_cannot_be_given_to_many,
    a_name_is_for_good_and_goes_with_its_post,
    who_claims_the_name_of_another_authors_post_has_no_copy_of_it,
    what_an_edit_made_public_takes_no_place_when_it_is_deleted,
    whether_a_hidden_copy_is_stored_shows_nowhere,
    a_post_is_found_by_its_address_through_any_instance,
    each_account_has_its_name_across_servers,
    what_a_reply_names_is_found_through_its_copies_by_those_who_may_see_them,
    a_boost_that_bears_the_name_of_its_post_is_no_copy_of_it,
    a_copy_that_comes_live_moves_up_what_another_brought_as_history,
);

/// The author's own instance, and others that show copies.
const OWN: &str = "https://sim.example";
const OTHER: &str = "https://other.example";
const THIRD: &str = "https://third.example";

fn add(store: &Store, name: &str, origin: &str, owner: Owner, audience: Audience) -> World {
    let mut world = World::of_server(store, name, origin, owner, audience);
    world.settings.backfill = Backfill::Count(1_000);
    world.poll(Vec::new());
    world
}

fn public_of(store: &Store, name: &str, origin: &str) -> World {
    add(store, name, origin, Owner::Operator, Audience::Public)
}

/// The post of that name, as an instance numbers and shows it.
fn copy(name: u64, id: u64, text: &str) -> Post {
    let shown = post(id, text);
    Post {
        uri: post(name, "").uri,
        author: by("ann@sim.example"),
        ..shown
    }
}

fn by(acct: &str) -> Author {
    Author {
        acct: acct.to_owned(),
        ..post(1, "").author
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

fn copies_are_one_post_where_the_first_was_with_the_content_of_its_own_instance(store: &Store) {
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
    for viewer in [Viewer::Anonymous, Viewer::Operator, Viewer::Account(ANN)] {
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
                let home = own.read(move |tx| home_of(tx, &EVERYTHING, viewer, &rule));
                assert_eq!(home.posts[1].id, before[0].id);
                assert_eq!(texts(&home.posts), ["next", "as it is"]);
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
}

fn a_copy_that_comes_as_history_moves_nothing(store: &Store) {
    let mut other = public_of(store, "other", OTHER);
    other.poll(vec![copy(7, 71, "seven"), copy(5, 51, "five")]);
    let before = ids(&public(&other, Viewer::Anonymous));
    // Its first page is history, at the time when the posts were created.
    let mut own = World::owned(store, "own", Owner::Operator, Audience::Public);
    own.settings.backfill = Backfill::Count(1_000);
    own.poll(vec![
        copy(7, 7, "own seven"),
        copy(6, 6, "own six"),
        copy(5, 5, "own five"),
    ]);
    let after = public(&own, Viewer::Anonymous);
    assert_eq!(texts(&after), ["own seven", "own five", "own six"]);
    assert_eq!(ids(&after)[..2], before);
}

fn a_place_outlives_the_copy_that_took_it(store: &Store) {
    let mut other = public_of(store, "other", OTHER);
    let mut own = public_of(store, "own", OWN);
    let mut third = public_of(store, "third", THIRD);
    other.poll(vec![copy(5, 51, "other's")]);
    own.now_ms += 1_000;
    own.poll(vec![copy(6, 6, "next"), copy(5, 5, "own")]);
    let before = public(&own, Viewer::Anonymous);
    let hidden = Viewer::Account(ANN);
    let home = HomeRule {
        sources: vec![own.source.id, other.source.id],
        authors: Vec::new(),
    };
    let at_home = |world: &World| {
        let rule = home.clone();
        world
            .read(move |tx| home_of(tx, &EVERYTHING, hidden, &rule))
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
}

fn the_name_of_one_post_cannot_be_given_to_many(store: &Store) {
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
}

fn a_name_is_for_good_and_goes_with_its_post(store: &Store) {
    let mut own = public_of(store, "own", OWN);
    let mut other = public_of(store, "other", OTHER);
    other.poll(vec![copy(4, 51, "other's")]);
    own.poll(vec![copy(5, 5, "own")]);
    let before = public(&own, Viewer::Anonymous);
    // It claims to be the other post from now on, whose place it would take.
    other.now_ms += 1_000;
    let edited = Post {
        edited_at_ms: Some(other.now_ms),
        ..copy(5, 51, "renamed")
    };
    other.look_up("51", LookUp::Found(Box::new(edited)));
    let now = public(&own, Viewer::Anonymous);
    assert_eq!(texts(&now), ["own", "renamed"]);
    assert_eq!(ids(&now), ids(&before));
    let rows = |world: &World| {
        world.read(|tx| {
            let all = tx.query("select uri_key from object_uri", &[], |row| {
                row.text("uri_key")
            });
            Ok(all?.len())
        })
    };
    assert_eq!(rows(&own), 2);
    other.remove(source::LastPosts::Remove);
    assert_eq!(texts(&public(&own, Viewer::Anonymous)), ["own"]);
    assert_eq!(rows(&own), 1);
}

fn who_claims_the_name_of_another_authors_post_has_no_copy_of_it(store: &Store) {
    let mut other = public_of(store, "other", OTHER);
    let mut own = public_of(store, "own", OWN);
    other.poll(vec![Post {
        author: by("bob@other.example"),
        ..copy(5, 51, "bob's")
    }]);
    own.poll(vec![copy(5, 5, "own")]);
    assert_eq!(texts(&public(&own, Viewer::Anonymous)), ["own", "bob's"]);
}

fn what_an_edit_made_public_takes_no_place_when_it_is_deleted(store: &Store) {
    let mut other = public_of(store, "other", OTHER);
    let mut own = public_of(store, "own", OWN);
    let unlisted = with(Visibility::Unlisted, copy(5, 51, "other's"));
    other.poll(vec![unlisted]);
    own.now_ms += 1_000;
    own.poll(vec![copy(5, 5, "own")]);
    let before = public(&own, Viewer::Anonymous);
    other.now_ms += 2_000;
    other.poll(vec![copy(5, 51, "for all now")]);
    assert_eq!(ids(&public(&own, Viewer::Anonymous)), ids(&before));
    delete(&mut other, "51");
    assert_eq!(ids(&public(&own, Viewer::Anonymous)), ids(&before));
}

fn whether_a_hidden_copy_is_stored_shows_nowhere(store: &Store) {
    let mut open = public_of(store, "open", OWN);
    let owner = Owner::Account(ANN);
    let mut hidden = add(store, "home", OWN, owner, Audience::Private);
    let mut other = public_of(store, "other", OTHER);
    hidden.poll(vec![copy(5, 5, "hidden")]);
    other.poll(vec![copy(5, 51, "other's"), copy(4, 41, "other's")]);
    open.poll(Vec::new());
    let instance = open.source.instance;
    let seen_by = |viewer| {
        let readable = open.read(move |tx| Ok(ReadableSources::load(tx, viewer)?));
        let of = readable.clone();
        let named = open.read(move |tx| timeline::named(tx, instance, &["5", "4"], &of));
        let keys = open.read(move |tx| timeline::keys(tx, instance, &["5"]));
        let key = keys["5"];
        let place = open.read(move |tx| timeline::at_its_place(tx, key.post, viewer));
        let copies = open.read(move |tx| timeline::copies_of(tx, &[key], &readable));
        (named.len(), place.is_some(), copies.len())
    };
    // As for the post 4, which is not stored there.
    assert_eq!(seen_by(Viewer::Anonymous), (0, false, 0));
    assert_eq!(seen_by(Viewer::Operator), (0, false, 0));
    assert_eq!(seen_by(Viewer::Account(ANN)), (1, true, 1));
}

fn a_post_is_found_by_its_address_through_any_instance(store: &Store) {
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
}

fn each_account_has_its_name_across_servers(store: &Store) {
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
}

fn what_a_reply_names_is_found_through_its_copies_by_those_who_may_see_them(store: &Store) {
    let mut own = public_of(store, "own", OWN);
    let owner = Owner::Account(ANN);
    let mut other = add(store, "other", OTHER, owner, Audience::Private);
    public_of(store, "third", THIRD);
    let reply = |shown: Post, to: &str| Post {
        reply_to: Some(to.into()),
        references: References {
            posts: vec![to.into()],
            ..References::default()
        },
        ..shown
    };
    // Replies that the viewers may not read do not count.
    let narrow = |id| with(Visibility::Private, reply(copy(id, id, "narrow"), "4"));
    own.poll((101..=140).rev().map(narrow).collect());
    // Its own server does not show what it replies to.
    own.poll(vec![reply(copy(5, 5, "reply"), "4")]);
    other.poll(vec![
        reply(copy(5, 51, "reply"), "40"),
        copy(4, 40, "first"),
    ]);
    let (instance, key) = (own.source.instance, other.source);
    let named = |viewer| {
        let readable = other.read(move |tx| Ok(ReadableSources::load(tx, viewer)?));
        other.read(move |tx| timeline::named(tx, instance, &["4", "9"], &readable))
    };
    let place = other.timeline_for(Viewer::Account(ANN))[1].id;
    let anns = named(Viewer::Account(ANN));
    assert_eq!((anns.len(), anns.get("4")), (1, Some(&place)));
    // As for a post that is stored nowhere.
    assert!(named(Viewer::Anonymous).is_empty());
    assert!(named(Viewer::Operator).is_empty());
    write(store, source::root(key), move |tx| {
        source::set_audience(tx, key, Audience::Public)
    });
    // Another server only claims to know it; its own has to show it first.
    assert!(named(Viewer::Anonymous).is_empty());
    own.poll(vec![copy(4, 4, "first"), reply(copy(5, 5, "reply"), "4")]);
    let worlds = named(Viewer::Anonymous);
    let found = status(&own, worlds["4"], Viewer::Anonymous).expect("a post");
    assert_eq!(texts(&[found]), ["first"]);
}

fn a_boost_that_bears_the_name_of_its_post_is_no_copy_of_it(store: &Store) {
    let mut own = public_of(store, "own", OWN);
    let mut other = public_of(store, "other", OTHER);
    let boost = Post {
        boost_of: Some(Box::new(copy(5, 5, "boosted"))),
        ..copy(5, 6, "a boost of their own")
    };
    own.poll(vec![boost]);
    other.poll(vec![copy(5, 51, "post")]);
    let shown = public(&own, Viewer::Anonymous);
    assert_eq!(texts(&shown), ["post", "a boost of their own"]);
    assert!(shown.iter().all(|post| post.copies.is_empty()));
}

/// History of one copy and a live one: the place is the one that readers are told of.
fn a_copy_that_comes_live_moves_up_what_another_brought_as_history(store: &Store) {
    let mut other = public_of(store, "other", OTHER);
    other.poll(vec![copy(9, 91, "newest")]);
    let mut own = World::owned(store, "own", Owner::Operator, Audience::Public);
    own.settings.backfill = Backfill::Count(1_000);
    own.poll(vec![copy(5, 5, "own")]);
    let before = public(&own, Viewer::Anonymous);
    assert_eq!(texts(&before), ["newest", "own"]);
    other.now_ms += 1_000;
    other.poll(vec![copy(5, 51, "other's"), copy(9, 91, "newest")]);
    for viewer in [Viewer::Anonymous, Viewer::Operator, Viewer::Account(ANN)] {
        let now = public(&own, viewer);
        assert_eq!(texts(&now), ["own", "newest"]);
        assert!(now[0].id > before[0].id);
        assert!(status(&own, before[1].id, viewer).is_some());
    }
    // It stays there while either lives.
    let place = public(&own, Viewer::Anonymous)[0].id;
    other.now_ms += 60_000;
    delete(&mut other, "51");
    assert_eq!(public(&own, Viewer::Anonymous)[0].id, place);
}
