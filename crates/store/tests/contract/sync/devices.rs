//! A device's push is stored once, whatever is sent again.

use driftline_core::sync::{PushRequest, Usn};
use driftline_store::{
    LocalAccountId, Store,
    social::local_account,
    sync::device::{self, Replay},
};

use crate::{
    social::account,
    world::{START_MS, read, write},
};

on_both!(
    the_last_push_again_has_the_same_answer,
    a_restored_or_cloned_device_is_refused,
    the_device_that_pushed_longest_ago_is_forgotten,
);

const DEVICE: &str = "000000000000000000000000000000aa";

/// A push without changes.
pub(super) fn request(device: &str, sequence: u64, previous: &str) -> PushRequest {
    PushRequest {
        device: device.to_owned(),
        sequence: Usn::new(sequence),
        previous: previous.to_owned(),
        changes: Vec::new(),
        cursor: None,
    }
}

fn replay(
    store: &Store,
    account: LocalAccountId,
    device: &str,
    sequence: u64,
    hashes: [&str; 2],
) -> Replay {
    let push = request(device, sequence, hashes[0]);
    let hash = hashes[1].to_owned();
    read(store, move |tx| device::replay(tx, account, &push, &hash))
}

fn record(
    store: &Store,
    account: LocalAccountId,
    device: &str,
    sequence: u64,
    hash: &str,
    now_ms: i64,
) {
    let (push, hash) = (request(device, sequence, ""), hash.to_owned());
    let answer = format!("answer {sequence}");
    write(store, local_account::root(account), move |tx| {
        device::record(tx, account, &push, &hash, &answer, now_ms)
    });
}

fn the_last_push_again_has_the_same_answer(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let at = |sequence, hashes| replay(store, ann, DEVICE, sequence, hashes);
    assert_eq!(at(1, ["", "one"]), Replay::New);
    record(store, ann, DEVICE, 1, "one", START_MS);
    let answer = |number: u64| Replay::Answer(format!("answer {number}"));
    assert_eq!(at(1, ["", "one"]), answer(1));
    assert_eq!(at(2, ["one", "two"]), Replay::New);
    record(store, ann, DEVICE, 2, "two", START_MS);
    assert_eq!(at(2, ["one", "two"]), answer(2));
    assert_eq!(at(3, ["two", "two"]), Replay::New, "the same changes again");
    // Another's device.
    assert_eq!(replay(store, bob, DEVICE, 9, ["x", "y"]), Replay::New);
}

fn a_restored_or_cloned_device_is_refused(store: &Store) {
    let ann = account(store, "ann");
    record(store, ann, DEVICE, 5, "five", START_MS);
    for (sequence, hashes) in [
        (5, ["four", "another five"]),
        (6, ["another five", "six"]),
        (6, ["", "six"]),
        (4, ["three", "four"]),
        (7, ["five", "seven"]),
        (1, ["", "one"]),
        (u64::MAX, ["five", "last"]),
    ] {
        let known = replay(store, ann, DEVICE, sequence, hashes);
        assert_eq!(known, Replay::Refused, "{sequence} {hashes:?}");
    }
    assert_eq!(replay(store, ann, DEVICE, 6, ["five", "six"]), Replay::New);
}

fn the_device_that_pushed_longest_ago_is_forgotten(store: &Store) {
    let ann = account(store, "ann");
    let name = |number: u64| format!("{number:032x}");
    for number in 0..64 {
        let now_ms = START_MS + i64::try_from(number).expect("a number");
        record(store, ann, &name(number), 1, "one", now_ms);
    }
    // The first one pushes again, so the second one is the oldest.
    record(store, ann, &name(0), 2, "two", START_MS + 100);
    // One whose clock is behind stays nevertheless.
    record(store, ann, &name(64), 1, "one", START_MS - 100);
    let is_known = |number| {
        let known = replay(store, ann, &name(number), 9, ["x", "y"]);
        known == Replay::Refused
    };
    let forgotten: Vec<u64> = (0..=64).filter(|number| !is_known(*number)).collect();
    assert_eq!(forgotten, [1]);
}
