//! A bare rusqlite loop over the same tables, a transaction a page.

use std::path::Path;

use driftline_store::{Store, Target};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{
    Speed,
    bare::{self, Row},
    ours,
};
use crate::{failure::Failure, pages::RawPage};

/// Takes all pages in.
pub(super) fn ingest(path: &Path, pages: &[RawPage]) -> Result<Speed, Failure> {
    let mut writer = Writer::open(path)?;
    let speed = bare::ingest(pages, |rows, at_ms| writer.commit(rows, at_ms))?;
    speed.of_all_stored(writer.stored()?)
}

/// A connection to a store's file with the pragmas that Driftline has.
pub(crate) fn connect(path: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open(path)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.execute_batch(
        "pragma synchronous = full;
         pragma foreign_keys = off;
         pragma journal_size_limit = 67108864;
         pragma temp_store = memory;",
    )?;
    let mode: String = connection.query_row("pragma journal_mode", [], |row| row.get(0))?;
    match mode.as_str() {
        "wal" => Ok(connection),
        _ => Err(Failure::new("the peer's database has no write-ahead log")),
    }
}

/// A connection that commits pages.
struct Writer {
    connection: Connection,
    machine: String,
    next: Next,
    pages: usize,
}

impl Writer {
    /// Opens a new store.
    fn open(path: &Path) -> Result<Self, Failure> {
        let store = Store::open(Target::Sqlite {
            path: path.to_owned(),
        })?;
        ours::add_source(&store)?;
        store.close_blocking();
        Ok(Self {
            connection: connect(path)?,
            machine: bare::machine_json()?,
            next: Next::default(),
            pages: 0,
        })
    }

    /// Commits a page.
    fn commit(&mut self, rows: &[Row<'_>], at_ms: i64) -> Result<(), Failure> {
        let tx = self.connection.transaction()?;
        self.next.id = self.next.id.max(at_ms << 22);
        for row in rows {
            insert(&tx, row, at_ms, &mut self.next)?;
        }
        finish(&tx, rows, self.pages, &self.machine, &self.next)?;
        tx.commit()?;
        self.pages += 1;
        Ok(())
    }

    /// How many posts it has stored.
    fn stored(&self) -> Result<u64, Failure> {
        let stored: i64 =
            self.connection
                .query_row("select count(*) from schedule", [], |row| row.get(0))?;
        Ok(u64::try_from(stored)?)
    }
}

/// The last numbers that were given.
#[derive(Default)]
struct Next {
    id: i64,
    usn: i64,
    account: i64,
}

fn insert(
    tx: &Transaction<'_>,
    row: &Row<'_>,
    now_ms: i64,
    next: &mut Next,
) -> rusqlite::Result<()> {
    let seen = tx
        .prepare_cached("insert into upstream_post (upstream_id, instance_id, post_id) values (?1, 1, ?2) on conflict do nothing")?
        .execute(params![row.upstream_id, next.id + 1])?;
    if seen == 0 {
        return Ok(());
    }
    next.id += 1;
    next.usn += 1;
    let account = account(tx, row, next)?;
    tx.prepare_cached(
        "insert into post (id, instance_id, upstream_id, uri, url, account_id, first_source_id,
             created_at_ms, edited_at_ms, read_at_ms, visibility, boost_of_upstream_id,
             content_hash, listed, in_public, raw)
         values (?1, 1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 1, ?13)",
    )?
    .execute(params![
        next.id,
        row.upstream_id,
        row.uri,
        row.url,
        account,
        row.created_at_ms,
        row.edited_at_ms,
        now_ms,
        row.visibility,
        row.boost_of,
        row.content_hash,
        row.visibility == "public",
        row.raw,
    ])?;
    tx.prepare_cached(
        "insert into entry (source_id, instance_id, id, post_id, position, first_usn, usn,
             arrived_at_ms, content_hash, gone, visibility, account_id)
         values (1, 1, ?1, ?1, ?2, ?3, ?3, ?4, ?5, 0, ?6, ?7)",
    )?
    .execute(params![
        next.id,
        row.position,
        next.usn,
        now_ms,
        row.content_hash,
        i64::from(row.visibility != "public"),
        account,
    ])?;
    schedule(tx, row, now_ms, next.id)
}

/// A post's freshness and its due time.
fn schedule(
    tx: &Transaction<'_>,
    row: &Row<'_>,
    now_ms: i64,
    post_id: i64,
) -> rusqlite::Result<()> {
    let (bucket, due_at_ms) = (8 + post_id % 8, now_ms + bare::EVERY_MS);
    tx.prepare_cached(
        "insert into freshness (post_id, instance_id, bucket, post_created_at_ms, first_at_ms,
             refreshed_at_ms, due_at_ms, refreshes, failures, missing, state_hash, replies, boosts,
             favourites, before_total, notified_at_ms, notified_total)
         values (?1, 1, ?2, ?3, ?4, ?4, ?5, 0, 0, 0, ?6, ?7, ?8, ?9, 0, ?4, ?10)",
    )?
    .execute(params![
        post_id,
        bucket,
        row.created_at_ms,
        now_ms,
        due_at_ms,
        row.content_hash,
        row.replies,
        row.boosts,
        row.favourites,
        row.total(),
    ])?;
    tx.prepare_cached(
        "insert into schedule (bucket, due_at_ms, post_id, instance_id) values (?1, ?2, ?3, 1)",
    )?
    .execute([bucket, due_at_ms, post_id])?;
    Ok(())
}

fn account(tx: &Transaction<'_>, row: &Row<'_>, next: &mut Next) -> rusqlite::Result<i64> {
    let known: Option<i64> = tx
        .prepare_cached("select id from account where upstream_id = ?1 and instance_id = 1")?
        .query_row([row.account.id], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    next.account += 1;
    tx.prepare_cached(
        "insert into account (id, instance_id, upstream_id, acct, acct_id) values (?1, 1, ?2, ?3, ?1)",
    )?
    .execute(params![next.account, row.account.id, row.account.acct])?;
    tx.prepare_cached(
        "insert into account_profile (source_id, instance_id, account_id, acct_id, acct, acct_key, display_name,
             url, raw, seen_at_ms)
         values (1, 1, ?1, ?1, ?2, lower(?2), ?3, ?4, ?5, 0)",
    )?
    .execute(params![
        next.account,
        row.account.acct,
        row.account.display_name,
        row.account.url,
        row.account_raw,
    ])?;
    Ok(next.account)
}

/// The rows that a page changes besides its posts'.
fn finish(
    tx: &Transaction<'_>,
    rows: &[Row<'_>],
    number: usize,
    machine: &str,
    next: &Next,
) -> rusqlite::Result<()> {
    tx.prepare_cached("update local_clock set last_id = ?1 where one = 1")?
        .execute([next.id])?;
    tx.prepare_cached("update source set machine = ?1 where id = 1")?
        .execute([machine])?;
    tx.prepare_cached("update library set update_count = ?1 where id = 1")?
        .execute([next.usn])?;
    // Ranges grow over some pages before the next begins.
    let low = format!("{:06}", number / 5);
    tx.prepare_cached(
        "insert into gap (source_id, instance_id, low, high, kind, history, fill_requested, tries,
             read_age_ms, from_ms, until_ms)
         values (1, 1, ?1, ?2, 'provisional', 0, 0, 0, 0, 1, 2)
         on conflict (source_id, low) do update set high = excluded.high",
    )?
    .execute(params![low, rows.last().map_or("", |row| &row.position)])?;
    Ok(())
}
