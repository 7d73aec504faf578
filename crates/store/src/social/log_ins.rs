//! All log-ins to an account: tokens of apps, devices with native tokens, and browsers.
//!
//! Codes end with them, because an app could exchange one for a token afterwards.

use driftline_db::Tx;

use super::{
    access_token::{self, AccessTokenId, ListedToken},
    authorization_code,
    token_family::{self, TokenFamily, TokenFamilyId},
    web_session::{self, WebSession, WebSessionId},
};
use crate::{error::StoreError, id_types::LocalAccountId};

/// The log-ins to an account, the newest of each kind first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogIns {
    /// Apps with tokens of Mastodon's API.
    pub tokens: Vec<ListedToken>,
    /// Devices with native tokens.
    pub families: Vec<TokenFamily>,
    /// Browsers on the server's own pages.
    pub sessions: Vec<WebSession>,
}

/// The log-ins to an account.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn list(tx: &mut Tx<'_>, account: LocalAccountId, now_ms: i64) -> Result<LogIns, StoreError> {
    Ok(LogIns {
        tokens: access_token::list(tx, account)?,
        families: token_family::list(tx, account, now_ms)?,
        sessions: web_session::list(tx, account, now_ms)?,
    })
}

/// Ends the log-in with this ID, of any kind. Returns `false` if there is none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn end(tx: &mut Tx<'_>, account: LocalAccountId, id: u64) -> Result<bool, StoreError> {
    Ok(access_token::revoke(tx, account, AccessTokenId::new(id))?
        || token_family::end(tx, account, TokenFamilyId::new(id))?
        || web_session::end(tx, account, WebSessionId::new(id))?)
}

/// Ends all log-ins. Must be written below [`root`](super::local_account::root), like the beginning
/// of any log-in, so that none begins at the same time.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn end_all(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), StoreError> {
    web_session::end_all(tx, account)?;
    authorization_code::revoke_all(tx, account)?;
    access_token::revoke_all(tx, account)?;
    token_family::end_all(tx, account)?;
    Ok(())
}
