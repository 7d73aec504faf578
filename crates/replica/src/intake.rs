use driftline_core::sync::{
    Intake, LocalObject, ObjectKey, Outcome, incoming, is_mass_deletion, library_gone, sweep,
};
use driftline_db::Tx;

use crate::{ReplicaError, object_row, replica_row, sync::SyncProgress};

/// The storing of an answer to a pull.
#[derive(Clone, Debug)]
pub(crate) struct IntakeJob {
    /// The answer.
    pub(crate) intake: Intake,
    /// True if no other pull follows.
    pub(crate) is_last: bool,
    /// True if a person has agreed to a mass deletion.
    pub(crate) may_remove_many: bool,
    /// The time of conflicts in Unix ms.
    pub(crate) now_ms: i64,
}

impl IntakeJob {
    /// Stores the answer: the library's end, the entries, the sweep, and the progress. Returns the numbers of objects.
    ///
    /// # Errors
    /// [`ReplicaError::ManyRemoved`] if it would remove most of the replica and no person has agreed; [`ReplicaError::Db`] if
    /// the database fails. Nothing is stored then.
    pub(crate) fn run(&self, tx: &mut Tx<'_>) -> Result<SyncProgress, ReplicaError> {
        let intake = &self.intake;
        let row = replica_row::require(tx)?;
        // This answer, or a later one of the same pull, may remove objects.
        let may_remove = !self.is_last || self.removes();
        let held = match row.pull.held {
            None if may_remove => Some(object_row::count(tx)?),
            held => held,
        };
        let push = replica_row::pending_push(tx)?;
        let mut counts = SyncProgress::default();
        if intake.is_gone {
            for object in object_row::list(tx, None)? {
                let outcome = library_gone(object.clone());
                counts.removed += self.apply(tx, &object.key, is_here(&object), &outcome)?;
            }
        }
        for theirs in &intake.entries {
            let local = object_row::get(tx, &theirs.key)?;
            let was_here = local.as_ref().is_some_and(is_here);
            let sent = push.as_ref().and_then(|push| push.change(&theirs.key));
            let outcome = incoming(local, theirs, sent);
            counts.pulled += usize::from(theirs.value.is_some());
            counts.removed += self.apply(tx, &theirs.key, was_here, &outcome)?;
        }
        if let Some(mode) = intake.sweep {
            let full_sync = intake.progress.full_sync;
            for object in object_row::unseen(tx, full_sync)? {
                let outcome = sweep(object.clone(), full_sync, mode);
                counts.removed += self.apply(tx, &object.key, is_here(&object), &outcome)?;
            }
        }
        let removed = row.pull.removed + counts.removed;
        let is_asked = !self.may_remove_many && !self.intake.is_gone;
        if let Some(held) = held.filter(|held| is_asked && is_mass_deletion(removed, *held)) {
            return Err(ReplicaError::ManyRemoved {
                library: "the account's library".to_owned(),
                removed,
                all: held,
            });
        }
        let pull = match self.is_last {
            true => replica_row::PullCounts::default(),
            false => replica_row::PullCounts { held, removed },
        };
        replica_row::update(tx, |row| {
            row.progress = self.intake.progress.clone();
            row.pull = pull;
        })?;
        Ok(counts)
    }

    /// True if the answer may remove objects.
    pub(crate) fn removes(&self) -> bool {
        let mut entries = self.intake.entries.iter();
        self.intake.sweep.is_some() || entries.any(|entry| entry.value.is_none())
    }

    /// Stores the outcome for an object. Returns the number of objects that it removes: 0 or 1. One that is listed as a conflict
    /// does not count, since it can be offered back.
    fn apply(
        &self,
        tx: &mut Tx<'_>,
        key: &ObjectKey,
        was_here: bool,
        outcome: &Outcome,
    ) -> Result<usize, ReplicaError> {
        object_row::apply(tx, key, outcome, self.now_ms)?;
        let stays = outcome.object.as_ref().is_some_and(is_here) || outcome.conflict.is_some();
        Ok(usize::from(was_here && !stays))
    }
}

fn is_here(object: &LocalObject) -> bool {
    object.value.is_some()
}
