//! Aliases: further IDs by which a post is found, such as those of its entries.

use driftline_db::{Column, DbError, Tx};

/// Lets further IDs find posts; one without a post is taken until its post arrives. The clock must be
/// held.
pub(crate) fn add(tx: &mut Tx<'_>, aliases: &[(i64, Option<i64>)]) -> Result<(), DbError> {
    // A post that returns may take the ID of the entry that shows it.
    tx.execute_many_later(
        "insert into entry_alias (id, post_id) {rows}
         on conflict (id) do update set post_id = excluded.post_id",
        &[],
        &[
            Column::i64(aliases.iter().map(|(id, _)| *id)),
            Column::i64(aliases.iter().map(|(_, post_id)| *post_id)),
        ],
    )
}
