//! The sources of accounts: their limits, and their removal with the account.

use driftline_core::{names::audience::Audience, social::AccountState};
use driftline_db::Tx;

use super::{home_source, local_account};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, SourceKey},
    local_ids,
    mirror::source::{self, NameRefused, NewSource, Source},
    viewer::Owner,
};

/// The reason why an account's source was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceRefused {
    /// Another source of the account has the name, or the name is invalid.
    #[error(transparent)]
    Name(#[from] NameRefused),
    /// The account has the largest permitted number.
    #[error("an account may have {0} of its own sources; remove one first")]
    TooMany(u32),
    /// The operator permits no sources of accounts.
    #[error("this server lets accounts add no sources of their own")]
    NoneAllowed,
    /// The account is frozen, or does not exist.
    #[error("the account is frozen, or is not there any more")]
    NoAccount,
    /// Only the operator may permit servers in private networks.
    #[error("only the operator's sources may be in a private network")]
    PrivateNetwork,
    /// The operator has not permitted the account to show sources to the world.
    #[error(
        "the account may show no source to the world; the operator allows it with `driftline account publish NAME on`"
    )]
    MayNotPublish,
}

/// Adds a source for an account, and sets its owner and full name: `new` has the account's own name
/// for it. An account may have `limit` sources. Must be written below [`local_account::root`];
/// locks the clock.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::NoSourceIds`] if no IDs
/// of sources are left; [`StoreError::Unreadable`] if a stored value cannot be read;
/// [`StoreError::Db`] if the database fails.
pub fn add(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    new: &NewSource,
    limit: u32,
    now_ms: i64,
) -> Result<Result<SourceKey, SourceRefused>, StoreError> {
    let known = local_account::by_id(tx, account)?;
    let Some(known) = known.filter(|known| known.state != AccountState::Frozen) else {
        return Ok(Err(SourceRefused::NoAccount));
    };
    if new.allow_private {
        return Ok(Err(SourceRefused::PrivateNetwork));
    }
    if new.audience == Audience::Public && !known.may_publish {
        return Ok(Err(SourceRefused::MayNotPublish));
    }
    let owner = Owner::Account(account);
    tx.lock_later(local_ids::root())?;
    let owned = source::owned(tx, owner)?;
    if owned.len() >= limit as usize {
        return Ok(Err(match limit {
            0 => SourceRefused::NoneAllowed,
            _ => SourceRefused::TooMany(limit),
        }));
    }
    // No two sources of an account have the same time, by which the account finds them, because
    // their IDs count those of all accounts.
    let last_ms = owned.iter().map(|of| of.created_at_ms).max();
    let now_ms = last_ms.map_or(now_ms, |last_ms| now_ms.max(last_ms + 1));
    let new = NewSource {
        name: source::name_of(&known.name, &new.name),
        owner,
        ..new.clone()
    };
    let added = source::add(tx, &new, now_ms)?;
    // The home timeline of the account at its server is part of its home timeline here.
    if let (Ok(key), HOME) = (&added, &*new.timeline) {
        home_source::add(tx, account, key.id)?;
    }
    Ok(added.map_err(SourceRefused::Name))
}

/// True if sources of `owner` may have an audience. An account's sources may be public only if the
/// account may publish.
///
/// Must be read below [`source::root`] of the source. Withdrawing the permission visits each source
/// below that root after it is stored, so no source becomes public unnoticed.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn may_have(tx: &mut Tx<'_>, owner: Owner, audience: Audience) -> Result<bool, StoreError> {
    let (Owner::Account(account), Audience::Public) = (owner, audience) else {
        return Ok(true);
    };
    let known = local_account::by_id(tx, account)?;
    Ok(known.is_some_and(|known| known.may_publish))
}

/// Makes an account's source private if the world may read it. Returns `false` if not. Must be
/// written below [`source::root`] of it.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn withdraw(tx: &mut Tx<'_>, source: SourceKey) -> Result<bool, StoreError> {
    let known = source::by_id(tx, source.id)?;
    let is_public = known.is_some_and(|known| known.audience == Audience::Public);
    if is_public {
        source::set_audience(tx, source, Audience::Private)?;
    }
    Ok(is_public)
}

/// The name of home timelines at servers.
const HOME: &str = "home";

/// An account's sources, in order of their IDs.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn list(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<Source>, StoreError> {
    source::owned(tx, Owner::Account(account))
}
