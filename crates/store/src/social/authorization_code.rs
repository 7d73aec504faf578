//! Codes that an app exchanges for a token of the account that consented, once.

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

/// How long a code may be exchanged.
pub const LIFETIME_MS: i64 = 600_000;

/// A code to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCode {
    /// Who consented.
    pub account: LocalAccountId,
    /// The secret.
    pub hash: SecretHash,
    /// Whom it is for.
    pub app: AppId,
    /// Where it is sent.
    pub redirect_uri: String,
    /// What was consented to: names of scopes with a space between them.
    pub scopes: String,
    /// The S256 challenge of PKCE, if the app sent one.
    pub challenge: Option<String>,
}

/// An app's try to exchange a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The account that the code names.
    pub account: LocalAccountId,
    /// The code.
    pub hash: SecretHash,
    /// Who has it.
    pub app: AppId,
    /// Where the app says that it was sent.
    pub redirect_uri: String,
    /// The S256 challenge of the verifier that the app sent, if it sent one.
    pub challenge: Option<String>,
    /// The secret of the token to give.
    pub token: SecretHash,
}

/// What a code was exchanged for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchanged {
    /// The token.
    pub token: AccessTokenId,
    /// Its scopes.
    pub scopes: String,
}

/// Why a code is not exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeRefused {
    /// There is no such code, or no longer.
    Unknown,
    /// It is another app's, was sent elsewhere, or the verifier is not its challenge's. It can still be
    /// exchanged.
    Mismatch,
    /// It was exchanged before: somebody else has it, so the token that it gave is revoked.
    Reused,
}

/// Gives a code, and forgets those of the account that have expired.
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

/// Exchanges a code for a token. Of two that try it at a time one succeeds.
pub fn exchange(
    tx: &mut Tx<'_>,
    exchange: &Exchange,
    now_ms: i64,
) -> Result<Result<Exchanged, ExchangeRefused>, StoreError> {
    // A clock that was ahead gave what lasts for longer.
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

/// Forgets an account's codes.
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
