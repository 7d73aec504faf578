//! Bookmarks and favourites: marked posts, which are objects of their owner's library. No one else
//! is notified, including the post's author and server. Must be written below the account's root.

use driftline_core::{
    social::Mark,
    sync::{ObjectKey, ObjectKind},
};
use driftline_db::{Column, Row, Tx};

use super::{local_account, object_keys, parsed};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, from_sql, sql},
    library::object::{self, AccountLibrary},
    posts::timeline::{self, PostKey, Range},
    viewer::Viewer,
};

fn kind(mark: Mark) -> ObjectKind {
    match mark {
        Mark::Bookmark => ObjectKind::Bookmark,
        Mark::Favourite => ObjectKind::Favourite,
    }
}

/// A marked post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkedPost {
    /// The mark's own ID, which determines its position in pages.
    pub id: LocalId,
    /// The post. It may be gone, or hidden from the account.
    pub key: PostKey,
}

/// Marks a post, unless it already has this mark. If a copy of the post has it, which the account
/// does not see any more, the mark moves to this one.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist (any more).
pub fn set(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    mark: Mark,
    key: PostKey,
    now_ms: i64,
) -> Result<(), StoreError> {
    local_account::require(tx, account)?;
    if find(tx, account, mark, key.post)?.is_some() {
        return Ok(());
    }
    let shown = match mark {
        Mark::Bookmark => {
            let viewer = Viewer::Account(account);
            timeline::shown_versions(tx, &[key], viewer)?.remove(&key.post)
        }
        Mark::Favourite => None,
    };
    let object_key = object_keys::for_post(tx, account, kind(mark), key)?;
    add(tx, account, mark, key, object_key, shown.as_deref(), now_ms)
}

/// Marks a post that does not have this mark. `shown` is the version of a bookmark's post that the account is shown.
pub(crate) fn add(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    mark: Mark,
    key: PostKey,
    object_key: ObjectKey,
    shown: Option<&str>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let of_copy = object::find(tx, account, &object_key)?.filter(|object| !object.is_removed);
    if let Some(of_copy) = of_copy {
        delete(tx, account, mark, of_copy.id)?;
    }
    let mut library = AccountLibrary::load(tx, account)?;
    let id = library.add(tx, kind(mark), &[object_key], now_ms)?;
    Ok(tx.execute_later(
        "insert into marked_post (account_id, post_id, mark, id, instance_id, shown)
         values ($1, $2, $3, $4, $5, $6)",
        &[
            &sql(account),
            &sql(key.post),
            &mark.name(),
            &id,
            &sql(key.instance),
            &shown,
        ],
    )?)
}

/// Removes a mark. Returns `false` if there was none.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist (any more).
pub fn remove(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    mark: Mark,
    post: LocalId,
) -> Result<bool, StoreError> {
    local_account::require(tx, account)?;
    let Some(id) = find(tx, account, mark, post)? else {
        return Ok(false);
    };
    remove_object(tx, account, mark, id)?;
    Ok(true)
}

/// Removes the mark with this ID.
pub(crate) fn remove_object(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    mark: Mark,
    id: i64,
) -> Result<(), StoreError> {
    AccountLibrary::load(tx, account)?.remove(tx, &[id])?;
    delete(tx, account, mark, id)
}

fn delete(tx: &mut Tx<'_>, account: LocalAccountId, mark: Mark, id: i64) -> Result<(), StoreError> {
    Ok(tx.execute_later(
        "delete from marked_post where account_id = $1 and mark = $2 and id = $3",
        &[&sql(account), &mark.name(), &id],
    )?)
}

/// The ID of a post's mark.
pub(crate) fn find(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    mark: Mark,
    post: LocalId,
) -> Result<Option<i64>, StoreError> {
    Ok(tx.query_opt(
        "select id from marked_post where account_id = $1 and post_id = $2 and mark = $3",
        &[&sql(account), &sql(post), &mark.name()],
        |row| row.i64("id"),
    )?)
}

/// The marks with these IDs, in no order.
pub(crate) fn by_ids(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[i64],
) -> Result<Vec<MarkedPost>, StoreError> {
    let marks = Column::text(Mark::ALL.iter().map(|mark| mark.name()));
    Ok(tx.query(
        "select id, post_id, instance_id from marked_post
         where account_id = $1 and mark {in $2} and id {in $3}",
        &[&sql(account), &marks, &Column::i64(ids.iter().copied())],
        from_row,
    )?)
}

/// An account's marks of these posts, in no order.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn of(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    posts: &[LocalId],
) -> Result<Vec<(LocalId, Mark)>, StoreError> {
    let posts = Column::i64(posts.iter().map(|id| sql(*id)));
    let rows = tx.query(
        "select post_id, mark from marked_post where account_id = $1 and post_id {in $2}",
        &[&sql(account), &posts],
        |row| Ok((from_sql(row.i64("post_id")?)?, row.text("mark")?)),
    )?;
    rows.into_iter()
        .map(|(post, mark)| Ok((post, parsed("a mark", &mark)?)))
        .collect()
}

/// A page of an account's marks, the latest first.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn page(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    mark: Mark,
    range: &Range,
) -> Result<Vec<MarkedPost>, StoreError> {
    let (floor, order) = match range.min {
        Some(min) => (min.max(range.since.unwrap_or(min)), "asc"),
        None => (range.since.unwrap_or(LocalId::new(0)), "desc"),
    };
    let query = format!(
        "select id, post_id, instance_id from marked_post
         where account_id = $1 and mark = $2 and id > $3 and id < $4
         order by id {order} limit $5"
    );
    let mut page = tx.query(
        &query,
        &[
            &sql(account),
            &mark.name(),
            &sql(floor),
            &range.max.map_or(i64::MAX, sql),
            &i64::from(range.limit),
        ],
        from_row,
    )?;
    if range.min.is_some() {
        page.reverse();
    }
    Ok(page)
}

fn from_row(row: &Row<'_>) -> Result<MarkedPost, driftline_db::DbError> {
    Ok(MarkedPost {
        id: from_sql(row.i64("id")?)?,
        key: PostKey {
            post: from_sql(row.i64("post_id")?)?,
            instance: from_sql(row.i64("instance_id")?)?,
        },
    })
}
