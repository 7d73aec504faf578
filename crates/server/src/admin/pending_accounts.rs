//! Commands on sign-ups whose mail address is not verified yet.

use driftline_core::social::{AccountName, VerificationDigest};
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    Store, Tx, local_ids,
    social::pending_account::{self, PendingAccount},
};

use super::{DeletedAccount, Host, ListPendingAccounts, PendingAccountRow};

/// The pending accounts, in order of their first sign-up.
pub(super) async fn list(
    host: &Host,
    _: ListPendingAccounts,
) -> Result<Vec<PendingAccountRow>, CommandError> {
    let now_ms = now_ms();
    let list = move |tx: &mut Tx<'_>| pending_account::list(tx, now_ms);
    let pending = host.store.read(list).await?;
    Ok(pending.into_iter().map(row).collect())
}

/// What goes with the sign-up of that name; `None` if nobody signs up under it.
pub(super) async fn plan_removal(
    store: &Store,
    name: &AccountName,
) -> Result<Option<DeletedAccount>, CommandError> {
    let (of, now_ms) = (name.clone(), now_ms());
    let find = move |tx: &mut Tx<'_>| pending_account::by_name(tx, &of, now_ms);
    let found = store.read(find).await?;
    Ok(found.map(|(pending, _)| removed(pending.name)))
}

/// Removes the sign-up of that name; `None` if nobody signs up under it.
pub(super) async fn delete(
    store: &Store,
    name: &AccountName,
) -> Result<Option<DeletedAccount>, CommandError> {
    let Some(plan) = plan_removal(store, name).await? else {
        return Ok(None);
    };
    let of = name.clone();
    let remove = move |tx: &mut Tx<'_>| pending_account::remove(tx, &of);
    let is_removed = store.write(local_ids::root(), remove).await?;
    Ok(is_removed.then_some(plan))
}

fn removed(name: AccountName) -> DeletedAccount {
    DeletedAccount {
        name,
        pending: true,
        sources: 0,
        posts: 0,
        relations: 0,
        mutes: 0,
        objects: 0,
    }
}

fn row(pending: PendingAccount) -> PendingAccountRow {
    PendingAccountRow {
        name: pending.name,
        mail: pending.mail,
        signed_up_at_ms: pending.created_at_ms,
        void_at_ms: pending.created_at_ms + VerificationDigest::LASTS_MS,
        reason: pending.reason,
    }
}
