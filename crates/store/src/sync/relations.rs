//! Stores the changes of devices to follows, blocks, mutes and notes on accounts, as programs of people do.

use driftline_core::{
    social::{RelationMove, RelationRefused},
    sync::{FollowValue, MuteValue, ObjectKey, ObjectKind},
};
use driftline_db::Tx;

use super::{
    apply::Applied,
    push::{Resolved, changes_other},
};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, local_account_id},
    library::object::KnownObject,
    social::{
        account_note,
        copy_relations::{RelatedAccount, RelationContext},
        mute, object_keys,
        relation::{self, ChangeRefused, FollowOptions},
        relation_object,
    },
};

/// The account of a device, and the accounts that its push names.
pub(super) struct ChangeContext<'a> {
    pub(super) account: LocalAccountId,
    pub(super) resolved: &'a Resolved,
    /// The time of the push, in Unix ms.
    pub(super) now_ms: i64,
}

/// Follows the account of a key, or changes the options of its follow.
pub(super) fn follow(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
    living: Option<&KnownObject>,
    value: &FollowValue,
) -> Result<Applied, StoreError> {
    let other = match target(tx, context, key, living)? {
        Ok(other) => other,
        Err(reason) => return Ok(Err(reason)),
    };
    let options = FollowOptions {
        show_boosts: Some(value.reblogs),
        notify: Some(value.notify),
    };
    let followed = relation_context(context, other).follow(tx, options)?;
    Ok(followed.map(drop).map_err(|refused| match refused {
        // Words of its own would say that the account blocks this one.
        ChangeRefused::Relation(RelationRefused::BlockedBy) => UNKNOWN.to_owned(),
        other => other.to_string(),
    }))
}

/// Blocks the account of a key.
pub(super) fn block(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
    living: Option<&KnownObject>,
) -> Result<Applied, StoreError> {
    let other = match target(tx, context, key, living)? {
        Ok(other) => other,
        Err(reason) => return Ok(Err(reason)),
    };
    let blocked = relation_context(context, other).change(tx, RelationMove::Block)?;
    Ok(blocked.map(drop).map_err(|refused| refused.to_string()))
}

/// Mutes the account of a key, or changes its mute.
pub(super) fn mute(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
    living: Option<&KnownObject>,
    value: &MuteValue,
) -> Result<Applied, StoreError> {
    let other = match target(tx, context, key, living)? {
        Ok(other) => other,
        Err(reason) => return Ok(Err(reason)),
    };
    let context = relation_context(context, other);
    let muted = context.mute(tx, value.notifications, value.expires_at)?;
    Ok(muted.map_err(|refused| refused.to_string()))
}

/// Sets the note on the account of a key.
pub(super) fn set_note(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
    living: Option<&KnownObject>,
    text: &str,
) -> Result<Applied, StoreError> {
    let other = match target(tx, context, key, living)? {
        Ok(other) => other.canonical_id,
        Err(reason) => return Ok(Err(reason)),
    };
    let set = account_note::set(tx, context.account, other, text, context.now_ms)?;
    Ok(set.map_err(|refused| refused.to_string()))
}

/// Deletes a follow, block, mute or note on an account.
pub(super) fn delete(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    kind: ObjectKind,
    object: &KnownObject,
) -> Result<Applied, StoreError> {
    let other = match target(tx, context, &object.key, Some(object))? {
        Ok(other) => other,
        Err(reason) => return Ok(Err(reason)),
    };
    let action = match kind {
        ObjectKind::Follow => RelationMove::Unfollow,
        ObjectKind::Block => RelationMove::Unblock,
        ObjectKind::Mute => {
            mute::remove(tx, context.account, other.canonical_id)?;
            return Ok(Ok(()));
        }
        _ => {
            account_note::remove(tx, context.account, other.canonical_id)?;
            return Ok(Ok(()));
        }
    };
    let changed = relation_context(context, other).change(tx, action)?;
    Ok(changed.map(drop).map_err(|refused| refused.to_string()))
}

fn relation_context(context: &ChangeContext<'_>, other: RelatedAccount) -> RelationContext {
    RelationContext {
        account: context.account,
        other,
        now_ms: context.now_ms,
    }
}

/// The account of an object: that of the stored one, else the one that its key names. The reason if there is none that
/// the device may name.
fn target(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
    living: Option<&KnownObject>,
) -> Result<Result<RelatedAccount, String>, StoreError> {
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
    let may_change =
        |other: &RelatedAccount| !changes_other(kind) || is_locked(resolved, other.canonical_id);
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
    Ok(Ok(other))
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
