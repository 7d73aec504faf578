//! Notifications of lists: the owner of a list with a predicate is notified of each new post that the
//! predicate selects, if the list says so.
//!
//! As with [`bell`], nothing happens when a page is stored. A periodic job searches above
//! `list.notified_id`, and writes the notifications and the new ID in one transaction below the
//! account's root. Posts from before the list notified, and history, are not notified.

use std::collections::HashSet;

use driftline_core::social::AccountAction;
use driftline_db::{Column, Tx};

use super::{
    bell,
    list::{self, List},
    local_account,
};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, from_sql, sql},
    posts::timeline::{TimelinePost, Viewer},
    viewer::ReadableSources,
};

/// The accounts with a list that notifies, by their IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn accounts(tx: &mut Tx<'_>) -> Result<Vec<LocalAccountId>, StoreError> {
    Ok(tx.query(
        "select distinct account_id from list where notified_id is not null order by account_id",
        &[],
        |row| from_sql(row.i64("account_id")?),
    )?)
}

/// The lists of an account that notify, each with the local ID up to which posts were notified. None
/// if the account may not read now.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn lists(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<(List, LocalId)>, StoreError> {
    let owner = local_account::by_id(tx, account)?;
    if !owner.is_some_and(|owner| owner.state.allows(AccountAction::UseTokens)) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for list in list::all(tx, account)? {
        if list.settings.notify
            && let Some(notified) = notified(tx, account, list.id)?
        {
            found.push((list, notified));
        }
    }
    Ok(found)
}

/// The posts above the last notified one that a list's predicate selects.
#[derive(Clone, Debug)]
pub struct NewMatches {
    /// The list.
    pub list: LocalId,
    /// The local ID above which they were searched.
    pub above: LocalId,
    /// The posts, the newest first.
    pub posts: Vec<TimelinePost>,
    /// The local ID up to which they were searched.
    pub reached: LocalId,
}

/// Notifies an account of the matches of a list, unless that has happened already. Boosts, and posts of
/// which the account has a notification, are left out. Returns the number of notifications. Must
/// be written below the account's root.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn ring(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    matches: &NewMatches,
    now_ms: i64,
) -> Result<usize, StoreError> {
    let lists = lists(tx, account)?;
    let mut lists = lists.iter();
    if !lists.any(|(list, above)| list.id == matches.list && *above == matches.above) {
        return Ok(0);
    }
    let mut posts = matches.posts.clone();
    posts.retain(|post| post.boost_of.is_none() && post.account.is_some());
    let readable = ReadableSources::load(tx, Viewer::Account(account))?;
    let first_came = bell::first_came(tx, &posts, &readable)?;
    let notified = tx.query(
        "select post_id from notification
         where account_id = $1 and kind = 'status' and post_id {in $2}",
        &[
            &sql(account),
            &Column::i64(posts.iter().map(|post| sql(post.post_id))),
        ],
        |row| row.i64("post_id"),
    )?;
    let notified: HashSet<i64> = notified.into_iter().collect();
    posts.retain(|post| {
        let came = first_came.get(&post.id);
        came.is_some_and(|came| *came > matches.above) && !notified.contains(&sql(post.post_id))
    });
    tx.execute_later(
        "update list set notified_id = $3 where account_id = $1 and id = $2",
        &[&sql(account), &sql(matches.list), &sql(matches.reached)],
    )?;
    bell::write(tx, account, &posts, now_ms)?;
    Ok(posts.len())
}

/// The local ID up to which a list has notified of posts; `None` if it does not notify.
pub(super) fn notified(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    list: LocalId,
) -> Result<Option<LocalId>, StoreError> {
    let found = tx.query_opt(
        "select notified_id from list where account_id = $1 and id = $2",
        &[&sql(account), &sql(list)],
        |row| row.opt_i64("notified_id"),
    )?;
    Ok(found.flatten().map(from_sql).transpose()?)
}
