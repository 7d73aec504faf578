//! The first copy of a library over connections that are cut.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::{proxy::Proxy, support::replica_scene::Scene};

#[tokio::test(flavor = "multi_thread")]
async fn a_first_sync_that_is_cut_at_every_megabyte_transfers_at_most_a_tenth_more() {
    let scene = Scene::begin().await;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for push in 0..NOTES / PUSHED_AT_ONCE {
        push_notes(&scene, push, &mut rng).await;
    }
    let proxy = Proxy::start(&scene.address);
    scene.init_at("whole", proxy.url());
    let synced = scene.replica("whole", &["sync"]);
    assert_eq!(synced[0]["pulled"], NOTES, "{synced:?}");
    let whole = proxy.delivered();
    assert!(whole > 5_000_000, "{whole}");

    proxy.cut_every(1_000_000);
    scene.init_at("cut", proxy.url());
    let mut syncs = 0..MAX_SYNCS;
    assert!(
        syncs.any(|_| scene.run("cut", &["sync"]).status == 0),
        "not complete after {MAX_SYNCS} synchronizations"
    );
    let cut = proxy.delivered() - whole;
    let cuts: usize = proxy.faults().values().sum();
    eprintln!("{whole} bytes without a cut, {cut} with {cuts} cuts");
    assert!(cuts >= 5, "{cuts}");
    assert!(cut > whole && cut - whole <= whole / 10, "{whole} {cut}");
    proxy.calm();
    let shown = ["whole", "cut"].map(|replica| scene.replica(replica, &["show"]));
    assert_eq!(shown[0].len(), NOTES);
    assert!(shown[0] == shown[1], "the replicas differ");
}

/// Pushes some notes of random characters, as a device of its own.
pub async fn push_notes(scene: &Scene, push: usize, rng: &mut ChaCha8Rng) {
    let changes: Vec<Value> = (0..PUSHED_AT_ONCE)
        .map(|number| {
            let text: String = (0..NOTE_CHARS).map(|_| visible(rng)).collect();
            let number = push * PUSHED_AT_ONCE + number;
            let key = format!("note:https://social.example/{number}");
            json!({ "key": key, "base": "0", "value": { "text": text } })
        })
        .collect();
    let body = json!({ "device": format!("{push:032x}"), "sequence": "1", "changes": changes });
    let pushed = scene.post("/api/driftline/v1/sync/push", &body).await;
    let results = pushed["results"].as_array().unwrap();
    assert!(
        results.iter().all(|result| result["status"] == "done"),
        "{results:?}"
    );
}

/// A character that compression makes little shorter, and that JSON does not escape.
fn visible(rng: &mut ChaCha8Rng) -> char {
    match char::from(rng.random_range(b'#'..=b'~')) {
        '\\' => '!',
        other => other,
    }
}

const NOTES: usize = 1_000;
pub const PUSHED_AT_ONCE: usize = 100;
const NOTE_CHARS: usize = 8_000;
const MAX_SYNCS: usize = 20;
