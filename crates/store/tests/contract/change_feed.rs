//! The feed of changes: whoever goes on after a position misses nothing.

use std::collections::BTreeMap;

use driftline_core::{
    answer::LookUp,
    feed::{ChangeKind, FeedPosition},
    rng::Rng,
    timeline::Backfill,
};
use driftline_store::{
    SourceId,
    change_feed::{self, Change, ChangePage},
    notify,
    refresh::OutboxItem,
    source,
    timeline::Viewer,
};

use crate::{
    refresh::MINUTE_MS,
    world::{START_MS, Store, World, on_both, page, post, posts},
};

use ChangeKind::{Delete, Edit, Left, New};

on_both!(
    changes_come_in_the_order_in_which_a_source_reports_them,
    a_post_that_leaves_and_is_listed_again_is_told,
    counts_alone_are_no_change,
    history_is_told_apart,
    the_end_is_after_all_sources,
    sources_are_read_by_their_ids,
);

fn after(world: &World, usn: i64, limit: u32) -> ChangePage {
    let source = world.source;
    world.read(move |tx| change_feed::after(tx, source, usn, limit))
}

/// All changes after a USN, in pages of that size, and the position after them.
fn all_after(world: &World, mut usn: i64, limit: u32) -> (Vec<Change>, i64) {
    let mut all = Vec::new();
    loop {
        let page = after(world, usn, limit);
        assert!(page.changes.len() <= limit as usize);
        assert!(
            page.changes
                .iter()
                .all(|change| change.usn > usn && change.usn <= page.end)
        );
        all.extend(page.changes);
        usn = page.end;
        if !page.has_more {
            return (all, usn);
        }
    }
}

fn shown(changes: &[Change]) -> Vec<(i64, ChangeKind, &str)> {
    changes
        .iter()
        .map(|change| (change.usn, change.kind, &*change.row.post.upstream_id))
        .collect()
}

fn changes_come_in_the_order_in_which_a_source_reports_them(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([3, 2, 1]));
    world.poll(vec![post(3, "text"), post(2, "better"), post(1, "text")]);
    world.look_up("3", LookUp::Gone);
    let (changes, end) = all_after(&world, 0, 10);
    assert_eq!(
        shown(&changes),
        [
            (1, New, "1"),
            (2, New, "2"),
            (3, New, "3"),
            (4, Edit, "2"),
            (5, Delete, "3")
        ]
    );
    assert_eq!(end, 5);
    // As they are now.
    assert_eq!(
        changes[1].row.post.raw.as_ref(),
        Some(&post(2, "better").raw)
    );
    assert_eq!(changes[2].row.post.raw, None);
    for limit in 1..6 {
        for usn in 0..=5 {
            let (rest, end) = all_after(&world, usn, limit);
            assert_eq!(
                shown(&rest),
                shown(&changes)[usn as usize..],
                "{usn}, {limit}"
            );
            assert_eq!(end, 5);
        }
    }
}

fn a_post_that_leaves_and_is_listed_again_is_told(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([3, 2, 1]));
    for _ in 0..2 {
        world.now_ms += MINUTE_MS;
        world.poll(posts([3, 1]));
    }
    let (changes, end) = all_after(&world, 3, 10);
    assert_eq!(shown(&changes), [(4, Left, "2")]);
    assert!(changes[0].row.left_at_ms.is_some());
    world.now_ms += MINUTE_MS;
    world.poll(posts([3, 2, 1]));
    let (changes, _) = all_after(&world, end, 10);
    assert_eq!(shown(&changes), [(5, Edit, "2")]);
}

fn counts_alone_are_no_change(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([2, 1]));
    let (source, post) = (world.source, world.export()[1].post_id);
    let news = OutboxItem {
        post,
        counts: true,
        since_ms: START_MS,
    };
    assert_eq!(world.write(move |tx| notify(tx, source, &[news])), 1);
    assert_eq!(world.usns(), [(1, 1), (2, 3)]);
    let page = after(&world, 2, 10);
    assert_eq!((page.changes.len(), page.end), (0, 3));
}

fn history_is_told_apart(store: &Store) {
    let mut world = World::new(store, "home");
    world.settings.backfill = Backfill::Count(1_000);
    world.now_ms = START_MS + MINUTE_MS;
    world.poll(posts([9, 8]));
    let request = world.fill();
    let answer = page(posts([7, 6]), world.now_ms);
    world.commit(&request, answer).expect("a commit");
    world.poll(posts([10, 9]));
    let (changes, _) = all_after(&world, 0, 10);
    let history = changes.iter().filter(|change| change.is_history);
    assert_eq!(history.count(), 4);
    let live = changes.iter().filter(|change| !change.is_history);
    let live: Vec<&str> = live.map(|change| &*change.row.post.upstream_id).collect();
    assert_eq!(live, ["10"]);
}

fn the_end_is_after_all_sources(store: &Store) {
    let mut home = World::readable(store, "home");
    let mut away = World::readable(store, "away");
    home.poll(posts([2, 1]));
    away.poll(posts([7]));
    let sources = [&home, &away].map(|world| u64::from(world.source.id));
    let end: FeedPosition = home.read(change_feed::end);
    let expected = sources.into_iter().zip([2, 1]).collect();
    assert_eq!(end, expected);
    home.remove(source::LastPosts::Remove);
    assert_eq!(after(&home, 0, 10), change_feed::ChangePage::default());
    assert_eq!(home.read(change_feed::end).sources().count(), 1);
}

fn sources_are_read_by_their_ids(store: &Store) {
    let worlds = ["home", "away", "other"].map(|name| World::readable(store, name));
    let ids = [&worlds[2], &worlds[0]].map(|world| world.source.id);
    let unknown = SourceId::new(u64::MAX);
    let found = worlds[0]
        .read(move |tx| change_feed::sources_by_ids(tx, &[ids[0], ids[1], ids[0], unknown]));
    let all = worlds[0].read(change_feed::sources).into_iter();
    let expected: Vec<_> = all.filter(|source| ids.contains(&source.key.id)).collect();
    assert_eq!(expected.len(), 2);
    assert_eq!(found, expected);
    let none = worlds[0].read(|tx| change_feed::sources_by_ids(tx, &[]));
    assert!(none.is_empty());
}

/// A replica that is built from events alone.
#[derive(Default)]
struct Replica {
    usn: i64,
    posts: BTreeMap<String, String>,
}

impl Replica {
    fn take(&mut self, page: ChangePage) {
        self.usn = page.end;
        for change in page.changes {
            let post = change.row.post;
            match (change.kind, post.raw) {
                (New | Edit, Some(raw)) => drop(self.posts.insert(post.upstream_id, raw)),
                // Its deletion comes later.
                (New | Edit, None) => {}
                (Delete | Left, _) => drop(self.posts.remove(&post.upstream_id)),
            }
        }
    }
}

/// Readers that go on after any position, in pages of any size, have what the source shows.
#[test]
fn replicas_that_go_on_at_any_position_converge() {
    for seed in 0..3 {
        on_both(|store| {
            let mut rng = Rng::new(seed);
            let mut below = |bound: u64| (rng.share() * bound as f64) as u64;
            let mut world = World::readable(store, "home");
            let mut replicas: Vec<Replica> = Vec::new();
            let mut texts: BTreeMap<u64, u64> = BTreeMap::new();
            let mut deleted: Vec<u64> = Vec::new();
            for turn in 0..40 {
                world.now_ms += MINUTE_MS;
                let drawn = texts.keys().nth(below(1 + texts.len() as u64) as usize);
                match (below(5), drawn.copied()) {
                    (0 | 1, _) | (_, None) => drop(texts.insert(turn + 1, 0)),
                    (2, Some(id)) => drop(texts.insert(id, turn)),
                    (3, Some(id)) => {
                        world.look_up(&id.to_string(), LookUp::Gone);
                        texts.remove(&id);
                        deleted.push(id);
                    }
                    _ => texts.extend(deleted.pop().map(|id| (id, turn))),
                }
                let listed = texts.iter().rev();
                world.poll(
                    listed
                        .map(|(id, text)| post(*id, &text.to_string()))
                        .collect(),
                );
                if below(3) == 0 {
                    replicas.push(Replica::default());
                }
                for replica in &mut replicas {
                    if below(2) == 0 {
                        replica.take(after(&world, replica.usn, 1 + below(4) as u32));
                    }
                }
            }
            let shown = world.timeline_for(Viewer::Operator).into_iter();
            let shown: BTreeMap<String, String> =
                shown.map(|post| (post.upstream_id, post.raw)).collect();
            assert!(!replicas.is_empty() && !shown.is_empty());
            for mut replica in replicas {
                loop {
                    let page = after(&world, replica.usn, 3);
                    let has_more = page.has_more;
                    replica.take(page);
                    if !has_more {
                        break;
                    }
                }
                assert_eq!(replica.posts, shown, "seed {seed}");
            }
        });
    }
}
