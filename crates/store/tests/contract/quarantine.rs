//! The quarantine: what cannot be read is kept, and costs nothing else.

use driftline_core::{
    answer::{LookUp, Page, Unreadable},
    refresh::Policy,
    upstream_id::UpstreamId,
};
use driftline_store::{
    CommitRetried, CommitSummary, Viewer, commit_retried, completeness, history,
    quarantine::{self, Quarantined, RetriedItem},
    source,
    testing::SCHEME,
};

use crate::world::{START_MS, Store, World, hashed, names, newest_page, page, post, posts};

on_both!(
    an_unreadable_item_is_kept_once_and_the_page_stored,
    keys_stay_as_they_are_stored,
    it_leaves_when_a_page_shows_that_it_is_there_no_more,
    the_bytes_of_a_source_have_a_bound,
    small_items_are_read_again_together,
    it_leaves_when_a_page_lists_a_post_there,
    a_stored_post_that_cannot_be_read_any_more_is_not_missed,
    what_it_may_stand_for_is_not_missed,
    a_new_version_reads_it_once_and_stores_it_as_if_shown_late,
    a_version_read_late_replaces_none_that_is_newer,
    a_removed_source_leaves_none,
);

/// A page with an item that cannot be read between the posts.
fn page_with(world: &World, ids: impl IntoIterator<Item = u64>, item: Unreadable) -> Page {
    Page {
        passed: item.position.clone().into_iter().collect(),
        unreadable: vec![item],
        ..page(posts(ids), world.now_ms)
    }
}

fn at(position: Option<&str>, bytes: &[u8]) -> Unreadable {
    Unreadable {
        position: position.map(UpstreamId::from),
        above: Some("3".into()),
        below: Some("1".into()),
        bytes: bytes.to_vec(),
        reason: "control character".to_owned(),
    }
}

fn kept(world: &World) -> Vec<Quarantined> {
    let source = world.source;
    let kept = world.read(move |tx| quarantine::list(tx, source));
    let counts = world.read(move |tx| completeness::counts(tx, source));
    assert_eq!(counts.unreadable, kept.len() as u64);
    kept
}

fn retry(world: &World, read: &RetriedItem) -> CommitSummary {
    let source = world.source;
    let untried = world.read(move |tx| quarantine::untried(tx, source));
    let items: Vec<_> = untried
        .into_iter()
        .map(|item| (item, read.clone()))
        .collect();
    let now_ms = world.now_ms;
    world.write(move |tx| {
        commit_retried(
            tx,
            &CommitRetried {
                source,
                fence: None,
                scheme: &SCHEME,
                items: &items,
                policy: &Policy::default(),
                now_ms,
            },
        )
    })
}

/// As if another version of the program had put the items there.
fn of_another_version(world: &World) {
    world.write(|tx| {
        tx.execute("update quarantine set program = 'older'", &[])?;
        Ok(())
    });
}

fn an_unreadable_item_is_kept_once_and_the_page_stored(store: &Store) {
    let mut world = World::readable(store, "home");
    let bytes = b"{\"id\":\"2\",\"content\":\"\x00\xff\"}";
    let first = page_with(&world, [3, 1], at(Some("2"), bytes));
    let summary = world.commit(&newest_page(), first).expect("a commit");
    assert_eq!(summary.new, 2);
    assert_eq!(names(&world.timeline()), ["3", "1"]);
    world.now_ms += 60_000;
    let again = page_with(&world, [3, 1], at(Some("2"), bytes));
    world.commit(&newest_page(), again).expect("a commit");
    let items = kept(&world);
    assert_eq!(items.len(), 1, "once");
    assert_eq!(items[0].item, at(Some("2"), bytes));
    assert_eq!(items[0].first_seen_at_ms, START_MS);
    assert_eq!(items[0].last_seen_at_ms, world.now_ms);
    // Without a position they are told apart by their bytes.
    for (bytes, count) in [("7", 2), ("7", 2), ("8", 3)] {
        let page = page_with(&world, [3, 1], at(None, bytes.as_bytes()));
        world.commit(&newest_page(), page).expect("a commit");
        assert_eq!(kept(&world).len(), count);
    }
}

/// Keys are stored, and must be the same in every version of the program.
fn keys_stay_as_they_are_stored(store: &Store) {
    let mut world = World::readable(store, "home");
    let page = page_with(&world, [3, 1], at(None, b"7"));
    world.commit(&newest_page(), page).expect("a commit");
    assert_eq!(kept(&world)[0].key, "#af63aa4c86019796-1");
}

/// Without a position it is between its neighbours, or next to the only one.
fn it_leaves_when_a_page_shows_that_it_is_there_no_more(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([6, 5, 4, 3, 1]));
    let look = world.second_look();
    let between = |above: Option<&str>, below: Option<&str>, bytes: &[u8]| Unreadable {
        above: above.map(UpstreamId::from),
        below: below.map(UpstreamId::from),
        ..at(None, bytes)
    };
    let unreadable = vec![
        between(None, Some("6"), b"top"),
        between(Some("6"), Some("5"), b"upper"),
        between(Some("4"), Some("3"), b"lower"),
        between(Some("9"), Some("5"), b"above what is read"),
    ];
    let keys = |world: &World| -> Vec<Vec<u8>> {
        let kept = kept(world).into_iter();
        kept.map(|item| item.item.bytes).collect()
    };
    let sorted = |mut keys: Vec<Vec<u8>>| {
        keys.sort_unstable();
        keys
    };
    let broken = Page {
        unreadable,
        ..page(posts([6, 5, 4, 3, 1]), world.now_ms)
    };
    world.commit(&newest_page(), broken).expect("a commit");
    world.now_ms += 60_000;
    // Another item that cannot be read may be any of them.
    let broken = page_with(&world, [6, 5, 4, 3, 1], at(None, b"other"));
    world.commit(&look, broken).expect("a commit");
    assert_eq!(keys(&world).len(), 5);
    world.now_ms += 60_000;
    let whole = page(posts([6, 5, 4, 3, 1]), world.now_ms);
    world.commit(&look, whole).expect("a commit");
    // It looked at what is below 6.
    let mut left: Vec<&[u8]> = vec![b"above what is read", b"top"];
    assert_eq!(sorted(keys(&world)), left);
    world.now_ms += 60_000;
    world.poll(posts([7, 6, 5, 4, 3, 1]));
    let look = world.second_look();
    let whole = page(posts([7, 6, 5, 4, 3, 1]), world.now_ms);
    world.commit(&look, whole).expect("a commit");
    left.pop();
    assert_eq!(keys(&world), left);
}

fn the_bytes_of_a_source_have_a_bound(store: &Store) {
    let mut world = World::readable(store, "home");
    let big = |n: u8| at(None, &vec![n; 4 << 20]);
    for n in 0..17 {
        world.now_ms += 1;
        let page = page_with(&world, [3, 1], big(n));
        world.commit(&newest_page(), page).expect("a commit");
    }
    // One that comes again, and a small one that does not fit either.
    for item in [big(3), at(None, b"small")] {
        world.now_ms += 1;
        let page = page_with(&world, [3, 1], item);
        world.commit(&newest_page(), page).expect("a commit");
    }
    let items = kept(&world);
    let sizes: Vec<u64> = items.iter().map(|item| item.size).collect();
    assert_eq!(sizes[..16], [4 << 20; 16]);
    assert_eq!(sizes[16..], [0, 0], "of these only the place is kept");
    assert!(items[16].item.reason.ends_with("no room for it"));
    let listed: usize = items.iter().map(|item| item.item.bytes.len()).sum();
    assert!(listed <= 8 << 20, "{listed}");
    assert!(listed > 7 << 20, "{listed}");
    of_another_version(&world);
    let source = world.source;
    for n in 0..16_u8 {
        let untried = world.read(move |tx| quarantine::untried(tx, source));
        assert_eq!(untried.len(), 1, "so much at once");
        assert_eq!(untried[0].item, big(n));
        retry(&world, &Err("still not".to_owned()));
    }
    assert_eq!(world.read(move |tx| quarantine::untried(tx, source)), []);
}

fn small_items_are_read_again_together(store: &Store) {
    let mut world = World::readable(store, "home");
    let items = (0..250).map(|n| at(None, format!("{n}").as_bytes()));
    let broken = Page {
        unreadable: items.collect(),
        ..page(posts([3, 1]), world.now_ms)
    };
    world.commit(&newest_page(), broken).expect("a commit");
    of_another_version(&world);
    let source = world.source;
    for portion in [200, 50, 0] {
        let untried = world.read(move |tx| quarantine::untried(tx, source));
        assert_eq!(untried.len(), portion);
        retry(&world, &Err("still not".to_owned()));
    }
}

fn it_leaves_when_a_page_lists_a_post_there(store: &Store) {
    let mut world = World::readable(store, "home");
    let broken = page_with(&world, [3, 1], at(Some("2"), b"{"));
    world.commit(&newest_page(), broken).expect("a commit");
    assert_eq!(kept(&world).len(), 1);
    let summary = world.poll(posts([3, 2, 1]));
    assert_eq!((summary.new, kept(&world).len()), (1, 0));
}

fn a_stored_post_that_cannot_be_read_any_more_is_not_missed(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([4, 3, 2, 1]));
    let look = world.second_look();
    let broken = page_with(&world, [3, 1], at(Some("2"), b"{"));
    let summary = world.commit(&look, broken).expect("a commit");
    assert_eq!(summary.absent, 0);
    assert_eq!(names(&world.timeline()), ["4", "3", "2", "1"]);
}

fn what_it_may_stand_for_is_not_missed(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([6, 5, 4, 3, 2, 1]));
    let look = world.second_look();
    // Between 3 and 1, where 2 was; 5 is missing.
    let broken = page_with(&world, [4, 3, 1], at(None, b"{"));
    let summary = world.commit(&look, broken).expect("a commit");
    assert_eq!(summary.absent, 1);
}

fn a_new_version_reads_it_once_and_stores_it_as_if_shown_late(store: &Store) {
    let mut world = World::readable(store, "home");
    let broken = page_with(&world, [3, 1], at(Some("2"), b"{"));
    world.commit(&newest_page(), broken).expect("a commit");
    let readable = || Ok((UpstreamId::from("2"), Some(hashed(post(2, "late")))));
    assert_eq!(retry(&world, &readable()).new, 0, "this version has tried");
    of_another_version(&world);
    retry(&world, &Err("still not".to_owned()));
    assert_eq!(kept(&world)[0].item.reason, "still not");
    assert_eq!(retry(&world, &readable()).new, 0, "once");
    of_another_version(&world);
    retry(&world, &Ok(("x".into(), None)));
    assert!(kept(&world)[0].item.reason.contains("no ID"));
    of_another_version(&world);
    world.now_ms += 1_000;
    let stored = retry(&world, &readable());
    assert_eq!((stored.new, stored.update_count), (1, 3));
    assert_eq!(kept(&world), []);
    // Order seen is order kept: it arrived last.
    assert_eq!(names(&world.timeline()), ["2", "3", "1"]);
    assert_eq!(world.poll(posts([3, 1])).new, 0);
}

fn a_version_read_late_replaces_none_that_is_newer(store: &Store) {
    let mut world = World::readable(store, "home");
    let broken = page_with(&world, [3, 1], at(Some("2"), b"{"));
    world.commit(&newest_page(), broken).expect("a commit");
    // A look-up could read it.
    of_another_version(&world);
    retry(&world, &Ok(("2".into(), Some(hashed(post(2, "text"))))));
    world.now_ms += 60_000;
    let broken = page_with(&world, [3, 1], at(Some("2"), b"{"));
    world.commit(&newest_page(), broken).expect("a commit");
    world.now_ms += 60_000;
    let found = LookUp::Found(Box::new(post(2, "newest")));
    assert_eq!(world.look_up("2", found).edited, 1);
    of_another_version(&world);
    let stored = retry(&world, &Ok(("2".into(), Some(hashed(post(2, "newer"))))));
    assert_eq!((stored.new, stored.edited, kept(&world).len()), (0, 0, 0));
    let shown = world
        .timeline()
        .into_iter()
        .find(|post| post.upstream_id == "2");
    let shown = shown.expect("the post");
    assert_eq!(shown.raw, post(2, "newest").raw);
    let kept = world.read(move |tx| history::versions(tx, shown.post_id, Viewer::Operator));
    assert_eq!(kept.len(), 1);
}

fn a_removed_source_leaves_none(store: &Store) {
    let mut world = World::readable(store, "home");
    let broken = page_with(&world, [3, 1], at(Some("2"), b"{"));
    world.commit(&newest_page(), broken).expect("a commit");
    let source = world.source;
    world.remove(source::LastPosts::Remove);
    let left = store.read_blocking(move |tx| quarantine::count(tx, source));
    assert_eq!(left.expect("a count"), 0);
}
