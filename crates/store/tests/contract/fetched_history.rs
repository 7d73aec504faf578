//! Earlier versions of posts that come from their servers' edit histories.

use driftline_core::{
    answer::LookUp, edit_history::EarlierVersion, names::audience::Audience, post::Post,
    upstream_id::UpstreamId,
};
use driftline_store::{
    InstanceId, Owner, Store, Viewer,
    fetched_history::{self, HistoryReaders},
    history::{self, EndedBy},
    instance,
    source::{self, LastPosts, NewSource, TokenLocation},
    testing::new_source,
    timeline,
};

use crate::world::{ANN, BOB, START_MS, World, owned_name, post, write};

on_both!(
    fetched_versions_come_before_those_that_were_noticed,
    a_post_that_was_seen_before_its_edit_lacks_nothing,
    a_history_is_for_the_readers_of_the_content,
    a_history_that_members_were_shown_is_theirs,
    a_version_that_ends_in_the_future_ended_now,
    deletions_are_no_versions_of_what_was_there_before,
);

const OF_ANN: HistoryReaders = HistoryReaders {
    owner: Owner::Account(ANN),
    audience: Audience::Private,
};

/// A post that was edited so long after its creation, ms; 0 of one that was not.
fn edited(text: &str, after_ms: i64) -> Post {
    Post {
        created_at_ms: Some(START_MS),
        edited_at_ms: (after_ms > 0).then_some(START_MS + after_ms),
        ..post(1, text)
    }
}

/// A source of one server that is read with a token of its owner's.
fn with_token(store: &Store, owner: Owner, audience: Audience) -> World {
    let new = NewSource {
        owner,
        audience,
        token: Some(TokenLocation::Environment("TOKEN".to_owned())),
        ..new_source(&owned_name(owner, audience.name()))
    };
    World::added(store, new)
}

/// A server's list of versions that were written so long after the creation, ms.
fn listed(times: &[i64]) -> Vec<EarlierVersion> {
    let pairs = times.windows(2).map(|pair| EarlierVersion {
        created_at_ms: START_MS + pair[0],
        ended_at_ms: START_MS + pair[1],
        raw: format!(r#"{{"content":"fetched {}"}}"#, pair[0]),
    });
    pairs.collect()
}

fn lacks(world: &World, readers: HistoryReaders) -> bool {
    let instance = world.source.instance;
    let ids = ["99", "1"].map(UpstreamId::from);
    let lacking = world.read(move |tx| fetched_history::lacking(tx, instance, &ids, readers));
    assert!(lacking.is_empty() || lacking == ["1"].map(UpstreamId::from));
    !lacking.is_empty()
}

fn store_at(world: &World, times: &[i64], readers: HistoryReaders, now_ms: i64) -> usize {
    let (instance, versions): (InstanceId, _) = (world.source.instance, listed(times));
    let id: UpstreamId = "1".into();
    let store = move |tx: &mut driftline_store::Tx<'_>| {
        fetched_history::store(tx, instance, (&id, &versions), readers, now_ms)
    };
    write(&world.store, instance::root(instance), store)
}

fn store(world: &World, times: &[i64], readers: HistoryReaders) -> usize {
    store_at(world, times, readers, START_MS + 1_000_000)
}

/// The versions of the post as a viewer is shown them: their texts, and when they ended, ms after the creation.
fn shown(world: &World, viewer: Viewer) -> Vec<(String, i64)> {
    let instance = world.source.instance;
    let versions = world.read(move |tx| {
        let key = timeline::keys(tx, instance, &["1"])?.remove("1");
        history::versions(tx, key.expect("a post").post, viewer)
    });
    let numbers: Vec<i64> = versions.iter().map(|version| version.seq).collect();
    assert_eq!(numbers, (1..).take(versions.len()).collect::<Vec<i64>>());
    let text = |version: history::Version| {
        let text = version.raw.split('"').skip_while(|part| *part != "content");
        let text = text.skip(2).take(1).collect::<String>();
        assert_eq!(version.is_fetched, text.starts_with("fetched"));
        (text, version.at_ms - START_MS)
    };
    versions.into_iter().map(text).collect()
}

fn texts(world: &World, viewer: Viewer) -> Vec<String> {
    shown(world, viewer)
        .into_iter()
        .map(|(text, _)| text)
        .collect()
}

fn fetched_versions_come_before_those_that_were_noticed(store_: &Store) {
    let mut world = World::readable(store_, "a");
    world.poll(vec![edited("v20", 20)]);
    world.now_ms += 1_000;
    let edit_at_ms = world.now_ms - START_MS;
    world.poll(vec![edited("v30", 30)]);
    assert!(lacks(&world, HistoryReaders::WORLD));
    assert_eq!(store(&world, &[0, 10, 20, 30], HistoryReaders::WORLD), 2);
    let expected = [("fetched 0", 10), ("fetched 10", 20), ("v20", edit_at_ms)];
    let expected = expected.map(|(text, at_ms)| (text.to_owned(), at_ms));
    assert_eq!(shown(&world, Viewer::Anonymous), expected);
    // A second time nothing is missing, and nothing is added.
    assert!(!lacks(&world, HistoryReaders::WORLD));
    assert_eq!(store(&world, &[0, 10, 20, 30], HistoryReaders::WORLD), 0);
    assert_eq!(shown(&world, Viewer::Anonymous), expected);
    // Later edits are noticed after them.
    world.now_ms += 1_000;
    world.poll(vec![edited("v40", 40)]);
    let later = ["fetched 0", "fetched 10", "v20", "v30"];
    assert_eq!(texts(&world, Viewer::Operator), later);
}

fn a_post_that_was_seen_before_its_edit_lacks_nothing(store_: &Store) {
    let mut world = World::readable(store_, "a");
    world.poll(vec![edited("v0", 0)]);
    assert!(!lacks(&world, HistoryReaders::WORLD), "it was not edited");
    assert_eq!(store(&world, &[0, 10], HistoryReaders::WORLD), 0);
    world.now_ms += 1_000;
    world.poll(vec![edited("v10", 10)]);
    assert!(!lacks(&world, HistoryReaders::WORLD));
    assert_eq!(store(&world, &[0, 10], HistoryReaders::WORLD), 0);
    assert_eq!(texts(&world, Viewer::Anonymous), ["v0"]);
}

fn a_history_is_for_the_readers_of_the_content(store_: &Store) {
    let mut home = with_token(store_, Owner::Account(ANN), Audience::Private);
    home.poll(vec![]);
    home.poll(vec![edited("v20", 20)]);
    let of_bob = HistoryReaders {
        owner: Owner::Account(BOB),
        ..OF_ANN
    };
    let of_members = HistoryReaders {
        audience: Audience::Members,
        ..OF_ANN
    };
    for others in [HistoryReaders::WORLD, of_bob, of_members] {
        assert!(!lacks(&home, others), "{others:?} were not shown the post");
        assert_eq!(store(&home, &[0, 20], others), 0);
    }
    assert!(lacks(&home, OF_ANN));
    assert_eq!(store(&home, &[0, 10, 20], OF_ANN), 2);
    let ann = ["fetched 0", "fetched 10"];
    assert_eq!(texts(&home, Viewer::Account(ANN)), ann);
    for viewer in [Viewer::Anonymous, Viewer::Operator, Viewer::Account(BOB)] {
        assert_eq!(texts(&home, viewer), [""; 0], "{viewer:?}");
    }
    // Once the world has the post, its history is the world's too, and nobody sees a version twice.
    let mut public = World::readable(store_, "public");
    public.now_ms = home.now_ms + 1_000;
    public.poll(vec![edited("v30", 30)]);
    assert!(lacks(&public, HistoryReaders::WORLD));
    assert_eq!(store(&public, &[0, 10, 20, 30], HistoryReaders::WORLD), 3);
    let world = ["fetched 0", "fetched 10", "fetched 20"];
    for viewer in [
        Viewer::Anonymous,
        Viewer::Account(BOB),
        Viewer::Account(ANN),
    ] {
        assert_eq!(texts(&public, viewer), world, "{viewer:?}");
    }
    // Versions that only her source was shown go with it.
    let home = home.source;
    let remove =
        move |tx: &mut driftline_store::Tx<'_>| source::remove(tx, home, LastPosts::Remove);
    store_
        .write_blocking(source::root(home), remove)
        .expect("a removal");
    let private = public.read(|tx| {
        let sql = "select count(*) as found from post_history where content_scope <> 0";
        Ok(tx.query_one(sql, &[], |row| row.i64("found"))?)
    });
    assert_eq!(private, 0);
    assert_eq!(texts(&public, Viewer::Account(ANN)), world);
}

fn a_history_that_members_were_shown_is_theirs(store_: &Store) {
    let mut world = with_token(store_, Owner::Operator, Audience::Members);
    world.poll(vec![]);
    world.poll(vec![edited("v20", 20)]);
    let members = HistoryReaders {
        owner: Owner::Operator,
        audience: Audience::Members,
    };
    assert_eq!(store(&world, &[0, 20], members), 1);
    assert_eq!(texts(&world, Viewer::Account(BOB)), ["fetched 0"]);
    assert_eq!(texts(&world, Viewer::Anonymous), [""; 0]);
}

fn a_version_that_ends_in_the_future_ended_now(store_: &Store) {
    let mut world = World::readable(store_, "a");
    world.poll(vec![edited("v900", 900)]);
    let now_ms = START_MS + 500;
    assert_eq!(
        store_at(&world, &[0, 400, 900], HistoryReaders::WORLD, now_ms),
        2
    );
    let ends: Vec<i64> = shown(&world, Viewer::Anonymous)
        .iter()
        .map(|of| of.1)
        .collect();
    assert_eq!(ends, [400, 500]);
}

fn deletions_are_no_versions_of_what_was_there_before(store_: &Store) {
    let mut world = World::readable(store_, "a");
    world.poll(vec![edited("v20", 20)]);
    world.now_ms += 1_000;
    world.look_up("1", LookUp::Gone);
    assert!(!lacks(&world, HistoryReaders::WORLD), "it is deleted");
    assert_eq!(store(&world, &[0, 20], HistoryReaders::WORLD), 0);
    world.now_ms += 1_000;
    world.poll(vec![edited("v20", 20)]);
    assert!(lacks(&world, HistoryReaders::WORLD));
    assert_eq!(store(&world, &[0, 20], HistoryReaders::WORLD), 1);
    assert_eq!(texts(&world, Viewer::Operator), ["fetched 0", "v20"]);
    let instance = world.source.instance;
    let ends = world.read(move |tx| {
        let key = timeline::keys(tx, instance, &["1"])?.remove("1");
        history::versions(tx, key.expect("a post").post, Viewer::Operator)
    });
    let ends: Vec<EndedBy> = ends.iter().map(|version| version.ended_by).collect();
    assert_eq!(ends, [EndedBy::Edit, EndedBy::Deletion]);
}
