//! Posts that edits bring into lists with a predicate.

use driftline_core::{
    predicate::{NameContext, Predicate},
    social::{AccountState, ListSettings, RepliesPolicy},
};
use driftline_store::{
    LocalAccountId, LocalId, Store, Viewer, edited_post, history, search,
    social::{
        list,
        list_bell::{self, StandingList},
        list_entry::{self, ListKey},
        local_account,
    },
    timeline,
};

use super::{account, read, write};
use crate::world::{EVERYTHING, START_MS, World, edited, on_both, post, posts};

const HOUR_MS: i64 = 60 * 60 * 1_000;

pub(super) fn active(store: &Store, name: &str) -> LocalAccountId {
    let id = account(store, name);
    let changed = write(store, local_account::root(id), move |tx| {
        local_account::change_state(tx, id, AccountState::Active)
    });
    changed.expect("an active account");
    id
}

pub(super) fn settings(text: &str) -> ListSettings {
    let names = NameContext {
        origin: "https://a.example",
        viewer: None,
    };
    ListSettings {
        title: "Quakes".to_owned(),
        replies_policy: RepliesPolicy::List,
        exclusive: false,
        predicate: Some(Predicate::parse(text, &names).expect("a predicate")),
        notify: false,
    }
}

fn save(store: &Store, account: LocalAccountId, text: &str) -> StandingList {
    create(store, account, settings(text))
}

pub(super) fn create(
    store: &Store,
    account: LocalAccountId,
    settings: ListSettings,
) -> StandingList {
    let root = local_account::root(account);
    let made = write(store, root, move |tx| {
        list::create(tx, account, settings.clone(), START_MS)
    });
    let list = made.expect("a list").id;
    standing(store, ListKey { account, list })
}

pub(super) fn standing(store: &Store, key: ListKey) -> StandingList {
    let mut lists = read(store, list_bell::standing_lists).into_iter();
    lists.find(|list| list.key == key).expect("the list")
}

fn enter(store: &Store, list: &StandingList, post: LocalId, now_ms: i64) {
    let (list, account) = (list.clone(), list.key.account);
    write(store, local_account::root(account), move |tx| {
        let post = timeline::at_its_place(tx, post, Viewer::Account(account))?;
        list_bell::enter(tx, &list, post.into_iter().collect(), now_ms)
    });
}

fn entries(store: &Store, list: &StandingList) -> Vec<LocalId> {
    let key = list.key;
    let found = read(store, move |tx| list_entry::page(tx, key, &EVERYTHING));
    found.into_iter().map(|entry| entry.id).collect()
}

/// Each edited post waits once, with the first version that lists have not been compared with, until
/// they have been compared with its last edit.
#[test]
fn edited_posts_wait_for_the_lists() {
    on_both(|store| {
        let mut world = World::readable(store, "home");
        world.poll(posts([2, 1]));
        assert_eq!(read(store, |tx| edited_post::edited(tx, 10)), []);
        for (minute, text) in [(1, "second"), (2, "third")] {
            world.now_ms += 60_000;
            world.poll(vec![edited(1, text, minute)]);
        }
        let first = read(store, |tx| edited_post::edited(tx, 10));
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].seq, 1);
        let before = |since_seq| {
            let key = first[0].key;
            let viewer = Viewer::Anonymous;
            read(store, move |tx| {
                history::before_edit(tx, key, since_seq, viewer)
            })
        };
        assert_eq!(before(Some(1)), Some(post(1, "text").raw));
        assert_eq!(before(Some(2)), Some(post(1, "second").raw));
        assert_eq!(before(None), Some(post(1, "second").raw));
        assert_eq!(before(Some(3)), None);

        world.now_ms += 60_000;
        world.poll(vec![edited(1, "fourth", 3)]);
        let forget = |posts: Vec<edited_post::EditedPost>| {
            write(store, search::root(), move |tx| {
                edited_post::forget(tx, &posts)
            });
        };
        forget(first);
        let again = read(store, |tx| edited_post::edited(tx, 10));
        assert_eq!((again.len(), again[0].seq), (1, 1));
        forget(again);
        assert_eq!(read(store, |tx| edited_post::edited(tx, 10)), []);
        world.now_ms += 60_000;
        world.poll(vec![edited(1, "fifth", 4)]);
        assert_eq!(read(store, |tx| edited_post::edited(tx, 10))[0].seq, 4);
    });
}

/// Edited posts are needed from the first list with a predicate on. A list of accounts needs none.
#[test]
fn edited_posts_are_needed_while_there_is_a_list_with_a_predicate() {
    on_both(|store| {
        let ann = active(store, "ann");
        let mut world = World::readable(store, "home");
        world.poll(posts([3, 2, 1]));
        let unneeded = || read(store, |tx| list_bell::unneeded_edits(tx, 10));
        assert_eq!(unneeded(), []);
        world.now_ms += 60_000;
        world.poll(vec![edited(2, "second", 1), edited(1, "second", 1)]);
        let waiting = unneeded();
        assert_eq!(waiting.len(), 2);
        assert_eq!(
            read(store, |tx| list_bell::unneeded_edits(tx, 1)),
            waiting[..1]
        );
        let of_accounts = ListSettings {
            title: "Friends".to_owned(),
            replies_policy: RepliesPolicy::List,
            exclusive: false,
            predicate: None,
            notify: false,
        };
        let root = local_account::root(ann);
        let made = write(store, root, move |tx| {
            list::create(tx, ann, of_accounts.clone(), START_MS)
        });
        made.expect("a list");
        assert_eq!(unneeded(), waiting);
        save(store, ann, "quake");
        assert_eq!(unneeded(), []);
        assert_eq!(read(store, |tx| edited_post::edited(tx, 10)), waiting);
    });
}

/// A post keeps its entry for an hour; then it gets another one, above all others.
#[test]
fn a_post_that_enters_again_moves_at_most_once_an_hour() {
    on_both(|store| {
        let (ann, bob) = (active(store, "ann"), active(store, "bob"));
        let mut world = World::readable(store, "home");
        world.poll(posts([2, 1]));
        let list = save(store, ann, "quake");
        let other = save(store, bob, "quake");
        let known = world.timeline();
        let [second, first] = [known[0].post_id, known[1].post_id];
        enter(store, &list, first, START_MS);
        let one = entries(store, &list);
        assert_eq!(one.len(), 1);
        assert!(one[0] > known[0].id);
        enter(store, &list, first, START_MS + HOUR_MS / 2);
        assert_eq!(entries(store, &list), one);
        enter(store, &list, second, START_MS + HOUR_MS / 2);
        let two = entries(store, &list);
        assert_eq!((two.len(), two[1]), (2, one[0]));
        enter(store, &list, first, START_MS + 2 * HOUR_MS);
        let moved = entries(store, &list);
        assert_eq!((moved.len(), moved[1]), (2, two[0]));
        assert!(moved[0] > two[0]);
        assert_eq!(entries(store, &other), []);

        // An ID of an entry is its owner's alone.
        let shown = |id: LocalId, viewer| {
            let found = read(store, move |tx| list_entry::status(tx, id, viewer));
            found.map(|post| (post.id, post.post_id))
        };
        assert_eq!(
            shown(moved[0], Viewer::Account(ann)),
            Some((moved[0], first))
        );
        assert_eq!(shown(moved[0], Viewer::Account(bob)), None);
        assert_eq!(shown(moved[0], Viewer::Operator), None);
        assert_eq!(shown(one[0], Viewer::Account(ann)), None);

        // They end with the list.
        let key = list.key;
        write(store, local_account::root(ann), move |tx| {
            list::remove(tx, key.account, key.list)
        });
        assert_eq!(entries(store, &list), []);
        enter(store, &list, first, START_MS + 4 * HOUR_MS);
        assert_eq!(entries(store, &list), []);
    });
}
