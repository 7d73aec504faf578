//! The disk of a replica is full for a while.

use std::fs;

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use crate::{
    first_sync::{PUSHED_AT_ONCE, push_notes},
    support::{replica_scene::Scene, small_disk::SmallDisk, wait_for},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_goes_on_where_it_stopped_once_its_disk_has_room() {
    let scene = Scene::begin().await;
    let folder = scene.data_dir.folder().join("one");
    let disk = SmallDisk::mount(&folder);
    scene.init("one");
    let mut watch = scene.start_replica("one", &["watch", "--every", "1s"]);
    wait_for("the first round is done", || {
        scene.replica("one", &["status"])[0]["synced_at_ms"].is_i64()
    });
    match disk.is_mounted() {
        // Less than what comes, and more than a round without changes takes.
        true => disk.fill_but(ROOM),
        false => disk.fill(&watch),
    }
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for push in 0..PUSHES {
        push_notes(&scene, push, &mut rng).await;
    }
    // A person has to make room.
    assert_eq!(watch.ended().code(), Some(1));
    let log = scene.data_dir.log();
    // Elsewhere the file of its messages may not grow either.
    assert!(
        !disk.is_mounted() || log.contains("has room") || log.contains("make room"),
        "{log}"
    );

    // An edit is stored, or refused with the reason.
    let edited = scene.run("one", &["note", scene.uri(0), "to read"]);
    let is_edited = edited.status == 0;
    assert!(is_edited || edited.stderr.contains("room"), "{edited:?}");
    if disk.is_mounted() {
        fs::remove_file(folder.join("filled")).unwrap();
    }
    let stored = scene.replica("one", &["show"]);
    let own = format!("note:{}", scene.uri(0));
    let (own, came): (Vec<_>, Vec<_>) = stored.iter().partition(|object| object["key"] == own);
    assert_eq!(own.len(), usize::from(is_edited));
    assert!(came.len() < NOTES, "the disk was not full");

    // Each chunk that is there is there with its cursor, so it does not come again.
    let synced = &scene.replica("one", &["sync"])[0];
    assert_eq!(synced["pulled"], NOTES - came.len(), "{synced}");
    assert_eq!(synced["pushed"], own.len(), "{synced}");
    let verified = scene.replica("one", &["verify"]);
    assert_eq!(verified[0]["is_equal"], true, "{verified:?}");
    let shown = scene.replica("one", &["show"]);
    assert_eq!(shown.len(), NOTES + own.len());
}

const PUSHES: usize = 4;
const NOTES: usize = PUSHES * PUSHED_AT_ONCE;
const ROOM: u64 = 600_000;
