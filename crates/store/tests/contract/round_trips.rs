//! How many answers of PostgreSQL a commit waits for. Over a link they are what a commit costs.

use driftline_core::post::Post;
use driftline_db::testing::Fresh;
use driftline_store::{
    MIGRATIONS, Options, Store, Tx, credential, local_ids,
    source::{self, NewSource},
    testing::new_source,
};

use crate::world::{World, post, write};

on_both!(a_credential_without_a_name_gets_a_free_one);

/// Pages of the same kinds, of which the first round prepares the statements.
const ROUNDS: u64 = 3;
/// Long enough for a recount.
const PAUSE_MS: i64 = 300_000;

/// Posts with what real ones name.
fn posts(ids: impl Iterator<Item = u64>, text: &str) -> Vec<Post> {
    let mut posts: Vec<Post> = ids.map(|id| post(id, text)).collect();
    for (n, post) in posts.iter_mut().enumerate() {
        post.author.id = format!("{}", n % 3).as_str().into();
        post.references.posts = vec!["named".into()];
        post.references.accounts = vec!["account".into()];
    }
    posts.reverse();
    posts
}

fn counted(mut posts: Vec<Post>, favourites: i64) -> Vec<Post> {
    for post in &mut posts {
        post.counts.favourites = Some(favourites);
        post.raw = post.raw.replace(
            r#""favourites_count":0"#,
            &format!(r#""favourites_count":{favourites}"#),
        );
    }
    posts
}

fn edited(mut posts: Vec<Post>, at_ms: i64) -> Vec<Post> {
    for post in &mut posts {
        post.edited_at_ms = Some(at_ms);
    }
    posts
}

#[test]
fn a_commit_of_a_page_waits_for_three_answers_at_most() {
    let fresh = Fresh::postgres();
    let options = Options::new(fresh.target.clone(), MIGRATIONS);
    // One connection writes, so that all statements are prepared on it.
    let store = Store::open_with(options.with_connections(2)).expect("a store");
    let mut other = World::readable(&store, "other");
    let mut world = World::readable(&store, "source");
    for round in 0..ROUNDS {
        let first = round * 100 + 10;
        let new = posts(first..first + 20, "new");
        let shared = posts(first + 20..first + 40, "shared");
        other.now_ms += PAUSE_MS;
        other.poll(shared.clone());
        let mut trips = |posts: Vec<Post>| {
            world.now_ms += PAUSE_MS;
            let before = store.stats().round_trips;
            let summary = world.poll(posts);
            (store.stats().round_trips - before, summary)
        };
        let now_ms = other.now_ms + round as i64;
        let half_shared = [&shared[..], &new[..]].concat();
        let (of_new, summary) = trips(new.clone());
        assert_eq!(summary.new, 20);
        let (of_shared, summary) = trips(half_shared.clone());
        assert_eq!(summary.new, 20);
        let recounted = counted(half_shared.clone(), 1 + round as i64);
        let (of_counts, summary) = trips(recounted.clone());
        assert_eq!(summary.recounted, 40);
        let newer = posts(first + 40..first + 60, "newer");
        let mixed = [
            newer,
            edited(posts(first + 20..first + 40, "edited"), now_ms),
            counted(new, 9),
        ];
        let (of_all, summary) = trips(mixed.concat());
        assert_eq!(
            (summary.new, summary.edited, summary.recounted),
            (20, 20, 20)
        );
        let (of_nothing, summary) = trips(Vec::new());
        assert_eq!(summary.new, 0);
        if round + 1 == ROUNDS {
            assert_eq!(
                (of_new, of_shared, of_counts, of_all, of_nothing),
                (3, 3, 3, 3, 2)
            );
        }
    }
    assert_eq!(store.stats().retries, 0);
    store.close_blocking();
}

/// Credentials that nobody named are called after each other, and an instance gets one at its first
/// session: names must not be asked for one by one.
#[test]
fn a_credential_without_a_name_costs_as_much_however_many_there_are() {
    let fresh = Fresh::postgres();
    let options = Options::new(fresh.target.clone(), MIGRATIONS);
    let store = Store::open_with(options.with_connections(2)).expect("a store");
    let trips: Vec<u64> = (1..=8)
        .map(|number| {
            let before = store.stats().round_trips;
            add_unnamed_credential(&store, number);
            store.stats().round_trips - before
        })
        .collect();
    // The first ones prepare the statements.
    assert_eq!(trips[2], trips[7], "{trips:?}");
    store.close_blocking();
}

fn a_credential_without_a_name_gets_a_free_one(store: &Store) {
    assert_eq!(add_unnamed_credential(store, 1), "none");
    assert_eq!(add_unnamed_credential(store, 2), "none-2");
    assert_eq!(add_unnamed_credential(store, 3), "none-3");
    assert_eq!(add_unnamed_credential(store, 2), "none-2");
}

/// Of the instance with that number, which is added if there is none.
fn add_unnamed_credential(store: &Store, number: i64) -> String {
    let add = move |tx: &mut Tx<'_>| {
        let origin = format!("https://{number}.example");
        let name = format!("source-{number}");
        let source = match source::by_name(tx, &name)? {
            Some(known) => known.key(),
            None => {
                let new = NewSource {
                    origin,
                    ..new_source(&name)
                };
                source::add(tx, &new, 0)?.expect("a free name")
            }
        };
        credential::find_or_add(
            tx,
            source.instance,
            (driftline_store::Owner::Operator, None),
            "none",
            1,
        )
    };
    write(store, local_ids::root(), add).name
}
