//! Notes on accounts: what an account writes about another one, for itself. They are objects of its library. Must be
//! written below the account's root, new ones below [`relation::root`](super::relation::root).

use driftline_core::sync::{MAX_ACCOUNT_NOTE_CHARS, ObjectKind};
use driftline_db::{Column, Row, Tx};

use super::{local_account, object_keys};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, from_sql, sql},
    library::object::{self, AccountLibrary},
};

/// A note on an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountNote {
    /// The account that it is about.
    pub other: AccountId,
    /// The ID of its object.
    pub(crate) id: i64,
    /// The text.
    pub text: String,
}

/// The reason why a note on an account cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountNoteRefused {
    /// The account has too many of them.
    #[error("an account has at most {MAX_ACCOUNT_NOTES} notes on accounts")]
    Many,
    /// The text is too long or contains U+0000.
    #[error("a note on an account has at most {MAX_ACCOUNT_NOTE_CHARS} characters, and no U+0000")]
    Text,
}

/// Sets the note on an account. The same text changes nothing, and an empty one removes the note.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist (any more), or the other one of a new note; [`StoreError::Db`] if the
/// database fails.
pub fn set(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
    text: &str,
    now_ms: i64,
) -> Result<Result<(), AccountNoteRefused>, StoreError> {
    let chars = text.chars().take(MAX_ACCOUNT_NOTE_CHARS + 1).count();
    if chars > MAX_ACCOUNT_NOTE_CHARS || text.contains('\0') {
        return Ok(Err(AccountNoteRefused::Text));
    }
    // The root may be the other one's.
    tx.lock_later(local_account::root(account))?;
    local_account::require(tx, account)?;
    if text.is_empty() {
        remove(tx, account, other)?;
        return Ok(Ok(()));
    }
    let id = match to(tx, account, &[other])?.pop() {
        Some(known) if known.text == text => return Ok(Ok(())),
        Some(known) => {
            AccountLibrary::load(tx, account)?.change(tx, known.id)?;
            known.id
        }
        None if object::count_rows(tx, account, "account_note")? >= MAX_ACCOUNT_NOTES => {
            return Ok(Err(AccountNoteRefused::Many));
        }
        None => {
            local_account::lock_other(tx, account, other)?;
            let key = object_keys::for_account(tx, ObjectKind::AccountNote, other)?;
            let mut library = AccountLibrary::load(tx, account)?;
            library.add(tx, ObjectKind::AccountNote, &[key], now_ms)?
        }
    };
    tx.execute_later(
        "insert into account_note (account_id, other_id, id, text) values ($1, $2, $3, $4)
         on conflict (account_id, other_id) do update set text = $4",
        &[&sql(account), &sql(other), &id, &text],
    )?;
    Ok(Ok(()))
}

/// Removes the note on an account. Returns `false` if there was none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn remove(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
) -> Result<bool, StoreError> {
    let Some(known) = to(tx, account, &[other])?.pop() else {
        return Ok(false);
    };
    object::remove_with_row(tx, account, "account_note", known.id)?;
    Ok(true)
}

/// An account's notes on these others, in no order.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn to(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    others: &[AccountId],
) -> Result<Vec<AccountNote>, StoreError> {
    Ok(tx.query(
        "select other_id, id, text from account_note where account_id = $1 and other_id {in $2}",
        &[
            &sql(account),
            &Column::i64(others.iter().map(|id| sql(*id))),
        ],
        from_row,
    )?)
}

/// The notes with these IDs, in no order.
pub(crate) fn by_ids(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[i64],
) -> Result<Vec<AccountNote>, StoreError> {
    Ok(tx.query(
        "select other_id, id, text from account_note where account_id = $1 and id {in $2}",
        &[&sql(account), &Column::i64(ids.iter().copied())],
        from_row,
    )?)
}

fn from_row(row: &Row<'_>) -> Result<AccountNote, driftline_db::DbError> {
    Ok(AccountNote {
        other: from_sql(row.i64("other_id")?)?,
        id: row.i64("id")?,
        text: row.text("text")?,
    })
}

/// The largest number of an account's notes on accounts.
const MAX_ACCOUNT_NOTES: i64 = 10_000;
