//! Posts that the search index has still to read.
//!
//! Each commit that changes what the index knows about a post adds the post, in its own
//! transaction. The index follows in the background: it reads the posts here, then the store, and
//! then forgets them. A post that changed meanwhile stays.

use driftline_db::{Column, DbError, Tx};

use crate::{
    database_clock::modification_now_sql,
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
    new_ids::TakenIds,
    posts::pending_posts,
};

/// A post that the index has still to read. It may have been removed, together with its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnindexedPost {
    /// The instance of the post.
    pub instance: InstanceId,
    /// The post.
    pub post: LocalId,
    /// The time of its last change, in Unix ms by the database's clock. It rises with each change,
    /// whatever the clock shows.
    pub since_ms: i64,
}

/// The first posts that the index has still to read, at most `limit`, in order of their instances
/// and IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn unindexed(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<UnindexedPost>, StoreError> {
    Ok(tx.query(
        "select instance_id, post_id, since_ms from index_pending
         order by instance_id, post_id limit $1",
        &[&limit],
        |row| {
            Ok(UnindexedPost {
                instance: from_sql(row.i64("instance_id")?)?,
                post: from_sql(row.i64("post_id")?)?,
                since_ms: row.i64("since_ms")?,
            })
        },
    )?)
}

/// Removes posts of an instance that the index has read. A post that has changed since then stays.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn forget_indexed(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    posts: &[UnindexedPost],
) -> Result<(), StoreError> {
    let posts = posts.iter().filter(|post| post.instance == instance);
    let posts: Vec<(i64, i64)> = posts.map(|post| (sql(post.post), post.since_ms)).collect();
    Ok(pending_posts::remove(tx, TABLE, sql(instance), &posts)?)
}

/// Adds posts, whose IDs may be from `ids`. The instance must be held.
///
/// The time of a post that is already there rises, so that the index does not forget a change that
/// it has not read. PostgreSQL locks the row meanwhile, and the index waits for this commit.
pub(crate) fn add(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: impl IntoIterator<Item = i64>,
    ids: &TakenIds,
) -> Result<(), DbError> {
    let mut posts: Vec<i64> = posts.into_iter().collect();
    posts.sort_unstable();
    posts.dedup();
    add_where(tx, instance_id, "r(post_id)", "true", &[ids.column(posts)])
}

/// Adds the posts of a batch that meet a condition. `row` names the columns of the batch, which has each `r.post_id`
/// once, in order.
pub(crate) fn add_where(
    tx: &mut Tx<'_>,
    instance_id: i64,
    row: &str,
    condition: &str,
    batch: &[Column<'_>],
) -> Result<(), DbError> {
    let now_ms = modification_now_sql(tx);
    let or_raise_time = pending_posts::or_raise_time(TABLE);
    tx.execute_many_later(
        &format!(
            "insert into {TABLE} (instance_id, post_id, since_ms)
             select $1, r.post_id, {now_ms} from {{rows as {row}}} where {condition}
             {or_raise_time}"
        ),
        &[&instance_id],
        batch,
    )
}

const TABLE: &str = "index_pending";
