//! Notifications of posts of followed authors.

use driftline_core::{
    answer::Event,
    names::acct::AcctKey,
    names::audience::Audience,
    post::{Author, Post},
    social::{NotificationKind, RelationMove},
    timeline::Backfill,
};
use driftline_store::{
    AccountId, LocalAccountId, Owner, Store, local_ids,
    social::{
        account_removal, bell, local_account, mute,
        notification::{self, Notification, NotificationFilter},
        relation::{self, FollowOptions},
    },
    source::{self, NewSource},
    timeline::{self, TimelinePost},
};

use super::{account, at_once, on_both_with_two, read, write};
use crate::world::{EVERYTHING, START_MS, World, new_source, on_both, post};

const OWN: &str = "https://sim.example";

fn add(store: &Store, new: NewSource, at_ms: i64) -> World {
    let added = store.write_blocking(local_ids::root(), move |tx| source::add(tx, &new, at_ms));
    World::of(store, added.expect("a write").expect("a free name"))
}

/// A source that began empty, so that all that comes is live.
fn live(store: &Store, name: &str, owner: Owner) -> World {
    let (name, audience) = match owner {
        Owner::Operator => (name.to_owned(), Audience::Public),
        Owner::Account(account) => (format!("account{account}/{name}"), Audience::Private),
    };
    let new = NewSource {
        owner,
        audience,
        ..new_source(&name)
    };
    let mut world = add(store, new, START_MS);
    world.poll(Vec::new());
    world
}

fn by(acct: &str, id: u64) -> Post {
    Post {
        author: Author {
            id: acct.into(),
            acct: acct.to_owned(),
            ..post(1, "").author
        },
        ..post(id, "text")
    }
}

fn cat() -> AccountId {
    let key = AcctKey::new("cat", OWN);
    AccountId::new(key.expect("a name").account_id())
}

fn set(store: &Store, of: LocalAccountId, notify: Option<bool>) {
    let options = FollowOptions {
        show_boosts: None,
        notify,
    };
    let followed = write(store, relation::root(of, cat()), move |tx| {
        relation::follow(tx, of, cat(), options, START_MS)
    });
    followed.expect("a follow");
}

fn ring_as(store: &Store, of: LocalAccountId, rings: fn(&TimelinePost) -> bool) -> usize {
    write(store, local_account::root(of), move |tx| {
        bell::ring(tx, of, &rings, START_MS)
    })
}

fn ring(store: &Store, of: LocalAccountId) -> usize {
    ring_as(store, of, |_| true)
}

fn is_due(store: &Store, of: LocalAccountId) -> bool {
    read(store, move |tx| bell::is_due(tx, of))
}

fn all(store: &Store, of: LocalAccountId) -> Vec<Notification> {
    let filter = NotificationFilter::default();
    read(store, move |tx| {
        notification::page(tx, of, &filter, &EVERYTHING)
    })
}

/// The upstream IDs of the posts that an account was notified of, the latest first.
fn notified(store: &Store, of: LocalAccountId) -> Vec<String> {
    let viewer = timeline::Viewer::Account(of);
    let found = all(store, of);
    let keys: Vec<_> = found.iter().filter_map(|found| found.post).collect();
    let of_posts = keys.clone();
    let posts = read(store, move |tx| {
        timeline::by_post_ids(tx, &of_posts, viewer)
    });
    let ids = keys.iter().filter_map(|key| posts.get(&key.post));
    ids.map(|post| post.upstream_id.clone()).collect()
}

fn on_two(test: impl Fn(&Store, LocalAccountId, LocalAccountId)) {
    on_both(|store| test(store, account(store, "ann"), account(store, "bob")));
}

#[test]
fn posts_are_notified_once_from_the_bell_on_to_those_who_may_read_them() {
    on_two(|store, ann, bob| {
        let mut feed = live(store, "anns", Owner::Account(ann));
        feed.poll(vec![by("cat", 1)]);
        set(store, ann, None);
        assert!(read(store, bell::accounts).is_empty());
        feed.poll(vec![by("cat", 2)]);
        set(store, ann, Some(true));
        set(store, bob, Some(true));
        assert_eq!(read(store, bell::accounts), [ann, bob]);
        // What was there before is not notified.
        assert!(!is_due(store, ann));
        assert_eq!(ring(store, ann), 0);
        feed.poll(vec![by("cat", 5), by("dog", 4), by("cat", 3), by("cat", 2)]);
        assert!(is_due(store, ann) && !is_due(store, bob));
        assert_eq!((ring(store, ann), ring(store, bob)), (2, 0));
        assert_eq!((ring(store, ann), is_due(store, ann)), (0, false));
        assert_eq!(notified(store, ann), ["5", "3"]);
        assert!(all(store, bob).is_empty());
        let found = all(store, ann);
        assert!(
            found
                .iter()
                .all(|one| one.kind == NotificationKind::Status && one.from == cat())
        );
        let of_follows = NotificationFilter {
            kinds: Some(vec![NotificationKind::Follow]),
            from: None,
        };
        let follows = read(store, move |tx| {
            notification::page(tx, ann, &of_follows, &EVERYTHING)
        });
        assert!(follows.is_empty());
        // The marker passes what is not picked.
        feed.poll(vec![by("cat", 6), by("cat", 5)]);
        assert_eq!(ring_as(store, ann, |_| false), 0);
        assert!(!is_due(store, ann));
        // Following again changes nothing.
        set(store, ann, Some(true));
        feed.poll(vec![by("cat", 7), by("cat", 6)]);
        assert_eq!(ring(store, ann), 1);
        assert_eq!(notified(store, ann), ["7", "5", "3"]);
    });
}

#[test]
fn copies_and_history_are_not_notified_again() {
    on_two(|store, ann, _| {
        let mut feed = live(store, "own", Owner::Operator);
        feed.poll(vec![by("cat", 1)]);
        set(store, ann, Some(true));
        feed.poll(vec![by("cat", 2), by("cat", 1)]);
        assert_eq!(ring(store, ann), 1);
        // Another source, and a copy of another instance.
        let mut second = live(store, "second", Owner::Operator);
        second.poll(vec![by("cat", 3), by("cat", 2), by("cat", 1)]);
        assert_eq!(ring(store, ann), 1);
        let mut other = add(
            store,
            NewSource {
                origin: "https://other.example".to_owned(),
                ..new_source("other")
            },
            START_MS,
        );
        other.poll(Vec::new());
        let copy = |id: u64, own: u64| Post {
            uri: by("cat", own).uri,
            author: by("cat@sim.example", own).author,
            ..post(id, "copy")
        };
        other.poll(vec![copy(12, 2)]);
        assert_eq!(ring(store, ann), 0);
        // A post that returns after its deletion has a new place.
        feed.now_ms += 1_000;
        for gone in [&mut feed, &mut second] {
            gone.stream(vec![Event::Deleted("3".into())]);
        }
        feed.now_ms += 100_000;
        feed.poll(vec![by("cat", 3), by("cat", 2), by("cat", 1)]);
        assert_eq!(ring(store, ann), 0);
        // History stands at its own time, here above the marker.
        let mut old = add(store, new_source("old"), START_MS + 1_200_000);
        old.settings.backfill = Backfill::Count(1_000);
        let late = |id| Post {
            created_at_ms: Some(START_MS + 600_000),
            ..by("cat", id)
        };
        old.now_ms = START_MS + 1_200_000;
        old.poll(vec![late(9), late(8)]);
        assert!(is_due(store, ann));
        assert_eq!(ring(store, ann), 0);
        assert!(!is_due(store, ann));
        old.poll(vec![by("cat", 10), late(9), late(8)]);
        assert_eq!(ring(store, ann), 1);
        // It moves up once a source shows it live.
        feed.now_ms = old.now_ms + 10_000;
        feed.poll(vec![late(9), by("cat", 3), by("cat", 2), by("cat", 1)]);
        assert!(is_due(store, ann));
        assert_eq!(ring(store, ann), 0);
        assert_eq!(notified(store, ann), ["10", "3", "2"]);
    });
}

#[test]
fn bells_end_with_the_follow_and_rest_during_a_mute() {
    on_two(|store, ann, _| {
        let mut feed = live(store, "own", Owner::Operator);
        set(store, ann, Some(true));
        let mut newest = 0;
        let mut next = |expected: usize, why: &str| {
            newest += 1;
            feed.poll((1..=newest).rev().map(|id| by("cat", id)).collect());
            assert_eq!(ring(store, ann), expected, "{why}");
        };
        let act = |done| {
            let changed = write(store, relation::root(ann, cat()), move |tx| {
                relation::change(tx, ann, cat(), done, START_MS)
            });
            changed.expect("a change");
        };
        next(1, "a bell");
        let root = local_account::root(ann);
        write(store, root, move |tx| {
            mute::set(tx, ann, cat(), false, None, START_MS)
        });
        next(0, "muted");
        write(store, root, move |tx| mute::remove(tx, ann, cat()));
        next(1, "muted no more");
        set(store, ann, Some(false));
        next(0, "off");
        set(store, ann, Some(true));
        next(1, "on again");
        act(RelationMove::Unfollow);
        next(0, "unfollowed");
        assert!(read(store, bell::accounts).is_empty());
        assert_eq!(all(store, ann).len(), 3);
        set(store, ann, Some(true));
        next(1, "followed again");
        act(RelationMove::Block);
        assert!(all(store, ann).is_empty());
        next(0, "blocked");
        act(RelationMove::Unblock);
        set(store, ann, Some(true));
        next(1, "followed at last");
        write(store, root, move |tx| account_removal::begin(tx, ann));
        next(0, "an account that is being removed");
        write(store, root, move |tx| {
            while !account_removal::remove_some(tx, ann)?.is_done {}
            Ok(())
        });
        assert!(all(store, ann).is_empty());
    });
}

#[test]
fn a_turn_is_bounded_and_the_next_goes_on() {
    on_two(|store, ann, _| {
        let mut feed = live(store, "own", Owner::Operator);
        set(store, ann, Some(true));
        let count = u64::from(bell::MAX_POSTS) + 5;
        feed.poll((1..=count).rev().map(|id| by("cat", id)).collect());
        assert_eq!(ring(store, ann), usize::from(bell::MAX_POSTS));
        assert_eq!(ring(store, ann), 5);
        let expected: Vec<String> = (1..=count).rev().map(|id| id.to_string()).collect();
        assert_eq!(notified(store, ann), expected);
    });
}

#[test]
fn two_processes_notify_once() {
    on_both_with_two(|one, other| {
        let ann = account(one, "ann");
        let mut feed = live(one, "own", Owner::Operator);
        set(one, ann, Some(true));
        feed.poll(vec![by("cat", 2), by("cat", 1)]);
        let (first, second) = at_once(|| ring(one, ann), || ring(other, ann));
        assert_eq!(first + second, 2);
        assert_eq!(all(one, ann).len(), 2);
    });
}
