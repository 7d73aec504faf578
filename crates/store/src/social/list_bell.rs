//! Notifications of lists: the owner of a list with a predicate is notified of each new post that the
//! predicate selects, if the list says so.
//!
//! As with [`bell`], nothing happens when a page is stored. A periodic job searches above
//! `list.notified_id`, and writes the notifications and the new ID in one transaction below the
//! account's root. Posts from before the list notified, and history, are not notified.

use std::collections::HashSet;

use driftline_core::social::AccountAction;
use driftline_db::{DbError, Row, Tx};
use driftline_id::Layout;

use super::{
    bell,
    list_entry::{self, ListKey},
    local_account, mute,
};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, LocalId, from_sql, sql},
    local_ids,
    posts::{
        edited_post::{self, EditedPost},
        timeline::{TimelinePost, Viewer},
    },
    viewer::ReadableSources,
};

/// A list with a predicate, of an account that may have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingList {
    /// The list.
    pub key: ListKey,
    /// The JSON form of its predicate.
    pub predicate: String,
    /// The local ID up to which posts were notified; `None` if the list notifies nobody.
    pub notified: Option<LocalId>,
}

/// All lists with predicates, by their accounts and IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn standing_lists(tx: &mut Tx<'_>) -> Result<Vec<StandingList>, StoreError> {
    let query =
        format!("select {COLUMNS} from list where predicate is not null order by account_id, id");
    Ok(tx.query(&query, &[], from_row)?)
}

/// A list; `None` if the account does not have it, or it has no predicate.
pub(super) fn standing_list(
    tx: &mut Tx<'_>,
    list: ListKey,
) -> Result<Option<StandingList>, StoreError> {
    let query = format!(
        "select {COLUMNS} from list where account_id = $1 and id = $2 and predicate is not null"
    );
    Ok(tx.query_opt(&query, &[&sql(list.account), &sql(list.list)], from_row)?)
}

/// Returns the first edited posts, at most `limit`, if there is no list with a predicate; otherwise none. No list
/// has to be compared with them: a list that is saved later starts with the posts as they are then.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn unneeded_edits(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<EditedPost>, StoreError> {
    // The posts are read first. So each list that is not seen here is saved after these edits.
    let edited = edited_post::edited(tx, limit)?;
    if edited.is_empty() {
        return Ok(edited);
    }
    let list = tx.query_opt(
        "select id from list where predicate is not null limit 1",
        &[],
        |row| row.i64("id"),
    )?;
    Ok(match list {
        Some(_) => Vec::new(),
        None => edited,
    })
}

/// Returns the place above which the posts of a list are searched: the last notified one, but none that is a
/// day old. After a longer outage, or while the account was frozen, older posts are not notified.
pub fn search_above(notified: LocalId, now_ms: i64) -> LocalId {
    let oldest = local_ids::floor(now_ms - MAX_AGE_MS);
    let oldest = from_sql(oldest).unwrap_or(notified);
    notified.max(oldest)
}

/// The posts above the last notified one that a list's predicate selects.
#[derive(Clone, Debug)]
pub struct NewMatches {
    /// The list, as it was when they were searched.
    pub list: StandingList,
    /// The local ID above which they were searched.
    pub above: LocalId,
    /// The posts, the newest first.
    pub posts: Vec<TimelinePost>,
    /// The local ID up to which they were searched.
    pub reached: LocalId,
}

impl NewMatches {
    /// True if there is something to write. The place that was reached rises with each post of any source, so a
    /// list without matches is written once an hour only. The process knows the place meanwhile. After a restart
    /// it searches the posts of the last hour again, in which it found no matches: posts are notified that match
    /// only since then, for example because their source became readable.
    pub fn is_worth_writing(&self) -> bool {
        let time_ms = |id: LocalId| Layout::PULSATE.time_ms(id.raw().into());
        let notified = self.list.notified;
        let is_late = notified.is_none_or(|id| time_ms(self.reached) - time_ms(id) > HOUR_MS);
        !self.posts.is_empty() || is_late
    }
}

/// Notifies an account of the matches of a list. Boosts, posts of muted authors, posts without a known author,
/// history, and posts of which the account has a notification, are left out. Returns the number of notifications,
/// or `None` without a change if the list has changed, another process has notified, or the account may not read
/// now. Must be written below the account's root.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn ring(
    tx: &mut Tx<'_>,
    matches: &NewMatches,
    now_ms: i64,
) -> Result<Option<usize>, StoreError> {
    let list = &matches.list;
    let account = list.key.account;
    let is_same = standing_list(tx, list.key)?.is_some_and(|known| known == *list);
    if !is_same || !may_read(tx, account)? {
        return Ok(None);
    }
    let mut posts = without_muted(tx, account, matches.posts.clone(), now_ms)?;
    let readable = ReadableSources::load(tx, Viewer::Account(account))?;
    let first_came = bell::first_came(tx, &posts, &readable)?;
    posts.retain(|post| {
        let came = first_came.get(&post.id);
        came.is_some_and(|came| *came > matches.above)
    });
    tx.execute_later(
        "update list set notified_id = $3 where account_id = $1 and id = $2",
        &[&sql(account), &sql(list.key.list), &sql(matches.reached)],
    )?;
    bell::write(tx, account, posts, now_ms).map(Some)
}

/// Gives posts that an edit brought into a list an entry in it, unless the list has another predicate
/// by now, and notifies of them if the list notifies. Posts that [`ring`] leaves out are not
/// notified. Must be written below the account's root.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn enter(
    tx: &mut Tx<'_>,
    list: &StandingList,
    posts: Vec<TimelinePost>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let account = list.key.account;
    let known = standing_list(tx, list.key)?;
    let Some(known) = known.filter(|known| known.predicate == list.predicate) else {
        return Ok(());
    };
    if !may_read(tx, account)? {
        return Ok(());
    }
    let entered = list_entry::add(tx, list.key, posts, now_ms)?;
    if known.notified.is_some() {
        let posts = without_muted(tx, account, entered, now_ms)?;
        bell::write(tx, account, posts, now_ms)?;
    }
    Ok(())
}

/// The posts of which an account may be notified: neither boosts, nor those of muted or unknown
/// authors.
fn without_muted(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    mut posts: Vec<TimelinePost>,
    now_ms: i64,
) -> Result<Vec<TimelinePost>, StoreError> {
    let muted = mute::all_later(tx, account, now_ms)?;
    let muted: HashSet<AccountId> = tx.rows(muted)?.into_iter().collect();
    posts.retain(|post| {
        let is_shown = post.account.is_some_and(|author| !muted.contains(&author));
        is_shown && post.boost_of.is_none()
    });
    Ok(posts)
}

fn from_row(row: &Row<'_>) -> Result<StandingList, DbError> {
    let notified = row.opt_i64("notified_id")?;
    Ok(StandingList {
        key: ListKey {
            account: from_sql(row.i64("account_id")?)?,
            list: from_sql(row.i64("id")?)?,
        },
        predicate: row.text("predicate")?,
        notified: notified.map(from_sql).transpose()?,
    })
}

/// Returns true if an account may read now: it is neither frozen nor being removed.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn may_read(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<bool, StoreError> {
    let owner = local_account::by_id(tx, account)?;
    Ok(owner.is_some_and(|owner| owner.state.allows(AccountAction::UseTokens)))
}

const COLUMNS: &str = "account_id, id, predicate, notified_id";
const HOUR_MS: i64 = 60 * 60_000;
const MAX_AGE_MS: i64 = 24 * HOUR_MS;
