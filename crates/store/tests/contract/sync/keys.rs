//! The keys of objects that this server creates, which stay as they are.

use driftline_core::{
    names::{acct::AcctKey, audience::Audience},
    post::Post,
    social::{ListSettings, Mark, MarkedTimeline, RelationMove, RepliesPolicy},
};
use driftline_store::{
    AccountId, LocalAccountId, LocalId, Owner, Store, account_id,
    social::{list, list_member, local_account, marked_post, marker, note, relation},
    timeline::PostKey,
};

use super::{
    Replica,
    copies::{bookmark, key},
    living, post_name, rows, set_note,
};
use crate::{
    social::account,
    world::{EVERYTHING, START_MS, World, post, read, write},
};

on_both!(
    a_mark_has_its_posts_uri_and_comes_back_on_top,
    copies_of_a_post_have_one_mark,
    a_post_without_a_usable_uri_has_the_id_of_this_server,
    lists_and_their_accounts_have_keys,
    a_note_is_set_once_and_needs_no_post,
);

fn marks(store: &Store, account: LocalAccountId) -> Vec<marked_post::MarkedPost> {
    read(store, move |tx| {
        marked_post::page(tx, account, Mark::Bookmark, &EVERYTHING)
    })
}

fn a_mark_has_its_posts_uri_and_comes_back_on_top(store: &Store) {
    let ann = account(store, "ann");
    let mut world = World::readable(store, "home");
    world.poll(vec![post(2, "two"), post(1, "one")]);
    let [one, two] = [1, 2].map(|id| key(&world, id));
    bookmark(store, ann, one);
    bookmark(store, ann, two);
    let first = marks(store, ann);
    let order = |marks: &[marked_post::MarkedPost]| -> Vec<PostKey> {
        marks.iter().map(|mark| mark.key).collect()
    };
    assert_eq!(order(&first), [two, one]);
    let removed = write(store, local_account::root(ann), move |tx| {
        marked_post::remove(tx, ann, Mark::Bookmark, one.post)
    });
    assert!(removed);
    bookmark(store, ann, one);
    let second = marks(store, ann);
    assert_eq!(order(&second), [one, two]);
    assert!(second[0].id > first[0].id);
    let rows = rows(store, ann);
    let objects: Vec<(&str, i64, u64, bool)> = rows
        .iter()
        .map(|row| (row.key.as_str(), row.first_usn, row.usn, row.is_removed))
        .collect();
    let [one, two] = [1, 2].map(|number| format!("bookmark:{}", post_name(number)));
    assert_eq!(
        objects,
        [(two.as_str(), 2, 2, false), (one.as_str(), 1, 4, false)]
    );
    let mut replica = Replica::default();
    replica.pull(store, ann);
    let shown = world.timeline()[1].id.to_string();
    assert_eq!(replica.objects[&one].1["post"], shown);
}

fn copies_of_a_post_have_one_mark(store: &Store) {
    let ann = account(store, "ann");
    let [own, other] = ["sim", "other"].map(|name| {
        let (owner, origin) = (Owner::Operator, format!("https://{name}.example"));
        let mut world = World::of_server(store, name, &origin, owner, Audience::Public);
        world.poll(Vec::new());
        let mut shown = post(1, "text");
        shown.author.acct = "ann@sim.example".to_owned();
        world.poll(vec![shown]);
        key(&world, 1)
    });
    assert_ne!(own, other);
    bookmark(store, ann, own);
    bookmark(store, ann, own);
    bookmark(store, ann, other);
    let marked = marks(store, ann);
    assert_eq!(marked.len(), 1);
    assert_eq!(marked[0].key, other);
    let expected = [(format!("bookmark:{}", post_name(1)), 2)];
    assert_eq!(living(store, ann), expected.into());
    assert_eq!(rows(store, ann).len(), 1);
}

fn a_post_without_a_usable_uri_has_the_id_of_this_server(store: &Store) {
    let ann = account(store, "ann");
    let mut world = World::readable(store, "home");
    let with_uri = |id: u64, uri: Option<String>| Post {
        uri,
        ..post(id, "text")
    };
    let long = format!("https://sim.example/{}", "x".repeat(5_000));
    world.poll(vec![with_uri(2, Some(long)), with_uri(1, None)]);
    let shown = world.timeline();
    for (place, id) in [(1, 1), (0, 2)] {
        bookmark(store, ann, key(&world, id));
        let key = format!("bookmark:id:{}", shown[place].id);
        assert!(living(store, ann).contains_key(&key), "{key}");
    }
}

fn settings() -> ListSettings {
    ListSettings {
        title: "friends".to_owned(),
        replies_policy: RepliesPolicy::List,
        exclusive: false,
        predicate: None,
        notify: false,
    }
}

fn lists_and_their_accounts_have_keys(store: &Store) {
    let [ann, bob] = ["ann", "Bob"].map(|name| account(store, name));
    let mut world = World::readable(store, "home");
    world.poll(vec![post(1, "text")]);
    let author = AcctKey::new("ann", "https://sim.example").expect("a name");
    let author = AccountId::new(author.account_id());
    let unnamed = AccountId::new((1 << 62) + 5);
    for other in [account_id(bob), author, unnamed] {
        write(store, relation::root(ann, other), move |tx| {
            let follow = RelationMove::Follow { auto_accept: true };
            relation::change(tx, ann, other, follow, START_MS)
        })
        .expect("a follow");
    }
    let root = || local_account::root(ann);
    let created = write(store, root(), move |tx| {
        list::create(tx, ann, settings(), START_MS)
    });
    let id = created.expect("a list").id;
    let added = write(store, root(), move |tx| {
        let members = [account_id(bob), author, unnamed];
        list_member::add(tx, ann, id, &members, START_MS)
    });
    assert_eq!(added, Ok(()));
    let set = write(store, root(), move |tx| {
        let place = LocalId::new(7);
        marker::set(tx, ann, MarkedTimeline::Home, place, 0, START_MS)
    });
    set.expect("a marker");
    let (follows, rows): (Vec<_>, Vec<_>) = rows(store, ann)
        .into_iter()
        .partition(|row| row.key.starts_with("follow:"));
    let followed: Vec<&str> = follows.iter().map(|row| row.key.as_str()).collect();
    let expected = [
        "follow:bob@local",
        "follow:ann@sim.example",
        "follow:4611686018427387909@unnamed",
    ];
    assert_eq!(followed, expected);
    let list_key = rows[0]
        .key
        .strip_prefix("list:")
        .expect("a list")
        .to_owned();
    assert_eq!(list_key.len(), 32);
    let mut keys: Vec<String> = rows[1..].iter().map(|row| row.key.clone()).collect();
    keys.sort_unstable();
    let mut expected = [
        "ann@sim.example",
        "bob@local",
        "4611686018427387909@unnamed",
    ]
    .map(|acct| format!("list-member:{list_key}:{acct}"))
    .to_vec();
    expected.push("marker:home".to_owned());
    expected.sort_unstable();
    assert_eq!(keys, expected);
    let mut replica = Replica::default();
    replica.pull(store, ann);
    let of_bob = &replica.objects[&format!("list-member:{list_key}:bob@local")];
    assert_eq!(of_bob.1["account"], bob.to_string());
    assert_eq!(replica.objects["marker:home"].1["last_read"], "7");
    assert_eq!(replica.objects[&rows[0].key].1["title"], "friends");
}

fn a_note_is_set_once_and_needs_no_post(store: &Store) {
    let ann = account(store, "ann");
    set_note(store, ann, 1, "text");
    set_note(store, ann, 1, "text");
    assert_eq!(rows(store, ann)[0].usn, 1, "as it was");
    set_note(store, ann, 1, "other");
    assert_eq!(rows(store, ann)[0].usn, 2);
    let texts = read(store, move |tx| {
        note::by_keys(tx, ann, &[&post_name(1), "none"])
    });
    assert_eq!(texts, [(post_name(1), "other".to_owned())].into());
    let set = |name: String| {
        write(store, local_account::root(ann), move |tx| {
            note::set(tx, ann, &name, "text", START_MS)
        })
    };
    let refused = set("x".repeat(3_000));
    assert!(matches!(refused, Err(note::NoteRefused::Key(_))));
    assert_eq!(rows(store, ann).len(), 1);
}
