//! Many writers of one library, and a replica that pages without stopping meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use driftline_core::{
    social::{ListSettings, Mark, MarkedTimeline, RepliesPolicy},
    sync::{Incoming, LibraryState, LocalObject, ObjectKey, incoming},
};
use driftline_store::{
    LocalAccountId, LocalId, Store, StoreError, Tx, account_id,
    social::{list, list_member, local_account, marked_post, marker, note},
    sync::{self, Chunk, Cursor, Resolved, Start},
    timeline::PostKey,
};
use serde_json::{Value, json};

use super::{MAX_BYTES, change, chunk, living, note_change, note_key, post_name, update_count};
use crate::{
    social::{account, on_both_with_two},
    world::{START_MS, World, post, read, write},
};

#[test]
fn a_replica_that_pages_misses_nothing_of_eight_writers() {
    on_both_with_two(write_and_page);
}

/// A USN with the key of the object that took it.
type Given = (u64, String);

fn write_and_page(one: &Store, other: &Store) {
    let stores = [one, other];
    let ann = account(one, "ann");
    let mut world = World::readable(one, "home");
    world.poll((1..=3).map(|id| post(id, "text")).collect());
    let posts: Vec<PostKey> = world.timeline().iter().map(|post| post.key()).collect();
    // The full sync takes several chunks.
    let mut given = give(one, ann, move |tx| {
        for number in 1..=OLD_NOTES {
            set_note(tx, ann, 1_000 + number, "old")?;
        }
        Ok(())
    });
    let (is_over, chunks) = (AtomicBool::new(false), AtomicU64::new(0));
    let paging = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (store, posts, chunks) =
                    (stores[usize::from(writer % 2 == 1)], &posts, &chunks);
                scope.spawn(move || {
                    let mut given = Vec::new();
                    for round in 0..MAX_ROUNDS {
                        if round >= MIN_ROUNDS && chunks.load(Ordering::Relaxed) >= MIN_CHUNKS {
                            break;
                        }
                        let posts = posts.clone();
                        let job = move |tx: &mut Tx<'_>| change_one(tx, ann, &posts, writer, round);
                        given.extend(give(store, ann, job));
                    }
                    given
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut paging = Paging::default();
            for (store, max_entries) in stores.iter().cycle().zip((1..=3).cycle()) {
                let is_last = is_over.load(Ordering::Acquire);
                match paging.step(store, ann, max_entries) {
                    true => {
                        chunks.fetch_add(1, Ordering::Relaxed);
                    }
                    false if is_last => break,
                    false => thread::yield_now(),
                }
            }
            paging
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Release);
        let paging = reader.join().expect("a reader");
        for of_writer in ended {
            given.extend(of_writer.expect("a writer"));
        }
        paging
    });
    check_given(one, ann, &given);
    paging.check(stores, ann, &given.into_iter().collect());
}

/// Each USN up to the update count was given once.
fn check_given(store: &Store, account: LocalAccountId, given: &[Given]) {
    let mut usns: Vec<u64> = given.iter().map(|(usn, _)| *usn).collect();
    usns.sort_unstable();
    let count = update_count(store, account).cast_unsigned();
    assert_eq!(usns, (1..=count).collect::<Vec<u64>>());
}

/// A write below the account's root. Returns the USNs that it has given, as its objects have them.
fn give(
    store: &Store,
    account: LocalAccountId,
    mut job: impl FnMut(&mut Tx<'_>) -> Result<(), StoreError> + Send + 'static,
) -> Vec<Given> {
    let id = i64::try_from(account).expect("an ID");
    write(store, local_account::root(account), move |tx| {
        let before = sync::current_cursor(tx, account)?.usn;
        job(tx)?;
        Ok(tx.query(
            "select usn, key from library_object where account_id = $1 and usn > $2",
            &[&id, &before],
            |row| Ok((row.i64("usn")?.cast_unsigned(), row.text("key")?)),
        )?)
    })
}

/// The change of a writer in one of its rounds. Writers of a kind change the same bookmarks, notes or marker.
fn change_one(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    posts: &[PostKey],
    writer: u64,
    round: u64,
) -> Result<(), StoreError> {
    match writer % 5 {
        0 => {
            let number = usize::try_from(round).expect("a number") % posts.len();
            turn_bookmark(tx, account, posts[number])
        }
        1 => write_note(tx, account, writer, round),
        2 => change_list(tx, account, writer, round),
        3 => move_marker(tx, account, round),
        _ => push_notes(tx, account, writer, round),
    }
}

/// Removes a bookmark, or adds it if there is none.
fn turn_bookmark(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    post: PostKey,
) -> Result<(), StoreError> {
    match marked_post::remove(tx, account, Mark::Bookmark, post.post)? {
        true => Ok(()),
        false => marked_post::set(tx, account, Mark::Bookmark, post, START_MS),
    }
}

fn write_note(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    writer: u64,
    round: u64,
) -> Result<(), StoreError> {
    let number = 1 + round % 6;
    let is_turn = (writer + round).is_multiple_of(4);
    if is_turn && note::remove(tx, account, &post_name(number))? {
        return Ok(());
    }
    set_note(tx, account, number, &format!("{writer} in {round}"))
}

fn set_note(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    number: u64,
    text: &str,
) -> Result<(), StoreError> {
    let set = note::set(tx, account, &post_name(number), text, START_MS)?;
    assert_eq!(set, Ok(()));
    Ok(())
}

/// Creates the writer's list with a member, renames it, and removes both.
fn change_list(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    writer: u64,
    round: u64,
) -> Result<(), StoreError> {
    let title = format!("list of {writer}");
    let mut lists = list::all(tx, account)?.into_iter();
    let own = lists.find(|list| list.settings.title.starts_with(&title));
    match own {
        None => {
            let made = list::create(tx, account, settings(title), START_MS)?.expect("a list");
            let members = [account_id(account)];
            let added = list_member::add(tx, account, made.id, &members, START_MS)?;
            assert_eq!(added, Ok(()));
        }
        Some(list) if round % 3 == 1 => {
            let renamed = settings(format!("{title}, renamed"));
            let set = list::set(tx, account, list.id, renamed)?;
            assert!(matches!(set, Ok(Some(_))), "{set:?}");
        }
        Some(list) => assert!(list::remove(tx, account, list.id)?),
    }
    Ok(())
}

fn settings(title: String) -> ListSettings {
    ListSettings {
        title,
        replies_policy: RepliesPolicy::default(),
        exclusive: false,
        predicate: None,
        notify: false,
    }
}

fn move_marker(tx: &mut Tx<'_>, account: LocalAccountId, round: u64) -> Result<(), StoreError> {
    let known = marker::all(tx, account)?.pop();
    let version = known.map_or(0, |marker| marker.version);
    let place = LocalId::new(1 + round);
    let set = marker::set(tx, account, MarkedTimeline::Home, place, version, START_MS)?;
    set.expect("a marker");
    Ok(())
}

/// Pushes a change or deletion of the device's own note, one of a note that others change, mostly with a base of long ago, and a
/// new note.
fn push_notes(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    writer: u64,
    round: u64,
) -> Result<(), StoreError> {
    let key = note_key(100 + writer);
    let id = i64::try_from(account).expect("an ID");
    let base = tx.query_opt(
        "select usn from library_object where account_id = $1 and key = $2",
        &[&id, &key],
        |row| Ok(row.i64("usn")?.cast_unsigned()),
    )?;
    let value = match round % 4 {
        3 => Value::Null,
        _ => json!({ "text": format!("pushed in {round}") }),
    };
    let changes = [
        change(&key, base.unwrap_or(0), value),
        note_change(1, OLD_NOTES + 1, &format!("pushed in {round}")),
        note_change(200 + round, 0, "new"),
    ];
    sync::push(tx, account, &changes, &Resolved::default(), START_MS)?;
    Ok(())
}

/// A replica without changes of its own.
#[derive(Default)]
struct Paging {
    /// The cursors that it was given, in their order.
    cursors: Vec<Cursor>,
    objects: BTreeMap<ObjectKey, LocalObject>,
    /// The objects and tombstones that came.
    came: Vec<Given>,
}

impl Paging {
    /// Takes the next chunk. Returns false if there is none.
    fn step(&mut self, store: &Store, account: LocalAccountId, max_entries: u32) -> bool {
        let cursor = self.cursors.last().cloned();
        let Some(chunk) = chunk(store, account, cursor, max_entries, MAX_BYTES) else {
            return false;
        };
        self.check_order(&chunk);
        let objects = chunk.objects.iter();
        let objects = objects.map(|object| {
            let value = object.value.read().expect("JSON");
            (&object.key, object.usn, Some(value))
        });
        let gone = chunk
            .gone
            .iter()
            .map(|gone| (&gone.key, gone.usn, None::<Value>));
        for (key, usn, value) in objects.chain(gone) {
            self.came.push((usn.get(), key.as_str().to_owned()));
            let theirs = Incoming {
                key: key.clone(),
                usn,
                value,
                full_sync: 1,
            };
            let outcome = incoming(self.objects.remove(key), &theirs, None);
            // It would be listed if it had a lower USN than before, or the same with another value.
            assert_eq!(outcome.conflict, None, "{theirs:?}");
            let object = outcome.object;
            self.objects
                .extend(object.map(|object| (object.key.clone(), object)));
        }
        self.cursors.push(chunk.cursor);
        true
    }

    /// The cursor moves one way, and everything that comes lies between it and the last one.
    fn check_order(&self, chunk: &Chunk) {
        let at = &chunk.cursor;
        let Some(before) = self.cursors.last() else {
            assert_eq!(chunk.state, LibraryState::Full);
            return;
        };
        let (state, came) = match before.below {
            Some(below) => {
                assert_eq!(at.usn, before.usn, "the start of the full sync");
                (LibraryState::Full, at.below.unwrap_or(1)..below)
            }
            None => {
                assert!(at.usn >= before.usn, "{before} before {at}");
                (
                    LibraryState::Changes,
                    before.position() + 1..at.position() + 1,
                )
            }
        };
        assert_eq!(chunk.state, state);
        assert!(!came.is_empty(), "{before} before {at}");
        let objects = chunk.objects.iter().map(|object| object.usn);
        for usn in objects.chain(chunk.gone.iter().map(|gone| gone.usn)) {
            let is_between = came.contains(&usn.get().cast_signed());
            assert!(is_between, "{usn} between {before} and {at}");
        }
    }

    /// The replica equals the table, and a replica that begins now. Everything that came was written under its USN, and no
    /// cursor counts as one of another history.
    fn check(self, stores: [&Store; 2], account: LocalAccountId, given: &BTreeSet<Given>) {
        let [one, other] = stores;
        let usn = |object: &LocalObject| (object.key.as_str().to_owned(), object.base_usn().get());
        let usns: BTreeMap<String, u64> = self.objects.values().map(usn).collect();
        assert_eq!(usns, living(one, account));
        let mut late = Paging::default();
        while late.step(other, account, 1_000) {}
        assert_eq!(self.objects, late.objects);
        for came in &self.came {
            assert!(given.contains(came), "{came:?}");
        }
        let cursors = self.cursors;
        let starts: Vec<Start> = read(other, move |tx| {
            let starts = cursors.iter().map(|at| sync::start(tx, account, Some(at)));
            starts.collect()
        });
        assert!(!starts.contains(&Start::Diverged), "{starts:?}");
    }
}

const WRITERS: u64 = 8;
/// A writer goes on until the reader has taken some chunks next to it.
const MIN_ROUNDS: u64 = 20;
const MIN_CHUNKS: u64 = 60;
const MAX_ROUNDS: u64 = 200;
const OLD_NOTES: u64 = 30;
