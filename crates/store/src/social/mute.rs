//! Mutes: accounts that an account does not want to see. They are independent of relations, and no
//! one is notified. Each is an object of the library of its account. One that has ended stays stored until it is
//! removed or replaced, because its end is no change. Must be written below the account's root, new ones below
//! [`relation::root`](super::relation::root).

use driftline_core::sync::ObjectKind;
use driftline_db::{Column, PendingRows, Row, Tx};

use super::{local_account, object_keys};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, LocalId, account_id, from_sql, sql},
    library::object::{self, AccountLibrary},
    posts::timeline::Range,
};

/// A mute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mute {
    /// The muted account.
    pub other: AccountId,
    /// The time of its beginning, as an ID, which determines its position in pages.
    pub id: LocalId,
    /// True if notifications by the account are muted, too.
    pub notifications: bool,
    /// The time of its automatic end, in Unix ms.
    pub until_ms: Option<i64>,
}

/// Mutes an account, or changes the mute. Returns `false` if both are the same account.
///
/// # Errors
/// [`StoreError::NoAccount`] if the muting account does not exist (any more), or the other one of a new mute.
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
    // The root may be the other one's.
    tx.lock_later(local_account::root(account))?;
    local_account::require(tx, account)?;
    let known = find(tx, account, other)?;
    if known.is_some_and(|known| (known.notifications, known.until_ms) == (notifications, until_ms))
    {
        return Ok(true);
    }
    if known.is_none() {
        local_account::lock_other(tx, account, other)?;
    }
    let mut library = AccountLibrary::load(tx, account)?;
    let id = match known {
        Some(known) if known.until_ms.is_none_or(|until_ms| until_ms > now_ms) => {
            library.change(tx, sql(known.id))?;
            sql(known.id)
        }
        known => {
            // One that has ended is the same object, with a new position in pages.
            let key = match known {
                Some(ended) => object::key_by_id(tx, account, sql(ended.id))?,
                None => None,
            };
            let key = match key {
                Some(key) => key,
                None => object_keys::for_account(tx, ObjectKind::Mute, other)?,
            };
            library.add(tx, ObjectKind::Mute, &[key], now_ms)?
        }
    };
    tx.execute_later(
        "insert into mute (account_id, other_id, id, notifications, until_ms)
         values ($1, $2, $3, $4, $5)
         on conflict (account_id, other_id) do update
             set id = $3, notifications = $4, until_ms = $5",
        &[&sql(account), &sql(other), &id, &notifications, &until_ms],
    )?;
    Ok(true)
}

/// Removes a mute, which may have ended. Returns `false` if there was none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn remove(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
) -> Result<bool, StoreError> {
    let Some(known) = find(tx, account, other)? else {
        return Ok(false);
    };
    object::remove_with_row(tx, account, "mute", sql(known.id))?;
    Ok(true)
}

/// The mute of another account, which may have ended.
pub(crate) fn find(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
) -> Result<Option<Mute>, StoreError> {
    Ok(tx.query_opt(
        "select other_id, id, notifications, until_ms from mute
         where account_id = $1 and other_id = $2",
        &[&sql(account), &sql(other)],
        from_row,
    )?)
}

/// The mutes with these IDs, in no order. Some may have ended.
pub(crate) fn by_ids(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[i64],
) -> Result<Vec<Mute>, StoreError> {
    Ok(tx.query(
        "select other_id, id, notifications, until_ms from mute
         where account_id = $1 and id {in $2}",
        &[&sql(account), &Column::i64(ids.iter().copied())],
        from_row,
    )?)
}

/// The other accounts that an account mutes, in no order.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
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

/// All accounts that an account mutes, requested together with the next query. In no order.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
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
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
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

/// The number of accounts that an account mutes.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
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
