use driftline_core::sync::SourceProgress;
use driftline_db::{DbError, Row, ToValue, Tx};
use serde::Serialize;

use crate::{ReplicaError, entry_row, object_row::number, replica_row::PullCounts};

/// A source to which a replica subscribes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Subscription {
    /// The source's library: `source:ID`.
    pub library: String,
    /// The source's name.
    pub source: String,
    /// The number of entries that are here.
    pub entries: usize,
    /// False before the first full sync is complete, and during another one.
    pub is_complete: bool,
    /// True if the account may not read the source any more. It is not requested again until it is subscribed again.
    pub is_gone: bool,
}

/// The row of a subscription.
#[derive(Clone, Debug)]
pub(crate) struct SubscriptionRow {
    pub(crate) source: String,
    pub(crate) progress: SourceProgress,
    pub(crate) is_gone: bool,
    pub(crate) pull: PullCounts,
}

/// Reads the subscriptions, by the sources' names.
pub(crate) fn list(tx: &mut Tx<'_>) -> Result<Vec<SubscriptionRow>, ReplicaError> {
    let sql = format!("select {COLUMNS} from subscription order by source, library");
    Ok(tx.query(&sql, &[], subscription)?)
}

/// Reads a subscription.
pub(crate) fn get(tx: &mut Tx<'_>, library: &str) -> Result<Option<SubscriptionRow>, ReplicaError> {
    let sql = format!("select {COLUMNS} from subscription where library = $1");
    Ok(tx.query_opt(&sql, &[&library], subscription)?)
}

/// The progress of the subscriptions, without those that are gone.
pub(crate) fn progresses(tx: &mut Tx<'_>) -> Result<Vec<SourceProgress>, ReplicaError> {
    let rows = list(tx)?.into_iter().filter(|row| !row.is_gone);
    Ok(rows.map(|row| row.progress).collect())
}

/// The subscriptions with the numbers of their entries, by the sources' names.
pub(crate) fn counted(tx: &mut Tx<'_>) -> Result<Vec<Subscription>, ReplicaError> {
    let rows = list(tx)?.into_iter();
    rows.map(|row| {
        Ok(Subscription {
            entries: entry_row::count(tx, &row.progress.library)?,
            library: row.progress.library,
            source: row.source,
            is_complete: row.progress.is_complete,
            is_gone: row.is_gone,
        })
    })
    .collect()
}

/// Adds a subscription. One that is there stays, with the source's present name; one that was gone is requested again.
pub(crate) fn add(tx: &mut Tx<'_>, library: &str, source: &str) -> Result<(), ReplicaError> {
    tx.execute(
        "insert into subscription
             (library, source, full_sync, is_complete, is_gone, pull_removed)
         values ($1, $2, 0, false, false, 0)
         on conflict (library) do update set source = excluded.source, is_gone = false",
        &[&library, &source],
    )?;
    Ok(())
}

/// Stores how far a subscription is.
pub(crate) fn set_progress(
    tx: &mut Tx<'_>,
    progress: &SourceProgress,
    is_gone: bool,
    pull: PullCounts,
) -> Result<(), ReplicaError> {
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let (held, removed) = (pull.held.map(count), count(pull.removed));
    let full_sync = number(progress.full_sync)?;
    let parameters: [&dyn ToValue; 7] = [
        &progress.library,
        &progress.cursor,
        &full_sync,
        &progress.is_complete,
        &is_gone,
        &held,
        &removed,
    ];
    tx.execute(
        "update subscription set cursor = $2, full_sync = $3, is_complete = $4, is_gone = $5,
             pull_held = $6, pull_removed = $7
         where library = $1",
        &parameters,
    )?;
    Ok(())
}

/// Notes that a pull of all subscriptions is complete.
pub(crate) fn end_pulls(tx: &mut Tx<'_>) -> Result<(), ReplicaError> {
    tx.execute(
        "update subscription set pull_held = null, pull_removed = 0 where pull_held is not null",
        &[],
    )?;
    Ok(())
}

/// Removes a subscription with its entries.
pub(crate) fn remove(tx: &mut Tx<'_>, library: &str) -> Result<(), ReplicaError> {
    entry_row::remove_all(tx, library)?;
    tx.execute("delete from subscription where library = $1", &[&library])?;
    Ok(())
}

fn subscription(row: &Row<'_>) -> Result<SubscriptionRow, DbError> {
    let count = |number: i64| usize::try_from(number).unwrap_or_default();
    Ok(SubscriptionRow {
        source: row.text("source")?,
        progress: SourceProgress {
            library: row.text("library")?,
            cursor: row.opt_text("cursor")?,
            full_sync: u64::try_from(row.i64("full_sync")?).unwrap_or_default(),
            is_complete: row.bool("is_complete")?,
        },
        is_gone: row.bool("is_gone")?,
        pull: PullCounts {
            held: row.opt_i64("pull_held")?.map(count),
            removed: count(row.i64("pull_removed")?),
        },
    })
}

const COLUMNS: &str =
    "library, source, cursor, full_sync, is_complete, is_gone, pull_held, pull_removed";
