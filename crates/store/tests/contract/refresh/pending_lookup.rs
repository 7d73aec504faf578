//! Pending look-ups, and the posts that they find.

use driftline_core::{
    names::audience::Audience,
    post::Post,
    refresh::{LookupOutcome, Policy},
    tracking::TrackOutcome::{self, Found, Gone, NotVisible, Unknown, Waiting},
};
use driftline_store::{
    LocalAccountId, Owner, Store, Viewer,
    refresh::{
        AnsweredLookup, Claim, Claimed, LookupAnswer, LookupTarget, Overdue, overdue, pending_post,
    },
    source,
    tracked::{
        AddedLookups, Forgotten, ForgottenCounts, TrackedCounts, add_lookups, forget, forgettable,
        hydrate, outcomes, tracked_counts,
    },
};

use super::{MINUTE_MS, Workers, check_schedule, found, liked};
use crate::world::{START_MS, World, names, write};

on_both!(
    a_requested_post_is_looked_up_at_once_and_kept_fresh,
    pending_lookups_are_reported_apart_from_overdue_posts,
    a_failed_lookup_is_kept_as_one,
    a_pending_id_whose_post_is_stored_meanwhile_counts_once,
    once_is_once,
    a_stored_post_that_is_requested_is_listed_and_kept_fresh,
    a_worker_that_dies_after_storing_leaves_neither_loss_nor_double,
    removing_the_source_removes_its_pending_lookups,
    forgotten_posts_are_neither_looked_up_nor_kept_fresh,
    what_is_forgotten_while_it_is_looked_up_is_not_brought_back_by_the_answer,
    a_pending_look_up_is_shown_to_the_readers_of_its_source,
);

fn add(world: &World, ids: &[u64], once: bool, now_ms: i64) -> AddedLookups {
    let source = world.source;
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    world
        .store
        .write_blocking(source::root(source), move |tx| {
            add_lookups(tx, source, &ids, once, &Policy::default(), now_ms)
        })
        .expect("added")
}

fn of_named(new: u64, stored: u64, known: u64) -> AddedLookups {
    AddedLookups { new, stored, known }
}

fn tracked(waiting: u64, missing: u64, found: u64) -> TrackedCounts {
    TrackedCounts {
        waiting,
        missing,
        found,
    }
}

fn counts(world: &World) -> TrackedCounts {
    let source = world.source;
    world.read(move |tx| tracked_counts(tx, source))
}

fn told(world: &World, ids: &[u64]) -> Vec<TrackOutcome> {
    let source = world.source;
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    world.read(move |tx| outcomes(tx, source, &ids))
}

/// Stores a post that a pending look-up found.
fn hydrate_one(store: &Store, what: LookupTarget, post: &Post, asked_at_ms: i64) {
    let LookupTarget::Pending { source, .. } = what else {
        panic!("no look-up")
    };
    let answer = LookupAnswer::Found(Box::new(post.clone()));
    let found = [AnsweredLookup {
        what,
        answer,
        asked_at_ms,
    }];
    write(store, source::root(source), move |tx| {
        hydrate(tx, source, &found, &Policy::default(), asked_at_ms)
    });
}

/// Stores what was found and saves the rest, as a worker does.
fn save(
    store: &Store,
    workers: &Workers,
    claim: &Claim,
    answers: &[(u64, LookupAnswer)],
    now_ms: i64,
) {
    for due in &claim.posts {
        let answer = answers
            .iter()
            .find(|(id, _)| id.to_string() == due.upstream_id);
        if let (LookupTarget::Pending { .. }, Some((_, LookupAnswer::Found(post)))) =
            (due.what, answer)
        {
            hydrate_one(store, due.what, post, now_ms);
        }
    }
    workers.save(claim, answers, now_ms);
}

fn a_requested_post_is_looked_up_at_once_and_kept_fresh(store: &Store) {
    let mut world = World::readable(store, "tracked");
    world.poll(vec![liked(9, 0)]);
    let added = add(&world, &[7, 8, 9, 8], false, START_MS);
    assert_eq!(added, of_named(2, 1, 0));
    let again = add(&world, &[7, 8], false, START_MS);
    assert_eq!(again, of_named(0, 0, 2));
    assert_eq!(counts(&world), tracked(2, 0, 1));
    let workers = Workers::of(&world);
    let claim = workers.claim(START_MS + 2_000);
    assert_eq!(claim.posts.len(), 2);
    save(
        store,
        &workers,
        &claim,
        &[found(7, 3), found(8, 4)],
        START_MS + 2_000,
    );
    assert_eq!(counts(&world), tracked(0, 0, 3));
    assert_eq!(names(&world.timeline()).len(), 3);
    assert_eq!(
        check_schedule(store),
        3,
        "posts are scheduled, look-ups are gone"
    );
    let again = add(&world, &[7, 8], false, START_MS);
    assert_eq!(again, of_named(0, 2, 0));
    let due = workers.claim(START_MS + 4 * MINUTE_MS);
    assert!(
        due.posts
            .iter()
            .all(|due| matches!(due.what, LookupTarget::Stored(_)))
    );
}

/// Pending look-ups are counted apart from stored posts, in leases too.
fn pending_lookups_are_reported_apart_from_overdue_posts(store: &Store) {
    let mut world = World::readable(store, "tracked");
    world.poll(vec![liked(9, 0)]);
    let now_ms = START_MS + 2_000;
    let instance = world.read(|tx| Ok(source::instances(tx)?[0].id));
    let report = |at_ms| world.read(move |tx| Ok(overdue(tx, &[instance], at_ms)?.remove(0)));
    let due_ms = report(now_ms).first_due_ms.expect("the poll scheduled it");
    assert!(due_ms > now_ms);
    add(&world, &[7, 8], false, START_MS);
    let before = Overdue {
        scheduled: 1,
        overdue: 0,
        first_due_ms: Some(due_ms),
        pending_lookups: 2,
        first_pending_ms: Some(START_MS),
        leased: 0,
    };
    assert_eq!(report(now_ms), before);
    assert_eq!(report(due_ms).overdue, 1);
    let workers = Workers::of(&world);
    let claim = workers.claim(now_ms);
    assert_eq!(claim.posts.len(), 2);
    let leased = report(now_ms).leased;
    assert_eq!(report(now_ms), Overdue { leased, ..before });
}

fn a_failed_lookup_is_kept_as_one(store: &Store) {
    let world = World::readable(store, "tracked");
    add(&world, &[1, 2, 3], false, START_MS);
    let workers = Workers::of(&world);
    let claim = workers.claim(START_MS + 2_000);
    let answers = [
        (1, LookupAnswer::Gone),
        (2, LookupAnswer::Hidden),
        (3, LookupAnswer::Missing),
    ];
    save(store, &workers, &claim, &answers, START_MS + 2_000);
    assert_eq!(counts(&world), tracked(1, 2, 0));
    assert_eq!(
        told(&world, &[3, 1, 2, 9, 1]),
        [Waiting, Gone, NotVisible, Unknown, Gone]
    );
    let claim = workers.claim(START_MS + 2 * MINUTE_MS);
    assert_eq!(claim.posts.len(), 1, "looked up once more");
    let saved = workers.save(
        &claim,
        &[(3, LookupAnswer::Missing)],
        START_MS + 2 * MINUTE_MS,
    );
    assert_eq!(saved.outcomes[0].1, LookupOutcome::Deleted);
    assert_eq!(counts(&world), tracked(0, 3, 0));
    assert_eq!(told(&world, &[3]), [Gone]);
    assert_eq!(check_schedule(store), 0);
    assert_eq!(add(&world, &[1, 2, 3], false, START_MS).known, 3);
}

fn a_pending_id_whose_post_is_stored_meanwhile_counts_once(store: &Store) {
    let tracked = World::readable(store, "tracked");
    add(&tracked, &[1, 2], false, START_MS);
    let mut polled = World::readable(store, "polled");
    polled.poll(vec![liked(1, 0)]);
    let added = add(&tracked, &[1, 2, 3], false, START_MS + 1);
    assert_eq!((added.new, added.stored, added.known), (1, 1, 1));
}

fn once_is_once(store: &Store) {
    let world = World::readable(store, "tracked");
    add(&world, &[1], true, START_MS);
    let workers = Workers::of(&world);
    let claim = workers.claim(START_MS + 2_000);
    save(store, &workers, &claim, &[found(1, 3)], START_MS + 2_000);
    assert_eq!(counts(&world).found, 1);
    assert_eq!(told(&world, &[1]), [Found]);
    assert_eq!(check_schedule(store), 0);
    assert_eq!(workers.ask(START_MS + 9 * MINUTE_MS, 30_000), Claimed::Idle);
}

fn a_stored_post_that_is_requested_is_listed_and_kept_fresh(store: &Store) {
    let mut polled = World::readable(store, "polled");
    let old = Post {
        created_at_ms: Some(START_MS - 400 * DAY_MS),
        ..liked(4, 0)
    };
    polled.poll(vec![old, liked(3, 0), liked(2, 0), liked(1, 0)]);
    let workers = Workers::of(&polled);
    let later_ms = START_MS + 30 * MINUTE_MS;
    let claim = workers.claim(later_ms);
    let answers = [found(1, 0), found(2, 0), (3, LookupAnswer::Gone)];
    workers.save(&claim, &answers, later_ms);
    let tracked = World::readable(store, "tracked");
    assert_eq!(check_schedule(store), 2, "one is too old, one is gone");
    for _ in 0..2 {
        let added = add(&tracked, &[1, 2, 3, 4, 1], false, START_MS);
        assert_eq!((added.new, added.stored, added.known), (0, 4, 0));
        let order = ["2", "1", "4"];
        assert_eq!(names(&tracked.timeline()), order, "when they were created");
        assert_eq!(tracked.export().len(), 4, "the deleted one as that");
        assert_eq!(check_schedule(store), 2);
    }
    assert_eq!(tracked.usns(), [(1, 1), (2, 2), (3, 3), (4, 4)]);
    assert_eq!(names(&polled.timeline()), ["4", "2", "1"], "as before");
    assert_eq!(polled.public().len(), 3, "each once");

    // Named once only, and then for good.
    add(&tracked, &[9], true, later_ms);
    let claim = workers.claim(later_ms + 2_000);
    save(store, &workers, &claim, &[found(9, 3)], later_ms + 2_000);
    add(&tracked, &[9], true, later_ms + 3_000);
    assert_eq!(check_schedule(store), 2);
    add(&tracked, &[9], false, later_ms + 3_000);
    assert_eq!(check_schedule(store), 3);
    let due = workers.claim(later_ms + 60 * MINUTE_MS);
    assert!(due.posts.iter().any(|post| post.upstream_id == "9"));
}

fn a_worker_that_dies_after_storing_leaves_neither_loss_nor_double(store: &Store) {
    let world = World::readable(store, "tracked");
    add(&world, &[1, 2], false, START_MS);
    let workers = Workers::of(&world);
    let Claimed::Batch(claim) = workers.ask(START_MS + 2_000, 0) else {
        panic!("no batch")
    };
    let due = &claim.posts[0];
    let id: u64 = due.upstream_id.parse().expect("a number");
    hydrate_one(store, due.what, &liked(id, 1), START_MS + 2_000);
    // The worker dies here; its lease is over.
    let heir = Workers::of(&world);
    let next = heir.claim(START_MS + 2_001);
    assert_eq!(next.posts.len(), 1);
    let other = if id == 1 { 2 } else { 1 };
    save(store, &heir, &next, &[found(other, 5)], START_MS + 2_001);
    assert_eq!(counts(&world), tracked(0, 0, 2));
    assert_eq!(check_schedule(store), 2);
}

fn removing_the_source_removes_its_pending_lookups(store: &Store) {
    let world = World::readable(store, "tracked");
    add(&world, &[1, 2], false, START_MS);
    world.remove(source::LastPosts::Remove);
    assert_eq!(check_schedule(store), 0);
}

const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

fn forgotten(ids: &[u64]) -> Forgotten {
    Forgotten::Ids(ids.iter().map(u64::to_string).collect())
}

/// Forgets, after a check that the plan says the same.
fn forget_as_planned(world: &World, which: &Forgotten) -> ForgottenCounts {
    let (source, planned) = (world.source, which.clone());
    let plan = world.read(move |tx| forgettable(tx, source, &planned));
    let which = which.clone();
    let done = world
        .store
        .write_blocking(source::root(source), move |tx| forget(tx, source, &which))
        .expect("forgotten");
    assert_eq!(done, plan);
    done
}

fn forgotten_posts_are_neither_looked_up_nor_kept_fresh(store: &Store) {
    let world = World::readable(store, "tracked");
    let mut home = World::readable(store, "home");
    home.poll(vec![liked(9, 0)]);
    add(&world, &[5, 6, 7, 8, 9], false, START_MS);
    let workers = Workers::of(&world);
    let claim = workers.claim(START_MS + 2_000);
    let answers = [
        found(7, 3),
        found(8, 4),
        (6, LookupAnswer::Gone),
        (5, LookupAnswer::Nothing),
    ];
    save(store, &workers, &claim, &answers, START_MS + 2_000);
    assert_eq!(check_schedule(store), 4);
    let counts_of = |lookups, posts, kept| ForgottenCounts {
        lookups,
        posts,
        kept,
        in_work: 0,
    };
    assert_eq!(
        forget_as_planned(&world, &forgotten(&[5, 6, 7, 9, 404])),
        counts_of(2, 1, 1)
    );
    // 8 as it was, and 9, which another source lists.
    assert_eq!(check_schedule(store), 2);
    assert_eq!(told(&world, &[5, 6, 7]), [Unknown, Unknown, Found]);
    assert_eq!(names(&world.timeline()).len(), 3, "nothing is deleted");
    assert_eq!(
        forget_as_planned(&world, &Forgotten::All),
        counts_of(0, 1, 1)
    );
    assert_eq!(
        forget_as_planned(&world, &Forgotten::All),
        counts_of(0, 0, 1)
    );
    assert_eq!(check_schedule(store), 1);
    // Asked for again, it is as if it had never been forgotten.
    let again = add(&world, &[5, 7], false, START_MS);
    assert_eq!((again.new, again.stored), (1, 1));
    assert_eq!(check_schedule(store), 3);
}

fn what_is_forgotten_while_it_is_looked_up_is_not_brought_back_by_the_answer(store: &Store) {
    let world = World::readable(store, "tracked");
    add(&world, &[7, 8], false, START_MS);
    let workers = Workers::of(&world);
    let claim = workers.claim(START_MS + 2_000);
    assert_eq!(forget_as_planned(&world, &forgotten(&[7])).lookups, 1);
    save(
        store,
        &workers,
        &claim,
        &[found(7, 3), found(8, 4)],
        START_MS + 2_000,
    );
    assert_eq!(told(&world, &[7, 8]), [Unknown, Found]);
    let later_ms = START_MS + 4 * MINUTE_MS;
    let claim = workers.claim(later_ms);
    assert_eq!(claim.posts.len(), 1);
    // On PostgreSQL the claim has it, and is done with it soon.
    let done = world.write({
        let source = world.source;
        move |tx| forget(tx, source, &Forgotten::All)
    });
    assert_eq!(done.posts + done.in_work, 1);
    workers.save(&claim, &[found(8, 9)], later_ms);
    assert_eq!(check_schedule(store) as u64, done.in_work);
}

fn a_pending_look_up_is_shown_to_the_readers_of_its_source(store: &Store) {
    let world = World::owned(store, "tracked", Owner::Operator, Audience::Private);
    assert_eq!(add(&world, &[5], false, START_MS).new, 1);
    let is_shown = |viewer| {
        let pending = world.read(move |tx| pending_post(tx, "sim.example/5", viewer));
        pending.is_some()
    };
    let ann = Viewer::Account(LocalAccountId::new(1 << 50));
    let shown = [Viewer::Operator, ann, Viewer::Anonymous].map(is_shown);
    assert_eq!(shown, [true, false, false]);
}
