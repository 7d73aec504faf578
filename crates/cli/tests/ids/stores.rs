//! Services that lease their nodes from one PostgreSQL.

use std::collections::HashSet;

use driftline_db::testing::postgres_database;

use crate::{
    service::{Service, run, serve},
    support::DataDir,
    taker::{all_differ, start_all},
};

/// Each has a data folder of its own, as on machines of their own. A killed one's node is not
/// given to another at once; one that ends in order gives it back.
#[test]
fn services_of_one_store_have_nodes_of_their_own() {
    let url = postgres_database();
    let machine = || DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", &url);
    let lease = ["--lease", "store", "--wait", "20s"];
    let data_dirs = [machine(), machine(), machine()];
    let mut services: Vec<Service> = data_dirs
        .iter()
        .map(|data_dir| Service::start(data_dir, &lease))
        .collect();
    let takers = start_all(&services);
    let mut all = HashSet::new();
    all_differ(takers, 1_000, &mut all);

    // The folder hands out no nodes as well as the store.
    let refused = run(&data_dirs[0], &serve(&["--node", "9"]));
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("leased from a store"),
        "{refused:?}"
    );
    let refused = data_dirs[0].run(&["id", "next"]);
    assert!(
        refused.stderr.contains("leased from a store"),
        "{refused:?}"
    );

    services.pop().unwrap().stop();
    services.pop().unwrap().running.kill();
    let next = machine();
    let next = Service::start(&next, &lease);
    assert_eq!(next.node, 2, "node 1 is still leased to who was killed");
    next.stop();
}
