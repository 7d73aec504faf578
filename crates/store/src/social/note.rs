//! Notes: what people write about posts, for themselves. They are objects of their owner's library.
//! A note names its post by a key, and the post need not be stored. Must be written below the
//! account's root.

use std::collections::HashMap;

use driftline_core::sync::{KeyError, ObjectKey, ObjectKind};
use driftline_db::{Column, Tx};

use super::local_account;
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, sql},
    library::object::{self, AccountLibrary},
};

/// The reason why a note cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteRefused {
    /// The post's key cannot be part of an object's key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The account has too many notes.
    #[error("an account has at most {MAX_NOTES} notes")]
    Many,
}

/// Sets the note about a post. The text is that of a valid value. The same text changes nothing.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist (any more); [`StoreError::Db`] if the
/// database fails.
pub fn set(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    post_key: &str,
    text: &str,
    now_ms: i64,
) -> Result<Result<(), NoteRefused>, StoreError> {
    let key = match ObjectKey::named(ObjectKind::Note, post_key) {
        Ok(key) => key,
        Err(refused) => return Ok(Err(refused.into())),
    };
    local_account::require(tx, account)?;
    let id = match find(tx, account, post_key)? {
        Some((_, known)) if known == text => return Ok(Ok(())),
        Some((id, _)) => {
            AccountLibrary::load(tx, account)?.change(tx, id)?;
            id
        }
        None if object::count_rows(tx, account, "note")? >= MAX_NOTES => {
            return Ok(Err(NoteRefused::Many));
        }
        None => AccountLibrary::load(tx, account)?.add(tx, ObjectKind::Note, &[key], now_ms)?,
    };
    tx.execute_later(
        "insert into note (account_id, post_key, id, text) values ($1, $2, $3, $4)
         on conflict (account_id, post_key) do update set text = $4",
        &[&sql(account), &post_key, &id, &text],
    )?;
    Ok(Ok(()))
}

/// Removes the note about a post. Returns `false` if there was none.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist (any more); [`StoreError::Db`] if the
/// database fails.
pub fn remove(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    post_key: &str,
) -> Result<bool, StoreError> {
    local_account::require(tx, account)?;
    let Some((id, _)) = find(tx, account, post_key)? else {
        return Ok(false);
    };
    AccountLibrary::load(tx, account)?.remove(tx, &[id])?;
    tx.execute_later(
        "delete from note where account_id = $1 and post_key = $2",
        &[&sql(account), &post_key],
    )?;
    Ok(true)
}

fn find(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    post_key: &str,
) -> Result<Option<(i64, String)>, StoreError> {
    Ok(tx.query_opt(
        "select id, text from note where account_id = $1 and post_key = $2",
        &[&sql(account), &post_key],
        |row| Ok((row.i64("id")?, row.text("text")?)),
    )?)
}

/// The texts of an account's notes about these posts, by the posts' keys.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_keys(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    post_keys: &[&str],
) -> Result<HashMap<String, String>, StoreError> {
    let found = tx.query(
        "select post_key, text from note where account_id = $1 and post_key {in $2}",
        &[&sql(account), &Column::text(post_keys.iter().copied())],
        |row| Ok((row.text("post_key")?, row.text("text")?)),
    )?;
    Ok(found.into_iter().collect())
}

/// The largest number of an account's notes.
const MAX_NOTES: i64 = 10_000;
