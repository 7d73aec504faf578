//! Tokens of Mastodon's API: of an app for an account, or of an app alone. They do not expire.

use driftline_db::{Row, Tx};
use driftline_id::Id;

use super::{SecretHash, TokenHolder, app::AppId, local_account, token_holder};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, from_sql, sql},
};

/// The ID of a token in lists, next to its account. It is random.
pub type AccessTokenId = Id<AccessToken>;

/// An issued token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    /// Its ID.
    pub id: AccessTokenId,
    /// The account for which it acts; `None` for an app alone.
    pub account: Option<LocalAccountId>,
    /// The app to which it belongs.
    pub app: AppId,
    /// Its permissions: names of scopes, separated by spaces.
    pub scopes: String,
    /// The time at which it was issued, in Unix ms.
    pub created_at_ms: i64,
    /// The approximate time of its last use, in Unix ms: see [`USED_PRECISION_MS`].
    pub used_at_ms: i64,
}

/// A token to issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// See [`AccessToken::account`].
    pub account: Option<LocalAccountId>,
    /// The hash of the secret.
    pub hash: SecretHash,
    /// See [`AccessToken::app`].
    pub app: AppId,
    /// See [`AccessToken::scopes`].
    pub scopes: String,
}

/// A token in an account's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedToken {
    /// The token.
    pub token: AccessToken,
    /// The name of its app.
    pub app_name: String,
    /// The website of its app.
    pub app_website: Option<String>,
}

/// The age of the recorded last use at which a new use is recorded.
pub const USED_PRECISION_MS: i64 = 86_400_000;

/// Issues a token.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn add(tx: &mut Tx<'_>, new: &NewToken, now_ms: i64) -> Result<AccessTokenId, StoreError> {
    let id = tx.number();
    tx.execute(
        "insert into access_token (account_id, hash, id, app_id, scopes, created_at_ms, used_at_ms)
         values ($1, $2, $3, $4, $5, $6, $6)",
        &[
            &of(new.account),
            &new.hash,
            &id,
            &sql(new.app),
            &new.scopes,
            &now_ms,
        ],
    )?;
    Ok(from_sql(id)?)
}

/// The token with this secret.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn find(
    tx: &mut Tx<'_>,
    account: Option<LocalAccountId>,
    hash: &SecretHash,
) -> Result<Option<AccessToken>, StoreError> {
    Ok(tx.query_opt(
        "select account_id, id, app_id, scopes, created_at_ms, used_at_ms from access_token
         where account_id = $1 and hash = $2",
        &[&of(account), hash],
        read,
    )?)
}

/// The token with this secret, which names an account, together with that account. `None` also if
/// the account is gone. A token that was issued at a sign-up names the pending account.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn find_with_holder(
    tx: &mut Tx<'_>,
    named: LocalAccountId,
    hash: &SecretHash,
) -> Result<Option<(AccessToken, TokenHolder)>, StoreError> {
    if let Some(found) = find_of_holder(tx, named, hash)? {
        return Ok(Some(found));
    }
    match local_account::signed_up_as(tx, named)? {
        Some(account) => find_of_holder(tx, account, hash),
        None => Ok(None),
    }
}

fn find_of_holder(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    hash: &SecretHash,
) -> Result<Option<(AccessToken, TokenHolder)>, StoreError> {
    let select = format!(
        "select t.account_id, t.id, t.app_id, t.scopes, t.created_at_ms, t.used_at_ms, {}
         from access_token t join local_account h on h.id = t.account_id
         where t.account_id = $1 and t.hash = $2 and not h.deleting",
        token_holder::COLUMNS
    );
    let found = tx.query_opt(&select, &[&sql(account), hash], |row| {
        Ok((read(row)?, token_holder::from_row(row)))
    })?;
    let found = found.map(|(token, holder)| Ok((token, holder?)));
    found.transpose()
}

/// Records the use of a token, unless a recent one is recorded.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn used(tx: &mut Tx<'_>, token: &AccessToken, now_ms: i64) -> Result<(), StoreError> {
    tx.execute(
        "update access_token set used_at_ms = $3
         where account_id = $1 and id = $2 and used_at_ms <= $4",
        &[
            &of(token.account),
            &sql(token.id),
            &now_ms,
            &(now_ms - USED_PRECISION_MS),
        ],
    )?;
    Ok(())
}

/// An account's tokens, the newest first.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn list(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<ListedToken>, StoreError> {
    Ok(tx.query(
        "select t.account_id, t.id, t.app_id, t.scopes, t.created_at_ms, t.used_at_ms,
             a.name, a.website
         from access_token t join app a on a.id = t.app_id
         where t.account_id = $1 order by t.created_at_ms desc, t.id",
        &[&sql(account)],
        |row| {
            Ok(ListedToken {
                token: read(row)?,
                app_name: row.text("name")?,
                app_website: row.opt_text("website")?,
            })
        },
    )?)
}

/// Revokes a token of an account. Returns `false` if none has this ID.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn revoke(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: AccessTokenId,
) -> Result<bool, StoreError> {
    let revoked = tx.execute(
        "delete from access_token where account_id = $1 and id = $2",
        &[&sql(account), &sql(id)],
    )?;
    Ok(revoked > 0)
}

/// Revokes the token with this secret, if it belongs to the given app. Returns `false` if there is
/// none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn revoke_secret(
    tx: &mut Tx<'_>,
    account: Option<LocalAccountId>,
    hash: &SecretHash,
    app: AppId,
) -> Result<bool, StoreError> {
    let revoked = tx.execute(
        "delete from access_token where account_id = $1 and hash = $2 and app_id = $3",
        &[&of(account), hash, &sql(app)],
    )?;
    Ok(revoked > 0)
}

/// Revokes all tokens of an account.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn revoke_all(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<u64, StoreError> {
    let all = "delete from access_token where account_id = $1";
    Ok(tx.execute(all, &[&sql(account)])?)
}

/// The value of the account's column. It is 0 without an account, because no local ID is 0.
fn of(account: Option<LocalAccountId>) -> i64 {
    account.map_or(0, sql)
}

fn read(row: &Row<'_>) -> Result<AccessToken, driftline_db::DbError> {
    let account = row.i64("account_id")?;
    Ok(AccessToken {
        id: from_sql(row.i64("id")?)?,
        account: (account != 0).then(|| from_sql(account)).transpose()?,
        app: from_sql(row.i64("app_id")?)?,
        scopes: row.text("scopes")?,
        created_at_ms: row.i64("created_at_ms")?,
        used_at_ms: row.i64("used_at_ms")?,
    })
}
