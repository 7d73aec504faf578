//! Codes that an app exchanges once for a token of the consenting account.

use driftline_core::clock::MAX_SKEW_MS;
use driftline_db::Tx;

use super::{
    SecretHash,
    access_token::{self, AccessTokenId, NewToken},
    app::AppId,
};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, from_sql, sql},
    text::without_nul,
};

/// The time for which a code may be exchanged.
pub const LIFETIME_MS: i64 = 600_000;

/// A code to issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCode {
    /// The consenting account.
    pub account: LocalAccountId,
    /// The hash of the secret.
    pub hash: SecretHash,
    /// The app for which it is issued.
    pub app: AppId,
    /// The address to which it is sent.
    pub redirect_uri: String,
    /// The permissions: names of scopes, separated by spaces.
    pub scopes: String,
    /// The S256 challenge of PKCE, if the app sent one.
    pub challenge: Option<String>,
}

/// An app's attempt to exchange a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The account in the code.
    pub account: LocalAccountId,
    /// The hash of the code.
    pub hash: SecretHash,
    /// The app that has it.
    pub app: AppId,
    /// The address to which it was sent, according to the app.
    pub redirect_uri: String,
    /// The S256 challenge of the verifier that the app sent, if it sent one.
    pub challenge: Option<String>,
    /// The hash of the new token's secret.
    pub token: SecretHash,
}

/// The result of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchanged {
    /// The token.
    pub token: AccessTokenId,
    /// Its scopes.
    pub scopes: String,
}

/// The reason why a code is not exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeRefused {
    /// The code does not exist (any more).
    Unknown,
    /// The code belongs to another app, was sent to another address, or the verifier does not match
    /// its challenge. It can still be exchanged.
    Mismatch,
    /// The code was exchanged before. Another party has it, so the token from it is revoked.
    Reused,
}

/// Issues a code, and removes expired ones of the account.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn add(tx: &mut Tx<'_>, new: &NewCode, now_ms: i64) -> Result<(), StoreError> {
    tx.execute(
        "delete from authorization_code where account_id = $1 and expires_at_ms <= $2",
        &[&sql(new.account), &now_ms],
    )?;
    tx.execute(
        "insert into authorization_code (account_id, hash, app_id, redirect_uri, scopes, challenge,
             expires_at_ms)
         values ($1, $2, $3, $4, $5, $6, $7)",
        &[
            &sql(new.account),
            &new.hash,
            &sql(new.app),
            &&*without_nul(&new.redirect_uri),
            &new.scopes,
            &new.challenge,
            &(now_ms + LIFETIME_MS),
        ],
    )?;
    Ok(())
}

/// Exchanges a code for a token. Of two concurrent attempts one succeeds.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn exchange(
    tx: &mut Tx<'_>,
    exchange: &Exchange,
    now_ms: i64,
) -> Result<Result<Exchanged, ExchangeRefused>, StoreError> {
    // A clock that was ahead has issued codes with a longer life.
    let max_ms = now_ms + LIFETIME_MS + MAX_SKEW_MS;
    let key: [&dyn driftline_db::ToValue; 4] =
        [&sql(exchange.account), &exchange.hash, &now_ms, &max_ms];
    let code = tx.query_opt(
        "select app_id, redirect_uri, scopes, challenge from authorization_code
         where account_id = $1 and hash = $2 and expires_at_ms > $3 and expires_at_ms <= $4",
        &key,
        |row| {
            let is_bound = row.i64("app_id")? == sql(exchange.app)
                && row.str("redirect_uri")? == exchange.redirect_uri
                && row.opt_str("challenge")? == exchange.challenge.as_deref();
            Ok((is_bound, row.text("scopes")?))
        },
    )?;
    let Some((is_bound, scopes)) = code else {
        return Ok(Err(ExchangeRefused::Unknown));
    };
    if !is_bound {
        return Ok(Err(ExchangeRefused::Mismatch));
    }
    let new = NewToken {
        account: Some(exchange.account),
        hash: exchange.token,
        app: exchange.app,
        scopes,
    };
    let token = tx.number();
    let taken = tx.execute(
        "update authorization_code set token_id = $3
         where account_id = $1 and hash = $2 and token_id is null",
        &[&sql(exchange.account), &exchange.hash, &token],
    )?;
    if taken == 0 {
        revoke_given(tx, exchange)?;
        return Ok(Err(ExchangeRefused::Reused));
    }
    let token = access_token::add(tx, &new, now_ms)?;
    Ok(Ok(Exchanged {
        token,
        scopes: new.scopes,
    }))
}

/// Removes all codes of an account.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn revoke_all(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), StoreError> {
    let all = "delete from authorization_code where account_id = $1";
    tx.execute(all, &[&sql(account)])?;
    Ok(())
}

fn revoke_given(tx: &mut Tx<'_>, exchange: &Exchange) -> Result<(), StoreError> {
    let given = tx.query_opt(
        "select token_id from authorization_code where account_id = $1 and hash = $2",
        &[&sql(exchange.account), &exchange.hash],
        |row| row.opt_i64("token_id"),
    )?;
    if let Some(id) = given.flatten() {
        access_token::revoke(tx, exchange.account, from_sql(id)?)?;
    }
    Ok(())
}
