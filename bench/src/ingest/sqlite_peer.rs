//! A bare rusqlite loop over the same tables, a transaction a page.

use std::path::Path;

use driftline_store::Target;
use rusqlite::{Connection, OptionalExtension, Params, Transaction, params};

use super::{
    Speed,
    bare::{self, Row},
};
use crate::{failure::Failure, pages::RawPage};

/// Takes all pages in, over a new store.
pub(super) fn ingest(path: &Path, pages: &[RawPage]) -> Result<Speed, Failure> {
    bare::make_store(Target::Sqlite {
        path: path.to_owned(),
    })?;
    let mut connection = connect(path)?;
    let machine = bare::machine_json()?;
    let (mut next, mut number) = (Next::default(), 0);
    let speed = bare::ingest(pages, |rows, at_ms| {
        let tx = connection.transaction()?;
        next.id = next.id.max(at_ms << 22);
        for row in rows {
            insert(&tx, row, at_ms, &mut next)?;
        }
        finish(&tx, rows, number, &machine, &next)?;
        number += 1;
        Ok(tx.commit()?)
    })?;
    let sql = "select count(*) from schedule";
    let stored: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    speed.of_all_stored(u64::try_from(stored)?)
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

/// Runs a statement, which is prepared once.
pub(crate) fn run(tx: &Transaction<'_>, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
    tx.prepare_cached(sql)?.execute(values)
}

/// Schedules a post.
pub(crate) fn schedule(
    tx: &Transaction<'_>,
    bucket: i64,
    due_at_ms: i64,
    post_id: i64,
) -> rusqlite::Result<usize> {
    let sql =
        "insert into schedule (bucket, due_at_ms, post_id, instance_id) values (?1, ?2, ?3, 1)";
    run(tx, sql, [bucket, due_at_ms, post_id])
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
    let seen = run(
        tx,
        "insert into upstream_post (upstream_id, instance_id, post_id) values (?1, 1, ?2)
         on conflict do nothing",
        params![row.post.id, next.id + 1],
    )?;
    if seen == 0 {
        return Ok(());
    }
    next.id += 1;
    next.usn += 1;
    let (id, hash, is_public) = (next.id, row.content_hash, row.post.visibility == "public");
    let account = account(tx, row, next)?;
    run(
        tx,
        "insert into post (id, instance_id, upstream_id, uri, url, account_id, first_source_id,
             created_at_ms, edited_at_ms, read_at_ms, visibility, boost_of_upstream_id,
             content_hash, listed, in_public, raw)
         values (?1, 1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 1, ?13)",
        params![
            id,
            row.post.id,
            row.post.uri,
            row.post.url,
            account,
            row.created_at_ms,
            row.edited_at_ms,
            now_ms,
            row.post.visibility,
            row.boost_of,
            hash,
            is_public,
            row.raw
        ],
    )?;
    run(
        tx,
        "insert into entry (source_id, instance_id, id, post_id, position, first_usn, usn,
             arrived_at_ms, content_hash, gone, visibility, account_id)
         values (1, 1, ?1, ?1, ?2, ?3, ?3, ?4, ?5, 0, ?6, ?7)",
        params![
            id,
            row.position,
            next.usn,
            now_ms,
            hash,
            i64::from(!is_public),
            account
        ],
    )?;
    let (bucket, due_at_ms) = (8 + id % 8, now_ms + bare::EVERY_MS);
    let [replies, boosts, favourites] = row.counts;
    run(
        tx,
        "insert into freshness (post_id, instance_id, bucket, post_created_at_ms, first_at_ms,
             refreshed_at_ms, due_at_ms, refreshes, failures, missing, state_hash, replies, boosts,
             favourites, before_total, notified_at_ms, notified_total)
         values (?1, 1, ?2, ?3, ?4, ?4, ?5, 0, 0, 0, ?6, ?7, ?8, ?9, 0, ?4, ?10)",
        params![
            id,
            bucket,
            row.created_at_ms,
            now_ms,
            due_at_ms,
            hash,
            replies,
            boosts,
            favourites,
            row.counts.iter().sum::<i64>()
        ],
    )?;
    schedule(tx, bucket, due_at_ms, id).map(drop)
}

fn account(tx: &Transaction<'_>, row: &Row<'_>, next: &mut Next) -> rusqlite::Result<i64> {
    let author = &row.account;
    let known: Option<i64> = tx
        .prepare_cached("select id from account where upstream_id = ?1 and instance_id = 1")?
        .query_row([author.id], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    next.account += 1;
    run(
        tx,
        "insert into account (id, instance_id, upstream_id, acct, acct_id) values (?1, 1, ?2, ?3, ?1)",
        params![next.account, author.id, author.acct],
    )?;
    run(
        tx,
        "insert into account_profile (source_id, instance_id, account_id, acct_id, acct, acct_key, display_name,
             url, raw, seen_at_ms)
         values (1, 1, ?1, ?1, ?2, lower(?2), ?3, ?4, ?5, 0)",
        params![next.account, author.acct, author.display_name, author.url, row.post.account.get()],
    )?;
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
    run(
        tx,
        "update local_clock set last_id = ?1 where one = 1",
        [next.id],
    )?;
    run(tx, "update source set machine = ?1 where id = 1", [machine])?;
    run(
        tx,
        "update library set update_count = ?1 where id = 1",
        [next.usn],
    )?;
    // Ranges grow over some pages before the next begins.
    let low = format!("{:06}", number / 5);
    run(
        tx,
        "insert into gap (source_id, instance_id, low, high, kind, history, fill_requested, tries,
             read_age_ms, from_ms, until_ms)
         values (1, 1, ?1, ?2, 'provisional', 0, 0, 0, 0, 1, 2)
         on conflict (source_id, low) do update set high = excluded.high",
        params![low, rows.last().map_or("", |row| &row.position)],
    )
    .map(drop)
}
