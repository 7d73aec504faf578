//! A bare rusqlite loop that claims in memory and saves over the same tables.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use driftline_core::post::Post;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::{
    bare::{self, Change, Due, Fresh, INSTANCE, Known, Slot},
    made::NOW_MS,
    ours::BATCH,
};
use crate::{failure::Failure, ingest::sqlite_peer::connect};

/// A connection that claims and saves.
pub(super) struct Peer {
    connection: Connection,
    shard: i64,
}

impl Peer {
    /// Opens a filled store.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        Ok(Self {
            connection: connect(path)?,
            shard: 0,
        })
    }

    /// Works all due posts off; how many, and the time in claims and saves alone.
    pub(super) fn work_off(&mut self) -> Result<(u64, Duration), Failure> {
        let (mut posts, mut spent) = (0, Duration::ZERO);
        loop {
            let start = Instant::now();
            let due = self.claim(NOW_MS)?;
            spent += start.elapsed();
            if due.is_empty() {
                return Ok((posts, spent));
            }
            posts += due.len() as u64;
            let answers = bare::answers(&due)?;
            let start = Instant::now();
            self.save(&due, &answers)?;
            // Ours takes them and so frees them too.
            drop(answers);
            spent += start.elapsed();
        }
    }

    /// Reads a batch of due posts. There is one worker, so nothing has to be remembered.
    pub(super) fn claim(&mut self, now_ms: i64) -> Result<Vec<Due>, Failure> {
        let tx = self.connection.transaction()?;
        let mut due = Vec::with_capacity(BATCH);
        for bucket in bare::buckets(self.shard) {
            let mut statement = tx.prepare_cached(
                "select due_at_ms, post_id from schedule
                 where bucket = ?1 and due_at_ms <= ?2 order by due_at_ms, post_id limit ?3",
            )?;
            let mut rows = statement.query(params![bucket, now_ms, (BATCH - due.len()) as i64])?;
            while let Some(row) = rows.next()? {
                let slot = Slot {
                    bucket,
                    due_at_ms: row.get(0)?,
                    post_id: row.get(1)?,
                };
                let _ = fresh(&tx, slot.post_id)?;
                let upstream_id: Option<String> = tx
                    .prepare_cached(
                        "select upstream_id, visibility from post
                         where id = ?1 and deleted_at_ms is null",
                    )?
                    .query_row([slot.post_id], |row| {
                        row.get_ref(1)?.as_str()?;
                        row.get(0)
                    })
                    .optional()?;
                due.extend(upstream_id.map(|upstream_id| Due { slot, upstream_id }));
            }
            if due.len() >= BATCH {
                break;
            }
        }
        tx.commit()?;
        self.shard += 1;
        Ok(due)
    }

    /// Saves a batch, in one transaction.
    pub(super) fn save(&mut self, due: &[Due], answers: &[Post]) -> Result<(), Failure> {
        let tx = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (due, post) in due.iter().zip(answers) {
            take_off(&tx, due.slot)?;
            let before = fresh(&tx, due.slot.post_id)?;
            let known = known(&tx, due.slot.post_id)?;
            let change = Change::of(due, before, known, post);
            if change.is_changed {
                replace(&tx, &change)?;
                count(
                    &tx,
                    due.slot.post_id,
                    change.before.refreshed_at_ms,
                    change.before.counts,
                )?;
                count(&tx, due.slot.post_id, NOW_MS, change.counts)?;
            }
            update(&tx, &change)?;
            put_on(&tx, change.slot)?;
            if change.is_notified {
                tx.prepare_cached(
                    "insert into outbox (instance_id, post_id, since_ms, counts)
                     values (?1, ?2, ?3, 1) on conflict (instance_id, post_id) do update
                     set since_ms = excluded.since_ms, counts = (outbox.counts or excluded.counts)",
                )?
                .execute(params![INSTANCE, due.slot.post_id, NOW_MS])?;
            }
        }
        tx.commit()?;
        Ok(())
    }

    /// Puts a batch off for a minute, without any answer.
    pub(super) fn put_off(&mut self, due: &[Due], now_ms: i64) -> Result<(), Failure> {
        let tx = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        for due in due {
            take_off(&tx, due.slot)?;
            let slot = Slot {
                due_at_ms: now_ms + 60_000,
                ..due.slot
            };
            tx.prepare_cached(
                "update freshness set due_at_ms = ?2, failures = failures + 1 where post_id = ?1",
            )?
            .execute(params![slot.post_id, slot.due_at_ms])?;
            put_on(&tx, slot)?;
        }
        tx.commit()?;
        Ok(())
    }
}

fn take_off(tx: &Transaction<'_>, slot: Slot) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "delete from schedule where bucket = ?1 and due_at_ms = ?2 and post_id = ?3",
    )?
    .execute(params![slot.bucket, slot.due_at_ms, slot.post_id])?;
    Ok(())
}

fn put_on(tx: &Transaction<'_>, slot: Slot) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "insert into schedule (bucket, due_at_ms, post_id, instance_id) values (?1, ?2, ?3, 1)",
    )?
    .execute(params![slot.bucket, slot.due_at_ms, slot.post_id])?;
    Ok(())
}

fn fresh(tx: &Transaction<'_>, post_id: i64) -> rusqlite::Result<Fresh> {
    tx.prepare_cached(
        "select post_id, bucket, post_created_at_ms, first_at_ms, refreshed_at_ms, due_at_ms, refreshes,
             failures, missing, outcome, state_hash, replies, boosts, favourites, quotes, views,
             before_at_ms, before_total, notified_at_ms, notified_total
         from freshness where post_id = ?1",
    )?
    .query_row([post_id], |row: &Row<'_>| {
        Ok(Fresh {
            refreshed_at_ms: row.get(4)?,
            refreshes: row.get(6)?,
            state_hash: row.get(10)?,
            counts: [
                row.get(11)?,
                row.get(12)?,
                row.get(13)?,
                row.get(14)?,
                row.get(15)?,
            ],
            notified_at_ms: row.get(18)?,
            notified_total: row.get(19)?,
        })
    })
}

fn known(tx: &Transaction<'_>, post_id: i64) -> rusqlite::Result<Known> {
    tx.prepare_cached(
        "select first_source_id, edited_at_ms, read_at_ms, content_hash, deleted_at_ms, visibility,
             listed
         from post where id = ?1",
    )?
    .query_row([post_id], |row| {
        Ok(Known {
            content_hash: row.get(3)?,
            listed: row.get(6)?,
        })
    })
}

fn replace(tx: &Transaction<'_>, change: &Change<'_>) -> rusqlite::Result<()> {
    let post = change.post;
    tx.prepare_cached(
        "update post set uri = ?2, url = ?3, edited_at_ms = ?4, read_at_ms = ?5, visibility = ?6,
             content_hash = ?7, deleted_at_ms = null, listed = ?8, raw = ?9
         where id = ?1",
    )?
    .execute(params![
        change.slot.post_id,
        post.uri,
        post.url,
        post.edited_at_ms,
        NOW_MS,
        post.visibility.name(),
        change.known.content_hash,
        change.known.listed,
        post.raw,
    ])?;
    Ok(())
}

fn count(
    tx: &Transaction<'_>,
    post_id: i64,
    at_ms: i64,
    counts: [Option<i64>; 5],
) -> rusqlite::Result<()> {
    let [replies, boosts, favourites, quotes, views] = counts;
    tx.prepare_cached(
        "insert into count_history (post_id, at_ms, replies, boosts, favourites, quotes, views,
             instance_id)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1) on conflict (post_id, at_ms) do nothing",
    )?
    .execute(params![
        post_id, at_ms, replies, boosts, favourites, quotes, views
    ])?;
    Ok(())
}

fn update(tx: &Transaction<'_>, change: &Change<'_>) -> rusqlite::Result<()> {
    let [replies, boosts, favourites, quotes, views] = change.counts;
    let (notified_at_ms, notified_total) = change.notified();
    tx.prepare_cached(
        "update freshness set refreshed_at_ms = ?2, due_at_ms = ?3, refreshes = ?4, failures = 0,
             missing = 0, outcome = ?5, state_hash = ?6, replies = ?7, boosts = ?8,
             favourites = ?9, quotes = ?10, views = ?11, before_at_ms = ?12, before_total = ?13,
             notified_at_ms = ?14, notified_total = ?15
         where post_id = ?1",
    )?
    .execute(params![
        change.slot.post_id,
        NOW_MS,
        change.slot.due_at_ms,
        change.before.refreshes + 1,
        change.outcome(),
        change.state_hash,
        replies,
        boosts,
        favourites,
        quotes,
        views,
        change.before.refreshed_at_ms,
        change.before_total(),
        notified_at_ms,
        notified_total,
    ])?;
    Ok(())
}
