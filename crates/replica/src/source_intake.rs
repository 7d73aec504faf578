use driftline_core::sync::{SourceIntake, is_mass_deletion};
use driftline_db::Tx;

use crate::{
    ReplicaError, author_row, entry_row, replica_row::PullCounts, subscription_row,
    sync::SyncProgress,
};

/// True if a source's part of an answer may remove entries.
pub(crate) fn removes(intake: &SourceIntake) -> bool {
    intake.sweeps || !intake.gone.is_empty()
}

/// Stores a source's part of an answer: the library's end, the tombstones, the objects, the sweep, and the progress. Returns
/// the numbers of objects; `None` and stores nothing if the subscription has ended meanwhile, or is another one.
///
/// # Errors
/// [`ReplicaError::ManyRemoved`] if it would remove most of the source's entries and no person has agreed;
/// [`ReplicaError::Db`] if the database fails. Nothing is stored then.
pub(crate) fn store(
    tx: &mut Tx<'_>,
    intake: &SourceIntake,
    may_remove_many: bool,
) -> Result<Option<SyncProgress>, ReplicaError> {
    let library = intake.progress.library.as_str();
    let mut counts = SyncProgress::default();
    let row = subscription_row::get(tx, library)?;
    let Some(mut row) = row.filter(|row| row.progress == intake.before) else {
        return Ok(None);
    };
    // A first full sync finds nothing here that it has not brought.
    let sweeps = intake.sweeps && intake.progress.full_sync > 1;
    // A person has changed the filter.
    let is_asked = !may_remove_many && !intake.is_gone && !row.is_refiltered;
    // Counting reads all entries, so it is left out until it matters. A full sync may bring as many as it removes.
    let begins = intake.progress.full_sync > intake.before.full_sync.max(1);
    let most = row.pull.removed + intake.gone.len();
    let held = match row.pull.held {
        None if is_asked && (begins || sweeps || is_mass_deletion(most, 0)) => {
            Some(row.pull.removed + entry_row::count(tx, library)?)
        }
        known => known,
    };
    if intake.is_gone {
        counts.removed += entry_row::remove_all(tx, library)?;
    }
    for tombstone in &intake.gone {
        counts.removed += entry_row::remove(tx, library, &tombstone.key)?;
    }
    let full_sync = intake.progress.full_sync;
    let is_full = intake.sweeps || !intake.progress.is_complete;
    author_row::put_all(tx, library, &intake.objects, full_sync, !is_full)?;
    let is_damaged = !entry_row::put_all(tx, library, &intake.objects, full_sync)?;
    counts.pulled += intake.objects.len();
    if sweeps {
        counts.removed += entry_row::sweep(tx, library, full_sync)?;
    }
    let removed = row.pull.removed + counts.removed;
    if let Some(all) = held.filter(|held| is_asked && is_mass_deletion(removed, *held)) {
        return Err(ReplicaError::ManyRemoved {
            library: format!("the source {}", row.source),
            removed,
            all,
        });
    }
    let pull = match intake.is_last || (row.is_refiltered && intake.sweeps) {
        true => PullCounts::default(),
        false => PullCounts { held, removed },
    };
    row.progress = intake.progress.clone();
    row.is_gone = intake.is_gone;
    row.is_refiltered &= !intake.progress.is_complete;
    row.pull = pull;
    subscription_row::put(tx, &row)?;
    if is_damaged {
        subscription_row::begin_again(tx, library)?;
    }
    Ok(Some(counts))
}
