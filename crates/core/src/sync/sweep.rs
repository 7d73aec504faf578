use super::{ConflictReason, Incoming, LocalObject, Outcome, Usn, incoming};

named_enum! {
    /// The effect of a full sync on the clean objects that did not come.
    pub enum SweepMode: "kebab-case" {
        /// They were deleted on the server: they are removed.
        Sweep,
        /// The server has lost changes: they become conflicts.
        Reconcile,
    }
}

/// Returns the outcome for an object once the full sync with the number `full_sync` and the changes since its start have come. A
/// dirty object that did not come is treated as if a tombstone had come: the server has no base for it.
pub fn sweep(local: LocalObject, full_sync: u64, mode: SweepMode) -> Outcome {
    if local.seen_in == full_sync {
        return Outcome::without_conflict(Some(local));
    }
    match (local.is_dirty(), mode) {
        (true, _) => without_base(local, mode),
        (false, SweepMode::Reconcile) if local.value.is_some() => Outcome {
            object: None,
            conflict: Some(local.conflict(ConflictReason::LostByServer)),
        },
        (false, _) => Outcome::default(),
    }
}

/// A dirty object after the loss of its base. A deletion stays dirty, since another device may be adding the object again.
fn without_base(mut local: LocalObject, mode: SweepMode) -> Outcome {
    if local.value.is_none() {
        local.base = None;
        return Outcome::without_conflict(Some(local));
    }
    let tombstone = Incoming {
        key: local.key.clone(),
        usn: Usn::NONE,
        value: None,
        full_sync: local.seen_in,
    };
    let mut outcome = incoming(Some(local), &tombstone, None);
    if let (Some(conflict), SweepMode::Reconcile) = (&mut outcome.conflict, mode) {
        conflict.reason = ConflictReason::LostByServer;
    }
    outcome
}

/// Returns the outcome for an object when the account may not read the library any more.
pub fn library_gone(local: LocalObject) -> Outcome {
    let is_dirty = local.is_dirty();
    Outcome {
        object: None,
        conflict: is_dirty.then(|| local.conflict(ConflictReason::LibraryGone)),
    }
}

/// True if a person must agree before `removed` of `held` objects are removed.
pub fn is_mass_deletion(removed: usize, held: usize) -> bool {
    removed > MAX_UNASKED_REMOVALS && removed > held / 2
}

/// The largest number of objects that a pull or sweep may remove without a question.
const MAX_UNASKED_REMOVALS: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mass_deletion_is_more_than_20_and_more_than_half() {
        assert!(!is_mass_deletion(20, 20));
        assert!(is_mass_deletion(21, 21));
        assert!(is_mass_deletion(21, 41));
        assert!(!is_mass_deletion(21, 42));
        assert!(is_mass_deletion(22, 43));
        assert!(!is_mass_deletion(0, 0));
    }
}
