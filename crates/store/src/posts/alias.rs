//! Aliases: further IDs by which a post is found, such as those of its entries.

use driftline_db::{DbError, Tx};

use crate::new_ids::TakenIds;

/// Lets further IDs find posts. An ID without a post is reserved until its post arrives. The IDs
/// may come from `ids`. If a source is named, they are the IDs of its entries, and only its readers
/// find posts by them. The instance must be held.
pub(crate) fn add(
    tx: &mut Tx<'_>,
    (instance_id, source_id): (i64, Option<i64>),
    aliases: &[(i64, Option<i64>)],
    ids: &TakenIds,
) -> Result<(), DbError> {
    // A post that returns may take the ID of the entry that shows it.
    tx.execute_many_later(
        "insert into entry_alias (id, instance_id, post_id, source_id)
         select r.id, $1, r.post_id, $2 from {rows as r(id, post_id)} where true
         on conflict ({key id + instance_id}) do update set post_id = excluded.post_id",
        &[&instance_id, &source_id],
        &[
            ids.column(aliases.iter().map(|(id, _)| *id)),
            ids.column(aliases.iter().map(|(_, post_id)| *post_id)),
        ],
    )
}
