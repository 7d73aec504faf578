//! Drafts: posts that are not posted yet. They are objects of their owner's library, which only its devices write. Must be
//! written below the account's root.

use driftline_core::sync::{DraftValue, ObjectKey, ObjectKind};
use driftline_db::{Column, Tx};

use super::local_account;
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, sql},
    library::object::{self, AccountLibrary},
    text::{from_json, to_json},
};

/// The account has too many drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an account has at most {MAX_DRAFTS} drafts")]
pub(crate) struct ManyDrafts;

/// Adds a draft, or gives it another value. `draft` is valid and not the value that is stored.
pub(crate) fn set(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    key: &ObjectKey,
    draft: &DraftValue,
    now_ms: i64,
) -> Result<Result<(), ManyDrafts>, StoreError> {
    local_account::require(tx, account)?;
    let known = object::find(tx, account, key)?.filter(|known| !known.is_removed);
    let id = match known {
        Some(known) => {
            AccountLibrary::load(tx, account)?.change(tx, known.id)?;
            known.id
        }
        None if object::count_rows(tx, account, "draft")? >= MAX_DRAFTS => {
            return Ok(Err(ManyDrafts));
        }
        None => {
            let keys = std::slice::from_ref(key);
            AccountLibrary::load(tx, account)?.add(tx, ObjectKind::Draft, keys, now_ms)?
        }
    };
    tx.execute_later(
        "insert into draft (account_id, id, content) values ($1, $2, $3)
         on conflict (account_id, id) do update set content = $3",
        &[&sql(account), &id, &to_json(DRAFT, draft)?],
    )?;
    Ok(Ok(()))
}

/// The drafts with these IDs, in no order.
pub(crate) fn by_ids(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[i64],
) -> Result<Vec<(i64, DraftValue)>, StoreError> {
    let found = tx.query(
        "select id, content from draft where account_id = $1 and id {in $2}",
        &[&sql(account), &Column::i64(ids.iter().copied())],
        |row| Ok((row.i64("id")?, row.text("content")?)),
    )?;
    let drafts = found.into_iter();
    drafts
        .map(|(id, content)| Ok((id, from_json(DRAFT, &content)?)))
        .collect()
}

const DRAFT: &str = "a draft";
/// The largest number of an account's drafts.
const MAX_DRAFTS: i64 = 1_000;
