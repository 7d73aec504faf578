//! Notifications: actions of others that concern an account. They are written together with their
//! cause, below its root, and are removed with it: after an unfollow, the follow is not listed any
//! more. Notifications of posts are written later, by [`bell`](super::bell), and are removed when
//! their author is blocked.

use driftline_core::social::{Direction, NotificationKind, Relation, RelationPair, RelationStep};
use driftline_db::{Column, DbError, Row, Tx};

use super::{mute, parsed};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, LocalId, account_id, from_sql, local_account_id, sql},
    posts::timeline::{PostKey, Range},
};

/// A notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Its ID, which has the time of the event.
    pub id: LocalId,
    /// The kind of event.
    pub kind: NotificationKind,
    /// The account that caused it.
    pub from: AccountId,
    /// The post that it concerns.
    pub post: Option<PostKey>,
    /// The time of the event, in Unix ms.
    pub created_at_ms: i64,
}

/// The notifications to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotificationFilter {
    /// Only these kinds; `None` for all.
    pub kinds: Option<Vec<NotificationKind>>,
    /// Only notifications caused by this account.
    pub from: Option<AccountId>,
}

/// Writes the notifications of follows when two relations change between an acting account and
/// another one.
pub(super) fn follows(
    tx: &mut Tx<'_>,
    (account, other): (LocalAccountId, AccountId),
    after: RelationPair,
    steps: &[RelationStep],
    (id, now_ms): (LocalId, i64),
) -> Result<(), StoreError> {
    let is_changed = |direction| steps.iter().any(|step| step.direction == direction);
    if after.outgoing == Relation::Blocking {
        forget_posts_by(tx, account, other)?;
    }
    if let Some(other) = local_account_id(other)
        && is_changed(Direction::Outgoing)
    {
        followed(tx, other, account_id(account), after.outgoing, (id, now_ms))?;
    }
    if is_changed(Direction::Incoming) {
        followed(tx, account, other, after.incoming, (id, now_ms))?;
    }
    Ok(())
}

/// Removes an account's notifications of the posts of another one.
pub(super) fn forget_posts_by(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
) -> Result<(), DbError> {
    tx.execute_later(
        "delete from notification where account_id = $1 and from_id = $2 and kind = 'status'",
        &[&sql(account), &sql(other)],
    )
}

/// Replaces an account's notification about the relation of another one to it.
fn followed(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    from: AccountId,
    relation: Relation,
    (id, now_ms): (LocalId, i64),
) -> Result<(), StoreError> {
    tx.execute_later(
        "delete from notification
         where account_id = $1 and from_id = $2 and kind in ('follow', 'follow_request')",
        &[&sql(account), &sql(from)],
    )?;
    let kind = match relation {
        Relation::Following => NotificationKind::Follow,
        Relation::RequestingFollow => NotificationKind::FollowRequest,
        Relation::None | Relation::Blocking => return Ok(()),
    };
    let muted = mute::of(tx, account, &[from], now_ms)?;
    if muted.iter().any(|mute| mute.notifications) {
        return Ok(());
    }
    Ok(tx.execute_later(
        "insert into notification (account_id, id, kind, from_id, created_at_ms)
         values ($1, $2, $3, $4, $5)",
        &[&sql(account), &sql(id), &kind.name(), &sql(from), &now_ms],
    )?)
}

/// A page of an account's notifications, the latest first.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn page(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    filter: &NotificationFilter,
    range: &Range,
) -> Result<Vec<Notification>, StoreError> {
    let (floor, order) = match range.min {
        Some(min) => (min.max(range.since.unwrap_or(min)), "asc"),
        None => (range.since.unwrap_or(LocalId::new(0)), "desc"),
    };
    let is_of = |kind| match &filter.kinds {
        Some(kinds) => kinds.contains(&kind),
        None => true,
    };
    let query = format!(
        "select id, kind, from_id, post_id, instance_id, created_at_ms from notification
         where account_id = $1 and id > $2 and id < $3
             and ($4 and kind = 'follow' or $5 and kind = 'follow_request' or $6 and kind = 'status')
             and (from_id = $7 or $7 is null)
         order by id {order} limit $8"
    );
    let rows = tx.query(
        &query,
        &[
            &sql(account),
            &sql(floor),
            &range.max.map_or(i64::MAX, sql),
            &is_of(NotificationKind::Follow),
            &is_of(NotificationKind::FollowRequest),
            &is_of(NotificationKind::Status),
            &filter.from.map(sql),
            &i64::from(range.limit),
        ],
        |row| Ok(from_row(row)),
    )?;
    let mut found: Vec<Notification> = rows.into_iter().collect::<Result<_, _>>()?;
    if range.min.is_some() {
        found.reverse();
    }
    Ok(found)
}

/// A notification of an account.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_id(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: LocalId,
) -> Result<Option<Notification>, StoreError> {
    let found = tx.query_opt(
        "select id, kind, from_id, post_id, instance_id, created_at_ms from notification
         where account_id = $1 and id = $2",
        &[&sql(account), &sql(id)],
        |row| Ok(from_row(row)),
    )?;
    found.transpose()
}

/// Removes a notification of an account, or all. Returns `false` if there was none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn dismiss(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: Option<LocalId>,
) -> Result<bool, StoreError> {
    let removed = tx.execute(
        "delete from notification where account_id = $1 and (id = $2 or $2 is null)",
        &[&sql(account), &id.map(sql)],
    )?;
    Ok(removed > 0)
}

/// Removes the notifications of other accounts about an account that is being removed.
pub(super) fn forget(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    others: &[i64],
) -> Result<(), DbError> {
    tx.execute_later(
        "delete from notification where from_id = $1 and account_id {in $2}",
        &[&sql(account), &Column::i64(others.iter().copied())],
    )
}

/// Removes at most `limit` notifications of an account that is being removed. Returns true if none
/// is left.
pub(super) fn remove_some(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    limit: u32,
) -> Result<bool, DbError> {
    let removed = tx.execute(
        "delete from notification where account_id = $1 and id in (
             select id from notification where account_id = $1 order by id limit $2)",
        &[&sql(account), &i64::from(limit)],
    )?;
    Ok(removed < u64::from(limit))
}

fn from_row(row: &Row<'_>) -> Result<Notification, StoreError> {
    Ok(Notification {
        id: from_sql(row.i64("id")?)?,
        kind: parsed("a notification's kind", row.str("kind")?)?,
        from: from_sql(row.i64("from_id")?)?,
        post: match (row.opt_i64("post_id")?, row.opt_i64("instance_id")?) {
            (Some(post), Some(instance)) => Some(PostKey {
                post: from_sql(post)?,
                instance: from_sql(instance)?,
            }),
            _ => None,
        },
        created_at_ms: row.i64("created_at_ms")?,
    })
}
