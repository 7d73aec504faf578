//! Actions towards accounts to whose copies the caller may have earlier relations.
//!
//! An action replaces or ends such a relation, so that the caller has one relation to the account.

use driftline_core::social::{Relation, RelationMove, RelationRefused};
use driftline_store::{
    AccountId, LocalAccountId, StoreError, Tx,
    social::{
        list_member, mute,
        relation::{self, ChangeRefused, FollowOptions, RelationRow},
    },
};

use super::linked_accounts::AccountIds;

/// Follows an account. A follow of its copy ends: its options and its places in lists pass to the
/// new one. The action is refused if the caller blocks the copy.
pub(super) fn follow(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountIds,
    options: FollowOptions,
    now_ms: i64,
) -> Result<Result<RelationRow, ChangeRefused>, StoreError> {
    let ids: Vec<AccountId> = other.all().collect();
    let rows = relation::to(tx, account, &ids)?;
    let row = |id: AccountId| {
        let mut related = rows.iter();
        related.find(|row| row.other == id && row.pair.outgoing != Relation::None)
    };
    let Some(earlier) = other.copy_id.and_then(row) else {
        return relation::follow(tx, account, other.canonical_id, options, now_ms);
    };
    if earlier.pair.outgoing == Relation::Blocking {
        return Ok(Err(RelationRefused::Blocking.into()));
    }
    let options = match row(other.canonical_id) {
        Some(_) => options,
        None => FollowOptions {
            show_boosts: options.show_boosts.or(Some(earlier.show_boosts)),
            notify: options.notify.or(Some(earlier.notified.is_some())),
        },
    };
    relation::prepare_several(tx)?;
    let lists = list_member::lists_with(tx, account, earlier.other)?;
    let followed = relation::follow(tx, account, other.canonical_id, options, now_ms)?;
    if followed.is_err() {
        return Ok(followed);
    }
    let ended = relation::change(tx, account, earlier.other, RelationMove::Unfollow, now_ms)?;
    for list in lists {
        // A list that already has the account refuses it, and all do until it accepts the follow.
        let _ = list_member::add(tx, account, list, &[other.canonical_id], now_ms)?;
    }
    Ok(ended.and(followed))
}

/// Performs an action towards an account.
///
/// Unfollowing and unblocking apply to the copy, too, even if the account is the caller. A block of
/// the account replaces the relation to the copy.
pub(super) fn change(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountIds,
    action: RelationMove,
    now_ms: i64,
) -> Result<Result<RelationRow, ChangeRefused>, StoreError> {
    if other.copy_id.is_some() {
        relation::prepare_several(tx)?;
    }
    let changed = relation::change(tx, account, other.canonical_id, action, now_ms)?;
    let Some(copy) = other.copy_id else {
        return Ok(changed);
    };
    match action {
        RelationMove::Unfollow | RelationMove::Unblock => {
            relation::change(tx, account, copy, action, now_ms)
        }
        RelationMove::Block if changed.is_ok() => {
            // The block of the account hides the copy's posts. That of the copy removes its
            // notifications, and need not last.
            for step in [RelationMove::Block, RelationMove::Unblock] {
                if let Err(refused) = relation::change(tx, account, copy, step, now_ms)? {
                    return Ok(Err(refused));
                }
            }
            Ok(changed)
        }
        _ => Ok(changed),
    }
}

/// Mutes an account. A mute of its copy ends.
pub(super) fn mute(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountIds,
    notifications: bool,
    until_ms: Option<i64>,
    now_ms: i64,
) -> Result<Result<(), ChangeRefused>, StoreError> {
    if !mute::set(
        tx,
        account,
        other.canonical_id,
        notifications,
        until_ms,
        now_ms,
    )? {
        return Ok(Err(ChangeRefused::Oneself));
    }
    if let Some(copy) = other.copy_id {
        mute::remove(tx, account, copy)?;
    }
    Ok(Ok(()))
}
