//! Notifications of lists: the owner of a list with a predicate is notified of each new post that the
//! predicate selects, if the list says so.
//!
//! As with [`bell`], nothing happens when a page is stored. A periodic job searches above
//! `list.notified_id`, and writes the notifications and the new ID in one transaction below the
//! account's root. Posts from before the list notified, and history, are not notified.

use std::collections::HashSet;

use driftline_core::{predicate::Predicate, social::AccountAction};
use driftline_db::Tx;

use super::{bell, local_account, mute};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, LocalId, from_sql, sql},
    local_ids,
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

/// A list that notifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyingList {
    /// Its ID.
    pub list: LocalId,
    /// Its predicate.
    pub predicate: Predicate,
    /// The local ID up to which posts were notified.
    pub notified: LocalId,
}

/// The lists of an account that notify. There are none if the account may not read now.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn lists(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<NotifyingList>, StoreError> {
    if !may_read(tx, account)? {
        return Ok(Vec::new());
    }
    let rows = tx.query(
        "select id, predicate, notified_id from list
         where account_id = $1 and notified_id is not null order by id",
        &[&sql(account)],
        |row| {
            Ok((
                row.i64("id")?,
                row.text("predicate")?,
                row.i64("notified_id")?,
            ))
        },
    )?;
    let mut lists = Vec::new();
    for (id, json, notified) in rows {
        // One that cannot be read, of a newer program, keeps no other from notifying.
        if let Ok(predicate) = Predicate::from_json(&json) {
            lists.push(NotifyingList {
                list: from_sql(id)?,
                predicate,
                notified: from_sql(notified)?,
            });
        }
    }
    Ok(lists)
}

/// Returns the place above which the posts of a list are searched: the last notified one, but none that is a
/// day old. After a longer outage, or while the account was frozen, older posts are not notified.
pub fn search_above(list: &NotifyingList, now_ms: i64) -> LocalId {
    let oldest = local_ids::floor(now_ms - MAX_AGE_MS);
    let oldest = from_sql(oldest).unwrap_or(list.notified);
    list.notified.max(oldest)
}

/// The posts above the last notified one that a list's predicate selects.
#[derive(Clone, Debug)]
pub struct NewMatches {
    /// The list, as it was when they were searched.
    pub list: NotifyingList,
    /// The local ID above which they were searched.
    pub above: LocalId,
    /// The posts, the newest first.
    pub posts: Vec<TimelinePost>,
    /// The local ID up to which they were searched.
    pub reached: LocalId,
}

impl NewMatches {
    /// True if there is something to write. A list without matches is written once a minute, since the place
    /// that was reached rises with each post of any source.
    pub fn is_worth_writing(&self) -> bool {
        let rose = sql(self.reached) - sql(self.list.notified);
        !self.posts.is_empty() || rose > local_ids::floor(MINUTE_MS) - local_ids::floor(0)
    }
}

/// Notifies an account of the matches of a list, unless the list has changed or another process has
/// done so. Boosts, posts of muted authors, posts without a known author, history, and posts of which
/// the account has a notification, are left out. Returns the number of notifications. Must be written
/// below the account's root.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn ring(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    matches: &NewMatches,
    now_ms: i64,
) -> Result<usize, StoreError> {
    let list = &matches.list;
    let known = notified(tx, account, list.list)?;
    let is_same = known.is_some_and(|(notified, json)| {
        let predicate = Predicate::from_json(&json).ok();
        notified == list.notified && predicate.as_ref() == Some(&list.predicate)
    });
    if !is_same || !may_read(tx, account)? {
        return Ok(0);
    }
    let muted = mute::all_later(tx, account, now_ms)?;
    let muted: HashSet<AccountId> = tx.rows(muted)?.into_iter().collect();
    let mut posts = matches.posts.clone();
    posts.retain(|post| {
        let is_shown = post.account.is_some_and(|author| !muted.contains(&author));
        is_shown && post.boost_of.is_none()
    });
    let readable = ReadableSources::load(tx, Viewer::Account(account))?;
    let first_came = bell::first_came(tx, &posts, &readable)?;
    posts.retain(|post| {
        let came = first_came.get(&post.id);
        came.is_some_and(|came| *came > matches.above)
    });
    tx.execute_later(
        "update list set notified_id = $3 where account_id = $1 and id = $2",
        &[&sql(account), &sql(list.list), &sql(matches.reached)],
    )?;
    bell::write(tx, account, posts, now_ms)
}

/// The local ID up to which a list has notified of posts, and its predicate; `None` if it does not
/// notify.
pub(super) fn notified(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    list: LocalId,
) -> Result<Option<(LocalId, String)>, StoreError> {
    let found = tx.query_opt(
        "select notified_id, predicate from list
         where account_id = $1 and id = $2 and notified_id is not null",
        &[&sql(account), &sql(list)],
        |row| Ok((row.i64("notified_id")?, row.text("predicate")?)),
    )?;
    let found = found.map(|(notified, predicate)| Ok((from_sql(notified)?, predicate)));
    found.transpose()
}

fn may_read(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<bool, StoreError> {
    let owner = local_account::by_id(tx, account)?;
    Ok(owner.is_some_and(|owner| owner.state.allows(AccountAction::UseTokens)))
}

const MINUTE_MS: i64 = 60_000;
const MAX_AGE_MS: i64 = 24 * 60 * MINUTE_MS;
