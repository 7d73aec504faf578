//! Digests of libraries.

use driftline_core::sync::{LibraryDigest, object_digest};
use driftline_store::{
    LocalAccountId, Store,
    social::{local_account, note},
    sync,
};

use super::{chunk, post_name, remove_note, set_note};
use crate::{
    social::account,
    world::{START_MS, read, write},
};

on_both!(
    a_digest_is_that_of_all_objects,
    digests_of_a_large_library_are_stored_in_parts,
);

fn digest(store: &Store, account: LocalAccountId) -> Option<LibraryDigest> {
    let found = read(store, move |tx| sync::library_digest(tx, account));
    found.map(|(_, digest)| digest)
}

fn store_digests(store: &Store, account: LocalAccountId) {
    write(store, local_account::root(account), move |tx| {
        sync::store_digests(tx, account)
    });
}

/// The digest of what a full sync sends.
fn naive(store: &Store, account: LocalAccountId) -> LibraryDigest {
    let mut digest = LibraryDigest::default();
    let mut cursor = None;
    while let Some(chunk) = chunk(store, account, cursor, 1_000, 4_000_000) {
        for object in chunk.objects {
            digest.add(object_digest(&object.key, object.usn, &object.value.json()));
        }
        if !chunk.more {
            break;
        }
        cursor = Some(chunk.cursor);
    }
    digest
}

fn a_digest_is_that_of_all_objects(store: &Store) {
    let (ann, bob) = (account(store, "ann"), account(store, "bob"));
    assert_eq!(digest(store, ann), Some(LibraryDigest::default()));
    for number in 1..=5 {
        set_note(store, ann, number, "text");
        set_note(store, bob, number, "other");
    }
    let before = naive(store, ann);
    assert_eq!(digest(store, ann), Some(before));
    store_digests(store, ann);
    assert_eq!(digest(store, ann), Some(before));
    set_note(store, ann, 1, "changed");
    remove_note(store, ann, 2);
    remove_note(store, ann, 3);
    set_note(store, ann, 3, "again");
    let after = naive(store, ann);
    assert_ne!(after, before);
    assert_eq!((after.count(), digest(store, ann)), (4, Some(after)));
}

fn digests_of_a_large_library_are_stored_in_parts(store: &Store) {
    let ann = account(store, "ann");
    write(store, local_account::root(ann), move |tx| {
        for number in 0..2_500 {
            let set = note::set(tx, ann, &post_name(number), "text", START_MS)?;
            assert_eq!(set, Ok(()));
        }
        Ok(())
    });
    assert_eq!(digest(store, ann), None);
    store_digests(store, ann);
    assert_eq!(digest(store, ann), Some(naive(store, ann)));
}
