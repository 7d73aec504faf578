//! Posts that were edited, for the lists that an edit may bring them into.
//!
//! The commit of an edit adds the post, in its own transaction. A job compares the version before
//! with the present one for each list with a predicate, and then forgets the post. A post that was
//! edited again meanwhile stays.

use std::collections::BTreeMap;

use driftline_db::{Column, DbError, Tx};

use crate::{
    database_clock::modification_now_sql,
    error::StoreError,
    id_types::{from_sql, sql},
    posts::{pending_posts, timeline::PostKey},
};

/// An edited post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditedPost {
    /// The post.
    pub key: PostKey,
    /// The number in the post's history of the first version that an edit ended since lists were
    /// compared with the post.
    pub seq: i64,
    /// The time of its last edit, in Unix ms by the database's clock. It rises with each edit,
    /// whatever the clock shows.
    pub since_ms: i64,
}

/// The first edited posts, at most `limit`, in order of their instances and IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn edited(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<EditedPost>, StoreError> {
    Ok(tx.query(
        "select instance_id, post_id, seq, since_ms from edited_post
         order by instance_id, post_id limit $1",
        &[&limit],
        |row| {
            Ok(EditedPost {
                key: PostKey {
                    post: from_sql(row.i64("post_id")?)?,
                    instance: from_sql(row.i64("instance_id")?)?,
                },
                seq: row.i64("seq")?,
                since_ms: row.i64("since_ms")?,
            })
        },
    )?)
}

/// Removes posts with which lists were compared. A post that was edited since then stays.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn forget(tx: &mut Tx<'_>, posts: &[EditedPost]) -> Result<(), StoreError> {
    let mut by_instance: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    for post in posts {
        let of_instance = by_instance.entry(sql(post.key.instance)).or_default();
        of_instance.push((sql(post.key.post), post.since_ms));
    }
    for (instance_id, posts) in by_instance {
        pending_posts::remove(tx, TABLE, instance_id, &posts)?;
    }
    Ok(())
}

/// Adds those of some posts of which a version was ended by an edit at `at_ms`. The instance must
/// be held, and the versions must be in the history.
pub(crate) fn add(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: impl IntoIterator<Item = i64>,
    at_ms: i64,
) -> Result<(), DbError> {
    let now_ms = modification_now_sql(tx);
    let or_raise_time = pending_posts::or_raise_time(TABLE);
    tx.execute_many_later(
        &format!(
            "insert into {TABLE} (instance_id, post_id, seq, since_ms)
             select h.instance_id, h.post_id, min(h.seq), {now_ms}
             from {{rows as r(id)}} join post_history h on h.post_id = r.id
             where h.instance_id = $1 and h.kind = 'edit' and h.at_ms = $2
             group by h.instance_id, h.post_id
             {or_raise_time}"
        ),
        &[&instance_id, &at_ms],
        &[Column::i64(posts)],
    )
}

const TABLE: &str = "edited_post";
