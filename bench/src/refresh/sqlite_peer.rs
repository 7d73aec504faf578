//! A bare rusqlite loop that claims in memory and saves over the same tables.

use std::{
    hash::{DefaultHasher, Hasher as _},
    time::{Duration, Instant},
};

use driftline_core::post::Post;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::{
    made::{self, NOW_MS},
    ours::BATCH,
};
use crate::{
    database::Place,
    failure::Failure,
    ingest::sqlite_peer::{connect, run, schedule},
};

/// A connection that claims and saves.
pub(super) struct Peer {
    connection: Connection,
    shard: i64,
}

/// A claimed post, with its row of the schedule.
pub(super) struct Due {
    bucket: i64,
    due_at_ms: i64,
    post_id: i64,
    upstream_id: String,
}

/// The part of a post's state on which its next refresh depends.
struct Fresh {
    refreshed_at_ms: i64,
    refreshes: i64,
    state_hash: Option<i64>,
    counts: Counts,
    notified_at_ms: i64,
    notified_total: i64,
}

type Counts = [Option<i64>; 5];

impl Peer {
    /// Opens a filled store.
    pub(super) fn open(place: &Place) -> Result<Self, Failure> {
        Ok(Self {
            connection: connect(place.text().as_ref())?,
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
            let answers = due.iter().map(|due| made::answer(&due.upstream_id));
            let answers: Vec<Post> = answers.collect::<Result<_, _>>()?;
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
        for step in 0..SHARDS {
            let bucket = INSTANCE * SHARDS + (self.shard + step) % SHARDS;
            let mut statement = tx.prepare_cached(
                "select due_at_ms, post_id from schedule
                 where bucket = ?1 and due_at_ms <= ?2 order by due_at_ms, post_id limit ?3",
            )?;
            let mut rows = statement.query([bucket, now_ms, (BATCH - due.len()) as i64])?;
            while let Some(row) = rows.next()? {
                let (due_at_ms, post_id) = (row.get(0)?, row.get(1)?);
                let _ = fresh(&tx, post_id)?;
                let upstream_id: Option<String> = tx
                    .prepare_cached(
                        "select upstream_id, visibility from post
                         where id = ?1 and deleted_at_ms is null",
                    )?
                    .query_row([post_id], |row| {
                        row.get_ref(1)?.as_str()?;
                        row.get(0)
                    })
                    .optional()?;
                due.extend(upstream_id.map(|upstream_id| Due {
                    bucket,
                    due_at_ms,
                    post_id,
                    upstream_id,
                }));
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
    fn save(&mut self, due: &[Due], answers: &[Post]) -> Result<(), Failure> {
        let tx = self.write()?;
        for (due, post) in due.iter().zip(answers) {
            save(&tx, due, post)?;
        }
        Ok(tx.commit()?)
    }

    /// Puts a batch off for a minute, without any answer.
    pub(super) fn put_off(&mut self, due: &[Due], now_ms: i64) -> Result<(), Failure> {
        let tx = self.write()?;
        let sql = "update freshness set due_at_ms = ?2, failures = failures + 1 where post_id = ?1";
        for due in due {
            let due_at_ms = now_ms + 60_000;
            run(&tx, sql, [due.post_id, due_at_ms])?;
            reschedule(&tx, due, due_at_ms)?;
        }
        Ok(tx.commit()?)
    }

    fn write(&mut self) -> rusqlite::Result<Transaction<'_>> {
        let behavior = TransactionBehavior::Immediate;
        self.connection.transaction_with_behavior(behavior)
    }
}

/// A post has changed if its counts have, and libraries are notified if they moved by a tenth.
fn save(tx: &Transaction<'_>, due: &Due, post: &Post) -> rusqlite::Result<()> {
    let id = due.post_id;
    let before = fresh(tx, id)?;
    let (content_hash, is_listed) = known(tx, id)?;
    let of = post.counts;
    let counts = [of.replies, of.boosts, of.favourites, of.quotes, of.views];
    let is_changed = counts != before.counts;
    let moved = total(counts).abs_diff(before.notified_total);
    let is_notified = is_changed && moved * 10 >= before.notified_total.unsigned_abs();
    let mut state_hash = before.state_hash;
    if is_changed {
        let mut hasher = DefaultHasher::new();
        hasher.write_i64(total(counts));
        state_hash = Some(hasher.finish().cast_signed());
        run(
            tx,
            "update post set uri = ?2, url = ?3, edited_at_ms = ?4, read_at_ms = ?5, visibility = ?6,
                 content_hash = ?7, deleted_at_ms = null, listed = ?8, raw = ?9
             where id = ?1",
            params![
                id,
                post.uri,
                post.url,
                post.edited_at_ms,
                NOW_MS,
                post.visibility.name(),
                content_hash,
                is_listed,
                post.raw
            ],
        )?;
        count(tx, id, before.refreshed_at_ms, before.counts)?;
        count(tx, id, NOW_MS, counts)?;
    }
    let due_at_ms = NOW_MS + EVERY_MS;
    let [replies, boosts, favourites, quotes, views] = counts;
    let (notified_at_ms, notified_total) = match is_notified {
        true => (NOW_MS, total(counts)),
        false => (before.notified_at_ms, before.notified_total),
    };
    run(
        tx,
        "update freshness set refreshed_at_ms = ?2, due_at_ms = ?3, refreshes = ?4, failures = 0,
             missing = 0, outcome = ?5, state_hash = ?6, replies = ?7, boosts = ?8,
             favourites = ?9, quotes = ?10, views = ?11, before_at_ms = ?12, before_total = ?13,
             notified_at_ms = ?14, notified_total = ?15
         where post_id = ?1",
        params![
            id,
            NOW_MS,
            due_at_ms,
            before.refreshes + 1,
            if is_changed { "updated" } else { "unchanged" },
            state_hash,
            replies,
            boosts,
            favourites,
            quotes,
            views,
            before.refreshed_at_ms,
            total(before.counts),
            notified_at_ms,
            notified_total
        ],
    )?;
    reschedule(tx, due, due_at_ms)?;
    if is_notified {
        run(
            tx,
            "insert into outbox (instance_id, post_id, since_ms, counts)
             values (?1, ?2, ?3, 1) on conflict (instance_id, post_id) do update
             set since_ms = excluded.since_ms, counts = (outbox.counts or excluded.counts)",
            [INSTANCE, id, NOW_MS],
        )?;
    }
    Ok(())
}

fn total(counts: Counts) -> i64 {
    counts.iter().take(4).flatten().sum()
}

fn reschedule(tx: &Transaction<'_>, due: &Due, due_at_ms: i64) -> rusqlite::Result<()> {
    let sql = "delete from schedule where bucket = ?1 and due_at_ms = ?2 and post_id = ?3";
    run(tx, sql, [due.bucket, due.due_at_ms, due.post_id])?;
    schedule(tx, due.bucket, due_at_ms, due.post_id).map(drop)
}

fn fresh(tx: &Transaction<'_>, post_id: i64) -> rusqlite::Result<Fresh> {
    tx.prepare_cached(
        "select post_id, bucket, post_created_at_ms, first_at_ms, refreshed_at_ms, due_at_ms, refreshes,
             failures, missing, outcome, state_hash, replies, boosts, favourites, quotes, views,
             before_at_ms, before_total, notified_at_ms, notified_total
         from freshness where post_id = ?1",
    )?
    .query_row([post_id], |row| {
        let mut counts = Counts::default();
        for (count, column) in counts.iter_mut().zip(11..) {
            *count = row.get(column)?;
        }
        Ok(Fresh {
            refreshed_at_ms: row.get(4)?,
            refreshes: row.get(6)?,
            state_hash: row.get(10)?,
            counts,
            notified_at_ms: row.get(18)?,
            notified_total: row.get(19)?,
        })
    })
}

/// The hash of a post's content, and whether it is listed.
fn known(tx: &Transaction<'_>, post_id: i64) -> rusqlite::Result<(i64, bool)> {
    tx.prepare_cached(
        "select first_source_id, edited_at_ms, read_at_ms, content_hash, deleted_at_ms, visibility,
             listed
         from post where id = ?1",
    )?
    .query_row([post_id], |row| Ok((row.get(3)?, row.get(6)?)))
}

fn count(tx: &Transaction<'_>, id: i64, at_ms: i64, counts: Counts) -> rusqlite::Result<usize> {
    let [replies, boosts, favourites, quotes, views] = counts;
    run(
        tx,
        "insert into count_history (post_id, at_ms, replies, boosts, favourites, quotes, views,
             instance_id)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1) on conflict (post_id, at_ms) do nothing",
        params![id, at_ms, replies, boosts, favourites, quotes, views],
    )
}

/// The only instance of a filled store.
pub(super) const INSTANCE: i64 = 1;
const SHARDS: i64 = 8;
const EVERY_MS: i64 = 2 * 3_600_000;
