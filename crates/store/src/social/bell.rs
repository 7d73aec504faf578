//! Bells: an account that follows an author with `notify` is notified of each of the author's posts
//! that it may read.
//!
//! Nothing happens when a page is stored. A periodic job reads the posts since
//! `relation.notified_id`, the local ID up to which posts were seen. It writes the notifications
//! and the new ID in one transaction below the account's root. So each post is notified once, by
//! the first process. Posts from before the bell was set, and history, are not notified.

use std::collections::{HashMap, HashSet};

use driftline_core::social::NotificationKind;
use driftline_db::{Column, Tx};

use super::{local_account, mute};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, LocalId, from_sql, sql},
    local_ids,
    posts::timeline::{self, HomeRule, PostKey, Range, TimelinePost, Viewer, came},
    viewer::ReadableSources,
};

/// The largest number of posts that a call of [`ring`] reads.
pub const MAX_POSTS: u16 = 40;

/// The accounts with a bell, by their IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn accounts(tx: &mut Tx<'_>) -> Result<Vec<LocalAccountId>, StoreError> {
    Ok(tx.query(
        "select distinct account_id from relation where notified_id is not null
         order by account_id",
        &[],
        |row| from_sql(row.i64("account_id")?),
    )?)
}

/// True if [`ring`] has work for an account.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn is_due(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<bool, StoreError> {
    Ok(Arrivals::load(tx, account, 1)?.is_some())
}

/// Notifies an account of posts since the last call that `rings` accepts, except boosts and posts
/// of muted accounts. Returns the number of notifications. Must be written below the account's
/// root.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn ring(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    rings: &dyn Fn(&TimelinePost) -> bool,
    now_ms: i64,
) -> Result<usize, StoreError> {
    // An account that is being removed is not notified.
    let is_there = local_account::by_id(tx, account)?.is_some();
    let Some(arrivals) = Arrivals::load(tx, account, MAX_POSTS)?.filter(|_| is_there) else {
        return Ok(0);
    };
    let muted = mute::all_later(tx, account, now_ms)?;
    let muted: HashSet<AccountId> = tx.rows(muted)?.into_iter().collect();
    let mut posts = arrivals.posts;
    posts.retain(|post| {
        let is_muted = post.account.is_none_or(|author| muted.contains(&author));
        post.boost_of.is_none() && !is_muted && rings(post)
    });
    let first_came = first_came(tx, &posts, &arrivals.readable)?;
    posts.retain(|post| {
        let notified = post.account.and_then(|author| arrivals.bells.get(&author));
        let came = first_came.get(&post.id);
        notified
            .zip(came)
            .is_some_and(|(notified, came)| came > notified)
    });
    tx.execute_later(
        "update relation set notified_id = $2 where account_id = $1 and notified_id < $2",
        &[&sql(account), &sql(arrivals.reached)],
    )?;
    write(tx, account, posts, now_ms)
}

/// Writes a notification of each of these posts, which must have an author and be the newest first. Posts of
/// which, or of copies of which, the account has a notification, are left out. Returns the number of
/// notifications.
pub(super) fn write(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    mut posts: Vec<TimelinePost>,
    now_ms: i64,
) -> Result<usize, StoreError> {
    let Some(oldest) = posts.iter().map(|post| post.id).min() else {
        return Ok(0);
    };
    // A notification is later than its post, so that the others need not be read.
    let notified = tx.query(
        "select post_id from notification
         where account_id = $1 and id > $2 and kind = 'status' and post_id is not null",
        &[&sql(account), &sql(oldest)],
        |row| row.i64("post_id"),
    )?;
    let notified: HashSet<i64> = notified.into_iter().collect();
    posts.retain(|post| {
        let is_notified = |copy: &PostKey| notified.contains(&sql(copy.post));
        !is_notified(&post.key()) && !post.copies.iter().any(is_notified)
    });
    if posts.is_empty() {
        return Ok(0);
    }
    // Last, because all others wait for the clock.
    let first = local_ids::take(tx, now_ms, posts.len())?;
    // The newest post comes first in a page.
    for (id, post) in (first..).zip(posts.iter().rev()) {
        tx.execute_later(
            "insert into notification
                 (account_id, id, kind, from_id, post_id, instance_id, created_at_ms)
             values ($1, $2, $3, $4, $5, $6, $7)",
            &[
                &sql(account),
                &id,
                &NotificationKind::Status.name(),
                &post.account.map(sql),
                &sql(post.post_id),
                &sql(post.instance),
                &now_ms,
            ],
        )?;
    }
    Ok(posts.len())
}

/// The posts since an account was last notified.
struct Arrivals {
    /// The authors, each with the local ID up to which it was notified.
    bells: HashMap<AccountId, LocalId>,
    readable: ReadableSources,
    /// The posts, the newest first.
    posts: Vec<TimelinePost>,
    /// The local ID up to which they were read.
    reached: LocalId,
}

impl Arrivals {
    /// Reads the posts; `None` if there are none.
    fn load(
        tx: &mut Tx<'_>,
        account: LocalAccountId,
        limit: u16,
    ) -> Result<Option<Self>, StoreError> {
        let bells = tx.query(
            "select other_id, notified_id from relation
             where account_id = $1 and notified_id is not null and outgoing = 'following'",
            &[&sql(account)],
            |row| {
                Ok((
                    from_sql(row.i64("other_id")?)?,
                    from_sql(row.i64("notified_id")?)?,
                ))
            },
        )?;
        let bells: HashMap<AccountId, LocalId> = bells.into_iter().collect();
        let Some(min) = bells.values().min().copied() else {
            return Ok(None);
        };
        let range = Range {
            min: Some(min),
            limit,
            ..Range::default()
        };
        let rule = HomeRule {
            sources: Vec::new(),
            authors: bells.keys().copied().collect(),
        };
        let readable = ReadableSources::load(tx, Viewer::Account(account))?;
        // If posts are picked, one transaction reads only this number of positions.
        let all = |_: &TimelinePost| true;
        let read = timeline::home(tx, &range, &readable, &rule, Some(&all))?;
        let stopped_at = read.rest.and_then(|rest| rest.min);
        let reached = stopped_at.or(read.posts.first().map(|newest| newest.id));
        Ok(reached.map(|reached| Self {
            bells,
            readable,
            posts: read.posts,
            reached,
        }))
    }
}

/// The time at which each post, or another copy of it, first came in a source that its reader may
/// read, by [`TimelinePost::id`]. Posts at the position of history are omitted.
pub(super) fn first_came(
    tx: &mut Tx<'_>,
    posts: &[TimelinePost],
    readable: &ReadableSources,
) -> Result<HashMap<LocalId, LocalId>, StoreError> {
    if posts.is_empty() {
        return Ok(HashMap::new());
    }
    let copies = posts.iter().flat_map(|post| {
        let copies = post.copies.iter().copied().chain([post.key()]);
        copies.map(move |copy| (copy, post.id))
    });
    let places: HashMap<i64, LocalId> = copies
        .clone()
        .map(|(copy, id)| (sql(copy.post), id))
        .collect();
    let instances: HashSet<i64> = copies.map(|(copy, _)| sql(copy.instance)).collect();
    let entries = tx.query(
        "select id, post_id, arrival_id from entry
         where (id {in $1} or post_id {in $1} and id <> post_id)
             and instance_id {in $2} and source_id {in $3}",
        &[
            &Column::i64(places.keys().copied()),
            &Column::i64(instances),
            &Column::i64(readable.of_timelines().iter().map(|source| source.key.id())),
        ],
        |row| {
            Ok((
                row.i64("id")?,
                row.i64("post_id")?,
                row.opt_i64("arrival_id")?,
            ))
        },
    )?;
    let (mut first, mut at_history) = (HashMap::new(), HashSet::new());
    for (id, post_id, arrival_id) in entries {
        let Some(place) = places.get(&post_id) else {
            continue;
        };
        if arrival_id.is_some() && sql(*place) == id {
            at_history.insert(*place);
        }
        let (_, came) = came(id, arrival_id);
        let came = from_sql(came)?;
        let known = first.entry(*place).or_insert(came);
        *known = came.min(*known);
    }
    first.retain(|place, _| !at_history.contains(place));
    Ok(first)
}
