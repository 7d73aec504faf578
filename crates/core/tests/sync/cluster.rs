//! A server and its devices together: what is somewhere, and whether all is well at rest.

use driftline_core::sync::{ConflictReason, same_value};

use crate::{
    ledger::{Ledger, Presence, place},
    model_replica::Replica,
    model_server::Server,
};

/// All values that the server or a device has.
pub(crate) fn presence(server: &Server, replicas: &[Replica]) -> Presence {
    let mut presence = Presence::default();
    for (key, (_, value)) in &server.store.objects {
        presence.add(key, value.as_ref());
    }
    for replica in replicas {
        replica.store.add_to(&mut presence);
    }
    presence
}

/// The server is about to lose the additions after a USN. Some are on no device.
pub(crate) fn forgive_lost_additions(
    server: &Server,
    replicas: &[Replica],
    ledger: &mut Ledger,
    after: u64,
) {
    for (key, (usn, _)) in &server.store.objects {
        let has = |replica: &Replica| {
            let object = replica.store.objects.get(key);
            object.is_some_and(|object| object.base_usn().get() == *usn)
        };
        if *usn > after && !replicas.iter().any(has) {
            ledger.forgive_addition(key);
        }
    }
}

/// Resolves each open conflict of a device: *mine* is edited in again. Returns true if there was one.
pub(crate) fn resolve(replica: &mut Replica, ledger: &mut Ledger) -> bool {
    let store = &mut replica.store;
    let open = store
        .conflicts
        .iter_mut()
        .filter(|listed| !listed.is_resolved);
    let open: Vec<_> = open
        .map(|listed| {
            listed.is_resolved = true;
            listed.conflict.clone()
        })
        .collect();
    let is_any = !open.is_empty();
    for conflict in open {
        let key = conflict.key;
        let now = place(&key, store.value(&key));
        let is_behind = place(&key, conflict.value.as_ref()).is_some_and(|place| Some(place) < now);
        let mine = conflict.value.as_ref();
        if !is_behind && !same_value(key.kind(), store.value(&key), mine) {
            store.edit(&key, mine, ledger);
        }
    }
    is_any
}

/// Checks that all devices have what the server has, and that each edit is on the server or listed.
///
/// # Errors
/// The first difference, or the first edit that is nowhere.
pub(crate) fn check(server: &Server, replicas: &[Replica], ledger: &Ledger) -> Result<(), String> {
    let living = server.store.objects.iter();
    let living: Vec<_> = living.filter(|(_, (_, value))| value.is_some()).collect();
    let mut presence = Presence::default();
    for (key, (_, value)) in &living {
        presence.add(key, value.as_ref());
    }
    for replica in replicas {
        let store = &replica.store;
        for (key, (usn, value)) in &living {
            let object = store.objects.get(key);
            let object = object.ok_or_else(|| format!("{key} does not come"))?;
            let is_same = same_value(key.kind(), object.value.as_ref(), value.as_ref());
            if object.is_dirty() || !is_same || object.base_usn().get() != *usn {
                return Err(format!("{value:?} {usn}, {object:?}"));
            }
        }
        for (key, object) in &store.objects {
            let is_tombstone = !object.is_dirty() && object.value.is_none();
            if !is_tombstone && server.store.value(key).is_none() {
                return Err(format!("the server has no {object:?}"));
            }
        }
        for listed in &store.conflicts {
            let conflict = &listed.conflict;
            presence.add(&conflict.key, conflict.value.as_ref());
            let is_refused = conflict.reason == ConflictReason::Refused;
            if is_refused != conflict.refusal.is_some() {
                return Err(format!("{conflict:?}"));
            }
        }
    }
    ledger.check(&presence)
}
