//! Stores the changes of devices to follows, blocks, mutes and notes on accounts, as programs of people do.

use driftline_core::{
    social::{RelationMove, RelationRefused},
    sync::{ObjectKey, ObjectKind, ObjectValue},
};
use driftline_db::Tx;

use super::{
    apply::{Applied, ChangeContext, applied},
    push::Resolved,
};
use crate::{
    error::StoreError,
    id_types::{AccountId, local_account_id},
    library::object::KnownObject,
    social::{
        account_note,
        copy_relations::{RelatedAccount, RelationContext},
        mute, object_keys,
        relation::{self, ChangeRefused, FollowOptions},
        relation_object,
    },
};

/// Adds a follow, block, mute or note of the account of a key, or changes it.
pub(super) fn put(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
    value: &ObjectValue,
    living: Option<&KnownObject>,
) -> Result<Applied, StoreError> {
    let relation = match target(tx, context, key, living)? {
        Ok(relation) => relation,
        Err(reason) => return Ok(Err(reason)),
    };
    Ok(match value {
        ObjectValue::Follow(value) => {
            let options = FollowOptions {
                show_boosts: Some(value.reblogs),
                notify: Some(value.notify),
            };
            match relation.follow(tx, options)? {
                // A reason of its own would reveal that the account blocks this one.
                Err(ChangeRefused::Relation(RelationRefused::BlockedBy)) => Err(UNKNOWN.to_owned()),
                followed => applied(followed),
            }
        }
        ObjectValue::Account(_) => applied(relation.change(tx, RelationMove::Block)?),
        ObjectValue::Mute(value) => {
            applied(relation.mute(tx, value.notifications, value.expires_at)?)
        }
        ObjectValue::Note(value) => {
            let (account, other) = (context.account, relation.other.canonical_id);
            applied(account_note::set(
                tx,
                account,
                other,
                &value.text,
                context.now_ms,
            )?)
        }
        _ => Err(UNKNOWN.to_owned()),
    })
}

/// Deletes a follow, block, mute or note on an account.
pub(super) fn delete(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    kind: ObjectKind,
    object: &KnownObject,
) -> Result<Applied, StoreError> {
    let relation = match target(tx, context, &object.key, Some(object))? {
        Ok(relation) => relation,
        Err(reason) => return Ok(Err(reason)),
    };
    let (account, other) = (context.account, relation.other.canonical_id);
    Ok(match kind {
        ObjectKind::Follow => applied(relation.change(tx, RelationMove::Unfollow)?),
        ObjectKind::Block => applied(relation.change(tx, RelationMove::Unblock)?),
        ObjectKind::Mute => {
            mute::remove(tx, account, other)?;
            Ok(())
        }
        _ => {
            account_note::remove(tx, account, other)?;
            Ok(())
        }
    })
}

/// The relation to the account of a stored object, or to the one that the key names. The reason if the device may name no such
/// account.
fn target(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
    living: Option<&KnownObject>,
) -> Result<Result<RelationContext, String>, StoreError> {
    let resolved = context.resolved;
    let (Some(kind), named) = (key.kind(), resolved.related.get(key).copied()) else {
        return Ok(Err(UNKNOWN.to_owned()));
    };
    let found = match living {
        // Its name here may be another one by now.
        Some(object) => account_of(tx, context, kind, object.id)?.map(|id| {
            let is_it = |other: &RelatedAccount| other.canonical_id == id;
            named.filter(is_it).unwrap_or(RelatedAccount {
                canonical_id: id,
                copy_id: None,
            })
        }),
        None => named,
    };
    // The others change nothing of the other account.
    let needs_lock = matches!(kind, ObjectKind::Follow | ObjectKind::Block);
    let may_change =
        |other: &RelatedAccount| !needs_lock || is_locked(resolved, other.canonical_id);
    let Some(other) = found.filter(may_change) else {
        return Ok(Err(UNKNOWN.to_owned()));
    };
    if living.is_none() {
        let own = object_keys::for_account(tx, kind, other.canonical_id)?;
        if own != *key {
            return Ok(Err(format!("this server knows the account as {own}")));
        }
        if is_stored(tx, context, kind, other.canonical_id)? {
            let reason = "the account already has such an object, under another key";
            return Ok(Err(reason.to_owned()));
        }
    }
    Ok(Ok(RelationContext {
        account: context.account,
        other,
        now_ms: context.now_ms,
    }))
}

/// True if the push has locked the account, if it is one of this server.
fn is_locked(resolved: &Resolved, account: AccountId) -> bool {
    local_account_id(account)
        .is_none_or(|account| resolved.locked_accounts().any(|id| id == account))
}

/// The account of a stored object.
fn account_of(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    kind: ObjectKind,
    id: i64,
) -> Result<Option<AccountId>, StoreError> {
    let (account, ids) = (context.account, [id]);
    Ok(match kind {
        ObjectKind::Mute => {
            let found = mute::by_ids(tx, account, &ids)?.pop();
            found.map(|mute| mute.other)
        }
        ObjectKind::AccountNote => {
            let found = account_note::by_ids(tx, account, &ids)?.pop();
            found.map(|note| note.other)
        }
        _ => {
            let found = relation::by_objects(tx, account, &ids)?.pop();
            found.map(|row| row.other)
        }
    })
}

/// True if there is an object of this kind about an account.
fn is_stored(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    kind: ObjectKind,
    other: AccountId,
) -> Result<bool, StoreError> {
    let account = context.account;
    Ok(match kind {
        ObjectKind::Mute => mute::find(tx, account, other)?.is_some(),
        ObjectKind::AccountNote => !account_note::to(tx, account, &[other])?.is_empty(),
        _ => {
            let rows = relation::to(tx, account, &[other])?;
            let mut kinds = rows
                .iter()
                .map(|row| relation_object::kind(row.pair.outgoing));
            kinds.any(|of| of == Some(kind))
        }
    })
}

/// The reason for all accounts that the device may not name.
const UNKNOWN: &str = "this server has no such account for you";
