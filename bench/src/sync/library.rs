//! Libraries that are filled faster than by pushes, and their changes.

use driftline_db::Column;
use driftline_store::{
    LocalAccountId, Root, Store, StoreError, Tx,
    social::{local_account, note},
};

use crate::{
    database::Place,
    failure::Failure,
    find::{
        corpus::Corpus,
        fill::{self, Feed, Shown},
    },
    ingest::new_source,
    read::reader,
};

/// The name of the account.
pub(super) const ACCOUNT: &str = "ann";
/// The sources that an account with notes may read.
pub(super) const SOURCES: u64 = 39;

/// The names of these sources.
pub(super) fn source_names() -> Vec<String> {
    (0..SOURCES)
        .map(|number| format!("source{number}"))
        .collect()
}

/// The name of the post that a note is about.
pub(super) fn uri(number: usize) -> String {
    format!("https://social.example/users/ann/statuses/{number:09}")
}

/// The text of a note of about 1 kB, with its key.
pub(super) fn long_text(corpus: &Corpus, number: usize) -> String {
    let mut text = String::new();
    for part in 0.. {
        text.push_str(&corpus.text(number as u64 * PARTS + part));
        if text.len() >= LONG_BYTES {
            break;
        }
        text.push('\n');
    }
    while text.len() > LONG_BYTES {
        text.pop();
    }
    text
}

/// The text of a note of some 20 bytes.
pub(super) fn short_text(number: usize) -> String {
    format!("drift line {number}")
}

/// Fills a new database with an account, its notes and sources that have a post each. The notes may be more than an
/// account can add itself.
pub(super) fn fill(
    place: &Place,
    notes: usize,
    text: impl Fn(usize) -> String,
) -> Result<LocalAccountId, Failure> {
    let store = place.open()?;
    let account = reader::add_account(&store, ACCOUNT)?;
    add_sources(&store)?;
    // The first one takes the library's first USN, which records the opening.
    set_notes(&store, account, vec![(0, text(0))])?;
    let owner = i64::try_from(account.raw())?;
    let first_id = store.read_blocking(move |tx| {
        let sql = "select id from note where account_id = $1";
        let id = tx.query_one(sql, &[&owner], |row| row.i64("id"))?;
        Ok::<_, StoreError>(id)
    })?;
    for begin in (1..notes).step_by(NOTES_PER_COMMIT) {
        let numbers = begin..notes.min(begin + NOTES_PER_COMMIT);
        let rows = numbers.map(|number| Row::new(number, first_id, text(number)));
        let rows: Vec<Row> = rows.collect::<Result<_, _>>()?;
        store.write_blocking(Root::none(), move |tx| insert(tx, owner, &rows))?;
    }
    let count = i64::try_from(notes)?;
    let last_id = first_id + count;
    store.write_blocking(Root::none(), move |tx| {
        tx.execute("update local_clock set last_id = $1", &[&last_id])?;
        tx.execute(
            "update library set update_count = $1 where owner_kind = 'account' and owner_id = $2",
            &[&count, &owner],
        )?;
        Ok::<_, StoreError>(())
    })?;
    store.close_blocking();
    place.settle()?;
    Ok(account)
}

/// Sets the texts of notes in one transaction, like a push.
pub(super) fn set_notes(
    store: &Store,
    account: LocalAccountId,
    notes: Vec<(usize, String)>,
) -> Result<(), Failure> {
    let now_ms = driftline_runtime::now_ms();
    let refused = store.write_blocking(local_account::root(account), move |tx| {
        for (number, text) in &notes {
            if let Err(refused) = note::set(tx, account, &uri(*number), text, now_ms)? {
                return Ok(Some(refused));
            }
        }
        Ok::<_, StoreError>(None)
    })?;
    match refused {
        Some(refused) => Err(refused.into()),
        None => Ok(()),
    }
}

fn add_sources(store: &Store) -> Result<(), Failure> {
    let corpus = Corpus::new(1);
    for (number, name) in (0_u64..).zip(source_names()) {
        let server = FIRST_SERVER + number;
        let new = new_source(&name, &fill::origin(server));
        let mut feed = Feed::start(store, &corpus, server, new)?;
        feed.commit(&[Shown {
            at_ms: fill::at_ms(number),
            number,
        }])?;
    }
    Ok(())
}

/// A note and its object.
struct Row {
    id: i64,
    usn: i64,
    key: String,
    uri: String,
    text: String,
}

impl Row {
    fn new(number: usize, first_id: i64, text: String) -> Result<Self, Failure> {
        let uri = uri(number);
        let number = i64::try_from(number)?;
        Ok(Self {
            id: first_id + number,
            usn: number + 1,
            key: format!("note:{uri}"),
            uri,
            text,
        })
    }
}

fn insert(tx: &mut Tx<'_>, owner: i64, rows: &[Row]) -> Result<(), StoreError> {
    let ids = || Column::i64(rows.iter().map(|row| row.id));
    tx.execute_many(
        "insert into library_object (account_id, id, key, kind, first_usn, usn, removed)
         select $1, r.id, r.key, 'note', r.usn, r.usn, false from {rows as r(id, key, usn)}",
        &[&owner],
        &[
            ids(),
            Column::text(rows.iter().map(|row| row.key.as_str())),
            Column::i64(rows.iter().map(|row| row.usn)),
        ],
    )?;
    tx.execute_many(
        "insert into note (account_id, post_key, id, text)
         select $1, r.uri, r.id, r.text from {rows as r(id, uri, text)}",
        &[&owner],
        &[
            ids(),
            Column::text(rows.iter().map(|row| row.uri.as_str())),
            Column::text(rows.iter().map(|row| row.text.as_str())),
        ],
    )?;
    Ok(())
}

/// 1 kB without the key and the JSON around both.
const LONG_BYTES: usize = 900;
/// No text of 1 kB has more parts.
const PARTS: u64 = 64;
const NOTES_PER_COMMIT: usize = 10_000;
/// Servers above those whose posts are copies of others.
const FIRST_SERVER: u64 = 100;
