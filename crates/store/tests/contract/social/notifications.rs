use driftline_core::social::{NotificationKind, Relation, RelationMove};
use driftline_store::{
    LocalAccountId, LocalId, Store, account_id,
    social::{
        account_removal, home_source, local_account, mute,
        notification::{self, Notification, NotificationFilter},
        relation::{self, FollowOptions, RelationRow},
    },
    timeline::Range,
};

use super::{account, read, write};
use crate::world::START_MS;

on_both!(
    follows_are_told_as_long_as_they_last,
    notifications_are_their_accounts_alone,
    sources_are_chosen_for_home_once,
);

fn follow(store: &Store, one: LocalAccountId, other: LocalAccountId) {
    let other = account_id(other);
    let root = relation::root(one, other);
    let options = FollowOptions::default();
    let followed = write(store, root, move |tx| {
        relation::follow(tx, one, other, options, START_MS)
    });
    followed.expect("a follow");
}

fn does(store: &Store, one: LocalAccountId, other: LocalAccountId, done: RelationMove) {
    let other = account_id(other);
    let changed = write(store, relation::root(one, other), move |tx| {
        relation::change(tx, one, other, done, START_MS)
    });
    changed.expect("a change");
}

fn all(store: &Store, of: LocalAccountId) -> Vec<Notification> {
    page(store, of, &NotificationFilter::default(), &range(10))
}

fn range(limit: u16) -> Range {
    Range {
        limit,
        ..Range::default()
    }
}

fn page(
    store: &Store,
    of: LocalAccountId,
    filter: &NotificationFilter,
    range: &Range,
) -> Vec<Notification> {
    let (filter, range) = (filter.clone(), *range);
    read(store, move |tx| notification::page(tx, of, &filter, &range))
}

fn follows_are_told_as_long_as_they_last(store: &Store) {
    let [ann, bob, carl] = ["ann", "bob", "carl"].map(|name| account(store, name));
    follow(store, bob, ann);
    follow(store, carl, ann);
    let told = all(store, ann);
    let from: Vec<_> = told.iter().map(|told| told.from).collect();
    assert_eq!(from, [carl, bob].map(account_id));
    assert!(
        told.iter()
            .all(|told| told.kind == NotificationKind::Follow)
    );
    let counts = read(store, move |tx| relation::follow_counts(tx, &[ann, bob]));
    assert_eq!((counts[&ann].followers, counts[&ann].following), (2, 0));
    assert_eq!((counts[&bob].followers, counts[&bob].following), (0, 1));
    assert_eq!(counts[&bob].following_here, 1);
    let shown = read(store, move |tx| relation::followed(tx, bob));
    let shown: Vec<_> = shown
        .iter()
        .map(|row| (row.other, row.show_boosts))
        .collect();
    assert_eq!(shown, [(account_id(ann), true)]);
    assert!(all(store, bob).is_empty());
    // By pages, by kind and by account.
    let newest = page(store, ann, &NotificationFilter::default(), &range(1));
    assert_eq!(newest, told[..1]);
    let above = Range {
        min: Some(told[1].id),
        ..range(10)
    };
    assert_eq!(
        page(store, ann, &NotificationFilter::default(), &above),
        told[..1]
    );
    let below = Range {
        max: Some(told[0].id),
        ..range(10)
    };
    assert_eq!(
        page(store, ann, &NotificationFilter::default(), &below),
        told[1..]
    );
    let of_requests = NotificationFilter {
        kinds: Some(vec![NotificationKind::FollowRequest]),
        from: None,
    };
    assert!(page(store, ann, &of_requests, &range(10)).is_empty());
    let of_bob = NotificationFilter {
        kinds: None,
        from: Some(account_id(bob)),
    };
    assert_eq!(page(store, ann, &of_bob, &range(10)), told[1..]);
    // They end with the follow, by whomever.
    does(store, bob, ann, RelationMove::Unfollow);
    does(store, ann, carl, RelationMove::Block);
    assert!(all(store, ann).is_empty());
    // Nobody is told of those whom they mute.
    let root = local_account::root(ann);
    write(store, root, move |tx| {
        mute::set(tx, ann, account_id(bob), true, None, START_MS)
    });
    follow(store, bob, ann);
    assert!(all(store, ann).is_empty());
    let muted = |now_ms| {
        read(store, move |tx| {
            let muted = mute::all_later(tx, ann, now_ms)?;
            Ok(tx.rows(muted)?)
        })
    };
    assert_eq!(muted(START_MS + 86_400_000), [account_id(bob)]);
    write(store, root, move |tx| {
        mute::set(tx, ann, account_id(bob), true, Some(START_MS + 5), START_MS)
    });
    assert_eq!(muted(START_MS + 4), [account_id(bob)]);
    assert!(muted(START_MS + 5).is_empty());
    let blocked = read(store, move |tx| {
        let blocked = relation::all_later(tx, ann, Relation::Blocking)?;
        tx.rows(blocked)?.into_iter().collect()
    });
    let blocked: Vec<RelationRow> = blocked;
    assert_eq!(blocked.len(), 1);
    assert_eq!(blocked[0].other, account_id(carl));
    let named = read(store, |tx| local_account::beginning_with(tx, "B", 10));
    assert_eq!(named.len(), 1);
    assert_eq!(named[0].id, bob);
}

fn notifications_are_their_accounts_alone(store: &Store) {
    let [ann, bob, carl] = ["ann", "bob", "carl"].map(|name| account(store, name));
    follow(store, bob, ann);
    follow(store, carl, ann);
    follow(store, ann, bob);
    let told = all(store, ann);
    let id = told[0].id;
    let dismiss = |of: LocalAccountId, id: Option<LocalId>| {
        write(store, local_account::root(of), move |tx| {
            notification::dismiss(tx, of, id)
        })
    };
    assert!(!dismiss(bob, Some(id)));
    let found = read(store, move |tx| {
        Ok([
            notification::by_id(tx, ann, id)?,
            notification::by_id(tx, bob, id)?,
        ])
    });
    assert_eq!(found, [Some(told[0]), None]);
    assert!(dismiss(ann, Some(id)));
    assert_eq!(all(store, ann), told[1..]);
    assert!(dismiss(ann, None));
    assert!(all(store, ann).is_empty());
    // Those of a deleted account go, and those that tell of it.
    assert_eq!(all(store, bob).len(), 1);
    write(store, local_account::root(ann), move |tx| {
        account_removal::begin(tx, ann)?;
        while !account_removal::remove_some(tx, ann)?.is_done {}
        Ok(())
    });
    assert!(all(store, bob).is_empty());
}

fn sources_are_chosen_for_home_once(store: &Store) {
    let ann = account(store, "ann");
    let [one, other] = [7, 3].map(driftline_store::SourceId::new);
    let chosen = |store: &Store| read(store, move |tx| home_source::all(tx, ann));
    for source in [one, other, one] {
        let root = local_account::root(ann);
        write(store, root, move |tx| home_source::add(tx, ann, source));
    }
    assert_eq!(chosen(store), [other, one]);
    for is_there in [true, false] {
        let removed = write(store, local_account::root(ann), move |tx| {
            home_source::remove(tx, ann, one)
        });
        assert_eq!(removed, is_there);
    }
    assert_eq!(chosen(store), [other]);
}
