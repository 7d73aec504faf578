//! Libraries: whose they are, their update counts, and the openings in which they gave USNs.

use std::collections::HashSet;

use driftline_db::{DbError, testing::databases};
use driftline_store::{Store, source, testing};

use crate::world::{World, posts};

/// Of each library: its owner, its update count, its last opening and the first USN that it gave
/// then.
fn libraries(store: &Store) -> Vec<(String, [i64; 3])> {
    store
        .read_blocking(|tx| {
            tx.query(
                "select owner_kind, owner_id, update_count, l.opening_id,
                     coalesce(o.first_usn, 0) as first_usn
                 from library l left join library_opening o on o.library_id = l.id
                     and o.instance_id = l.instance_id and o.opening_id = l.opening_id
                 order by l.id",
                &[],
                |row| {
                    let owner = format!("{} {}", row.str("owner_kind")?, row.i64("owner_id")?);
                    let numbers = ["update_count", "opening_id", "first_usn"];
                    let [count, opening, first] = numbers.map(|column| row.i64(column));
                    Ok((owner, [count?, opening?, first?]))
                },
            )
        })
        .map_err(|error: DbError| error)
        .expect("libraries")
}

/// The first USNs of all libraries in all openings.
fn first_usns(store: &Store) -> Vec<i64> {
    let usns = store.read_blocking(|tx| {
        let all = "select first_usn from library_opening order by opening_id";
        tx.query(all, &[], |row| row.i64("first_usn"))
    });
    usns.map_err(|error: DbError| error).expect("USNs")
}

#[test]
fn a_library_names_the_last_opening_in_which_it_gave_a_usn() {
    for fresh in databases() {
        let store = testing::open(&fresh);
        let mut first = World::readable(&store, "first");
        World::readable(&store, "second");
        first.poll(posts([2, 1]));
        let expected = [
            ("source 1".to_owned(), [2, 1, 1]),
            ("source 2".to_owned(), [0, 0, 0]),
        ];
        assert_eq!(libraries(&store), expected, "{}", fresh.name);
        store.close_blocking();

        testing::open(&fresh).close_blocking();
        let store = testing::open(&fresh);
        assert_eq!(libraries(&store), expected, "an opening alone gives no USN");
        let mut first = World::of(&store, first.source);
        first.now_ms += 1_000;
        first.poll(posts([4, 3, 2]));
        first.poll(posts([5, 4]));
        assert_eq!(libraries(&store)[0].1, [5, 2, 3], "{}", fresh.name);
        assert_eq!(first_usns(&store), [1, 3], "{}", fresh.name);
        first.remove(source::LastPosts::Remove);
        assert_eq!(libraries(&store), expected[1..], "{}", fresh.name);
        assert!(first_usns(&store).is_empty(), "they go with the library");
        store.close_blocking();
    }
}

/// The openings that are recorded: their numbers and nonces.
fn openings(store: &Store) -> Vec<(i64, String)> {
    let openings = store.read_blocking(|tx| {
        tx.query("select id, nonce from opening order by id", &[], |row| {
            Ok((row.i64("id")?, row.text("nonce")?))
        })
    });
    openings.map_err(|error: DbError| error).expect("openings")
}

#[test]
fn an_opening_is_recorded_with_its_first_usn_and_under_a_nonce_of_its_own() {
    for fresh in databases() {
        let stores = [(); 3].map(|()| testing::open(&fresh));
        let [first, second, _] = &stores;
        let mut world = World::readable(first, "first");
        assert_eq!(openings(first), [], "{}: no USN was given", fresh.name);
        for ids in [1..=1, 2..=2, 3..=3] {
            world.poll(posts(ids));
            assert_eq!(openings(first).len(), 1, "{}", fresh.name);
        }
        let mut other = World::of(second, world.source);
        other.now_ms = world.now_ms + 1_000;
        for ids in [4..=4, 5..=5] {
            other.poll(posts(ids));
            assert_eq!(openings(first).len(), 2, "{}", fresh.name);
        }
        world.poll(posts([6]));
        let openings = openings(first);
        assert_eq!(openings.iter().map(|o| o.0).collect::<Vec<_>>(), [1, 2]);
        let nonces: HashSet<&str> = openings.iter().map(|(_, nonce)| nonce.as_str()).collect();
        assert_eq!(nonces.len(), 2, "{}", fresh.name);
        // On PostgreSQL with the timeline.
        assert!(nonces.iter().all(|nonce| [32, 40].contains(&nonce.len())));
        assert_eq!(libraries(first)[0].1, [6, 2, 4], "{}", fresh.name);
        stores.iter().for_each(|store| store.close_blocking());
    }
}
