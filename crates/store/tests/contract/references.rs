//! What posts name by upstream IDs: the local IDs of posts and accounts, stored or not.

use driftline_core::{
    answer::LookUp,
    post::{Post, References, Visibility},
    upstream_id::UpstreamId,
};
use driftline_store::{
    InstanceId, LocalId, account, find,
    reference::{self, LocalIds},
    refresh::LookupAnswer,
    source,
    timeline::{self, Viewer},
};

use crate::{
    refresh::{MINUTE_MS, Workers, liked},
    world::{START_MS, Store, World, names, post, with},
};

on_both!(
    hidden_and_unknown_posts_cannot_be_told_apart,
    a_post_that_arrives_is_found_by_the_id_by_which_it_was_named,
    the_id_of_what_is_named_is_never_given_again_nor_lost,
    accounts_have_ids_before_their_posts_do,
    an_edit_may_name_more,
    what_a_recount_names_is_mapped_as_it_is_saved,
    what_everyone_could_see_when_it_was_named_keeps_its_id,
);

fn ids(texts: &[&str]) -> Vec<UpstreamId> {
    texts.iter().copied().map(UpstreamId::from).collect()
}

fn naming(id: u64, posts: &[&str], accounts: &[&str]) -> Post {
    Post {
        references: References {
            posts: ids(posts),
            accounts: ids(accounts),
        },
        ..post(id, "text")
    }
}

fn private(post: Post) -> Post {
    with(Visibility::Private, post)
}

/// The local ID of a post, if it has one by which others name it.
pub(crate) fn local_id(world: &World, instance: InstanceId, id: &str) -> Option<LocalId> {
    let found = local_ids_of(world, instance, &[id], &[]);
    found.posts.get(id).copied()
}

fn local_ids_of(
    world: &World,
    instance: InstanceId,
    posts: &[&str],
    accounts: &[&str],
) -> LocalIds {
    let references = naming(1, posts, accounts).references;
    world.read(move |tx| reference::local_ids(tx, instance, &references))
}

fn instance(world: &World) -> InstanceId {
    world.read(|tx| Ok(source::instances(tx)?[0].id))
}

fn found(world: &World, id: LocalId, viewer: Viewer) -> Option<String> {
    let status = world.read(move |tx| timeline::status(tx, id, viewer));
    status.map(|post| post.upstream_id)
}

fn hidden_and_unknown_posts_cannot_be_told_apart(store: &Store) {
    let mut world = World::readable(store, "home");
    let home = instance(&world);
    world.poll(vec![private(post(2, "hidden")), post(1, "shown")]);
    let hidden = world.timeline_for(Viewer::Operator)[0].id;
    world.now_ms += 60_000;
    world.poll(vec![naming(5, &["99"], &[]), naming(4, &["1", "2"], &[])]);
    let entries = world.timeline();
    assert_eq!(local_id(&world, home, "1"), Some(entries[2].id));
    let mut named = ["2", "99"].map(|id| local_id(&world, home, id).expect("an ID"));
    assert!(!named.contains(&hidden));
    for id in named {
        assert_eq!(found(&world, id, Viewer::Anonymous), None);
    }
    assert_eq!(
        found(&world, named[0], Viewer::Operator).as_deref(),
        Some("2")
    );
    // They come from the same moment, and stay as they are.
    named.sort_unstable();
    assert_eq!(named[0].raw() + 1, named[1].raw());
    assert!(named[1] < entries[1].id && named[0] > hidden);
    world.now_ms += 60_000;
    world.poll(vec![naming(6, &["99", "2"], &[])]);
    let mut again = ["2", "99"].map(|id| local_id(&world, home, id).expect("an ID"));
    again.sort_unstable();
    assert_eq!(again, named);
}

fn a_post_that_arrives_is_found_by_the_id_by_which_it_was_named(store: &Store) {
    let mut world = World::readable(store, "home");
    let home = instance(&world);
    world.poll(vec![naming(5, &["98", "99"], &[])]);
    let shown = world.timeline()[0].id;
    let [hidden, named] = ["98", "99"].map(|id| local_id(&world, home, id).expect("an ID"));
    let mut other = World::readable(store, "other");
    other.poll(vec![post(99, "text"), private(post(98, "text"))]);
    // Law 3: readers have passed the ID by which it was named.
    let arrived = other.timeline()[0].clone();
    assert!(arrived.id > shown && arrived.post_id == arrived.id);
    assert_eq!(local_id(&world, home, "99"), Some(arrived.id));
    assert_eq!(
        found(&world, named, Viewer::Anonymous).as_deref(),
        Some("99")
    );
    let post = world.read(move |tx| find::post(tx, &named.to_string()));
    assert_eq!(post, Some(arrived.id));
    // One that is hidden is as unknown as it was.
    assert_eq!(local_id(&world, home, "98"), Some(hidden));
    assert_eq!(found(&world, hidden, Viewer::Anonymous), None);
    assert_eq!(
        found(&world, hidden, Viewer::Operator).as_deref(),
        Some("98")
    );
    assert_eq!(names(&world.public()), ["99", "5"]);
}

fn the_id_of_what_is_named_is_never_given_again_nor_lost(store: &Store) {
    let mut world = World::readable(store, "home");
    let home = instance(&world);
    world.poll(vec![naming(5, &["99"], &[])]);
    let named = local_id(&world, home, "99").expect("an ID");
    let raw = named.raw().cast_signed();
    let taken = world.read(move |tx| {
        Ok(
            tx.query("select id from entry_alias where id = $1", &[&raw], |row| {
                row.i64("id")
            })?,
        )
    });
    assert_eq!(taken, [raw]);
    let mut other = World::readable(store, "other");
    other.poll(vec![post(99, "text")]);
    other.look_up("99", LookUp::Gone);
    world.poll(vec![naming(6, &["99"], &[])]);
    assert_eq!(local_id(&world, home, "99"), Some(named));
    other.remove(source::LastPosts::Remove);
    assert_eq!(local_id(&world, home, "99"), Some(named));
    let by_address = world.read(|tx| find::post(tx, "sim.example/99"));
    assert_eq!(by_address, None);
    world.poll(vec![post(99, "again")]);
    assert_eq!(
        found(&world, named, Viewer::Anonymous).as_deref(),
        Some("99")
    );
}

fn accounts_have_ids_before_their_posts_do(store: &Store) {
    let mut world = World::readable(store, "home");
    let home = instance(&world);
    world.poll(vec![naming(1, &[], &["7", "8", "9"])]);
    let before = local_ids_of(&world, home, &[], &["7", "8", "9", "10"]).accounts;
    assert_eq!(before.len(), 3);
    let mut by_another = naming(2, &[], &["8"]);
    by_another.author.id = "9".into();
    by_another.author.acct = "nine".to_owned();
    world.poll(vec![by_another]);
    let after = local_ids_of(&world, home, &[], &["7", "8", "9"]).accounts;
    let (eight, nine) = (after["8"], after["9"]);
    assert_eq!((before["7"], before["8"]), (after["7"], eight));
    // It goes by its name once that is known.
    assert_ne!(before["9"], nine);
    assert_eq!(world.public()[0].account, Some(nine));
    let source = world.source;
    let found = world.read(move |tx| account::by_ids(tx, &[eight, nine], &[source]));
    // One that posts only name has no profile.
    let accts: Vec<&str> = found.iter().map(|account| &*account.acct).collect();
    assert_eq!(accts, ["nine"]);
    // Who is named again keeps the name.
    world.poll(vec![naming(3, &[], &["9"])]);
    let found = world.read(move |tx| account::by_ids(tx, &[nine], &[source]));
    assert_eq!(found[0].acct, "nine");
}

fn an_edit_may_name_more(store: &Store) {
    let mut world = World::readable(store, "home");
    let home = instance(&world);
    world.poll(vec![post(1, "text")]);
    let mut edited = naming(1, &["99"], &["8"]);
    edited.edited_at_ms = Some(START_MS);
    edited.raw = edited.raw.replace("text", "new text");
    assert_eq!(world.poll(vec![edited]).edited, 1);
    let found = local_ids_of(&world, home, &["99"], &["8"]);
    assert_eq!((found.posts.len(), found.accounts.len()), (1, 1));
}

/// An answer would have to write them otherwise.
fn what_a_recount_names_is_mapped_as_it_is_saved(store: &Store) {
    let mut world = World::readable(store, "home");
    let home = instance(&world);
    world.poll(vec![post(2, "text"), post(1, "text")]);
    let workers = Workers::of(&world);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let more = |id: u64, posts: &[&str], accounts: &[&str]| Post {
        references: naming(id, posts, accounts).references,
        ..liked(id, 3)
    };
    let found = LookupAnswer::Found(Box::new(more(1, &["98"], &["a8"])));
    workers.refresh(&[(1, found), (2, LookupAnswer::Nothing)], now_ms);
    let ids = local_ids_of(&world, home, &["98"], &["a8"]);
    assert_eq!((ids.posts.len(), ids.accounts.len()), (1, 1));
    world.now_ms = now_ms + 10 * MINUTE_MS;
    let summary = world.poll(vec![more(2, &["99"], &["a9"]), liked(1, 3)]);
    assert_eq!((summary.recounted, summary.edited), (1, 0));
    let ids = local_ids_of(&world, home, &["99"], &["a9"]);
    assert_eq!((ids.posts.len(), ids.accounts.len()), (1, 1));
}

fn what_everyone_could_see_when_it_was_named_keeps_its_id(store: &Store) {
    let mut world = World::readable(store, "home");
    let home = instance(&world);
    world.poll(vec![post(2, "text"), post(1, "text")]);
    world.poll(vec![naming(3, &["1", "2"], &[])]);
    let ids = ["1", "2"].map(|id| local_id(&world, home, id));
    assert!(ids.iter().all(Option::is_some), "{ids:?}");
    world.now_ms += MINUTE_MS;
    world.look_up("1", LookUp::Gone);
    let mut edited = private(post(2, "text"));
    edited.edited_at_ms = Some(world.now_ms);
    assert_eq!(
        world.poll(vec![naming(3, &["1", "2"], &[]), edited]).edited,
        1
    );
    assert_eq!(["1", "2"].map(|id| local_id(&world, home, id)), ids);
    for id in ids.into_iter().flatten() {
        assert_eq!(found(&world, id, Viewer::Anonymous), None);
    }
}
