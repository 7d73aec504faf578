use driftline_core::{predicate::Predicate, sync::SourceProgress};
use driftline_db::Tx;
use serde::{Deserialize, Serialize};

use crate::{
    ReplicaError, entry_row,
    replica_row::{PullCounts, from_json, to_json},
};

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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    let sql = "select state from subscription order by library";
    let states = tx.query(sql, &[], |row| row.text("state"))?;
    let rows = states.iter().map(|state| from_json(state));
    let mut rows = rows.collect::<Result<Vec<SubscriptionRow>, _>>()?;
    rows.sort_by(|a, b| a.source.cmp(&b.source));
    Ok(rows)
}

/// Reads a subscription.
pub(crate) fn get(tx: &mut Tx<'_>, library: &str) -> Result<Option<SubscriptionRow>, ReplicaError> {
    let sql = "select state from subscription where library = $1";
    let state = tx.query_opt(sql, &[&library], |row| row.text("state"))?;
    state.map(|state| from_json(&state)).transpose()
}

/// Stores a subscription.
pub(crate) fn put(tx: &mut Tx<'_>, row: &SubscriptionRow) -> Result<(), ReplicaError> {
    let state = to_json(row)?;
    tx.execute(
        "insert into subscription (library, state) values ($1, $2)
         on conflict (library) do update set state = excluded.state",
        &[&row.progress.library, &state],
    )?;
    Ok(())
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
    let old = get(tx, library)?;
    let is_refiltered = |old: &SubscriptionRow| old.progress.filter.as_ref() != filter;
    let is_refiltered = old.as_ref().is_some_and(is_refiltered);
    let mut row = old.unwrap_or_default();
    if is_refiltered {
        row.is_refiltered = true;
        row.pull = PullCounts::default();
        begin_full_sync(&mut row.progress);
    }
    row.source = source.to_owned();
    row.is_gone = false;
    row.progress.library = library.to_owned();
    row.progress.filter = filter.cloned();
    put(tx, &row)
}

/// Makes the next synchronization of a subscription a full one.
pub(crate) fn begin_again(tx: &mut Tx<'_>, library: &str) -> Result<(), ReplicaError> {
    let Some(mut row) = get(tx, library)? else {
        return Ok(());
    };
    begin_full_sync(&mut row.progress);
    put(tx, &row)
}

/// Notes that a pull of all subscriptions is complete.
pub(crate) fn end_pulls(tx: &mut Tx<'_>) -> Result<(), ReplicaError> {
    for mut row in list(tx)? {
        if row.pull != PullCounts::default() {
            row.pull = PullCounts::default();
            put(tx, &row)?;
        }
    }
    Ok(())
}

/// Removes a subscription with its entries.
pub(crate) fn remove(tx: &mut Tx<'_>, library: &str) -> Result<(), ReplicaError> {
    entry_row::remove_all(tx, library)?;
    tx.execute("delete from subscription where library = $1", &[&library])?;
    Ok(())
}

fn begin_full_sync(progress: &mut SourceProgress) {
    progress.cursor = None;
    progress.is_complete = false;
}
