//! Removes the objects of an account's library, and what its devices pushed last, with the account
//! itself.

use driftline_db::{DbError, Tx};

use crate::id_types::{LocalAccountId, sql};

/// Removes at most `limit` rows of each table. Returns true if nothing is left.
pub(super) fn remove_some(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    limit: u32,
) -> Result<bool, DbError> {
    let mut is_empty = true;
    for (table, key) in TABLES {
        let delete = format!(
            "delete from {table} where account_id = $1 and {key} in
                 (select {key} from {table} where account_id = $1 order by {key} limit $2)"
        );
        let removed = tx.execute(&delete, &[&sql(account), &i64::from(limit)])?;
        is_empty &= removed < u64::from(limit);
    }
    Ok(is_empty)
}

/// The number of objects of an account, without removed ones, and without those of relations and mutes.
pub(super) fn count(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<i64, DbError> {
    tx.query_one(
        "select count(*) as objects from library_object
         where account_id = $1 and not removed and kind not in ('follow', 'block', 'mute')",
        &[&sql(account)],
        |row| row.i64("objects"),
    )
}

/// Each table, with the column by which its rows are removed in chunks.
const TABLES: [(&str, &str); 13] = [
    ("marked_post", "post_id"),
    ("list_member", "id"),
    ("list_entry", "id"),
    ("list", "id"),
    ("marker", "timeline"),
    ("filter_keyword", "id"),
    ("filter_post", "id"),
    ("filter", "id"),
    ("note", "post_key"),
    ("draft", "id"),
    ("account_note", "id"),
    ("sync_device", "device"),
    ("library_object", "id"),
];
