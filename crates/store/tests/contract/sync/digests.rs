//! Digests of libraries.

use driftline_core::sync::{LibraryDigest, object_digest};
use driftline_store::{
    LocalAccountId, Store,
    social::{local_account, note},
    sync::{self, DigestReading, ObjectDigest},
};

use super::{chunk, post_name, remove_note, set_note, tombstones::add_rows};
use crate::{
    social::account,
    world::{START_MS, read, write},
};

on_both!(
    a_digest_is_that_of_all_objects,
    digests_of_a_large_library_are_stored_in_parts,
    objects_without_values_are_in_no_digest,
);

fn reading(store: &Store, account: LocalAccountId) -> DigestReading {
    read(store, move |tx| sync::library_digest(tx, account))
}

/// The whole digest; `None` if too many digests of objects are not stored.
fn digest(store: &Store, account: LocalAccountId) -> Option<LibraryDigest> {
    match reading(store, account) {
        DigestReading::Whole(_, digest) => Some(digest),
        DigestReading::Missing(_) => None,
    }
}

fn missing(store: &Store, account: LocalAccountId) -> Vec<ObjectDigest> {
    match reading(store, account) {
        DigestReading::Missing(missing) => missing,
        DigestReading::Whole(..) => panic!("nothing is missing"),
    }
}

fn store_digests(store: &Store, account: LocalAccountId, digests: Vec<ObjectDigest>) -> u64 {
    write(store, local_account::root(account), move |tx| {
        sync::store_digests(tx, account, &digests)
    })
}

/// The digest of what a full sync sends.
fn naive(store: &Store, account: LocalAccountId) -> LibraryDigest {
    let mut digest = LibraryDigest::default();
    let mut cursor = None;
    while let Some(chunk) = chunk(store, account, cursor, 1_000, 4_000_000) {
        for object in chunk.objects {
            let value = object.value.read().expect("JSON");
            digest.add(object_digest(&object.key, object.usn, &value));
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
    let set_all = |text: &'static str| {
        write(store, local_account::root(ann), move |tx| {
            for number in 0..2_500 {
                let set = note::set(tx, ann, &post_name(number), text, START_MS)?;
                assert_eq!(set, Ok(()));
            }
            Ok(())
        });
    };
    set_all("text");
    let outdated = missing(store, ann);
    set_all("changed");
    assert_eq!(store_digests(store, ann, outdated), 0);
    let computed = missing(store, ann);
    assert_eq!(store_digests(store, ann, computed), 2_000);
    assert_eq!(digest(store, ann), Some(naive(store, ann)));
    set_note(store, ann, 1, "again");
    remove_note(store, ann, 2);
    let expected = naive(store, ann);
    assert_eq!(digest(store, ann), Some(expected));
    // As a program stores them that writes values in another form.
    let id = i64::try_from(ann).expect("an ID");
    write(store, local_account::root(ann), move |tx| {
        tx.execute(
            "update library_object set digest = 1, digest_form = 0 where account_id = $1",
            &[&id],
        )?;
        Ok(())
    });
    let computed = missing(store, ann);
    assert_eq!(store_digests(store, ann, computed), 2_000);
    assert_eq!(digest(store, ann), Some(expected));
}

fn objects_without_values_are_in_no_digest(store: &Store) {
    let ann = account(store, "ann");
    for number in 1..=3 {
        set_note(store, ann, number, "text");
    }
    add_rows(store, ann, 2_100, false);
    let expected = naive(store, ann);
    assert_eq!(expected.count(), 3);
    let computed = missing(store, ann);
    assert_eq!(store_digests(store, ann, computed), 2_000);
    assert_eq!(digest(store, ann), Some(expected));
}
