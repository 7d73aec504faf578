//! Two replicas and their server: edited, cut off and killed, they have the same objects in the end.

use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::{
    edits::Edits,
    note_history::Conflict,
    number,
    proxy::Proxy,
    support::{Running, replica_scene::Scene},
};

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_and_their_server_converge_whatever_is_cut_and_killed() {
    let seed = number("DRIFTLINE_SEED", rand::random());
    let kills = number("DRIFTLINE_KILLS", 10);
    eprintln!("DRIFTLINE_SEED={seed} DRIFTLINE_KILLS={kills}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut scene = Scene::begin().await;
    let proxy = Proxy::start(&scene.address);
    for replica in REPLICAS {
        scene.init_at(replica, proxy.url());
    }
    let mut edits = Edits::default();
    proxy.begin_faults(seed);
    for _ in 0..kills {
        for replica in REPLICAS {
            edits.on_replica(&scene, replica, &mut rng);
        }
        let mut syncs: Vec<Running> = REPLICAS
            .iter()
            .map(|replica| scene.start_replica(replica, &["sync"]))
            .collect();
        edits.on_server(&scene, &mut rng).await;
        let victim = rng.random_range(0..4);
        // The moment is the experiment.
        let moment = Duration::from_millis(rng.random_range(0..300));
        tokio::time::sleep(moment).await;
        if victim < syncs.len() {
            syncs.remove(victim).kill();
        } else {
            scene.kill();
            scene.start();
        }
        for sync in &mut syncs {
            let status = sync.ended().code();
            assert!(matches!(status, Some(0 | 1)), "{status:?}");
        }
    }
    let faults = proxy.faults();
    eprintln!("{} edits of notes, {faults:?}", edits.notes.count());
    assert!(kills < 10 || faults.len() == 5, "{faults:?}");

    proxy.calm();
    assert!(
        (0..MAX_SYNCS).any(|_| REPLICAS.map(|replica| is_quiet(&scene, replica)) == [true, true]),
        "not quiet after {MAX_SYNCS} synchronizations"
    );
    scene.init_at(FRESH, proxy.url());
    scene.replica(FRESH, &["sync"]);
    let [one, two, fresh] = [REPLICAS[0], REPLICAS[1], FRESH].map(|replica| {
        let verified = scene.replica(replica, &["verify"]);
        assert_eq!(verified[0]["is_equal"], true, "{replica}: {verified:?}");
        scene.replica(replica, &["show"])
    });
    assert_eq!(one, two);
    assert_eq!(one, fresh);
    let mut conflicts = Vec::new();
    for replica in REPLICAS {
        let rows = scene.replica(replica, &["conflicts", "--all"]);
        conflicts.extend(rows.iter().map(|row| Conflict::read(replica, row)));
    }
    edits.assert_kept(&one, &conflicts);
    let bookmarks: Vec<String> = one.iter().filter_map(bookmarked).collect();
    assert_eq!(scene.bookmarks().await, bookmarks);

    let log = scene.data_dir.log();
    for error in UNEXPECTED {
        let line = log.lines().find(|line| line.contains(error));
        assert_eq!(line, None);
    }
}

/// Syncs a replica. Returns true if nothing came and went.
fn is_quiet(scene: &Scene, replica: &str) -> bool {
    let report = &scene.replica(replica, &["sync"])[0];
    ["pulled", "removed", "pushed", "dirty"]
        .iter()
        .all(|number| report[number] == 0)
}

/// The post of a bookmark. Bookmarks come in the order of their keys.
fn bookmarked(object: &Value) -> Option<String> {
    let post = object["key"].as_str()?.strip_prefix("bookmark:")?;
    Some(post.to_owned())
}

const REPLICAS: [&str; 2] = ["one", "two"];
const FRESH: &str = "three";
const MAX_SYNCS: usize = 20;
/// Parts of messages that no cut and no kill explains.
const UNEXPECTED: [&str; 4] = [
    "rejected the request",
    "is not one of the sync protocol",
    "the replica's database",
    "panicked",
];
