//! Mutes: accounts that somebody does not want to see. They stand beside relations, and nobody is told. To
//! be written below the account's root.

use driftline_db::{Column, PendingRows, Row, Tx};

use super::local_account;
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, LocalId, account_id, from_sql, sql},
    local_ids,
    posts::timeline::Range,
};

/// A mute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mute {
    /// Who is muted.
    pub other: AccountId,
    /// When it began, as an ID: pages go by it.
    pub id: LocalId,
    /// True if notifications of it are muted, too.
    pub notifications: bool,
    /// When it ends by itself, Unix ms.
    pub until_ms: Option<i64>,
}

/// Mutes an account, or changes how; `false` if it is one's own.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account that mutes is not there (any more).
pub fn set(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
    notifications: bool,
    until_ms: Option<i64>,
    now_ms: i64,
) -> Result<bool, StoreError> {
    if account_id(account) == other {
        return Ok(false);
    }
    local_account::require(tx, account)?;
    let changed = tx.execute(
        "update mute set notifications = $3, until_ms = $4
         where account_id = $1 and other_id = $2 and (until_ms is null or until_ms > $5)",
        &[
            &sql(account),
            &sql(other),
            &notifications,
            &until_ms,
            &now_ms,
        ],
    )?;
    if changed == 0 {
        remove(tx, account, other)?;
        let id = local_ids::take(tx, now_ms, 1)?;
        tx.execute_later(
            "insert into mute (account_id, other_id, id, notifications, until_ms)
             values ($1, $2, $3, $4, $5)",
            &[&sql(account), &sql(other), &id, &notifications, &until_ms],
        )?;
    }
    Ok(true)
}

/// Ends a mute; `false` if there was none.
pub fn remove(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
) -> Result<bool, StoreError> {
    let removed = tx.execute(
        "delete from mute where account_id = $1 and other_id = $2",
        &[&sql(account), &sql(other)],
    )?;
    Ok(removed > 0)
}

/// Which of those others an account mutes, in no order.
pub fn of(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    others: &[AccountId],
    now_ms: i64,
) -> Result<Vec<Mute>, StoreError> {
    let others = Column::i64(others.iter().map(|id| sql(*id)));
    Ok(tx.query(
        "select other_id, id, notifications, until_ms from mute
         where account_id = $1 and other_id {in $2} and (until_ms is null or until_ms > $3)",
        &[&sql(account), &others, &now_ms],
        from_row,
    )?)
}

/// All accounts that an account mutes, along with what is asked next; in no order.
pub fn all_later(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    now_ms: i64,
) -> Result<PendingRows<'static, AccountId>, StoreError> {
    Ok(tx.query_later(
        "select other_id from mute where account_id = $1 and (until_ms is null or until_ms > $2)",
        &[&sql(account), &now_ms],
        |row| from_sql(row.i64("other_id")?),
    )?)
}

/// A page of an account's mutes, the latest first.
pub fn page(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    range: &Range,
    now_ms: i64,
) -> Result<Vec<Mute>, StoreError> {
    let (floor, order) = match range.min {
        Some(min) => (min.max(range.since.unwrap_or(min)), "asc"),
        None => (range.since.unwrap_or(LocalId::new(0)), "desc"),
    };
    let query = format!(
        "select other_id, id, notifications, until_ms from mute
         where account_id = $1 and id > $2 and id < $3 and (until_ms is null or until_ms > $4)
         order by id {order} limit $5"
    );
    let mut mutes = tx.query(
        &query,
        &[
            &sql(account),
            &sql(floor),
            &range.max.map_or(i64::MAX, sql),
            &now_ms,
            &i64::from(range.limit),
        ],
        from_row,
    )?;
    if range.min.is_some() {
        mutes.reverse();
    }
    Ok(mutes)
}

/// How many accounts an account mutes.
pub fn count(tx: &mut Tx<'_>, account: LocalAccountId, now_ms: i64) -> Result<i64, StoreError> {
    Ok(tx.query_one(
        "select count(*) as mutes from mute
         where account_id = $1 and (until_ms is null or until_ms > $2)",
        &[&sql(account), &now_ms],
        |row| row.i64("mutes"),
    )?)
}

fn from_row(row: &Row<'_>) -> Result<Mute, driftline_db::DbError> {
    Ok(Mute {
        other: from_sql(row.i64("other_id")?)?,
        id: from_sql(row.i64("id")?)?,
        notifications: row.bool("notifications")?,
        until_ms: row.opt_i64("until_ms")?,
    })
}
