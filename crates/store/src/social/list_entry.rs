//! Posts that an edit brought into a list with a predicate. Must be written below the account's root.
//!
//! Such a list shows the posts that its predicate selects, each at its place, so it has a post from
//! the moment at which the post is stored. A post that an edit brings in would stand among older
//! posts, where readers have passed. It gets an entry with a new ID, and the list shows it there
//! instead, as long as the predicate selects it.

use std::collections::{HashMap, HashSet};

use driftline_db::{Column, DbError, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, from_sql, sql},
    local_ids,
    posts::timeline::{self, PostKey, Range, TimelinePost},
    viewer::Viewer,
};

/// A list of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListKey {
    /// The account.
    pub account: LocalAccountId,
    /// The list.
    pub list: LocalId,
}

/// A post that an edit brought into a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListEntry {
    /// Its own ID, at which the list shows the post.
    pub id: LocalId,
    /// The post. It may be gone, or hidden from the account.
    pub key: PostKey,
}

/// The entries of a list in a range, the newest first. There are more in the range only if there
/// are `limit` of them.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn page(tx: &mut Tx<'_>, list: ListKey, range: &Range) -> Result<Vec<ListEntry>, StoreError> {
    let order = match range.min {
        Some(_) => "id",
        None => "id desc",
    };
    let mut entries = tx.query(
        &format!(
            "select id, post_id, instance_id from list_entry
             where account_id = $1 and list_id = $2 and id > $3 and id < $4 order by {order} limit $5"
        ),
        &[
            &sql(list.account),
            &sql(list.list),
            &range.since.max(range.min).map_or(i64::MIN, sql),
            &range.max.map_or(i64::MAX, sql),
            &i64::from(range.limit),
        ],
        from_row,
    )?;
    if range.min.is_some() {
        entries.reverse();
    }
    Ok(entries)
}

/// The entries of posts or copies of them in a list, by [`TimelinePost::id`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn of_posts(
    tx: &mut Tx<'_>,
    list: ListKey,
    posts: &[TimelinePost],
) -> Result<HashMap<LocalId, LocalId>, StoreError> {
    let copies = posts.iter().flat_map(|post| {
        let copies = post.copies.iter().map(|copy| copy.post);
        copies
            .chain([post.post_id])
            .map(|copy| (sql(copy), post.id))
    });
    let places: HashMap<i64, LocalId> = copies.collect();
    if places.is_empty() {
        return Ok(HashMap::new());
    }
    let found = tx.query(
        "select id, post_id from list_entry
         where account_id = $1 and list_id = $2 and post_id {in $3} order by id",
        &[
            &sql(list.account),
            &sql(list.list),
            &Column::i64(places.keys().copied()),
        ],
        |row| Ok((row.i64("post_id")?, from_sql(row.i64("id")?)?)),
    )?;
    let entries = found.into_iter();
    Ok(entries
        .filter_map(|(post, id)| Some((*places.get(&post)?, id)))
        .collect())
}

/// The ID of the newest entry of an account's lists; 0 if there is none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn newest(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<LocalId, StoreError> {
    let found = tx.query_opt(
        "select id from list_entry where account_id = $1 order by id desc limit 1",
        &[&sql(account)],
        |row| from_sql(row.i64("id")?),
    )?;
    Ok(found.unwrap_or(LocalId::new(0)))
}

/// The first entries of an account's lists above an ID, at most `limit`, each with its list.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn above(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: LocalId,
    limit: u16,
) -> Result<Vec<(ListKey, ListEntry)>, StoreError> {
    Ok(tx.query(
        "select list_id, id, post_id, instance_id from list_entry
         where account_id = $1 and id > $2 order by id limit $3",
        &[&sql(account), &sql(id), &i64::from(limit)],
        |row| {
            let list = from_sql(row.i64("list_id")?)?;
            Ok((ListKey { account, list }, from_row(row)?))
        },
    )?)
}

/// The ID of the entry of a post, not of its copies, in a list.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn of_post(
    tx: &mut Tx<'_>,
    list: ListKey,
    post: LocalId,
) -> Result<Option<LocalId>, StoreError> {
    let found = tx.query_opt(
        "select id from list_entry where account_id = $1 and list_id = $2 and post_id = $3",
        &[&sql(list.account), &sql(list.list), &sql(post)],
        |row| from_sql(row.i64("id")?),
    )?;
    Ok(found)
}

/// Gives each of some posts an entry in a list. A post with an entry of the last hour keeps it, and
/// an older one is replaced. Returns the posts that got one. The newest post gets the highest ID.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub(super) fn add(
    tx: &mut Tx<'_>,
    key: ListKey,
    posts: Vec<TimelinePost>,
    now_ms: i64,
) -> Result<Vec<TimelinePost>, StoreError> {
    let known = of_posts(tx, key, &posts)?;
    let hour_ago = local_ids::floor(now_ms - MIN_AGE_MS);
    let is_recent = |post: &TimelinePost| known.get(&post.id).is_some_and(|id| sql(*id) > hour_ago);
    let mut once = HashSet::new();
    let new = posts.into_iter();
    let new = new.filter(|post| !is_recent(post) && once.insert(post.id));
    let new: Vec<TimelinePost> = new.collect();
    if new.is_empty() {
        return Ok(new);
    }
    let ended: Vec<i64> = new
        .iter()
        .filter_map(|post| known.get(&post.id).map(|id| sql(*id)))
        .collect();
    if !ended.is_empty() {
        tx.execute_later(
            "delete from list_entry where account_id = $1 and id {in $2}",
            &[&sql(key.account), &Column::i64(ended)],
        )?;
    }
    // Last, because all others wait for the clock.
    let first = local_ids::take(tx, now_ms, new.len())?;
    for (id, post) in (first..).zip(new.iter().rev()) {
        tx.execute_later(
            "insert into list_entry (account_id, id, list_id, post_id, instance_id)
             values ($1, $2, $3, $4, $5)",
            &[
                &sql(key.account),
                &id,
                &sql(key.list),
                &sql(post.post_id),
                &sql(post.instance),
            ],
        )?;
    }
    Ok(new)
}

/// Removes the entries of a list.
pub(super) fn clear(tx: &mut Tx<'_>, list: ListKey) -> Result<(), StoreError> {
    Ok(tx.execute_later(
        "delete from list_entry where account_id = $1 and list_id = $2",
        &[&sql(list.account), &sql(list.list)],
    )?)
}

/// A post by any ID by which its viewer knows it: those of [`timeline::status`], and those of entries
/// in the account's lists. `None` if it is deleted or the viewer may not see it.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn status(
    tx: &mut Tx<'_>,
    id: LocalId,
    viewer: Viewer,
) -> Result<Option<TimelinePost>, StoreError> {
    let found = timeline::status(tx, id, viewer)?;
    let (None, Some(account)) = (&found, viewer.account()) else {
        return Ok(found);
    };
    let entry = tx.query_opt(
        "select id, post_id, instance_id from list_entry where account_id = $1 and id = $2",
        &[&sql(account), &sql(id)],
        from_row,
    )?;
    let Some(entry) = entry else {
        return Ok(None);
    };
    let post = timeline::by_post_ids(tx, &[entry.key], viewer)?.remove(&entry.key.post);
    Ok(post.map(|post| TimelinePost { id, ..post }))
}

fn from_row(row: &Row<'_>) -> Result<ListEntry, DbError> {
    Ok(ListEntry {
        id: from_sql(row.i64("id")?)?,
        key: PostKey {
            post: from_sql(row.i64("post_id")?)?,
            instance: from_sql(row.i64("instance_id")?)?,
        },
    })
}

/// The time after which a post that matches again gets a new ID, in milliseconds.
const MIN_AGE_MS: i64 = 60 * 60 * 1_000;
