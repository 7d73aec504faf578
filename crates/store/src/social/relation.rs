//! How accounts stand to each other.
//!
//! Two accounts of this server have a row each, which say the same from both sides. Whoever changes one
//! has locked both accounts, in the order of their IDs ([`root`], then [`change`]), so that two people who
//! do something to each other at once do it one after the other. A copy of an account of an instance has
//! no row, and never acts: it accepts every follow, which stays here.

use std::collections::HashMap;

use driftline_core::social::{
    Direction, Relation, RelationMove, RelationPair, RelationRefused, RelationStep,
};
use driftline_db::{Column, DbError, PendingRows, Root, Row, Tx};

use super::{list, local_account, notification, parsed, profile};
use crate::{
    error::StoreError,
    id_types::{
        AccountId, LocalAccountId, LocalId, MIN_COPY_ID, account_id, from_sql, local_account_id,
        sql,
    },
    local_ids,
    posts::timeline::Range,
};

/// The root of a change between two accounts: the one of this server with the lower ID.
pub fn root(account: LocalAccountId, other: AccountId) -> Root {
    let other = local_account_id(other).unwrap_or(account);
    local_account::root(account.min(other))
}

/// How an account stands to another one, and that one to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelationRow {
    /// The other one.
    pub other: AccountId,
    /// Seen from the account whose row it is.
    pub pair: RelationPair,
    /// When the outgoing relation last changed, as an ID: pages go by it.
    pub outgoing_id: LocalId,
    /// When the incoming relation last changed, as an ID.
    pub incoming_id: LocalId,
    /// True if boosts of the other one are shown, if it is followed.
    pub show_boosts: bool,
    /// Up to which local ID posts of the other one were notified; `None` if they are not: see
    /// [`bell`](super::bell).
    pub notified: Option<LocalId>,
}

/// Why somebody cannot do something to another account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefused {
    /// It is the same account.
    #[error("this is your own account")]
    Oneself,
    /// The relations do not allow it.
    #[error(transparent)]
    Relation(#[from] RelationRefused),
}

/// What a follower wants to see; `None` leaves it as it is, and at first shows boosts and notifies of
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowOptions {
    /// True if boosts are shown.
    pub show_boosts: Option<bool>,
    /// True if each post is notified.
    pub notify: Option<bool>,
}

/// Follows an account, or asks to: an account of this server may be locked. To be written below
/// [`root`].
///
/// # Errors
/// [`StoreError::NoAccount`] if one of them is no account of this server any more.
pub fn follow(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
    options: FollowOptions,
    now_ms: i64,
) -> Result<Result<RelationRow, ChangeRefused>, StoreError> {
    lock_other(tx, account, other)?;
    let auto_accept = match local_account_id(other) {
        Some(other) => !profile::load(tx, other)?.locked,
        None => true,
    };
    let follow = RelationMove::Follow { auto_accept };
    let followed = match change(tx, account, other, follow, now_ms)? {
        Ok(followed) => followed,
        Err(refused) => return Ok(Err(refused)),
    };
    let notified = match (options.notify, followed.notified) {
        // Posts that are stored already are not notified.
        (Some(true), None) => Some(from_sql(local_ids::last_given(tx)?)?),
        (Some(false), _) => None,
        (_, notified) => notified,
    };
    let row = RelationRow {
        show_boosts: options.show_boosts.unwrap_or(followed.show_boosts),
        notified,
        ..followed
    };
    if row != followed {
        store(tx, account, &row)?;
    }
    Ok(Ok(row))
}

/// Does something to another account: all the changes that it takes, or none. Returns how the two stand
/// after it. To be written below [`root`].
///
/// # Errors
/// [`StoreError::NoAccount`] if one of them is no account of this server any more.
pub fn change(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
    done: RelationMove,
    now_ms: i64,
) -> Result<Result<RelationRow, ChangeRefused>, StoreError> {
    if account_id(account) == other {
        return Ok(Err(ChangeRefused::Oneself));
    }
    lock_other(tx, account, other)?;
    let mut row = load(tx, account, other)?;
    let (after, steps) = match row.pair.after(done) {
        Ok(after) => after,
        Err(refused) => return Ok(Err(refused.into())),
    };
    if steps.is_empty() {
        return Ok(Ok(row));
    }
    forget_in_lists(tx, account, other, after)?;
    // Last, since all others wait for the clock.
    let id = from_sql(local_ids::take(tx, now_ms, 1)?)?;
    let is_changed = |direction| {
        steps
            .iter()
            .any(|step: &RelationStep| step.direction == direction)
    };
    row.pair = after;
    if is_changed(Direction::Outgoing) {
        row.outgoing_id = id;
    }
    if is_changed(Direction::Incoming) {
        row.incoming_id = id;
    }
    if after.outgoing != Relation::Following && after.outgoing != Relation::RequestingFollow {
        (row.show_boosts, row.notified) = (true, None);
    }
    store(tx, account, &row)?;
    notification::follows(tx, (account, other), after, &steps, (id, now_ms))?;
    if let Some(other) = local_account_id(other) {
        let known = load(tx, other, account_id(account))?;
        let is_following = matches!(
            after.incoming,
            Relation::Following | Relation::RequestingFollow
        );
        let mirrored = RelationRow {
            pair: RelationPair {
                outgoing: after.incoming,
                incoming: after.outgoing,
            },
            outgoing_id: row.incoming_id,
            incoming_id: row.outgoing_id,
            show_boosts: known.show_boosts || !is_following,
            notified: known.notified.filter(|_| is_following),
            ..known
        };
        store(tx, other, &mirrored)?;
    }
    Ok(Ok(row))
}

/// Lists have accounts that are followed.
fn forget_in_lists(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
    after: RelationPair,
) -> Result<(), StoreError> {
    if after.outgoing != Relation::Following {
        list::forget_member(tx, account, other)?;
    }
    match local_account_id(other) {
        Some(other) if after.incoming != Relation::Following => {
            list::forget_member(tx, other, account_id(account))
        }
        _ => Ok(()),
    }
}

/// The account with the higher ID is locked after the root, and both must be there.
fn lock_other(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
) -> Result<(), StoreError> {
    let Some(other) = local_account_id(other) else {
        return local_account::require(tx, account);
    };
    tx.lock_later(local_account::root(account.max(other)))?;
    let both = local_account::by_ids(tx, &[account, other])?;
    match both.len() < 2 && account != other {
        true => Err(StoreError::NoAccount),
        false => Ok(()),
    }
}

/// How an account stands to another one; without a row, not at all.
fn load(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
) -> Result<RelationRow, StoreError> {
    let found = to(tx, account, &[other])?.pop();
    Ok(found.unwrap_or(RelationRow {
        other,
        pair: RelationPair::default(),
        outgoing_id: LocalId::new(0),
        incoming_id: LocalId::new(0),
        show_boosts: true,
        notified: None,
    }))
}

/// Two accounts that are nothing to each other have no rows.
fn store(tx: &mut Tx<'_>, account: LocalAccountId, row: &RelationRow) -> Result<(), DbError> {
    if row.pair == RelationPair::default() {
        return tx.execute_later(
            "delete from relation where account_id = $1 and other_id = $2",
            &[&sql(account), &sql(row.other)],
        );
    }
    tx.execute_later(
        "insert into relation (account_id, other_id, outgoing, outgoing_id, incoming, incoming_id,
             show_boosts, notified_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (account_id, other_id) do update set outgoing = $3, outgoing_id = $4,
             incoming = $5, incoming_id = $6, show_boosts = $7, notified_id = $8",
        &[
            &sql(account),
            &sql(row.other),
            &row.pair.outgoing.name(),
            &sql(row.outgoing_id),
            &row.pair.incoming.name(),
            &sql(row.incoming_id),
            &row.show_boosts,
            &row.notified.map(sql),
        ],
    )
}

/// How an account stands to those others, in no order; those to whom it is nothing, and who are nothing to
/// it, are left out.
pub fn to(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    others: &[AccountId],
) -> Result<Vec<RelationRow>, StoreError> {
    let others = Column::i64(others.iter().map(|id| sql(*id)));
    let rows = tx.query(
        "select other_id, outgoing, outgoing_id, incoming, incoming_id, show_boosts, notified_id
         from relation where account_id = $1 and other_id {in $2}",
        &[&sql(account), &others],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

/// A page of those to whom an account stands so, or who stand so to it, the latest change first: those it
/// follows, its followers, those it blocks, those who ask. The range is of the IDs of that direction.
pub fn page(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    direction: Direction,
    relation: Relation,
    range: &Range,
) -> Result<Vec<RelationRow>, StoreError> {
    let (column, id) = columns(direction);
    let (floor, order) = match range.min {
        Some(min) => (min.max(range.since.unwrap_or(min)), "asc"),
        None => (range.since.unwrap_or(LocalId::new(0)), "desc"),
    };
    let query = format!(
        "select other_id, outgoing, outgoing_id, incoming, incoming_id, show_boosts, notified_id
         from relation where account_id = $1 and {column} = $2 and {id} > $3 and {id} < $4
         order by {id} {order} limit $5"
    );
    let rows = tx.query(
        &query,
        &[
            &sql(account),
            &relation.name(),
            &sql(floor),
            &range.max.map_or(i64::MAX, sql),
            &i64::from(range.limit),
        ],
        |row| Ok(from_row(row)),
    )?;
    let mut rows: Vec<RelationRow> = rows.into_iter().collect::<Result<_, _>>()?;
    if range.min.is_some() {
        rows.reverse();
    }
    Ok(rows)
}

/// An account that another one follows, as far as timelines ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The one that is followed.
    pub other: AccountId,
    /// True if its boosts are shown.
    pub show_boosts: bool,
}

/// All whom an account follows, in no order.
pub fn followed(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<Followed>, StoreError> {
    let pending = followed_later(tx, account)?;
    Ok(tx.rows(pending)?)
}

/// [`followed`], along with what is asked next.
pub fn followed_later(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<PendingRows<'static, Followed>, StoreError> {
    Ok(tx.query_later(
        "select other_id, show_boosts from relation
         where account_id = $1 and outgoing = 'following'",
        &[&sql(account)],
        |row| {
            Ok(Followed {
                other: from_sql(row.i64("other_id")?)?,
                show_boosts: row.bool("show_boosts")?,
            })
        },
    )?)
}

/// All to whom an account stands so, along with what is asked next; in no order.
pub fn all_later(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    relation: Relation,
) -> Result<PendingRows<'static, Result<RelationRow, StoreError>>, StoreError> {
    Ok(tx.query_later(
        "select other_id, outgoing, outgoing_id, incoming, incoming_id, show_boosts, notified_id
         from relation where account_id = $1 and outgoing = $2",
        &[&sql(account), &relation.name()],
        |row| Ok(from_row(row)),
    )?)
}

/// How many there are in [`page`], without a range.
pub fn count(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    direction: Direction,
    relation: Relation,
) -> Result<i64, StoreError> {
    let (column, _) = columns(direction);
    let query =
        format!("select count(*) as others from relation where account_id = $1 and {column} = $2");
    Ok(
        tx.query_one(&query, &[&sql(account), &relation.name()], |row| {
            row.i64("others")
        })?,
    )
}

/// How many follow an account, and how many it follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowCounts {
    /// Its followers, all of this server.
    pub followers: i64,
    /// Those that it follows.
    pub following: i64,
    /// Those among them that are of this server: whom people of this server all know.
    pub following_here: i64,
}

/// The counts of those accounts; those that have none are left out.
pub fn follow_counts(
    tx: &mut Tx<'_>,
    accounts: &[LocalAccountId],
) -> Result<HashMap<LocalAccountId, FollowCounts>, StoreError> {
    let ids = Column::i64(accounts.iter().map(|id| sql(*id)));
    let found = tx.query(
        "select account_id, sum(case when incoming = 'following' then 1 else 0 end) as followers,
             sum(case when outgoing = 'following' then 1 else 0 end) as following,
             sum(case when outgoing = 'following' and other_id >= $2 and other_id < $3 then 1 else 0 end)
                 as following_here
         from relation where account_id {in $1} group by account_id",
        &[&ids, &local_ids::MIN_LOCAL_ID, &MIN_COPY_ID],
        |row| {
            let counts = FollowCounts {
                followers: row.i64("followers")?,
                following: row.i64("following")?,
                following_here: row.i64("following_here")?,
            };
            Ok((from_sql(row.i64("account_id")?)?, counts))
        },
    )?;
    Ok(found.into_iter().collect())
}

const fn columns(direction: Direction) -> (&'static str, &'static str) {
    match direction {
        Direction::Outgoing => ("outgoing", "outgoing_id"),
        Direction::Incoming => ("incoming", "incoming_id"),
    }
}

fn from_row(row: &Row<'_>) -> Result<RelationRow, StoreError> {
    Ok(RelationRow {
        other: from_sql(row.i64("other_id")?)?,
        pair: RelationPair {
            outgoing: parsed("a relation", row.str("outgoing")?)?,
            incoming: parsed("a relation", row.str("incoming")?)?,
        },
        outgoing_id: from_sql(row.i64("outgoing_id")?)?,
        incoming_id: from_sql(row.i64("incoming_id")?)?,
        show_boosts: row.bool("show_boosts")?,
        notified: row.opt_i64("notified_id")?.map(from_sql).transpose()?,
    })
}
