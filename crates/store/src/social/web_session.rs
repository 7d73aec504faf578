//! Browsers that are logged in to this server's own pages.

use driftline_db::{DbError, Row, Tx};
use driftline_id::Id;

use super::{SecretHash, TokenHolder, token_holder};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, from_sql, sql},
    text::without_nul,
};

/// The life of a session after the log-in.
pub const LIFETIME_MS: i64 = 30 * 86_400_000;

/// The ID of a session, next to its account. It is random.
pub type WebSessionId = Id<WebSession>;

/// A session that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSession {
    /// Its ID.
    pub id: WebSessionId,
    /// Its account.
    pub account: LocalAccountId,
    /// The browser's name for itself.
    pub browser: String,
    /// The time of the log-in, in Unix ms.
    pub created_at_ms: i64,
    /// The time of its end, in Unix ms.
    pub ends_at_ms: i64,
}

/// Begins a session, and removes those of the account that have ended.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn begin(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    hash: &SecretHash,
    browser: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    tx.execute(
        "delete from web_session where account_id = $1 and ends_at_ms <= $2",
        &[&sql(account), &now_ms],
    )?;
    tx.execute(
        "insert into web_session (account_id, hash, id, browser, created_at_ms, ends_at_ms)
         values ($1, $2, $3, $4, $5, $6)",
        &[
            &sql(account),
            hash,
            &tx.number(),
            &&*without_nul(browser),
            &now_ms,
            &(now_ms + LIFETIME_MS),
        ],
    )?;
    Ok(())
}

/// The session with this secret and its account, unless it has ended. `None` also if the account is
/// gone.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn find_with_holder(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    hash: &SecretHash,
    now_ms: i64,
) -> Result<Option<(WebSession, TokenHolder)>, StoreError> {
    let select = format!(
        "select s.account_id, s.id, s.browser, s.created_at_ms, s.ends_at_ms, {}
         from web_session s join local_account h on h.id = s.account_id
         where s.account_id = $1 and s.hash = $2 and s.ends_at_ms > $3 and not h.deleting",
        token_holder::COLUMNS
    );
    let found = tx.query_opt(&select, &[&sql(account), hash, &now_ms], |row| {
        Ok((read(row)?, token_holder::from_row(row)))
    })?;
    let found = found.map(|(session, holder)| Ok((session, holder?)));
    found.transpose()
}

/// An account's sessions that have not ended, the newest first.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn list(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    now_ms: i64,
) -> Result<Vec<WebSession>, StoreError> {
    Ok(tx.query(
        "select account_id, id, browser, created_at_ms, ends_at_ms from web_session
         where account_id = $1 and ends_at_ms > $2 order by created_at_ms desc, id",
        &[&sql(account), &now_ms],
        read,
    )?)
}

/// Ends a session. Returns `false` if there is none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn end(tx: &mut Tx<'_>, account: LocalAccountId, id: WebSessionId) -> Result<bool, StoreError> {
    let ended = tx.execute(
        "delete from web_session where account_id = $1 and id = $2",
        &[&sql(account), &sql(id)],
    )?;
    Ok(ended > 0)
}

/// Ends all sessions of an account.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn end_all(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<u64, StoreError> {
    let all = "delete from web_session where account_id = $1";
    Ok(tx.execute(all, &[&sql(account)])?)
}

fn read(row: &Row<'_>) -> Result<WebSession, DbError> {
    Ok(WebSession {
        id: from_sql(row.i64("id")?)?,
        account: from_sql(row.i64("account_id")?)?,
        browser: row.text("browser")?,
        created_at_ms: row.i64("created_at_ms")?,
        ends_at_ms: row.i64("ends_at_ms")?,
    })
}
