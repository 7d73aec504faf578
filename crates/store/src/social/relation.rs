//! The relations between accounts.
//!
//! Two accounts of this server have one row each, with the same contents from both sides. A
//! transaction that changes one has locked both accounts, in the order of their IDs ([`root`], then
//! [`change`]), so concurrent actions of two users towards each other happen one after the other. A
//! copy of an account of an instance has no row, and never acts: it accepts every follow, which
//! stays here.
//!
//! Each outgoing relation has an object in the library of its account (`relation_object`). A change that ends the follow
//! of the other account changes that account's library, too.

use std::collections::HashMap;

use driftline_core::social::{
    Direction, Relation, RelationMove, RelationPair, RelationRefused, RelationStep,
};
use driftline_db::{Column, DbError, PendingRows, Root, Row, Tx};

use super::{list, local_account, notification, parsed, profile, relation_object};
use crate::{
    error::StoreError,
    id_types::{
        AccountId, LocalAccountId, LocalId, MIN_COPY_ID, account_id, from_sql, local_account_id,
        sql,
    },
    library::{self, object::AccountLibrary},
    local_ids,
    posts::timeline::Range,
};

/// The root of a change between two accounts: the one of this server with the lower ID.
pub fn root(account: LocalAccountId, other: AccountId) -> Root {
    let other = local_account_id(other).unwrap_or(account);
    local_account::root(account.min(other))
}

/// The relations of an account and another one to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelationRow {
    /// The other account.
    pub other: AccountId,
    /// The relations from the view of the row's account.
    pub pair: RelationPair,
    /// The time at which the outgoing relation last changed, as an ID, which determines its
    /// position in pages.
    pub outgoing_id: LocalId,
    /// The time at which the incoming relation last changed, as an ID.
    pub incoming_id: LocalId,
    /// True if boosts of the followed account are shown.
    pub show_boosts: bool,
    /// The local ID up to which posts of the other account were notified; `None` if they are not:
    /// see [`bell`](super::bell).
    pub notified: Option<LocalId>,
    /// The object of the outgoing relation in the library of the row's account.
    pub object_id: Option<LocalId>,
}

/// The reason why an action towards another account is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefused {
    /// Both are the same account.
    #[error("this is your own account")]
    Oneself,
    /// The relations do not allow it.
    #[error(transparent)]
    Relation(#[from] RelationRefused),
}

/// The options of a follow. `None` keeps an option; at first, boosts are shown and posts are not
/// notified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowOptions {
    /// True if boosts are shown.
    pub show_boosts: Option<bool>,
    /// True if each post is notified.
    pub notify: Option<bool>,
}

/// Follows an account, or requests to, because an account of this server may be locked. Must be
/// written below [`root`].
///
/// # Errors
/// [`StoreError::NoAccount`] if one of them is not an account of this server any more.
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
    act(tx, account, other, (follow, options), now_ms)
}

/// Prepares a transaction for several actions of this module, each of which locks the clock last.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn prepare_several(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    Ok(library::ensure_opening(tx)?)
}

/// Performs an action towards another account, with all its changes or none. Returns the relations
/// after it. Must be written below [`root`].
///
/// # Errors
/// [`StoreError::NoAccount`] if one of them is not an account of this server any more.
pub fn change(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
    done: RelationMove,
    now_ms: i64,
) -> Result<Result<RelationRow, ChangeRefused>, StoreError> {
    let options = FollowOptions::default();
    act(tx, account, other, (done, options), now_ms)
}

/// Performs an action, and sets the options of the follow, if there is one afterwards.
fn act(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
    (done, options): (RelationMove, FollowOptions),
    now_ms: i64,
) -> Result<Result<RelationRow, ChangeRefused>, StoreError> {
    if account_id(account) == other {
        return Ok(Err(ChangeRefused::Oneself));
    }
    lock_other(tx, account, other)?;
    let before = load(tx, account, other)?;
    let (after, steps) = match before.pair.after(done) {
        Ok(after) => after,
        Err(refused) => return Ok(Err(refused.into())),
    };
    let mut row = RelationRow {
        pair: after,
        ..before
    };
    set_options(tx, &mut row, options)?;
    if steps.is_empty() {
        if row != before {
            relation_object::update(tx, account, (&before, &row), now_ms)?;
            store(tx, account, &row)?;
        }
        return Ok(Ok(row));
    }
    forget_in_lists(tx, account, other, after)?;
    let mirrored = match local_account_id(other) {
        Some(other) => {
            let known = load(tx, other, account_id(account))?;
            let is_following = is_follow(after.incoming);
            let mut mirrored = RelationRow {
                pair: RelationPair {
                    outgoing: after.incoming,
                    incoming: after.outgoing,
                },
                show_boosts: known.show_boosts || !is_following,
                notified: known.notified.filter(|_| is_following),
                ..known
            };
            mirrored.object_id = relation_object::update(tx, other, (&known, &mirrored), now_ms)?;
            Some((other, mirrored))
        }
        None => None,
    };
    // Last, because all others wait for the clock.
    row.object_id = relation_object::update(tx, account, (&before, &row), now_ms)?;
    let id = match row.object_id.filter(|id| before.object_id != Some(*id)) {
        Some(id) => id,
        None => from_sql(local_ids::take(tx, now_ms, 1)?)?,
    };
    let is_changed = |direction| {
        steps
            .iter()
            .any(|step: &RelationStep| step.direction == direction)
    };
    if is_changed(Direction::Outgoing) {
        row.outgoing_id = id;
    }
    if is_changed(Direction::Incoming) {
        row.incoming_id = id;
    }
    store(tx, account, &row)?;
    notification::follows(tx, (account, other), after, &steps, (id, now_ms))?;
    if let Some((other, mirrored)) = mirrored {
        let mirrored = RelationRow {
            outgoing_id: row.incoming_id,
            incoming_id: row.outgoing_id,
            ..mirrored
        };
        store(tx, other, &mirrored)?;
    }
    Ok(Ok(row))
}

/// Sets the options of a follow; without one, those of a new follow.
fn set_options(
    tx: &mut Tx<'_>,
    row: &mut RelationRow,
    options: FollowOptions,
) -> Result<(), StoreError> {
    if !is_follow(row.pair.outgoing) {
        (row.show_boosts, row.notified) = (true, None);
        return Ok(());
    }
    row.show_boosts = options.show_boosts.unwrap_or(row.show_boosts);
    row.notified = match (options.notify, row.notified) {
        // Posts that are already stored are not notified.
        (Some(true), None) => Some(from_sql(local_ids::last_given(tx)?)?),
        (Some(false), _) => None,
        (_, notified) => notified,
    };
    Ok(())
}

fn is_follow(relation: Relation) -> bool {
    matches!(relation, Relation::Following | Relation::RequestingFollow)
}

/// Removes the object of the relation of an account to another one, which is being removed. The relation itself goes with
/// that one. Must be written below the account's root.
pub(super) fn remove_object(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountId,
) -> Result<(), StoreError> {
    let row = load(tx, account, other)?;
    let Some(id) = row.object_id else {
        return Ok(());
    };
    AccountLibrary::load(tx, account)?.remove(tx, &[sql(id)])?;
    Ok(tx.execute_later(
        "update relation set object_id = null where account_id = $1 and other_id = $2",
        &[&sql(account), &sql(other)],
    )?)
}

/// The relations with these objects, in no order.
pub(crate) fn by_objects(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[i64],
) -> Result<Vec<RelationRow>, StoreError> {
    let rows = tx.query(
        &format!("select {COLUMNS} from relation where account_id = $1 and object_id {{in $2}}"),
        &[&sql(account), &Column::i64(ids.iter().copied())],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

/// Removes an account from lists, because these contain only followed accounts.
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

/// Locks the account with the higher ID after the root, and checks that both exist.
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

/// The relations of an account and another one. Without a row there are none.
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
        object_id: None,
    }))
}

/// Stores the relations. Two accounts without relations have no rows.
fn store(tx: &mut Tx<'_>, account: LocalAccountId, row: &RelationRow) -> Result<(), DbError> {
    if row.pair == RelationPair::default() {
        return tx.execute_later(
            "delete from relation where account_id = $1 and other_id = $2",
            &[&sql(account), &sql(row.other)],
        );
    }
    tx.execute_later(
        "insert into relation (account_id, other_id, outgoing, outgoing_id, incoming, incoming_id,
             show_boosts, notified_id, object_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (account_id, other_id) do update set outgoing = $3, outgoing_id = $4,
             incoming = $5, incoming_id = $6, show_boosts = $7, notified_id = $8, object_id = $9",
        &[
            &sql(account),
            &sql(row.other),
            &row.pair.outgoing.name(),
            &sql(row.outgoing_id),
            &row.pair.incoming.name(),
            &sql(row.incoming_id),
            &row.show_boosts,
            &row.notified.map(sql),
            &row.object_id.map(sql),
        ],
    )
}

/// The relations of an account and these others, in no order. Accounts without any are omitted.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn to(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    others: &[AccountId],
) -> Result<Vec<RelationRow>, StoreError> {
    let others = Column::i64(others.iter().map(|id| sql(*id)));
    let rows = tx.query(
        &format!("select {COLUMNS} from relation where account_id = $1 and other_id {{in $2}}"),
        &[&sql(account), &others],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

/// A page of accounts by one relation and its direction, the latest change first: followed
/// accounts, followers, blocked accounts, or requests. The range is one of that direction's IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
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
        "select {COLUMNS} from relation
         where account_id = $1 and {column} = $2 and {id} > $3 and {id} < $4
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

/// A followed account, with the options for timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The followed account.
    pub other: AccountId,
    /// True if its boosts are shown.
    pub show_boosts: bool,
}

/// All accounts that an account follows, in no order.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn followed(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<Followed>, StoreError> {
    let pending = followed_later(tx, account)?;
    Ok(tx.rows(pending)?)
}

/// [`followed`], requested together with the next query.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
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

/// All accounts to which an account has this relation, requested together with the next query. In
/// no order.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn all_later(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    relation: Relation,
) -> Result<PendingRows<'static, Result<RelationRow, StoreError>>, StoreError> {
    Ok(tx.query_later(
        &format!("select {COLUMNS} from relation where account_id = $1 and outgoing = $2"),
        &[&sql(account), &relation.name()],
        |row| Ok(from_row(row)),
    )?)
}

/// The number of accounts in [`page`], without a range.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
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

/// The numbers of an account's followers and followed accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowCounts {
    /// The number of its followers, who are all of this server.
    pub followers: i64,
    /// The number of accounts that it follows.
    pub following: i64,
    /// The number of those of this server.
    pub following_here: i64,
}

/// The counts of these accounts. Accounts without any are omitted.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
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
        object_id: row.opt_i64("object_id")?.map(from_sql).transpose()?,
    })
}

/// The columns that [`from_row`] reads.
const COLUMNS: &str = "other_id, outgoing, outgoing_id, incoming, incoming_id, show_boosts,
     notified_id, object_id";
