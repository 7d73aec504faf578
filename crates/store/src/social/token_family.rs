//! Native tokens by the log-in that began them. Each refresh token of a family is used once.

use driftline_core::social::RefreshTokens;
use driftline_db::{DbError, Row, Tx};
use driftline_id::Id;

use super::{SecretHash, TokenHolder, token_holder};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, from_sql, sql},
    text::without_nul,
};

/// The life of a family after the log-in, independent of refreshes.
pub const LIFETIME_MS: i64 = 30 * 86_400_000;

/// The ID of a family, next to its account. It is random.
pub type TokenFamilyId = Id<TokenFamily>;

/// A family that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFamily {
    /// Its ID.
    pub id: TokenFamilyId,
    /// Its account.
    pub account: LocalAccountId,
    /// The device's name for itself.
    pub device: String,
    /// The time of the log-in, in Unix ms.
    pub created_at_ms: i64,
    /// The time of the last refresh, in Unix ms.
    pub rotated_at_ms: i64,
    /// The time of its end, in Unix ms.
    pub ends_at_ms: i64,
}

/// The result of an attempt to refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The family's refresh token is the new one.
    Rotated(TokenFamily),
    /// The token was used before, by another party or a device that lost its state. The family has
    /// ended.
    Reused,
    /// The family has ended, or does not exist.
    Ended,
}

/// Begins a family, and removes those of the account that have ended.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn begin(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    device: &str,
    id: TokenFamilyId,
    refresh: &SecretHash,
    now_ms: i64,
) -> Result<TokenFamily, StoreError> {
    tx.execute(
        "delete from token_family where account_id = $1 and ends_at_ms <= $2",
        &[&sql(account), &now_ms],
    )?;
    let family = TokenFamily {
        id,
        account,
        device: without_nul(device).into_owned(),
        created_at_ms: now_ms,
        rotated_at_ms: now_ms,
        ends_at_ms: now_ms + LIFETIME_MS,
    };
    tx.execute(
        "insert into token_family (account_id, id, device, refresh_tokens, created_at_ms,
             rotated_at_ms, ends_at_ms)
         values ($1, $2, $3, $4, $5, $5, $6)",
        &[
            &sql(account),
            &sql(id),
            &family.device,
            &RefreshTokens::new(*refresh.as_bytes()).to_bytes(),
            &now_ms,
            &family.ends_at_ms,
        ],
    )?;
    Ok(family)
}

/// The family, unless it has ended.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn find(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: TokenFamilyId,
    now_ms: i64,
) -> Result<Option<TokenFamily>, StoreError> {
    Ok(tx.query_opt(
        "select account_id, id, device, created_at_ms, rotated_at_ms, ends_at_ms from token_family
         where account_id = $1 and id = $2 and ends_at_ms > $3",
        &[&sql(account), &sql(id), &now_ms],
        read,
    )?)
}

/// The family with its account, unless it has ended. `None` also if the account is gone.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn find_with_holder(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: TokenFamilyId,
    now_ms: i64,
) -> Result<Option<(TokenFamily, TokenHolder)>, StoreError> {
    let select = format!(
        "select f.account_id, f.id, f.device, f.created_at_ms, f.rotated_at_ms, f.ends_at_ms, {}
         from token_family f join local_account h on h.id = f.account_id
         where f.account_id = $1 and f.id = $2 and f.ends_at_ms > $3 and not h.deleting",
        token_holder::COLUMNS
    );
    let found = tx.query_opt(&select, &[&sql(account), &sql(id), &now_ms], |row| {
        Ok((read(row)?, token_holder::from_row(row)))
    })?;
    let found = found.map(|(family, holder)| Ok((family, holder?)));
    found.transpose()
}

/// Exchanges the refresh token `used`, which once belonged to this family, for `next`, by the rules
/// of [`RefreshTokens`]. Concurrent refreshes happen one after the other.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn rotate(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: TokenFamilyId,
    used: &SecretHash,
    next: &SecretHash,
    now_ms: i64,
) -> Result<Rotation, StoreError> {
    let (account_id, family_id) = (sql(account), sql(id));
    // Locks the row, so that the following query reads the last written state.
    let locked = tx.execute(
        "update token_family set rotated_at_ms = rotated_at_ms
         where account_id = $1 and id = $2 and ends_at_ms > $3",
        &[&account_id, &family_id, &now_ms],
    )?;
    if locked == 0 {
        return Ok(Rotation::Ended);
    }
    let stored = tx.query_one(
        "select refresh_tokens from token_family where account_id = $1 and id = $2",
        &[&account_id, &family_id],
        |row| Ok(row.bytes("refresh_tokens")?.to_vec()),
    )?;
    let tokens = RefreshTokens::from_bytes(&stored);
    let mut tokens =
        tokens.map_err(|error| StoreError::unreadable("a family's refresh tokens", &error))?;
    if tokens
        .exchange(used.as_bytes(), *next.as_bytes(), now_ms)
        .is_err()
    {
        end(tx, account, id)?;
        return Ok(Rotation::Reused);
    }
    tx.execute(
        "update token_family set refresh_tokens = $3, rotated_at_ms = $4
         where account_id = $1 and id = $2",
        &[&account_id, &family_id, &tokens.to_bytes(), &now_ms],
    )?;
    let rotated = find(tx, account, id, now_ms)?;
    Ok(rotated.map_or(Rotation::Ended, Rotation::Rotated))
}

/// An account's families that have not ended, the newest first.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn list(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    now_ms: i64,
) -> Result<Vec<TokenFamily>, StoreError> {
    Ok(tx.query(
        "select account_id, id, device, created_at_ms, rotated_at_ms, ends_at_ms from token_family
         where account_id = $1 and ends_at_ms > $2 order by created_at_ms desc, id",
        &[&sql(account), &now_ms],
        read,
    )?)
}

/// Ends a family. Returns `false` if there is none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn end(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: TokenFamilyId,
) -> Result<bool, StoreError> {
    let ended = tx.execute(
        "delete from token_family where account_id = $1 and id = $2",
        &[&sql(account), &sql(id)],
    )?;
    Ok(ended > 0)
}

/// Ends all families of an account.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn end_all(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<u64, StoreError> {
    let all = "delete from token_family where account_id = $1";
    Ok(tx.execute(all, &[&sql(account)])?)
}

fn read(row: &Row<'_>) -> Result<TokenFamily, DbError> {
    Ok(TokenFamily {
        id: from_sql(row.i64("id")?)?,
        account: from_sql(row.i64("account_id")?)?,
        device: row.text("device")?,
        created_at_ms: row.i64("created_at_ms")?,
        rotated_at_ms: row.i64("rotated_at_ms")?,
        ends_at_ms: row.i64("ends_at_ms")?,
    })
}
