use driftline_sim::seeds;

use crate::world::World;

/// Three devices and other clients edit; messages are lost, doubled and late; devices and the server crash, and are restored
/// from backups; devices are cloned; tombstones are collected. In the end all are equal, and no edit was lost without being
/// listed.
#[test]
fn replicas_converge_and_lose_no_edit() {
    seeds::run(1_000, |seed| World::new(seed).run(250));
}
