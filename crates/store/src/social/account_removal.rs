//! Removes accounts with all their data, in chunks of keys.
//!
//! [`begin`] disables an account, so that it can neither log in nor be found. [`forget`] then removes it
//! from the libraries of others, and [`remove_some`] a part of its data. Both are called until nothing is left. No other account
//! begins to name it meanwhile, since that locks both. An interrupted removal continues with [`begin`]. The name and
//! the mail address are free once all data are gone. Must be written below
//! [`root`](super::local_account::root).

use driftline_core::social::AccountName;
use driftline_db::{Column, Tx};

use super::{
    account_note, home_source, library_removal, list, log_ins, mute, notification, relation,
};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, account_id, from_sql, sql},
    library,
};

/// The largest number of rows of each table that a call of [`remove_some`] removes.
pub const CHUNK: u32 = 1_000;

/// The number of objects of an account, or of those that were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountContents {
    /// The number of its relations to others, and of others to it.
    pub relations: i64,
    /// The number of accounts that it mutes.
    pub mutes: i64,
    /// The number of other objects of its library: bookmarks, favourites, lists and their accounts,
    /// read markers, filters, notes, drafts, the own profile.
    pub objects: i64,
}

/// The result of a call of [`remove_some`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The removed objects.
    pub contents: AccountContents,
    /// True if the account itself is gone.
    pub is_done: bool,
}

/// The objects that would be removed with an account.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn plan(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<AccountContents, StoreError> {
    let mut count = |query: &str| tx.query_one(query, &[&sql(account)], |row| row.i64("rows"));
    Ok(AccountContents {
        relations: count("select count(*) as rows from relation where account_id = $1")?,
        mutes: count("select count(*) as rows from mute where account_id = $1")?,
        objects: library_removal::count(tx, account)?,
    })
}

/// The account called `name`, even if its removal was interrupted.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn find(tx: &mut Tx<'_>, name: &AccountName) -> Result<Option<LocalAccountId>, StoreError> {
    let found = tx.query_opt(
        "select id from local_account where name_key = $1",
        &[&name.key()],
        |row| row.i64("id"),
    )?;
    Ok(found.map(from_sql).transpose()?)
}

/// Disables an account, and ends all of its log-ins.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn begin(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), StoreError> {
    tx.execute(
        "update local_account set deleting = true where id = $1",
        &[&sql(account)],
    )?;
    log_ins::end_all(tx, account)
}

/// At most `limit` accounts whose libraries have objects about an account, by their IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn owners_naming(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    limit: u32,
) -> Result<Vec<LocalAccountId>, StoreError> {
    // Two accounts of this server have a row each.
    Ok(tx.query(
        "select account_id from list_member where member_id = $1
         union select account_id from mute where other_id = $1
         union select account_id from account_note where other_id = $1
         union select r.account_id from relation own
             join relation r on r.account_id = own.other_id and r.other_id = own.account_id
             where own.account_id = $1 and r.object_id is not null
         order by account_id limit $2",
        &[&sql(account), &i64::from(limit)],
        |row| from_sql(row.i64("account_id")?),
    )?)
}

/// Removes what the library of `owner` has about an account that is being removed: its place in lists, its follow or
/// block, its mute and the note on it. Must be written below the owner's root.
///
/// # Errors
/// [`StoreError::NoAccount`] if the owner does not exist; [`StoreError::Db`] if the database fails.
pub fn forget(
    tx: &mut Tx<'_>,
    owner: LocalAccountId,
    account: LocalAccountId,
) -> Result<(), StoreError> {
    let account = account_id(account);
    list::forget_member(tx, owner, account)?;
    relation::remove_object(tx, owner, account)?;
    mute::remove(tx, owner, account)?;
    account_note::remove(tx, owner, account)?;
    Ok(())
}

/// Removes at most [`CHUNK`] rows of each table, and the account itself once nothing else is left, and [`owners_naming`]
/// returns nobody. The rows that others have of their relations to it are removed with its own. No relation changes meanwhile,
/// because that needs both accounts.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn remove_some(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Removed, StoreError> {
    let key = sql(account);
    // Two accounts of this server have a row each.
    let related = others(tx, key, ("relation", "account_id", "other_id"))?;
    let relations = remove_pairs(tx, key, "relation", (&related, &related))?;
    notification::forget(tx, account, &related)?;
    let muted = others(tx, key, ("mute", "account_id", "other_id"))?;
    let mutes = remove_pairs(tx, key, "mute", (&muted, &[]))?;
    let objects = library_removal::count(tx, account)?;
    let is_kept_empty = library_removal::remove_some(tx, account, CHUNK)?;
    let objects = objects - library_removal::count(tx, account)?;
    let is_done = related.is_empty()
        && muted.is_empty()
        && is_kept_empty
        && notification::remove_some(tx, account, CHUNK)?
        && owners_naming(tx, account, 1)?.is_empty();
    if is_done {
        log_ins::end_all(tx, account)?;
        home_source::remove_all(tx, account)?;
        tx.execute_later("delete from profile where account_id = $1", &[&key])?;
        library::remove(tx, library::LibraryOwner::Account(account))?;
        tx.execute_later("delete from local_account where id = $1", &[&key])?;
    }
    let contents = AccountContents {
        relations,
        mutes,
        objects,
    };
    Ok(Removed { contents, is_done })
}

/// At most [`CHUNK`] of the values in the column `other`, in the rows of a table whose other column
/// has the account.
fn others(
    tx: &mut Tx<'_>,
    account: i64,
    (table, column, other): (&str, &str, &'static str),
) -> Result<Vec<i64>, StoreError> {
    let query =
        format!("select {other} from {table} where {column} = $1 order by {other} limit $2");
    Ok(tx.query(&query, &[&account, &i64::from(CHUNK)], |row| row.i64(other))?)
}

/// Removes the account's rows of a table that name `named`, and the rows of `naming` that name it.
/// Returns the number of its own. Of the two rows of two accounts, that of the lower ID is removed
/// first, so that two concurrent removals do not wait for each other.
fn remove_pairs(
    tx: &mut Tx<'_>,
    account: i64,
    table: &str,
    (named, naming): (&[i64], &[i64]),
) -> Result<i64, StoreError> {
    let own = format!("delete from {table} where account_id = $1 and other_id {{in $2}}");
    let of_others = format!("delete from {table} where other_id = $1 and account_id {{in $2}}");
    let mut removed = 0;
    for is_lower_first in [true, false] {
        let is_turn = |lower: i64, higher: i64| (lower < higher) == is_lower_first;
        let named: Vec<i64> = named
            .iter()
            .copied()
            .filter(|id| is_turn(account, *id))
            .collect();
        let naming: Vec<i64> = naming
            .iter()
            .copied()
            .filter(|id| is_turn(*id, account))
            .collect();
        if !named.is_empty() {
            removed += tx.execute(&own, &[&account, &Column::i64(named.iter().copied())])?;
        }
        if !naming.is_empty() {
            tx.execute(
                &of_others,
                &[&account, &Column::i64(naming.iter().copied())],
            )?;
        }
    }
    Ok(removed.cast_signed())
}
