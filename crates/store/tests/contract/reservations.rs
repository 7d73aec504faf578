//! Reservations: what readers are shown while a write may not be visible everywhere, and who ends it.

use driftline_db::testing::Fresh;
use driftline_store::{
    Root, SourceKey, Store, StoreError, Tx, block_on, database_clock, instance, reservation,
    source::NewSource, testing::open_reserving,
};

use crate::world::{World, add_source, names, new_source, posts};

/// A source of another instance.
fn elsewhere(store: &Store) -> SourceKey {
    let new = NewSource {
        origin: "https://elsewhere.example".to_owned(),
        ..new_source("elsewhere")
    };
    add_source(store, new)
}

/// Leaves the reservation of a write that has taken the next ID and then died.
fn leak(store: &Store, of: SourceKey) {
    let instance_id = i64::try_from(of.instance).expect("an ID");
    let leave = move |tx: &mut Tx<'_>| {
        tx.execute(
            "insert into reservation
                 (write_id, instance_id, first_id, last_id, is_history, until_ms)
             select 7, $1, last_reserved_id + 1, last_reserved_id + 1, false, 0 from local_clock",
            &[&instance_id],
        )
    };
    let left = store.write_blocking(Root::none(), leave);
    assert_eq!(left, Ok(1));
}

#[test]
fn what_is_above_an_open_reservation_waits_for_its_end() {
    let store = open_reserving(&Fresh::postgres());
    let mut home = World::readable(&store, "home");
    let other = elsewhere(&store);
    home.poll(posts([1]));
    leak(&store, other);
    home.now_ms += 1_000;
    home.poll(posts([2, 1]));
    assert_eq!(
        names(&home.timeline()),
        ["2", "1"],
        "one source waits for none"
    );
    assert_eq!(names(&home.public()), ["1"]);
    assert_eq!(block_on(reservation::end_expired(&store)), Ok(0));
    assert_eq!(names(&home.public()), ["2", "1"]);
    store.close_blocking();
}

#[test]
fn a_reservation_whose_instance_is_held_is_left() {
    let fresh = Fresh::postgres();
    let store = open_reserving(&fresh);
    let mut home = World::readable(&store, "home");
    let other = elsewhere(&store);
    leak(&store, other);
    home.poll(posts([1]));
    let looking = store.clone();
    let look = move |tx: &mut Tx<'_>| {
        // The root is locked before this is answered.
        database_clock::now_ms(tx).map_err(StoreError::from)?;
        block_on(reservation::end_expired(&looking))
    };
    let open = store.write_blocking(instance::root(other.instance), look);
    assert_eq!(open, Ok(1), "the write that has it may be under way");
    assert_eq!(names(&home.public()), [""; 0]);
    assert_eq!(block_on(reservation::end_expired(&store)), Ok(0));
    assert_eq!(names(&home.public()), ["1"]);
    store.close_blocking();
}

#[test]
fn a_later_write_of_the_instance_ends_it() {
    let store = open_reserving(&Fresh::postgres());
    let mut home = World::readable(&store, "home");
    home.poll(posts([1]));
    leak(&store, home.source);
    home.now_ms += 1_000;
    home.poll(posts([2, 1]));
    assert_eq!(names(&home.public()), ["2", "1"]);
    store.close_blocking();
}
