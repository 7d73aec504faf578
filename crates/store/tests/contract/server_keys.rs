//! Keys that processes agree on: of two that record some, all have the first's.

use driftline_store::{
    Store, StoreError, Tx, local_ids,
    server_keys::{self, ServerKeys},
};

on_both!(all_have_the_keys_that_were_recorded_first);

fn write<T: Send + 'static>(
    store: &Store,
    mut job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
) -> T {
    let written = store.write_blocking(local_ids::root(), move |tx| job(tx));
    written.expect("a write")
}

fn keys(fingerprint: &str, sealed: &str) -> ServerKeys {
    ServerKeys {
        fingerprint: fingerprint.to_owned(),
        sealed_token_keys: sealed.to_owned(),
    }
}

fn record(store: &Store, keys: ServerKeys) -> ServerKeys {
    write(store, move |tx| server_keys::record(tx, &keys))
}

fn all_have_the_keys_that_were_recorded_first(store: &Store) {
    assert_eq!(write(store, server_keys::load), None);
    let first = keys("one", "sealed");
    assert_eq!(record(store, first.clone()), first);
    assert_eq!(record(store, keys("two", "other")), first);
    let replace = |before: &ServerKeys, sealed: &'static str| {
        let before = before.clone();
        write(store, move |tx| {
            server_keys::replace_token_keys(tx, &before, sealed)
        })
    };
    assert!(replace(&first, "renewed"));
    assert!(!replace(&first, "renewed too"), "another process was first");
    assert_eq!(
        write(store, server_keys::load),
        Some(keys("one", "renewed"))
    );
    assert!(write(store, server_keys::forget));
    assert!(!write(store, server_keys::forget));
    assert_eq!(record(store, keys("two", "other")), keys("two", "other"));
}
