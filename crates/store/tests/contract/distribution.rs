//! Distributing a store: what is refused, and who may open it meanwhile. What a cluster makes of it is
//! tested where there is one: `cargo xtask test --distribute`.

use driftline_db::testing::{Fresh, is_distributed};
use driftline_store::{
    MIGRATIONS, Options, Root, Store, StoreError,
    distribution::{self, DistributeError, State},
};

use crate::world::{World, posts};

#[test]
fn what_is_no_cluster_is_left_as_it_is() {
    if is_distributed() {
        return;
    }
    for fresh in driftline_db::testing::databases() {
        let store = Store::open(fresh.target.clone()).expect("a store");
        let refused = distribution::distribute(&store, 8, |_| ());
        match fresh.name {
            "SQLite" => assert_eq!(refused, Err(DistributeError::NotPostgres)),
            _ => assert!(
                matches!(&refused, Err(DistributeError::Cluster(why)) if why.contains("no Citus")),
                "{refused:?}"
            ),
        }
        let state = store.read_blocking(distribution::state);
        assert_eq!(state, Ok(State::Single));
        World::new(&store, "home").poll(posts([1]));
        store.close_blocking();
    }
}

#[test]
fn a_half_distributed_store_opens_for_nothing_else() {
    for fresh in driftline_db::testing::databases() {
        let store = Store::open(fresh.target.clone()).expect("a store");
        let begin = |tx: &mut driftline_store::Tx<'_>| {
            tx.execute("update distribution set state = 'begun'", &[])
        };
        store
            .write_blocking(Root::none(), begin)
            .expect("it has begun");
        store.close_blocking();
        let refused = Store::open(fresh.target.clone()).map(drop);
        assert_eq!(refused, Err(StoreError::HalfDistributed), "{}", fresh.name);
        let options = Options::new(fresh.target.clone(), MIGRATIONS);
        let opened = Store::open_to_distribute(options).expect("a store");
        opened.close_blocking();
    }
}

#[test]
fn who_opened_it_before_takes_no_id() {
    let fresh = Fresh::postgres();
    let before = Store::open(fresh.target.clone()).expect("a store");
    let mut world = World::readable(&before, "home");
    world.poll(posts([1]));
    let store = driftline_store::testing::open_reserving(&fresh);
    assert!(world.try_poll(posts([2, 1])).is_err());
    let mut now = World::of(&store, world.source);
    now.now_ms = world.now_ms + 1_000;
    now.poll(posts([2, 1]));
    assert_eq!(now.timeline().len(), 2);
    before.close_blocking();
    store.close_blocking();
}
