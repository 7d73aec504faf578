use driftline_core::{predicate::Predicate, sync::SourceProgress};
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
    /// The predicate that selects its posts, in the text form; `None` if all are here.
    pub filter: Option<String>,
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
    /// True from a change of the filter until the full sync after it is complete.
    pub(crate) is_refiltered: bool,
    pub(crate) pull: PullCounts,
}

/// Reads the subscriptions, by the sources' names.
pub(crate) fn list(tx: &mut Tx<'_>) -> Result<Vec<SubscriptionRow>, ReplicaError> {
    let sql = format!("select {COLUMNS} from subscription order by source, library");
    let rows = tx.query(&sql, &[], subscription)?.into_iter();
    rows.map(with_filter).collect()
}

/// Reads a subscription.
pub(crate) fn get(tx: &mut Tx<'_>, library: &str) -> Result<Option<SubscriptionRow>, ReplicaError> {
    let sql = format!("select {COLUMNS} from subscription where library = $1");
    let row = tx.query_opt(&sql, &[&library], subscription)?;
    row.map(with_filter).transpose()
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
            filter: row.progress.filter.map(|filter| filter.to_string()),
            is_complete: row.progress.is_complete,
            is_gone: row.is_gone,
        })
    })
    .collect()
}

/// Adds a subscription. One that is there stays, with the source's present name; one that was gone is requested again. With
/// another filter than before, it begins a full sync.
pub(crate) fn add(
    tx: &mut Tx<'_>,
    library: &str,
    source: &str,
    filter: Option<&Predicate>,
) -> Result<(), ReplicaError> {
    let json = filter.map(serde_json::to_string).transpose();
    let json = json.map_err(ReplicaError::damaged)?;
    let old = get(tx, library)?;
    tx.execute(
        "insert into subscription
             (library, source, is_refiltered, full_sync, is_complete, is_gone, pull_removed)
         values ($1, $2, false, 0, false, false, 0)
         on conflict (library) do update set source = excluded.source, is_gone = false",
        &[&library, &source],
    )?;
    let is_refiltered = old.is_some_and(|old| old.progress.filter.as_ref() != filter);
    if is_refiltered {
        tx.execute(
            "update subscription set is_refiltered = true, cursor = null, is_complete = false,
                 pull_held = null, pull_removed = 0
             where library = $1",
            &[&library],
        )?;
    }
    tx.execute(
        "update subscription set filter = $2 where library = $1",
        &[&library, &json],
    )?;
    Ok(())
}

/// Makes the next synchronization of a subscription a full one.
pub(crate) fn begin_again(tx: &mut Tx<'_>, library: &str) -> Result<(), ReplicaError> {
    tx.execute(
        "update subscription set cursor = null, is_complete = false where library = $1",
        &[&library],
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
    let objects_left = progress.objects_left.map(number).transpose()?;
    let parameters: [&dyn ToValue; 8] = [
        &progress.library,
        &progress.cursor,
        &full_sync,
        &progress.is_complete,
        &is_gone,
        &held,
        &removed,
        &objects_left,
    ];
    tx.execute(
        "update subscription set cursor = $2, full_sync = $3, is_complete = $4, is_gone = $5,
             pull_held = $6, pull_removed = $7, objects_left = $8,
             is_refiltered = is_refiltered and not $4
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

/// A subscription, whose filter is set later, and the filter as JSON.
fn subscription(row: &Row<'_>) -> Result<(SubscriptionRow, Option<String>), DbError> {
    let count = |number: i64| usize::try_from(number).unwrap_or_default();
    let read = SubscriptionRow {
        source: row.text("source")?,
        progress: SourceProgress {
            library: row.text("library")?,
            filter: None,
            cursor: row.opt_text("cursor")?,
            full_sync: u64::try_from(row.i64("full_sync")?).unwrap_or_default(),
            is_complete: row.bool("is_complete")?,
            objects_left: row.opt_i64("objects_left")?.map(i64::unsigned_abs),
        },
        is_gone: row.bool("is_gone")?,
        is_refiltered: row.bool("is_refiltered")?,
        pull: PullCounts {
            held: row.opt_i64("pull_held")?.map(count),
            removed: count(row.i64("pull_removed")?),
        },
    };
    Ok((read, row.opt_text("filter")?))
}

fn with_filter(
    (mut row, json): (SubscriptionRow, Option<String>),
) -> Result<SubscriptionRow, ReplicaError> {
    let filter = json.map(|json| Predicate::from_json(&json)).transpose();
    row.progress.filter = filter.map_err(ReplicaError::damaged)?;
    Ok(row)
}

const COLUMNS: &str = "library, source, filter, is_refiltered, cursor, full_sync, is_complete, \
     is_gone, pull_held, pull_removed, objects_left";
