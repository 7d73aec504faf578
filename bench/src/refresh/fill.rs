//! Stores with many due posts, multiplied from some that were taken in.

use driftline_store::{InstanceId, Root, Store, StoreError, Tx, local_ids};

use super::made::{self, FIRST_PAGE_MS, NOW_MS, REFRESHED_MS, TEMPLATES};
use crate::{
    database::{Place, Server},
    failure::Failure,
    ingest::{Intake, add_source, page},
};

/// How much of each post is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// All of it, JSON of one to two kilobytes included.
    Full,
    /// Its row without JSON and addresses.
    Narrow,
}

/// A database with posts that are all due, and fresh copies of it.
pub(super) struct Filled {
    server: Server,
    pub(super) place: Place,
    pub(super) instance: InstanceId,
}

impl Filled {
    /// Fills a new database.
    pub(super) fn new(server: Server, posts: u64, width: Width) -> Result<Self, Failure> {
        let place = server.create(NAME)?;
        let store = place.open()?;
        let instance = due_posts(&store, posts, width)?;
        store.close_blocking();
        place.settle()?;
        Ok(Self {
            server,
            place,
            instance,
        })
    }

    /// A copy in place of the one before.
    pub(super) fn copy(&self) -> Result<Place, Failure> {
        self.server.copy(NAME, "copied")
    }
}

/// Fills a new store with posts that are all due; returns their instance.
///
/// Their due times lead through eight ranges of IDs at once, as those of posts of different ages
/// do.
fn due_posts(store: &Store, posts: u64, width: Width) -> Result<InstanceId, Failure> {
    let source = add_source(store)?;
    let mut intake = Intake::start(store, source, FIRST_PAGE_MS)?;
    for raw in made::pages()? {
        intake.commit(page(&raw)?)?;
    }
    let (last, templates) = store.read_blocking(|tx| {
        let counted = tx.query_one("select max(id), count(*) from post", &[], |row| {
            Ok((row.i64(0)?, row.i64(1)?))
        })?;
        Ok::<_, StoreError>(counted)
    })?;
    if u64::try_from(templates)? != TEMPLATES {
        return Err(Failure::new(format!("{templates} templates were stored")));
    }
    let copies = Copies {
        first_upstream_id: made::upstream_id(0)? + i64::try_from(TEMPLATES)?,
        last_template: last,
        posts: i64::try_from(posts)?,
        width,
    };
    let mut from = 0;
    while from < copies.posts {
        let until = copies.posts.min(from + CHUNK);
        store.write_blocking(Root::none(), move |tx| copies.copy(tx, from, until))?;
        from = until;
    }
    store.write_blocking(local_ids::root(), move |tx| copies.schedule(tx))?;
    Ok(source.instance)
}

#[derive(Clone, Copy)]
struct Copies {
    first_upstream_id: i64,
    last_template: i64,
    posts: i64,
    width: Width,
}

impl Copies {
    fn copy(self, tx: &mut Tx<'_>, from: i64, until: i64) -> Result<(), StoreError> {
        let numbers = "(with recursive n(i) as (
                 select cast($1 as bigint) union all select i + 1 from n where i + 1 < $2)
             select i from n) as n";
        let templates = "(select row_number() over (order by id) - 1 as k, post.* from post
             where id <= $3) as t on t.k = n.i % $4";
        let renamed = |column: &str| match self.width {
            Width::Full => format!("replace(t.{column}, t.upstream_id, cast($5 + n.i as text))"),
            Width::Narrow => "null".to_owned(),
        };
        let listed = match self.width {
            Width::Full => "true",
            Width::Narrow => "false",
        };
        tx.execute(
            &format!(
                "insert into post (id, instance_id, upstream_id, uri, url, account_id,
                     first_source_id, created_at_ms, read_at_ms, visibility, content_hash, listed,
                     raw)
                 select $3 + 1 + n.i, t.instance_id, cast($5 + n.i as text), {}, {},
                     t.account_id, t.first_source_id, t.created_at_ms, t.read_at_ms, t.visibility,
                     t.content_hash, {listed}, {}
                 from {numbers} join {templates}",
                renamed("uri"),
                renamed("url"),
                renamed("raw")
            ),
            &[
                &from,
                &until,
                &self.last_template,
                &(TEMPLATES as i64),
                &self.first_upstream_id,
            ],
        )?;
        tx.execute(
            &format!(
                "insert into freshness (post_id, instance_id, bucket, post_created_at_ms, first_at_ms,
                     refreshed_at_ms, due_at_ms, refreshes, failures, missing, state_hash, replies,
                     boosts, favourites, quotes, views, before_total, notified_at_ms, notified_total)
                 select $3 + 1 + n.i, t.instance_id, t.instance_id * 8 + ($3 + 1 + n.i) % 8, f.post_created_at_ms,
                     f.first_at_ms, $5, cast($6 as bigint) - {SPAN_MS} + n.i % $7 * {SPAN_MS} / $7, 0, 0, false,
                     f.state_hash, f.replies, f.boosts, f.favourites, f.quotes, f.views, 0, $5,
                     f.notified_total
                 from {numbers} join {templates} join freshness f on f.post_id = t.id"
            ),
            &[
                &from,
                &until,
                &self.last_template,
                &(TEMPLATES as i64),
                &REFRESHED_MS,
                &(NOW_MS - 1),
                &(self.posts / RANGES).max(1),
            ],
        )?;
        Ok(())
    }

    /// Schedules the copies alone, in the order of the index.
    fn schedule(self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let last_id = self.last_template + self.posts;
        tx.execute("update local_clock set last_id = $1", &[&last_id])?;
        for table in ["schedule", "freshness"] {
            tx.execute(
                &format!("delete from {table} where post_id <= $1"),
                &[&self.last_template],
            )?;
        }
        tx.execute(
            "insert into schedule (bucket, due_at_ms, post_id, instance_id)
             select bucket, due_at_ms, post_id, instance_id from freshness
             where post_id > $1 order by bucket, due_at_ms, post_id",
            &[&self.last_template],
        )?;
        Ok(())
    }
}

const NAME: &str = "filled";
const CHUNK: i64 = 50_000;
const RANGES: i64 = 8;
/// The first post has been due for this long.
const SPAN_MS: i64 = 600_000;
