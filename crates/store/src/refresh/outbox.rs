//! The outbox: changes of posts about which the libraries of sources must still be notified.
//!
//! A refresh changes posts of an instance, and each source that lists one has a library with its
//! own USNs, below its own root. So the save only adds the post to the outbox, in its own
//! transaction, and a relay notifies each source in a transaction below the source's root. After a
//! crash in between, the post is still in the outbox.

use driftline_db::{Column, DbError, ToValue, Tx};

use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
};

/// A changed post about which libraries must be notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxItem {
    /// The post.
    pub post: LocalId,
    /// True if its counts changed, and not only its content.
    pub counts: bool,
    /// The time at which it was last added, in Unix ms.
    pub since_ms: i64,
}

/// The outbox of an instance: at most `limit` items that were added by `until_ms`, in order of
/// their posts' IDs, from the first one above `above` on.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn outbox(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    until_ms: i64,
    above: Option<LocalId>,
    limit: u32,
) -> Result<Vec<OutboxItem>, StoreError> {
    select(
        tx,
        "since_ms <= $2 and post_id > $3 order by post_id limit $4",
        &[
            &sql(instance),
            &until_ms,
            &above.map_or(i64::MIN, sql),
            &limit,
        ],
    )
}

/// The instances whose outboxes have items that were added by `until_ms`.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn with_outbox(tx: &mut Tx<'_>, until_ms: i64) -> Result<Vec<InstanceId>, StoreError> {
    Ok(tx.query(
        // Checks each instance's first rows, and does not read all waiting ones.
        "select id from instance where (select 1 from outbox
             where outbox.instance_id = instance.id and since_ms <= $1 limit 1) is not null",
        &[&until_ms],
        |row| from_sql(row.i64("id")?),
    )?)
}

/// The outbox's items for these posts.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn outbox_of(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    posts: &[LocalId],
) -> Result<Vec<OutboxItem>, StoreError> {
    let posts = Column::i64(posts.iter().map(|post| sql(*post)));
    select(
        tx,
        "post_id {in $2} order by post_id",
        &[&sql(instance), &posts],
    )
}

/// Removes items about which every source was notified. A post that was added again since stays.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn forget_relayed(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    items: &[OutboxItem],
) -> Result<(), StoreError> {
    tx.execute_many(
        "delete from outbox where instance_id = $1 and (post_id, since_ms) in
             (select post_id, since_ms from {rows as r(post_id, since_ms)})",
        &[&sql(instance)],
        &[
            Column::i64(items.iter().map(|item| sql(item.post))),
            Column::i64(items.iter().map(|item| item.since_ms)),
        ],
    )?;
    Ok(())
}

/// Adds posts, each with true if its counts changed. A post that is already in the outbox is
/// renewed.
pub(crate) fn add_to_outbox(
    tx: &mut Tx<'_>,
    instance_id: i64,
    now_ms: i64,
    posts: &[(i64, bool)],
) -> Result<(), DbError> {
    tx.execute_many_later(
        "insert into outbox (instance_id, post_id, since_ms, counts)
         select $1, r.post_id, $2, r.counts from {rows as r(post_id, counts)} where true
         on conflict (instance_id, post_id) do update
         set since_ms = excluded.since_ms, counts = (outbox.counts or excluded.counts)",
        &[&instance_id, &now_ms],
        &[
            Column::i64(posts.iter().map(|(post_id, _)| *post_id)),
            Column::bool(posts.iter().map(|(_, counts)| *counts)),
        ],
    )
}

/// The items of the instance `$1`.
fn select(
    tx: &mut Tx<'_>,
    which: &str,
    params: &[&dyn ToValue],
) -> Result<Vec<OutboxItem>, StoreError> {
    let sql =
        format!("select post_id, counts, since_ms from outbox where instance_id = $1 and {which}");
    Ok(tx.query(&sql, params, |row| {
        Ok(OutboxItem {
            post: from_sql(row.i64("post_id")?)?,
            counts: row.bool("counts")?,
            since_ms: row.i64("since_ms")?,
        })
    })?)
}
