//! The quarantine: items of a source's pages that no post could be read from, kept as they came.
//!
//! An item with a position is kept once, as it came last; one without is kept once for its bytes. It
//! leaves the quarantine when a page shows its position with a post, or when a later version of the
//! program reads it.

use std::hash::{DefaultHasher, Hash, Hasher};

use driftline_core::{
    answer::{Page, Unreadable},
    post::Post,
    refresh::Policy,
    timeline::IdScheme,
    upstream_id::UpstreamId,
};
use driftline_db::{Column, DbError, Row, ToValue, Tx};

use crate::{
    error::StoreError,
    id_types::{SourceId, sql},
    mirror::{
        commit_summary::CommitSummary,
        entry,
        intake::{self, IntakeContext, PostObservation},
        machine::LockedSource,
    },
    posts::rehash::HashStored,
    text::without_nul,
};

/// An item in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Its key in the source's quarantine.
    pub key: String,
    /// The item, as it came last.
    pub item: Unreadable,
    /// The version of the program that could not read it.
    pub program: String,
    /// When it was first requested, Unix ms.
    pub first_seen_at_ms: i64,
    /// When it was last requested, Unix ms.
    pub last_seen_at_ms: i64,
}

/// How many items a source has in quarantine.
pub fn count(tx: &mut Tx<'_>, source: SourceId) -> Result<u64, StoreError> {
    let count = "select count(*) as items from quarantine where source_id = $1";
    let items = tx.query_one(count, &[&sql(source)], |row| row.i64("items"))?;
    Ok(items.unsigned_abs())
}

/// The items that a source has in quarantine, in order of their arrival.
pub fn list(tx: &mut Tx<'_>, source: SourceId) -> Result<Vec<Quarantined>, StoreError> {
    select(tx, "source_id = $1", &[&sql(source)])
}

/// The items of a source that no program of this version has tried to read.
pub fn untried(tx: &mut Tx<'_>, source: SourceId) -> Result<Vec<Quarantined>, StoreError> {
    let condition = "source_id = $1 and program <> $2";
    select(tx, condition, &[&sql(source), &PROGRAM])
}

/// Items that were read again, to commit.
#[derive(Clone, Copy, Debug)]
pub struct CommitRetried<'a> {
    /// The source; the write's root is [`crate::mirror::source::root`] of it.
    pub source: SourceId,
    /// The lease's fencing number, if there is a lease.
    pub fence: Option<i64>,
    /// How the source orders its IDs.
    pub scheme: &'a IdScheme,
    /// The items, each with what was read of it.
    pub items: &'a [(Quarantined, RetriedItem)],
    /// How posts are refreshed from now on.
    pub policy: &'a Policy,
    /// Hashes posts that are stored with hashes of an earlier form.
    pub hash_stored: HashStored,
    /// The time, Unix ms.
    pub now_ms: i64,
}

/// What was read of an item in quarantine: its position, and its post if it is one, or the reason why
/// it cannot be read.
pub type RetriedItem = Result<(UpstreamId, Option<Post>), String>;

/// Commits what was read of items in quarantine. Posts are stored like those that a page showed late;
/// what still cannot be read stays, and is tried again by the next version of the program.
pub fn commit_retried(
    tx: &mut Tx<'_>,
    commit: &CommitRetried<'_>,
) -> Result<CommitSummary, StoreError> {
    let mut source = LockedSource::load(tx, commit.source, commit.fence)?;
    let mut summary = CommitSummary::default();
    for (quarantined, read) in commit.items {
        let (position, post) = match read {
            Ok((position, post)) => (position, post),
            Err(reason) => {
                retain(tx, source.id, &quarantined.key, reason)?;
                continue;
            }
        };
        let Ok(key) = commit.scheme.key(position) else {
            let reason = format!("{position} is no ID as the source's others are");
            retain(tx, source.id, &quarantined.key, &reason)?;
            continue;
        };
        tx.execute_later(
            "delete from quarantine where source_id = $1 and item = $2",
            &[&source.id, &quarantined.key],
        )?;
        let Some(post) = post else { continue };
        let entry = entry::at(tx, source.id, &[key.as_str()])?.remove(key.as_str());
        let position_ms = commit.scheme.time_ms(&key);
        let observation = PostObservation::new(post, key.as_str(), position_ms, entry);
        let context = IntakeContext::answered(
            quarantined.last_seen_at_ms,
            commit.now_ms,
            commit.policy,
            commit.hash_stored,
        );
        let taken = match observation.may_be_news() {
            true => intake::take_in(tx, &mut source, &[observation], context)?,
            false => CommitSummary::default(),
        };
        summary.new += taken.new;
        summary.edited += taken.edited;
    }
    source.save_usns(tx)?;
    summary.update_count = source.library.update_count;
    Ok(summary)
}

fn retain(tx: &mut Tx<'_>, source_id: i64, key: &str, reason: &str) -> Result<(), StoreError> {
    tx.execute_later(
        "update quarantine set program = $3, reason = $4 where source_id = $1 and item = $2",
        &[&source_id, &key, &PROGRAM, &&*without_nul(reason)],
    )?;
    Ok(())
}

/// Keeps a page's unreadable items, and lets go of those at whose positions the page lists posts.
pub(crate) fn take_in(tx: &mut Tx<'_>, source_id: i64, page: &Page) -> Result<(), StoreError> {
    let listed = page.listed.iter().map(|listed| key_of(&listed.position));
    let listed: Vec<String> = listed.collect();
    if !listed.is_empty() {
        tx.execute_later(
            "delete from quarantine where source_id = $1 and item {in $2}",
            &[&source_id, &Column::text(listed.iter().map(|key| &**key))],
        )?;
    }
    if page.unreadable.is_empty() {
        return Ok(());
    }
    let count = "select count(*) as items from quarantine where source_id = $1";
    let mut room = MAX_ITEMS - tx.query_one(count, &[&source_id], |row| row.i64("items"))?;
    for item in &page.unreadable {
        if room <= 0 {
            tracing::warn!(
                source = source_id,
                "the quarantine is full; an unreadable item is dropped"
            );
            break;
        }
        room -= 1;
        let key = match &item.position {
            Some(position) => key_of(position),
            None => {
                let mut hasher = DefaultHasher::new();
                item.bytes.hash(&mut hasher);
                format!("#{:016x}", hasher.finish())
            }
        };
        let id =
            |id: &Option<UpstreamId>| id.as_ref().map(|id| without_nul(id.as_str()).into_owned());
        tx.execute_later(
            "insert into quarantine (source_id, item, position, above, below, bytes, reason,
                 program, first_seen_at_ms, last_seen_at_ms)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
             on conflict (source_id, item) do update set above = excluded.above,
                 below = excluded.below, bytes = excluded.bytes, reason = excluded.reason,
                 program = excluded.program, last_seen_at_ms = excluded.last_seen_at_ms",
            &[
                &source_id,
                &key,
                &id(&item.position),
                &id(&item.above),
                &id(&item.below),
                &item.bytes,
                &&*without_nul(&item.reason),
                &PROGRAM,
                &page.headers.sent_at_ms,
            ],
        )?;
    }
    Ok(())
}

/// The key of an item at that position.
fn key_of(position: &UpstreamId) -> String {
    format!("@{}", without_nul(position.as_str()))
}

fn select(
    tx: &mut Tx<'_>,
    condition: &str,
    params: &[&dyn ToValue],
) -> Result<Vec<Quarantined>, StoreError> {
    let sql = format!(
        "select item, position, above, below, bytes, reason, program, first_seen_at_ms,
             last_seen_at_ms
         from quarantine where {condition} order by first_seen_at_ms, item"
    );
    Ok(tx.query(&sql, params, from_row)?)
}

fn from_row(row: &Row<'_>) -> Result<Quarantined, DbError> {
    let id = |column| Ok::<_, DbError>(row.opt_str(column)?.map(UpstreamId::from));
    Ok(Quarantined {
        key: row.text("item")?,
        item: Unreadable {
            position: id("position")?,
            above: id("above")?,
            below: id("below")?,
            bytes: row.bytes("bytes")?,
            reason: row.text("reason")?,
        },
        program: row.text("program")?,
        first_seen_at_ms: row.i64("first_seen_at_ms")?,
        last_seen_at_ms: row.i64("last_seen_at_ms")?,
    })
}

/// The version of this program.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");
/// A server whose items come in ever new bytes, none with a position, must not fill the store.
const MAX_ITEMS: i64 = 10_000;
