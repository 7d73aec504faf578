//! Notifications of lists with a predicate.

use driftline_core::social::{AccountState, ListSettings};
use driftline_store::{
    LocalId, Store, search,
    social::{
        list,
        list_bell::{self, NewMatches, StandingList},
        local_account,
    },
};

use super::{
    list_entries::{active, create, settings, standing},
    read, write,
};
use crate::world::{START_MS, World, on_both, posts};

fn notifying(text: &str) -> ListSettings {
    ListSettings {
        notify: true,
        ..settings(text)
    }
}

fn change(store: &Store, list: &StandingList, settings: ListSettings) -> StandingList {
    let key = list.key;
    let changed = write(store, local_account::root(key.account), move |tx| {
        list::set(tx, key.account, key.list, settings.clone())
    });
    changed.expect("valid settings").expect("the list");
    standing(store, key)
}

/// Records that a list selects no post up to a place.
fn ring(store: &Store, list: &StandingList, reached: LocalId) -> Option<usize> {
    let matches = NewMatches {
        list: list.clone(),
        above: list.notified.expect("a list that notifies"),
        posts: Vec::new(),
        reached,
    };
    write(store, local_account::root(list.key.account), move |tx| {
        list_bell::ring(tx, &matches, START_MS)
    })
}

/// Creates a list that notifies, between two posts. Returns it with the place of the end.
fn list_between_posts(store: &Store) -> (StandingList, LocalId) {
    let ann = active(store, "ann");
    let mut world = World::readable(store, "home");
    world.poll(posts([1]));
    let list = create(store, ann, notifying("quake"));
    world.now_ms += 60_000;
    world.poll(posts([2]));
    (list, read(store, search::end))
}

/// A process whose list is not the present one changes nothing, and knows it.
#[test]
fn matches_of_a_list_that_has_changed_are_refused() {
    on_both(|store| {
        let (first, end) = list_between_posts(store);
        assert_eq!(ring(store, &first, end), Some(0));
        let notified = standing(store, first.key);
        assert_eq!(notified.notified, Some(end));
        assert_eq!(ring(store, &first, end), None);

        let changed = change(store, &notified, notifying("storm"));
        assert_eq!(ring(store, &notified, end), None);
        assert_eq!(standing(store, first.key), changed);

        let set_state = |state| {
            let account = first.key.account;
            let set = write(store, local_account::root(account), move |tx| {
                local_account::change_state(tx, account, state)
            });
            set.expect("another state");
        };
        set_state(AccountState::Frozen);
        assert_eq!(ring(store, &changed, end), None);
        set_state(AccountState::Active);
        assert_eq!(ring(store, &changed, end), Some(0));
    });
}

/// Older posts of the new predicate are not notified.
#[test]
fn another_predicate_begins_with_later_posts() {
    on_both(|store| {
        let (first, end) = list_between_posts(store);
        assert!(first.notified < Some(end));
        let renamed = ListSettings {
            title: "Earthquakes".to_owned(),
            ..notifying("quake")
        };
        let renamed = change(store, &first, renamed);
        assert_eq!(renamed.notified, first.notified);
        let changed = change(store, &renamed, notifying("storm"));
        assert!(changed.notified >= Some(end));
        let quiet = change(store, &changed, settings("quake"));
        assert_eq!(quiet.notified, None);
    });
}
