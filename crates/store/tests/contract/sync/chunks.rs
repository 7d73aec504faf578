//! Chunks bring a replica to what the library has, whatever is written meanwhile.

use driftline_core::sync::LibraryState;
use driftline_store::Store;

use super::{
    MAX_BYTES, Replica, chunk, living, note_key, remove_note, rows, set_note, update_count,
};
use crate::social::account;

on_both!(
    chunks_of_one_object_over_a_library_that_changes_give_all,
    a_full_sync_goes_downward_and_ends_at_its_start,
    tombstones_come_with_the_changes,
    a_chunk_is_bounded_by_its_bytes,
    a_library_without_objects_is_complete_at_once,
);

fn chunks_of_one_object_over_a_library_that_changes_give_all(store: &Store) {
    let ann = account(store, "ann");
    for number in 1..=12 {
        set_note(store, ann, number, "first");
    }
    let mut replica = Replica::default();
    // One that has seen a part before.
    let mut early = Replica::default();
    early.step(store, ann, 5);
    for round in 1..=12 {
        replica.step(store, ann, 1);
        early.step(store, ann, 2);
        // An object of the part that is still to come, one that came, a deletion and a new one.
        set_note(store, ann, 1 + round % 6, &format!("changed {round}"));
        set_note(store, ann, 12 - round % 3, &format!("changed {round}"));
        if round % 4 == 0 {
            remove_note(store, ann, 6 + round / 4);
        }
        set_note(store, ann, 100 + round, "new");
    }
    for replica in [&mut replica, &mut early] {
        while replica.step(store, ann, 1).is_some() {}
        assert_eq!(replica.usns(), living(store, ann));
        assert_eq!(replica.objects[&note_key(6)].1["text"], "changed 11");
        assert_eq!(replica.step(store, ann, 1), None);
    }
}

fn a_full_sync_goes_downward_and_ends_at_its_start(store: &Store) {
    let ann = account(store, "ann");
    for number in 1..=5 {
        set_note(store, ann, number, "first");
    }
    remove_note(store, ann, 2);
    let mut replica = Replica::default();
    let mut usns = Vec::new();
    loop {
        let chunk = replica.step(store, ann, 2).expect("a chunk");
        assert_eq!(chunk.state, LibraryState::Full);
        assert_eq!(chunk.gone, [], "only what lives");
        usns.extend(chunk.objects.iter().map(|object| object.usn.get()));
        if !chunk.more {
            break;
        }
        // What changes comes afterwards.
        set_note(store, ann, 1, &format!("changed after {}", usns.len()));
    }
    assert_eq!(usns, [5, 4, 3], "the first one has changed meanwhile");
    let cursor = replica.cursor.clone().expect("a cursor");
    assert_eq!((cursor.usn, cursor.below), (6, None));
    let changes = replica.step(store, ann, 10).expect("a chunk");
    assert_eq!(changes.state, LibraryState::Changes);
    assert_eq!(replica.usns(), living(store, ann));
}

fn tombstones_come_with_the_changes(store: &Store) {
    let ann = account(store, "ann");
    set_note(store, ann, 1, "one");
    set_note(store, ann, 2, "two");
    let mut replica = Replica::default();
    replica.pull(store, ann);
    remove_note(store, ann, 1);
    set_note(store, ann, 3, "three");
    let chunk = replica.step(store, ann, 10).expect("a chunk");
    let gone: Vec<(&str, u64)> = chunk
        .gone
        .iter()
        .map(|gone| (gone.key.as_str(), gone.usn.get()))
        .collect();
    assert_eq!(gone, [(note_key(1).as_str(), 3)]);
    assert_eq!(chunk.objects.len(), 1);
    assert_eq!(replica.usns(), living(store, ann));
    // It comes back under its key.
    set_note(store, ann, 1, "one again");
    replica.pull(store, ann);
    assert_eq!(replica.objects[&note_key(1)].0, 5);
    assert_eq!(rows(store, ann).len(), 3);
}

fn a_chunk_is_bounded_by_its_bytes(store: &Store) {
    let ann = account(store, "ann");
    for number in 1..=4 {
        set_note(store, ann, number, &"a".repeat(1_000));
    }
    let sizes = |max_bytes| {
        let (mut cursor, mut sizes) = (None, Vec::new());
        while let Some(chunk) = chunk(store, ann, cursor, 100, max_bytes) {
            sizes.push(chunk.objects.len());
            for object in &chunk.objects {
                let value = object.value.read().expect("JSON");
                let text = value["text"].as_str().expect("a text");
                assert_eq!(text.len(), 1_000);
            }
            cursor = Some(chunk.cursor);
        }
        sizes
    };
    assert_eq!(sizes(3_500), [3, 1]);
    assert_eq!(sizes(100), [1, 1, 1, 1], "a larger one comes alone");
    assert_eq!(sizes(MAX_BYTES), [4]);
}

fn a_library_without_objects_is_complete_at_once(store: &Store) {
    let ann = account(store, "ann");
    let mut replica = Replica::default();
    let first = replica.step(store, ann, 10).expect("a chunk");
    assert_eq!((first.state, first.more), (LibraryState::Full, false));
    assert_eq!(first.cursor.to_string(), "1.1..0");
    assert_eq!(replica.step(store, ann, 10), None);
    set_note(store, ann, 1, "one");
    let second = replica.step(store, ann, 10).expect("a chunk");
    assert_eq!(second.state, LibraryState::Changes);
    assert_eq!(second.cursor.usn, update_count(store, ann));
}
