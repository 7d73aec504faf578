//! The objects of outgoing relations in the libraries of their accounts: a follow, which may be requested, or a block.

use driftline_core::{social::Relation, sync::ObjectKind};
use driftline_db::Tx;

use super::{object_keys, relation::RelationRow};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, from_sql, sql},
    library::object::AccountLibrary,
};

/// The kind of a relation's object; `None` if there is none.
pub(crate) fn kind(relation: Relation) -> Option<ObjectKind> {
    match relation {
        Relation::None => None,
        Relation::RequestingFollow | Relation::Following => Some(ObjectKind::Follow),
        Relation::Blocking => Some(ObjectKind::Block),
    }
}

/// Takes the USNs of a change of the relation of an account, which this transaction has locked: one if the object is
/// added, changed or removed, two if a block replaces a follow. Returns the ID of the object afterwards. Locks the clock
/// if an object is added.
pub(super) fn update(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    (before, after): (&RelationRow, &RelationRow),
    now_ms: i64,
) -> Result<Option<LocalId>, StoreError> {
    let (was, is) = (kind(before.pair.outgoing), kind(after.pair.outgoing));
    if was == is && (is.is_none() || value(before) == value(after)) {
        return Ok(before.object_id);
    }
    let new_key = match is.filter(|_| was != is) {
        Some(kind) => Some((kind, object_keys::for_account(tx, kind, after.other)?)),
        None => None,
    };
    let mut library = AccountLibrary::load(tx, account)?;
    match before.object_id.map(sql) {
        Some(id) if was == is => library.change(tx, id)?,
        Some(id) => library.remove(tx, &[id])?,
        None => {}
    }
    match new_key {
        Some((kind, key)) => Ok(Some(from_sql(library.add(tx, kind, &[key], now_ms)?)?)),
        None => Ok(before.object_id.filter(|_| was == is)),
    }
}

/// The parts of a row that are in the value of its object.
fn value(row: &RelationRow) -> (Relation, bool, bool) {
    (row.pair.outgoing, row.show_boosts, row.notified.is_some())
}
