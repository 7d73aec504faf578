//! Pages: law 2, local IDs, USNs, history, the same post in two sources.

use driftline_core::{
    post::Visibility,
    timeline::{Machine, Reading},
};
use driftline_id::Layout;
use driftline_store::{
    LocalId, StoreError, export, machine, source,
    timeline::{self, Viewer},
};

use crate::references::local_id;
use crate::world::{START_MS, Store, World, names, newest_page, page, post, posts};

on_both!(
    a_page_is_stored_with_ids_and_usns_in_its_order,
    a_page_without_news_changes_nothing_and_leaves_the_clock,
    a_clock_that_steps_back_makes_no_smaller_id,
    a_closure_that_fails_leaves_nothing,
    the_machine_is_stored_with_the_page,
    history_of_one_moment_gets_different_ids,
    a_post_in_two_sources_is_one_post_with_two_ids,
    ids_of_every_kind_are_stored_as_they_are,
    json_is_kept_byte_by_byte_and_nul_characters_are_replaced_in_text,
    a_reading_of_another_page_is_refused,
    an_export_goes_on_where_it_stopped,
    a_machine_that_begins_again_does_not_import_below_what_readers_have_seen,
);

fn a_page_is_stored_with_ids_and_usns_in_its_order(store: &Store) {
    let mut world = World::readable(store, "home");
    let summary = world.poll(posts([3, 2, 1]));
    assert_eq!((summary.new, summary.update_count), (3, 3));
    let timeline = world.timeline();
    assert_eq!(names(&timeline), ["3", "2", "1"]);
    assert!(timeline.windows(2).all(|pair| pair[0].id > pair[1].id));
    assert_eq!(timeline, world.public());
    assert_eq!(world.usns(), [(1, 1), (2, 2), (3, 3)]);
    let floor = Layout::PULSATE.smallest_at(START_MS);
    assert_eq!(u128::from(timeline[2].id.raw()), floor);
    assert_eq!(timeline[0].raw, post(3, "text").raw);
}

fn a_page_without_news_changes_nothing_and_leaves_the_clock(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([3, 2, 1]));
    let clock = |world: &World| {
        world.read(|tx| {
            // By its place: its name tells whether IDs are reserved.
            let last = tx.query_one("select * from local_clock", &[], |row| row.i64(1))?;
            Ok(last)
        })
    };
    let before = clock(&world);
    world.now_ms += 60_000;
    let mut same = posts([3, 2, 1]);
    same[0].raw = same[0]
        .raw
        .replace("\"favourites_count\":0", "\"favourites_count\":9");
    let summary = world.poll(same);
    assert_eq!(
        (summary.new, summary.edited, summary.update_count),
        (0, 0, 3)
    );
    assert_eq!(clock(&world), before);
}

fn a_clock_that_steps_back_makes_no_smaller_id(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([1]));
    world.now_ms -= 3_600_000;
    world.poll(posts([2]));
    let timeline = world.timeline();
    assert_eq!(names(&timeline), ["2", "1"]);
    assert_eq!(timeline[0].id.raw(), timeline[1].id.raw() + 1);
}

fn a_closure_that_fails_leaves_nothing(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([1]));
    let (source_id, before) = (world.source, world.machine.clone());
    let request = newest_page();
    let mut page = page(posts([9, 8]), START_MS);
    let known = before.scheme().copied();
    let reading = Reading::check(&mut page, known, &world.settings);
    let mut commit = world.page_job(&request, reading, page);
    let failed: Result<(), StoreError> = store.write_blocking(source::root(source_id), move |tx| {
        assert_eq!(commit(tx)?.1.new, 2);
        Err(StoreError::LeaseLost)
    });
    assert_eq!(failed, Err(StoreError::LeaseLost));
    assert_eq!(names(&world.timeline()), ["1"]);
    let stored = world.read(move |tx| machine::load(tx, source_id));
    assert_eq!(stored, before);
    for table in ["upstream_post", "post", "entry", "account"] {
        let rows = world.read(move |tx| {
            let sql = format!("select count(*) from {table}");
            Ok(tx.query_one(&sql, &[], |row| row.i64(0))?)
        });
        assert_eq!(rows, 1, "{table}");
    }
    // What was undone can be done.
    assert_eq!(world.poll(posts([9, 8])).new, 2);
}

fn the_machine_is_stored_with_the_page(store: &Store) {
    let mut world = World::new(store, "home");
    world.poll(posts([30, 20, 10]));
    let again = World::of(store, world.source);
    assert_eq!(again.machine, world.machine);
    assert!(!again.machine.ledger().gaps().is_empty());
}

fn history_of_one_moment_gets_different_ids(store: &Store) {
    let mut world = World::new(store, "home");
    world.poll(posts((1..=40).rev()));
    let request = world.fill();
    let mut elsewhere = World::new(store, "elsewhere");
    elsewhere.poll(posts((1..=40).rev()));
    let mut more = posts([0]);
    more[0].created_at_ms = Some(START_MS - 1000);
    world
        .commit(&request, page(more, START_MS))
        .expect("a commit");
    let mut ids: Vec<_> = world
        .timeline_for(Viewer::Operator)
        .iter()
        .chain(&elsewhere.timeline_for(Viewer::Operator))
        .map(|post| post.id)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 81);
}

fn a_post_in_two_sources_is_one_post_with_two_ids(store: &Store) {
    let mut first = World::readable(store, "first");
    let mut second = World::readable(store, "second");
    first.poll(posts([2, 1]));
    let summary = second.poll(posts([3, 2]));
    assert_eq!((summary.new, summary.update_count), (2, 2));
    let (mine, theirs) = (first.timeline()[0].clone(), second.timeline()[1].clone());
    assert_eq!(mine.upstream_id, theirs.upstream_id);
    assert_eq!(mine.post_id, theirs.post_id);
    assert_eq!(mine.id, mine.post_id);
    assert!(theirs.id > mine.id);
    assert_eq!(names(&first.public()), ["3", "2", "1"]);
    for id in [mine.id, theirs.id] {
        let found = first.read(move |tx| timeline::status(tx, id, Viewer::Anonymous));
        assert_eq!(found.expect("the post").post_id, mine.post_id);
    }
    let instance = mine.instance;
    assert_eq!(local_id(&first, instance, "2"), Some(mine.id));
    assert!(local_id(&first, instance, "3").is_some());
    assert_eq!(local_id(&first, instance, "unknown"), None);
    let unknown = LocalId::new(u64::MAX);
    let found = first.read(move |tx| timeline::status(tx, unknown, Viewer::Operator));
    assert_eq!(found, None);
}

fn ids_of_every_kind_are_stored_as_they_are(store: &Store) {
    let mut numbers = World::readable(store, "numbers");
    let huge = [
        "18446744073709551615",
        "9223372036854775808",
        "9007199254740993",
        "9",
    ];
    numbers.poll(huge.iter().map(|id| post(id, "text")).collect());
    assert_eq!(names(&numbers.timeline()), huge);
    let mut ulids = World::readable(store, "ulids");
    let ids = ["01J9ZZZZZZZZZZZZZZZZZZZZZZ", "01J9ZZZZZZZZZZZZZZZZZZZZZA"];
    ulids.poll(ids.iter().map(|id| post(id, "text")).collect());
    assert_eq!(names(&ulids.timeline()), ids);
}

fn json_is_kept_byte_by_byte_and_nul_characters_are_replaced_in_text(store: &Store) {
    let mut world = World::readable(store, "home");
    let mut bad = post(1, "a\\u0000b");
    let odd = r#"{"n":1e400,"m": 18446744073709551616,"\u0061":"\ud800 \/","s":-0.0,"#;
    bad.raw = bad.raw.replacen('{', odd, 1);
    let raw = bad.raw.clone();
    bad.url = Some("https://sim.example/\0x".to_owned());
    bad.author.display_name = "A\0nn".to_owned();
    bad.author.acct = "\0ann".to_owned();
    world.poll(vec![bad]);
    let stored = world.timeline().remove(0);
    assert_eq!(
        (&stored.raw, world.export().remove(0).post.raw.as_ref()),
        (&raw, Some(&raw))
    );
    assert_eq!(stored.url.as_deref(), Some("https://sim.example/\u{fffd}x"));
    let id = stored.account.expect("an account");
    let source = world.source;
    let account = world.read(move |tx| driftline_store::account::by_ids(tx, &[id], &[source]));
    assert_eq!(
        (&*account[0].acct, &*account[0].display_name),
        ("\u{fffd}ann", "A\u{fffd}nn")
    );
}

fn a_reading_of_another_page_is_refused(store: &Store) {
    let world = World::readable(store, "home");
    let request = newest_page();
    let mut right = page(posts([2, 1]), START_MS);
    let reading = Reading::check(&mut right, None, &world.settings);
    let wrong = page(posts([2]), START_MS);
    let commit = world.page_job(&request, reading, wrong);
    let result = store.write_blocking(source::root(world.source), commit);
    let mismatch = StoreError::PageMismatch { posts: 1, keys: 2 };
    assert_eq!(result.map(|_| ()), Err(mismatch));
}

fn an_export_goes_on_where_it_stopped(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([3, 2, 1]));
    let mut private = post(4, "text");
    private.visibility = Visibility::Private;
    world.poll(vec![private]);
    let source = world.source;
    let mut seen = Vec::new();
    let mut after = 0;
    loop {
        let rows = world.read(move |tx| export::rows(tx, source, after, 2));
        let Some(last) = rows.last() else { break };
        after = last.first_usn;
        seen.extend(rows.into_iter().map(|row| row.post.upstream_id));
    }
    assert_eq!(seen, ["1", "2", "3", "4"]);
}

fn a_machine_that_begins_again_does_not_import_below_what_readers_have_seen(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([2, 1]));
    let newest = world.timeline()[0].id;
    world.machine = Machine::default();
    world.poll(posts([3]));
    assert_eq!(names(&world.timeline())[0], "3");
    assert!(world.timeline()[0].id > newest);
}
