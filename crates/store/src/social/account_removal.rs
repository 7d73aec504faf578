//! Removes accounts with all that is theirs, in chunks of keys.
//!
//! [`begin`] makes an account nobody's, so that it can neither log in nor be found; [`remove_some`] is then
//! called until nothing is left. A removal that was stopped goes on with [`begin`] again. Its name and its
//! mail address are free once all is gone. To be written below
//! [`root`](super::local_account::root).

use driftline_core::social::AccountName;
use driftline_db::Tx;

use crate::{
    error::StoreError,
    id_types::{LocalAccountId, from_sql, sql},
    library,
};

/// How many rows a call of [`remove_some`] removes of each table, at most.
pub const CHUNK: u32 = 1_000;

/// What an account has, or what was removed of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountContents {
    /// Relations to others, or of others to it.
    pub relations: i64,
    /// Accounts that it mutes.
    pub mutes: i64,
}

/// What came of a call of [`remove_some`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// What it removed.
    pub contents: AccountContents,
    /// Whether the account itself is gone.
    pub is_done: bool,
}

/// What an account has, which goes with it.
pub fn plan(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<AccountContents, StoreError> {
    let mut count = |query: &str| tx.query_one(query, &[&sql(account)], |row| row.i64("rows"));
    Ok(AccountContents {
        relations: count("select count(*) as rows from relation where account_id = $1")?,
        mutes: count("select count(*) as rows from mute where account_id = $1")?,
    })
}

/// The account of that name, one whose removal was stopped included.
pub fn find(tx: &mut Tx<'_>, name: &AccountName) -> Result<Option<LocalAccountId>, StoreError> {
    let found = tx.query_opt(
        "select id from local_account where name_key = $1",
        &[&name.key()],
        |row| row.i64("id"),
    )?;
    Ok(found.map(from_sql).transpose()?)
}

/// Makes an account nobody's.
pub fn begin(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), StoreError> {
    tx.execute(
        "update local_account set deleting = true where id = $1",
        &[&sql(account)],
    )?;
    Ok(())
}

/// Removes at most [`CHUNK`] rows of each table, and the account itself once nothing else is left. The rows
/// of others that name it go with its own: nobody changes them meanwhile, since that needs both accounts.
pub fn remove_some(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Removed, StoreError> {
    let key = sql(account);
    tx.execute(
        "delete from relation where other_id = $1 and account_id in
             (select other_id from relation where account_id = $1 order by other_id limit $2)",
        &[&key, &i64::from(CHUNK)],
    )?;
    let mut remove = |table: &str| -> Result<i64, StoreError> {
        let removed = tx.execute(
            &format!(
                "delete from {table} where account_id = $1 and other_id in
                     (select other_id from {table} where account_id = $1 order by other_id limit $2)"
            ),
            &[&key, &i64::from(CHUNK)],
        )?;
        Ok(removed as i64)
    };
    let contents = AccountContents {
        relations: remove("relation")?,
        mutes: remove("mute")?,
    };
    let is_done = contents == AccountContents::default();
    if is_done {
        tx.execute_later("delete from profile where account_id = $1", &[&key])?;
        library::remove_of_account(tx, account)?;
        tx.execute_later("delete from local_account where id = $1", &[&key])?;
    }
    Ok(Removed { contents, is_done })
}
