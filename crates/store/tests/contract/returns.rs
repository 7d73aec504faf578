//! Posts that are there again after their deletion: readers have passed where they were.

use std::collections::BTreeSet;

use driftline_core::{answer::LookUp, post::Visibility};
use driftline_store::{
    LocalId, Root, export, find, notify,
    refresh::{LookupAnswer, forget_relayed, outbox},
    source,
    timeline::{self, Range, TimelinePost, Viewer},
};

use crate::{
    references::local_id,
    refresh::{MINUTE_MS, Workers, check_schedule, found, liked},
    world::{START_MS, Store, World, names, posts},
};

on_both!(
    a_post_that_returns_is_listed_where_readers_will_see_it,
    a_source_that_has_not_noticed_does_not_show_it_where_it_was,
    a_refresh_that_finds_it_again_lists_it_again,
    another_source_that_shows_it_first_brings_it_back,
    a_post_that_returns_as_a_private_one_stays_out_of_public,
    a_post_that_is_listed_twice_returns_in_both_places,
    ids_of_a_post_outlive_it_and_find_nothing_then,
    a_page_of_a_source_that_has_not_noticed_the_deletion_brings_it_back,
);

/// A client that asks for what is above the newest ID that it has seen, and remembers everything.
#[derive(Default)]
struct Client {
    newest: Option<LocalId>,
    shown: Vec<String>,
}

impl Client {
    /// Returns what is new to it, the oldest first.
    fn poll(&mut self, read: impl FnOnce(&Range) -> Vec<TimelinePost>) -> Vec<String> {
        let range = Range {
            since: self.newest,
            limit: 40,
            ..Range::default()
        };
        let page = read(&range);
        self.newest = page.first().map(|post| post.id).or(self.newest);
        let new: Vec<String> = page.into_iter().rev().map(|p| p.upstream_id).collect();
        self.shown.extend(new.iter().cloned());
        new
    }

    fn list(&mut self, world: &World) -> Vec<String> {
        let source = world.source;
        self.poll(|range| {
            let range = *range;
            world.read(move |tx| timeline::source(tx, source, &range, Viewer::Anonymous))
        })
    }

    fn public(&mut self, world: &World) -> Vec<String> {
        self.poll(|range| {
            let range = *range;
            world.read(move |tx| timeline::public(tx, &range, Viewer::Anonymous))
        })
    }
}

fn resolve(world: &World, id: LocalId) -> TimelinePost {
    let found = world.read(move |tx| timeline::status(tx, id, Viewer::Anonymous));
    found.expect("a post")
}

/// Notifies the world's source, and no other, of the outbox.
fn notify_source(world: &World, workers: &Workers) -> u64 {
    let (instance, source) = (workers.instance, world.source);
    let items = world.read(move |tx| outbox(tx, instance, i64::MAX, None, 100));
    world.write(move |tx| notify(tx, source, &items))
}

fn forget_all(world: &World, workers: &Workers) {
    let instance = workers.instance;
    let items = world.read(move |tx| outbox(tx, instance, i64::MAX, None, 100));
    world
        .store
        .write_blocking(Root::none(), move |tx| forget_relayed(tx, instance, &items))
        .expect("forgotten");
}

fn a_post_that_returns_is_listed_where_readers_will_see_it(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([3, 2, 1]));
    let before = world.timeline();
    let (mut list, mut public) = (Client::default(), Client::default());
    assert_eq!(list.list(&world), ["1", "2", "3"]);
    assert_eq!(public.public(&world), ["1", "2", "3"]);
    world.look_up("2", LookUp::Gone);
    // An answer that was asked for before the deletion does not undo it.
    world.now_ms -= 1;
    assert_eq!(world.poll(posts([3, 2, 1])).revived, 0);
    world.now_ms += 2;
    let summary = world.poll(posts([4, 3, 2, 1]));
    assert_eq!((summary.revived, summary.edited, summary.new), (1, 0, 1));
    let news: BTreeSet<String> = list.list(&world).into_iter().collect();
    assert_eq!(news, BTreeSet::from(["2".to_owned(), "4".to_owned()]));
    let news: BTreeSet<String> = public.public(&world).into_iter().collect();
    assert_eq!(news, BTreeSet::from(["2".to_owned(), "4".to_owned()]));
    assert_eq!(world.timeline().len(), 4);
    assert_eq!(world.timeline(), world.public());
    // Each of its IDs finds it, and is the one that it is answered with.
    let old = &before[1];
    let new = world
        .timeline()
        .into_iter()
        .find(|post| post.upstream_id == "2")
        .expect("the post");
    assert!(new.id > before[0].id);
    assert_eq!((new.post_id, new.public_id), (old.post_id, new.id));
    assert_eq!(resolve(&world, new.id), new);
    assert_eq!(
        resolve(&world, old.id),
        TimelinePost {
            id: old.id,
            ..new.clone()
        }
    );
    for id in [old.id, new.id] {
        let found = world.read(move |tx| find::post(tx, &id.to_string()));
        assert_eq!(found, Some(old.post_id));
    }
    let instance = new.instance;
    assert_eq!(local_id(&world, instance, "2"), Some(new.id));
    // To the library it is the entry that it was.
    assert_eq!(world.usns(), [(1, 1), (2, 5), (3, 3), (6, 6)]);
    check_schedule(store);
}

fn a_source_that_has_not_noticed_does_not_show_it_where_it_was(store: &Store) {
    let mut first = World::readable(store, "first");
    let mut second = World::readable(store, "second");
    let mut third = World::readable(store, "third");
    for world in [&mut first, &mut second, &mut third] {
        world.poll(posts([2, 1]));
    }
    let workers = Workers::of(&first);
    let mut readers = [Client::default(), Client::default(), Client::default()];
    let mut public = Client::default();
    let look = |readers: &mut [Client; 3], worlds: [&World; 3]| {
        let pairs = readers.iter_mut().zip(worlds);
        pairs
            .map(|(reader, world)| reader.list(world))
            .collect::<Vec<_>>()
    };
    look(&mut readers, [&first, &second, &third]);
    public.public(&first);
    first.look_up("1", LookUp::Gone);
    assert_eq!(names(&second.timeline()), ["2"]);
    first.now_ms += 1_000;
    assert_eq!(first.poll(posts([2, 1])).revived, 1);
    assert_eq!(public.public(&first), ["1"]);
    let nothing = Vec::<String>::new();
    let news = look(&mut readers, [&first, &second, &third]);
    assert_eq!(
        news,
        [vec!["1".to_owned()], nothing.clone(), nothing.clone()]
    );
    assert_eq!(names(&second.timeline()), ["2"]);
    // One is notified, the other sees it in a page of its own.
    assert_eq!(notify_source(&second, &workers), 1);
    assert_eq!(notify_source(&second, &workers), 0);
    forget_all(&second, &workers);
    third.now_ms = first.now_ms + 500;
    assert_eq!(third.poll(posts([2, 1])).revived, 1);
    assert_eq!(third.poll(posts([2, 1])).revived, 0);
    let news = look(&mut readers, [&first, &second, &third]);
    assert_eq!(news, [nothing, vec!["1".to_owned()], vec!["1".to_owned()]]);
    for world in [&first, &second, &third] {
        assert_eq!(names(&world.timeline()), ["1", "2"]);
    }
    assert_eq!(names(&first.public()), ["1", "2"]);
}

fn a_refresh_that_finds_it_again_lists_it_again(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![liked(2, 0), liked(1, 7)]);
    let (mut list, mut public) = (Client::default(), Client::default());
    list.list(&world);
    public.public(&world);
    let workers = Workers::of(&world);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let claim = workers.claim(now_ms);
    world.now_ms = now_ms + 10;
    assert_eq!(world.look_up("1", LookUp::Gone).deleted, 1);
    assert_eq!(names(&world.public()), ["2"]);
    workers.save(&claim, &[found(1, 9), found(2, 0)], now_ms + 20);
    assert_eq!(public.public(&world), ["1"]);
    assert_eq!(list.list(&world), Vec::<String>::new());
    assert_eq!(notify_source(&world, &workers), 1);
    assert_eq!(list.list(&world), ["1"]);
    assert_eq!(names(&world.timeline()), ["1", "2"]);
    check_schedule(store);
    // A second deletion and return by refreshes alone.
    let gone_ms = now_ms + 90 * MINUTE_MS;
    workers.refresh(&[(1, LookupAnswer::Gone), found(2, 0)], gone_ms);
    notify_source(&world, &workers);
    assert_eq!(names(&world.timeline()), ["2"]);
    world.now_ms = gone_ms + MINUTE_MS;
    assert_eq!(world.poll(vec![liked(2, 0), liked(1, 9)]).revived, 1);
    assert_eq!(list.list(&world), ["1"]);
    assert_eq!(public.public(&world), ["1"]);
    check_schedule(store);
}

fn another_source_that_shows_it_first_brings_it_back(store: &Store) {
    let mut first = World::readable(store, "first");
    let mut second = World::readable(store, "second");
    first.poll(posts([1]));
    let mut public = Client::default();
    public.public(&first);
    first.look_up("1", LookUp::Gone);
    second.now_ms += 1_000;
    assert_eq!(second.poll(posts([1])).new, 1);
    assert_eq!(public.public(&first), ["1"]);
    assert_eq!(first.timeline(), []);
    assert_eq!(second.timeline(), second.public());
    let workers = Workers::of(&first);
    assert_eq!(notify_source(&first, &workers), 1);
    assert_eq!(names(&first.timeline()), ["1"]);
    assert!(first.timeline()[0].id > second.timeline()[0].id);
}

fn a_post_that_returns_as_a_private_one_stays_out_of_public(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([1]));
    world.look_up("1", LookUp::Gone);
    world.now_ms += 1_000;
    let mut private = posts([1]);
    private[0].visibility = Visibility::Private;
    assert_eq!(world.poll(private).revived, 1);
    assert_eq!((world.timeline(), world.public()), (vec![], vec![]));
    assert_eq!(world.timeline_for(Viewer::Operator).len(), 1);
}

fn a_post_that_is_listed_twice_returns_in_both_places(store: &Store) {
    let mut world = World::readable(store, "mentions");
    let mention = |position: &str| driftline_core::answer::Listed {
        position: position.into(),
        post: posts([1]).remove(0),
    };
    let page = |now_ms| driftline_core::answer::Page {
        listed: vec![mention("12"), mention("11")],
        headers: crate::world::headers(now_ms),
        ..Default::default()
    };
    let request = crate::world::newest_page();
    world.commit(&request, page(START_MS)).expect("a commit");
    let before = world.timeline();
    assert_eq!(world.look_up("1", LookUp::Gone).deleted, 2);
    world.now_ms += 1_000;
    let again = page(world.now_ms);
    let again = world.commit(&request, again);
    assert_eq!(again.expect("a commit").revived, 2);
    let after = world.timeline();
    assert_eq!(after.len(), 2);
    assert!(after[1].id > before[0].id);
    assert_eq!(world.public().len(), 1);
}

fn ids_of_a_post_outlive_it_and_find_nothing_then(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([2, 1]));
    world.look_up("1", LookUp::Gone);
    world.now_ms += 1_000;
    world.poll(posts([2, 1]));
    let ids: Vec<LocalId> = world.timeline().iter().map(|post| post.id).collect();
    let all = world.export().len();
    let removed = world.remove(source::LastPosts::Remove);
    assert_eq!(removed.posts as usize, all);
    for id in ids {
        assert_eq!(world.read(move |tx| find::post(tx, &id.to_string())), None);
        let found = world.read(move |tx| timeline::status(tx, id, Viewer::Operator));
        assert_eq!(found, None);
    }
    let mut again = World::readable(store, "again");
    again.poll(posts([2, 1]));
    assert_eq!(again.timeline().len(), 2);
    let source = again.source;
    let rows = again.read(move |tx| export::rows(tx, source, 0, 10));
    assert_eq!(rows.len(), 2);
}

fn a_page_of_a_source_that_has_not_noticed_the_deletion_brings_it_back(store: &Store) {
    let mut first = World::readable(store, "first");
    let mut second = World::readable(store, "second");
    for world in [&mut first, &mut second] {
        world.poll(posts([2, 1]));
    }
    let (mut list, mut public) = (Client::default(), Client::default());
    list.list(&second);
    public.public(&second);
    first.now_ms += 1_000;
    first.look_up("1", LookUp::Gone);
    // A page that was requested before notifies its library of the deletion.
    assert_eq!(second.poll(posts([2, 1])).revived, 0);
    assert_eq!(second.usns(), [(1, 3), (2, 2)]);
    second.now_ms += 2_000;
    assert_eq!(second.poll(posts([2, 1])).revived, 1);
    assert_eq!(list.list(&second), ["1"]);
    assert_eq!(public.public(&second), ["1"]);
    first.look_up("2", LookUp::Gone);
    second.now_ms += 1_000;
    assert_eq!(second.poll(posts([2, 1])).revived, 1);
    assert_eq!(list.list(&second), ["2"]);
    assert_eq!(names(&second.public()), ["2", "1"]);
    assert_eq!(second.poll(posts([2, 1])).update_count, 5);
    check_schedule(store);
}
