//! The accounts of lists. Each membership is an object of the library of the list's owner. Must be
//! written below that account's root.

use driftline_core::{
    social::{MAX_LIST_MEMBERS, Relation},
    sync::ObjectKind,
};
use driftline_db::{Column, PendingRows, Row, Tx};

use super::{list, object_keys, relation};
use crate::{
    error::StoreError,
    id_types::{
        AccountId, InstanceId, LocalAccountId, LocalId, SourceKey, account_id, from_sql,
        local_account_id, sql,
    },
    library::object::{self, AccountLibrary},
    posts::timeline::Range,
};

/// The reason why accounts cannot be added to a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddRefused {
    /// The account does not have this list.
    #[error("there is no such list")]
    NoList,
    /// The account does not follow one of them.
    #[error("an account that is not followed")]
    NotFollowed,
    /// A predicate selects the posts of the list.
    #[error("A list with a predicate has no accounts")]
    Predicate,
    /// One of them is already in the list.
    #[error("Account has already been taken")]
    Known,
    /// The list would have too many accounts.
    #[error("A list has at most {MAX_LIST_MEMBERS} accounts")]
    Many,
}

/// Adds all accounts to a list, or none. They must be followed by the list's owner, or be the
/// owner.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn add(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    list: LocalId,
    members: &[AccountId],
    now_ms: i64,
) -> Result<Result<(), AddRefused>, StoreError> {
    match list::by_id(tx, account, list)? {
        None => return Ok(Err(AddRefused::NoList)),
        Some(list) if list.has_predicate() => {
            return Ok(Err(AddRefused::Predicate));
        }
        Some(_) => {}
    }
    let mut new = members.to_vec();
    new.sort_unstable();
    new.dedup();
    if new.is_empty() {
        return Ok(Ok(()));
    }
    if new.len() < members.len() {
        return Ok(Err(AddRefused::Known));
    }
    let relations = relation::to(tx, account, &new)?;
    let is_followed = |member: &AccountId| {
        let mut relations = relations.iter();
        *member == account_id(account)
            || relations.any(|row| row.other == *member && row.pair.outgoing == Relation::Following)
    };
    if !new.iter().all(is_followed) {
        return Ok(Err(AddRefused::NotFollowed));
    }
    let known = of(tx, account, list)?;
    if new.iter().any(|member| known.contains(member)) {
        return Ok(Err(AddRefused::Known));
    }
    if known.len() + new.len() > MAX_LIST_MEMBERS {
        return Ok(Err(AddRefused::Many));
    }
    let Some(list_key) = object::key_by_id(tx, account, sql(list))? else {
        return Ok(Err(AddRefused::NoList));
    };
    let keys = object_keys::for_members(tx, &list_key, &new)?;
    if object::has_any(tx, account, &keys)? {
        return Ok(Err(AddRefused::Known));
    }
    let mut library = AccountLibrary::load(tx, account)?;
    let first = library.add(tx, ObjectKind::ListMember, &keys, now_ms)?;
    tx.execute_many_later(
        "insert into list_member (account_id, list_id, member_id, id)
         select $1, $2, r.member_id, r.id from {rows as r(member_id, id)}",
        &[&sql(account), &sql(list)],
        &[
            Column::i64(new.iter().map(|member| sql(*member))),
            Column::i64(first..first + new.len() as i64),
        ],
    )?;
    Ok(Ok(()))
}

/// Removes accounts from a list. Those that are not in it change nothing. Returns `false` if the
/// account does not have the list.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn remove(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    list: LocalId,
    members: &[AccountId],
) -> Result<bool, StoreError> {
    if list::by_id(tx, account, list)?.is_none() {
        return Ok(false);
    }
    let members: Vec<i64> = members.iter().map(|member| sql(*member)).collect();
    let column = || Column::i64(members.iter().copied());
    let gone = tx.query(
        "select id from list_member
         where account_id = $1 and list_id = $2 and member_id {in $3} order by id",
        &[&sql(account), &sql(list), &column()],
        |row| row.i64("id"),
    )?;
    if gone.is_empty() {
        return Ok(true);
    }
    AccountLibrary::load(tx, account)?.remove(tx, &gone)?;
    tx.execute_later(
        "delete from list_member where account_id = $1 and list_id = $2 and member_id {in $3}",
        &[&sql(account), &sql(list), &column()],
    )?;
    Ok(true)
}

/// The members of memberships with these IDs, by the IDs.
pub(crate) fn members_by_ids(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[i64],
) -> Result<Vec<(i64, AccountId)>, StoreError> {
    Ok(tx.query(
        "select id, member_id from list_member where account_id = $1 and id {in $2}",
        &[&sql(account), &Column::i64(ids.iter().copied())],
        |row| Ok((row.i64("id")?, member(row)?)),
    )?)
}

/// The accounts of a list, by their IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn of(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    list: LocalId,
) -> Result<Vec<AccountId>, StoreError> {
    Ok(tx.query(
        "select member_id from list_member where account_id = $1 and list_id = $2
         order by member_id",
        &[&sql(account), &sql(list)],
        member,
    )?)
}

/// A page of the accounts of a list, the highest IDs first, as in Mastodon. The range is one of
/// accounts' IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn page(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    list: LocalId,
    range: &Range,
) -> Result<Vec<AccountId>, StoreError> {
    let (floor, order) = match range.min {
        Some(min) => (min.max(range.since.unwrap_or(min)), "asc"),
        None => (range.since.unwrap_or(LocalId::new(0)), "desc"),
    };
    let query = format!(
        "select member_id from list_member
         where account_id = $1 and list_id = $2 and member_id > $3 and member_id < $4
         order by member_id {order} limit $5"
    );
    let mut members = tx.query(
        &query,
        &[
            &sql(account),
            &sql(list),
            &sql(floor),
            &range.max.map_or(i64::MAX, sql),
            &i64::from(range.limit),
        ],
        member,
    )?;
    if range.min.is_some() {
        members.reverse();
    }
    Ok(members)
}

/// The lists of an account that contain another one, by their IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn lists_with(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    member: AccountId,
) -> Result<Vec<LocalId>, StoreError> {
    Ok(tx.query(
        "select list_id from list_member where account_id = $1 and member_id = $2
         order by list_id",
        &[&sql(account), &sql(member)],
        |row| from_sql(row.i64("list_id")?),
    )?)
}

/// The accounts of an account's exclusive lists, whose posts its home timeline omits, requested
/// together with the next query. In no order.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn exclusive_later(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<PendingRows<'static, AccountId>, StoreError> {
    Ok(tx.query_later(
        "select distinct m.member_id from list l
         join list_member m on m.account_id = l.account_id and m.list_id = l.id
         where l.account_id = $1 and l.exclusive",
        &[&sql(account)],
        member,
    )?)
}

/// The IDs of accounts at the instances of sources that have shown them. Accounts of this server
/// have none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn upstream_ids(
    tx: &mut Tx<'_>,
    accounts: &[AccountId],
    sources: &[SourceKey],
) -> Result<Vec<(InstanceId, String)>, StoreError> {
    let copies = accounts
        .iter()
        .filter(|id| local_account_id(**id).is_none());
    let copies: Vec<i64> = copies.map(|id| sql(*id)).collect();
    if copies.is_empty() || sources.is_empty() {
        return Ok(Vec::new());
    }
    Ok(tx.query(
        "select distinct a.instance_id, a.upstream_id from account_profile p
         join account a on a.id = p.account_id and a.instance_id = p.instance_id
         where p.acct_id {in $1} and p.source_id {in $2} and p.instance_id {in $3}",
        &[
            &Column::i64(copies),
            &Column::i64(sources.iter().map(|source| source.id())),
            &Column::i64(sources.iter().map(|source| source.instance_id())),
        ],
        |row| Ok((from_sql(row.i64("instance_id")?)?, row.text("upstream_id")?)),
    )?)
}

fn member(row: &Row<'_>) -> Result<AccountId, driftline_db::DbError> {
    from_sql(row.i64("member_id")?)
}
