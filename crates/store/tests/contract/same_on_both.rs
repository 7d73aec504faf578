//! One run leaves the same in both databases.

mod portrait;
mod run;

use driftline_db::testing::Fresh;
use driftline_store::testing;

use portrait::portrait;

#[test]
fn a_run_leaves_the_same_in_both_databases() {
    let portraits = [Fresh::sqlite(), Fresh::postgres()].map(|fresh| {
        let store = testing::open(&fresh);
        run::run(&store);
        let portrait = portrait(&store);
        store.close_blocking();
        portrait
    });
    assert!(portraits[0].lines().count() > 100);
    assert_eq!(portraits[0], portraits[1]);
}
