//! Sources: adding, naming, pausing, removing; the schema.

use driftline_core::answer::LookUp;
use driftline_db::{
    Db,
    testing::{databases, schema},
};
use driftline_store::{
    InstanceId, MIGRATIONS, SourceId, SourceKey, Store, StoreError, local_ids, nonce,
    source::{self, LastPosts, NameRefused, NewSource, TokenLocation},
    timeline::{self, Viewer},
};

use crate::world::{START_MS, World, names, new_source, posts, read, write};

on_both!(
    a_source_comes_back_as_it_was_added,
    a_private_server_is_allowed_by_its_source_for_its_instance_alone,
    bad_and_taken_names_are_refused,
    pausing_and_settings,
    a_renamed_source_is_found_by_its_new_name_alone,
    a_missing_source_is_an_error_of_its_own,
    removing_a_source_leaves_what_others_have,
    posts_that_are_kept_outlive_their_source,
    ids_of_removed_history_are_not_given_again,
);

fn add(store: &Store, name: &str) -> Result<SourceKey, NameRefused> {
    let new = new_source(name);
    write(store, local_ids::root(), move |tx| {
        source::add(tx, &new, START_MS)
    })
}

#[test]
fn the_schema_is_the_same_on_both() {
    let schemas: Vec<_> = databases()
        .iter()
        .map(|fresh| {
            let db: Db = fresh.open(MIGRATIONS);
            let found = db.read_blocking(schema).expect("a schema");
            db.close_blocking();
            found
        })
        .collect();
    assert!(schemas[0].len() > 8);
    let [sqlite, postgres] = &schemas[..] else {
        panic!("two databases");
    };
    assert_eq!(without_instances(sqlite), without_instances(postgres));
}

/// A schema without what only PostgreSQL's keys contain so that it can be distributed, and without the terms of the
/// search index, which each database keeps in its own way.
fn without_instances(schema: &[String]) -> Vec<&str> {
    let is_of_index = |line: &str| line.contains("terms") || line.contains("author_row");
    let lines = schema.iter().filter(|line| !is_of_index(line));
    let lines = lines.map(|line| match line.split_once(" key ") {
        None if !line.contains(" unique index ") => line.as_str(),
        Some(("post_history", columns)) if columns.starts_with("post_id, seq") => {
            "post_history key post_id, seq"
        }
        _ => line.strip_suffix(", instance_id").unwrap_or(line),
    });
    let mut lines: Vec<&str> = lines.collect();
    lines.sort_unstable();
    lines
}

fn a_source_comes_back_as_it_was_added(store: &Store) {
    let mut new = new_source("home");
    new.settings.every_ms = 777;
    new.token = Some(TokenLocation::Environment("HOME_TOKEN".to_owned()));
    let added = new.clone();
    let id = write(store, local_ids::root(), move |tx| {
        source::add(tx, &added, START_MS)
    })
    .expect("a source");
    let found = read(store, |tx| source::by_name(tx, "home")).expect("the source");
    assert_eq!(
        (found.id, &found.settings, &found.token),
        (id.id, &new.settings, &new.token)
    );
    assert_eq!(
        (found.paused, found.readable, found.update_count),
        (false, false, 0)
    );
    assert_eq!(
        (&*found.instance.origin, found.created_at_ms),
        (&*new.origin, START_MS)
    );
    assert_eq!(found.holding, None);
    add(store, "other").expect("a source");
    let list = read(store, source::list);
    assert_eq!(list.len(), 2);
    assert_eq!(list[0], found);
    assert_eq!(list[0].instance, list[1].instance);
    assert_eq!(
        store.read_blocking(|tx| source::by_name(tx, "Home")),
        Ok(None)
    );
}

fn a_private_server_is_allowed_by_its_source_for_its_instance_alone(store: &Store) {
    let add = |name: &str, origin: &str, allow_private| {
        let new = NewSource {
            origin: origin.to_owned(),
            allow_private,
            ..new_source(name)
        };
        write(store, local_ids::root(), move |tx| {
            source::add(tx, &new, START_MS)
        })
        .expect("a source")
    };
    let allowed = add("one", "http://10.0.0.1", true);
    add("two", "http://10.0.0.1", false);
    let other = add("three", "http://10.0.0.2", false);
    let state = || {
        read(store, move |tx| {
            let sources = source::list(tx)?;
            let own: Vec<bool> = sources.iter().map(|of| of.allow_private).collect();
            let of = [allowed.instance, other.instance].map(|id| source::allows_private(tx, id));
            let [first, second] = of;
            Ok::<_, StoreError>((own, first?, second?))
        })
    };
    assert_eq!(state(), (vec![true, false, false], true, false));
    let set = |key, allow| {
        write(store, source::root(key), move |tx| {
            source::set_allow_private(tx, key, allow)
        });
    };
    set(allowed, false);
    assert_eq!(state(), (vec![false; 3], false, false));
    set(other, true);
    assert_eq!(state(), (vec![false, false, true], false, true));
}

fn bad_and_taken_names_are_refused(store: &Store) {
    add(store, "a.b-C_9").expect("a good name");
    assert_eq!(add(store, "a.b-C_9"), Err(NameRefused::Taken));
    let long = "x".repeat(65);
    for bad in ["", "a b", "é", "a/b", "a\0", &long] {
        assert_eq!(add(store, bad), Err(NameRefused::Bad), "{bad:?}");
    }
    add(store, &"x".repeat(64)).expect("a good name");
}

fn pausing_and_settings(store: &Store) {
    let world = World::new(store, "home");
    let id = world.source;
    assert!(world.write(move |tx| source::set_paused(tx, id, true)));
    assert!(!world.write(move |tx| source::set_paused(tx, id, true)));
    assert!(world.write(move |tx| source::set_paused(tx, id, false)));
    assert!(!world.write(move |tx| source::set_paused(tx, id, false)));
    let mut settings = world.settings.clone();
    settings.fill_gaps = false;
    let other = settings.clone();
    let file = TokenLocation::File("/run/token:1".to_owned());
    let token = file.clone();
    world.write(move |tx| {
        source::set_settings(tx, id, &other)?;
        source::set_token(tx, id, Some(&token))
    });
    let found = world.read(move |tx| source::by_id(tx, id.id)).expect("it");
    assert_eq!((found.settings, found.token), (settings, Some(file)));
}

fn a_renamed_source_is_found_by_its_new_name_alone(store: &Store) {
    let world = World::new(store, "home");
    add(store, "taken").expect("a source");
    let id = world.source;
    let rename = |name: &'static str| world.write(move |tx| source::rename(tx, id, name));
    assert_eq!(rename("taken"), Err(NameRefused::Taken));
    assert_eq!(rename("home"), Err(NameRefused::Taken));
    assert_eq!(rename("a b"), Err(NameRefused::Bad));
    assert_eq!(rename("new"), Ok(()));
    let by_name = |name: &'static str| {
        let found = world.read(move |tx| source::by_name(tx, name));
        found.map(|source| (source.id, source.name))
    };
    assert_eq!(by_name("new"), Some((id.id, "new".to_owned())));
    assert_eq!(by_name("home"), None);
    assert_eq!(world.read(move |tx| source::key(tx, id.id)), Some(id));
    // The old name is free.
    add(store, "home").expect("a source");
    assert_eq!(rename("home"), Err(NameRefused::Taken));
    assert_eq!(rename("newer"), Ok(()));
}

fn a_missing_source_is_an_error_of_its_own(store: &Store) {
    let id = SourceKey {
        id: SourceId::new(99),
        instance: InstanceId::new(1),
    };
    let result = store.write_blocking(source::root(id), move |tx| source::set_paused(tx, id, true));
    assert_eq!(result, Err(StoreError::NoSource));
}

fn removing_a_source_leaves_what_others_have(store: &Store) {
    let mut first = World::readable(store, "first");
    let mut second = World::readable(store, "second");
    first.poll(posts([3, 2, 1]));
    second.poll(posts([4, 3]));
    first.look_up("1", LookUp::Gone);
    let mine = first.timeline();
    let theirs = second.timeline();
    let id = first.source;
    let planned = first.read(move |tx| source::removal(tx, id));
    assert_eq!((planned.entries, planned.posts, planned.lookups), (3, 2, 0));
    let gaps = first.read(move |tx| {
        let sql = "select count(*) from gap where source_id = 1";
        Ok(tx.query_one(sql, &[], |row| row.i64(0))?)
    });
    assert!(gaps > 0 && planned.gaps == gaps.unsigned_abs(), "{gaps}");
    let removed = first.remove(LastPosts::Remove);
    assert_eq!(removed, planned);
    assert_eq!(
        store.read_blocking(move |tx| source::by_id(tx, id.id)),
        Ok(None)
    );
    assert_eq!(second.timeline(), theirs);
    assert_eq!(names(&second.public()), ["4", "3"]);
    let status = |id| second.read(move |tx| timeline::status(tx, id, Viewer::Operator));
    assert_eq!(status(mine[0].id).expect("shared").upstream_id, "3");
    assert_eq!(status(mine[1].id), None);
    for table in ["gap", "post_history"] {
        let left = second.read(move |tx| {
            let sql = match table {
                "gap" => "select count(*) from gap where source_id = 1",
                _ => "select count(*) from post_history",
            };
            Ok(tx.query_one(sql, &[], |row| row.i64(0))?)
        });
        assert_eq!(left, 0, "{table}");
    }
    // The name is free, and an ID that was given never comes again.
    let mut again = World::new(store, "first");
    assert_ne!(again.source, id);
    again.poll(posts([3, 2, 1]));
    let ids: Vec<_> = again
        .timeline_for(Viewer::Operator)
        .iter()
        .map(|post| post.id)
        .collect();
    assert!(mine.iter().all(|post| !ids.contains(&post.id)));
}

fn posts_that_are_kept_outlive_their_source(store: &Store) {
    let mut first = World::readable(store, "first");
    let mut second = World::readable(store, "second");
    first.poll(posts([3, 2, 1]));
    second.poll(posts([4, 3]));
    let (mine, public) = (first.timeline(), first.public());
    let scheduled = |world: &World| {
        world.read(|tx| {
            let sql = "select count(*) from schedule";
            Ok(tx.query_one(sql, &[], |row| row.i64(0))?)
        })
    };
    let due = scheduled(&second);
    let id = first.source;
    let planned = first.read(move |tx| source::removal(tx, id));
    let removed = first.remove(LastPosts::Keep);
    assert_eq!(removed, planned);
    assert_eq!((removed.entries, removed.posts), (3, 2));
    assert_eq!(second.public(), public);
    assert_eq!(scheduled(&second), due);
    for post in &mine {
        let of = post.id;
        let found = second.read(move |tx| timeline::status(tx, of, Viewer::Anonymous));
        assert_eq!(found.as_ref(), Some(post));
    }
    assert_eq!(
        first.read(move |tx| source::by_id(tx, id.id)),
        None,
        "the source"
    );
    // A source that shows them again has them under new IDs of its own, and the public timeline
    // shows each once.
    let mut again = World::readable(store, "first");
    again.poll(posts([5, 3, 2, 1]));
    assert_eq!(names(&again.timeline()), ["5", "3", "2", "1"]);
    assert_eq!(names(&again.public()), ["5", "4", "3", "2", "1"]);
    let ids: Vec<_> = again.timeline().iter().map(|post| post.id).collect();
    assert!(mine.iter().all(|post| !ids.contains(&post.id)));
    let removed = again.remove(LastPosts::Remove);
    assert_eq!((removed.entries, removed.posts), (4, 3));
    assert_eq!(names(&second.public()), ["4", "3"]);
}

fn ids_of_removed_history_are_not_given_again(store: &Store) {
    let mut world = World::new(store, "home");
    world.poll(posts([2, 1]));
    let before: Vec<_> = world
        .timeline_for(Viewer::Operator)
        .iter()
        .map(|p| p.id)
        .collect();
    world.remove(LastPosts::Remove);
    let mut world = World::new(store, "home");
    world.poll(posts([9, 8]));
    let after: Vec<_> = world
        .timeline_for(Viewer::Operator)
        .iter()
        .map(|p| p.id)
        .collect();
    assert_eq!((before.len(), after.len()), (2, 2));
    assert!(after.iter().all(|id| !before.contains(id)));
}

#[test]
fn a_store_keeps_its_name() {
    for fresh in databases() {
        let open = || {
            let store = driftline_store::testing::open(&fresh);
            let name = store.read_blocking(nonce).expect("a name");
            store.close_blocking();
            name
        };
        let name = open();
        assert_eq!(name.len(), 32, "{}", fresh.name);
        assert_eq!(open(), name, "{}", fresh.name);
    }
}
