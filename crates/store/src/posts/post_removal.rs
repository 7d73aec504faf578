//! Removes posts with their dependent rows.

use driftline_db::{Column, DbError, Tx};

use crate::{
    new_ids::TakenIds,
    posts::{index_pending, object_uri},
    refresh,
};

/// Removes posts with their names, states, histories and texts. Their IDs are never given again: the
/// caller must change the rows of `entry_alias` that name the posts. The instance must be held.
pub(crate) fn remove(tx: &mut Tx<'_>, instance_id: i64, post_ids: &[i64]) -> Result<u64, DbError> {
    let column = || Column::i64(post_ids.iter().copied());
    object_uri::forget_posts(tx, instance_id, post_ids)?;
    // A post to which others refer keeps the ID that they use.
    for sql in [
        "update upstream_post set post_id = 0, reply_to_id = null
         where reference_id is not null and instance_id = $2 and upstream_id in
             (select upstream_id from post where id {in $1} and instance_id = $2)",
        "delete from upstream_post
         where reference_id is null and instance_id = $2 and upstream_id in
             (select upstream_id from post where id {in $1} and instance_id = $2)",
    ] {
        tx.execute(sql, &[&column(), &instance_id])?;
    }
    // Saves lock posts before their dependent rows.
    let posts = tx.execute(
        "delete from post where id {in $1} and instance_id = $2",
        &[&column(), &instance_id],
    )?;
    refresh::unschedule(tx, instance_id, post_ids)?;
    for sql in [
        "delete from scoped_content where post_id {in $1} and instance_id = $2",
        "delete from count_history where post_id {in $1} and instance_id = $2",
        "delete from post_history where post_id {in $1} and instance_id = $2",
        "delete from post_text where post_id {in $1} and instance_id = $2",
        "delete from edited_post where post_id {in $1} and instance_id = $2",
    ] {
        tx.execute(sql, &[&column(), &instance_id])?;
    }
    index_pending::add(tx, instance_id, post_ids.iter().copied(), &TakenIds::NONE)?;
    // An alias without a post prevents an ID from being given again.
    tx.execute_many(
        "insert into entry_alias (id, instance_id, post_id)
         select r.id, $1, null from {rows as r(id)} where true
         on conflict ({key id + instance_id}) do update set post_id = null",
        &[&instance_id],
        &[column()],
    )?;
    Ok(posts)
}
