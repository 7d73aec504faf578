//! Libraries of accounts, as devices sync them.

mod chunks;
mod copies;
mod devices;
mod digests;
mod histories;
mod keys;
mod kinds;
mod pushes;
mod relation_pushes;
mod relations;
mod removals;
mod tombstones;
mod writers;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use driftline_core::sync::{ChangeResult, LibraryState, ObjectKey, PushChange, Usn};
use driftline_store::{
    LocalAccountId, LocalId, Store, StoreError, Tx,
    social::{local_account, note},
    sync::{self, Chunk, Cursor, Pushed, Resolved, ShownPosts},
    timeline::TimelinePost,
    viewer::{LazyReadableSources, Viewer},
};
use serde_json::{Value, json};

use crate::world::{START_MS, read, write};

/// Large enough for every object of these tests.
const MAX_BYTES: usize = 1_000_000;

/// A device's copy of a library.
#[derive(Default)]
struct Replica {
    cursor: Option<Cursor>,
    /// The objects by their keys, with their USNs.
    objects: BTreeMap<String, (u64, Value)>,
    /// The keys that came in the full sync so far.
    came: BTreeSet<String>,
}

impl Replica {
    /// Takes the next chunk; `None` if there is no news.
    fn step(&mut self, store: &Store, account: LocalAccountId, max_entries: u32) -> Option<Chunk> {
        let chunk = chunk(store, account, self.cursor.clone(), max_entries, MAX_BYTES)?;
        assert_ne!(chunk.state, LibraryState::Diverged);
        let is_full = chunk.state == LibraryState::Full;
        for object in &chunk.objects {
            let key = object.key.as_str().to_owned();
            if is_full {
                self.came.insert(key.clone());
            }
            let object = (object.usn.get(), object.value.read().expect("JSON"));
            self.objects.insert(key, object);
        }
        for gone in &chunk.gone {
            self.objects.remove(gone.key.as_str());
        }
        if is_full && !chunk.more {
            let came = std::mem::take(&mut self.came);
            self.objects.retain(|key, _| came.contains(key));
        }
        self.cursor = Some(chunk.cursor.clone());
        Some(chunk)
    }

    /// Takes all chunks.
    fn pull(&mut self, store: &Store, account: LocalAccountId) {
        while self.step(store, account, 100).is_some() {}
    }

    /// The keys and USNs.
    fn usns(&self) -> BTreeMap<String, u64> {
        let objects = self.objects.iter();
        objects.map(|(key, (usn, _))| (key.clone(), *usn)).collect()
    }
}

/// A chunk without copies of posts, with its cursor as devices keep it.
fn chunk(
    store: &Store,
    account: LocalAccountId,
    cursor: Option<Cursor>,
    max_entries: u32,
    max_bytes: usize,
) -> Option<Chunk> {
    let chunk = read(store, move |tx| {
        let sources = LazyReadableSources::new(Viewer::Account(account));
        let shown = ShownPosts {
            sources: &sources,
            write: &no_copies,
        };
        let cursor = cursor.as_ref();
        sync::chunk_with_copies(tx, account, cursor, max_entries, max_bytes, shown)
    })?;
    let text = chunk.cursor.to_string();
    assert_eq!(text.parse::<Cursor>(), Ok(chunk.cursor.clone()));
    Some(chunk)
}

fn no_copies(_: &mut Tx<'_>, _: &[TimelinePost]) -> Result<HashMap<LocalId, Value>, StoreError> {
    Ok(HashMap::new())
}

/// A row of `library_object`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    key: String,
    first_usn: i64,
    usn: u64,
    is_removed: bool,
}

/// The rows of an account's objects, by their USNs.
fn rows(store: &Store, account: LocalAccountId) -> Vec<Row> {
    let account = i64::try_from(account).expect("an ID");
    read(store, move |tx| {
        Ok(tx.query(
            "select key, first_usn, usn, removed from library_object where account_id = $1
             order by usn",
            &[&account],
            |row| {
                Ok(Row {
                    key: row.text("key")?,
                    first_usn: row.i64("first_usn")?,
                    usn: row.i64("usn")?.cast_unsigned(),
                    is_removed: row.bool("removed")?,
                })
            },
        )?)
    })
}

/// The keys and USNs of the living objects.
fn living(store: &Store, account: LocalAccountId) -> BTreeMap<String, u64> {
    let rows = rows(store, account).into_iter();
    rows.filter(|row| !row.is_removed)
        .map(|row| (row.key, row.usn))
        .collect()
}

fn update_count(store: &Store, account: LocalAccountId) -> i64 {
    read(store, move |tx| sync::current_cursor(tx, account)).usn
}

/// Writes a note about the post with that number.
fn set_note(store: &Store, account: LocalAccountId, number: u64, text: &str) {
    let (name, text) = (post_name(number), text.to_owned());
    let set = write(store, local_account::root(account), move |tx| {
        note::set(tx, account, &name, &text, START_MS)
    });
    assert_eq!(set, Ok(()));
}

fn remove_note(store: &Store, account: LocalAccountId, number: u64) {
    let name = post_name(number);
    let removed = write(store, local_account::root(account), move |tx| {
        note::remove(tx, account, &name)
    });
    assert!(removed);
}

fn post_name(number: u64) -> String {
    format!("https://sim.example/statuses/{number}")
}

fn note_key(number: u64) -> String {
    format!("note:{}", post_name(number))
}

/// A change of a push; a null value deletes.
fn change(key: &str, base: u64, value: Value) -> PushChange {
    PushChange {
        key: ObjectKey::parse(key).expect("a key"),
        base: Usn::new(base),
        value: (!value.is_null()).then_some(value),
    }
}

fn note_change(number: u64, base: u64, text: &str) -> PushChange {
    change(&note_key(number), base, json!({ "text": text }))
}

fn push_resolved(
    store: &Store,
    account: LocalAccountId,
    changes: Vec<PushChange>,
    resolved: Resolved,
) -> Pushed {
    write(store, resolved.root(account), move |tx| {
        resolved.lock(tx, account)?;
        sync::push(tx, account, &changes, &resolved, START_MS)
    })
}

fn push(store: &Store, account: LocalAccountId, changes: Vec<PushChange>) -> Pushed {
    push_resolved(store, account, changes, Resolved::default())
}

/// Checks that each change was refused, for a reason with these words.
fn assert_refused(pushed: &Pushed, reasons: &[&str]) {
    assert_eq!(pushed.results.len(), reasons.len());
    for (result, expected) in pushed.results.iter().zip(reasons) {
        let ChangeResult::Refused { reason, .. } = result else {
            panic!("{result:?} without {expected:?}");
        };
        assert!(reason.contains(expected), "{reason:?} without {expected:?}");
    }
    assert_eq!(pushed.before, pushed.after);
}

/// The USNs of changes that were all stored.
fn done(pushed: &Pushed) -> Vec<u64> {
    let usns = pushed.results.iter().map(|result| match result {
        ChangeResult::Done { usn, .. } => usn.get(),
        other => panic!("{other:?}"),
    });
    usns.collect()
}
