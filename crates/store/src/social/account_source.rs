//! The sources that accounts own: how many each may have, and what becomes of them with their account.

use driftline_core::social::AccountState;
use driftline_db::Tx;

use super::local_account;
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, SourceKey},
    local_ids,
    mirror::source::{self, NameRefused, NewSource, Source},
    viewer::Owner,
};

/// Why an account's source was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceRefused {
    /// Its name is taken by another one of the account's, or invalid.
    #[error(transparent)]
    Name(#[from] NameRefused),
    /// The account has as many as it may have.
    #[error("an account may have {0} of its own sources; remove one first")]
    TooMany(u32),
    /// The operator lets no account add any.
    #[error("this server lets accounts add no sources of their own")]
    NoneAllowed,
    /// The account is frozen, or does not exist.
    #[error("the account is frozen, or is not there any more")]
    NoAccount,
    /// Only the operator says which servers in private networks are read.
    #[error("only the operator's sources may be in a private network")]
    PrivateNetwork,
}

/// Adds a source for an account, whose owner and whole name it sets: `new` has the account's own name for it. An
/// account may have `limit` of them. To be written below [`local_account::root`]; holds the clock.
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
    let owner = Owner::Account(account);
    tx.lock_later(local_ids::root())?;
    if source::owned(tx, owner)?.len() >= limit as usize {
        return Ok(Err(match limit {
            0 => SourceRefused::NoneAllowed,
            _ => SourceRefused::TooMany(limit),
        }));
    }
    let new = NewSource {
        name: source::name_of(&known.name, &new.name),
        owner,
        ..new.clone()
    };
    Ok(source::add(tx, &new, now_ms)?.map_err(SourceRefused::Name))
}

/// An account's sources, in order of their IDs.
pub fn list(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<Source>, StoreError> {
    source::owned(tx, Owner::Account(account))
}
