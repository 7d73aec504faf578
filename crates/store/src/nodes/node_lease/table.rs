//! The rows of `node_lease`.
//!
//! Each node is one row, and each change of a row is one statement that names the replaced state:
//! the record as read, or the fencing number and the holder. So no root is needed, and holders of
//! different nodes do not wait for each other.

use std::{collections::HashMap, ops::RangeInclusive};

use driftline_db::{DbError, Row, Tx};
use driftline_id::Node;
use driftline_id::window::{BeginError, Record};

use crate::{
    database_clock::{is_live, now_sql},
    error::StoreError,
    nodes::node_lease::{
        claim::{Claim, life_ms},
        error::NodeLeaseError,
    },
};

/// A node that was leased at some time, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeHolding {
    /// The layout's name.
    pub layout: String,
    /// The node's number.
    pub node: u64,
    /// The holder, or the last one if the lease is over. `None` once it was released.
    pub holder: Option<String>,
    /// The number of the node's holders so far.
    pub fence: u64,
    /// The beginning of the last window, Unix µs by the holder's clock.
    pub from_us: i64,
    /// The end of the last window, Unix µs by the holder's clock.
    pub until_us: i64,
    /// The end of the lease unless it is renewed, in Unix ms by the database's clock.
    pub lease_until_ms: i64,
}

/// All nodes that were ever leased, in order of layouts' names and numbers.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn list(tx: &mut Tx<'_>) -> Result<Vec<NodeHolding>, StoreError> {
    let rows = tx.query(
        "select layout, record, lease_holder, lease_until_ms
         from node_lease order by layout, node",
        &[],
        |row| Ok(holding(row)),
    )?;
    rows.into_iter().collect()
}

fn holding(row: &Row<'_>) -> Result<NodeHolding, StoreError> {
    let record = Record::parse(row.str("record")?)
        .map_err(|error| StoreError::unreadable("a node's window", &error))?;
    Ok(NodeHolding {
        layout: row.text("layout")?,
        node: record.node(),
        holder: row.opt_text("lease_holder")?,
        fence: record.fence(),
        from_us: record.from_us(),
        until_us: record.until_us(),
        lease_until_ms: row.i64("lease_until_ms")?,
    })
}

/// The state that a row must have for its holder to change it.
#[derive(Clone, Debug)]
pub(super) struct Key {
    layout: &'static str,
    node: i64,
    fence: i64,
    holder: String,
}

impl Key {
    pub(super) fn new(claim: &Claim, record: &Record) -> Result<Self, DbError> {
        Ok(Self {
            layout: claim.layout.name(),
            node: integer(record.node())?,
            fence: integer(record.fence())?,
            holder: claim.holder.clone(),
        })
    }
}

/// Takes the lowest free node.
pub(super) fn take_lowest(
    tx: &mut Tx<'_>,
    claim: &Claim,
    now_us: i64,
) -> Result<(Node, Record), NodeLeaseError> {
    let max = Node::max(&claim.layout)?;
    // The number of rows is that of the nodes ever leased at a time, plus those of nodes chosen by
    // number.
    let mut stored = stored(tx, claim, 0..=i64::MAX)?;
    let mut behind = None;
    for number in 0..=max {
        let node = Node::new(&claim.layout, number)?;
        let stored = stored.remove(&number);
        let text = stored.as_ref().map(|stored| stored.record.as_str());
        let is_held = stored.as_ref().is_some_and(Stored::is_held);
        // The record of a leased node must fit, too. Otherwise two layouts of one name would be in
        // use.
        match claim.next_record(&node, text, now_us) {
            Err(
                error @ NodeLeaseError::Begin {
                    error: BeginError::ClockBehind { .. },
                    ..
                },
            ) => {
                behind = behind.or(Some(error).filter(|_| !is_held));
            }
            Err(error) => return Err(error),
            Ok(_) if is_held => {}
            Ok(record) => {
                // Otherwise a faster process has it.
                if begin(tx, claim, &record, text, now_us)? {
                    return Ok((node, record));
                }
            }
        }
    }
    Err(behind.unwrap_or(NodeLeaseError::AllHeld {
        layout: claim.layout.name(),
        count: max.saturating_add(1),
    }))
}

/// Takes the given node.
pub(super) fn take_node(
    tx: &mut Tx<'_>,
    claim: &Claim,
    node: &Node,
    now_us: i64,
) -> Result<Record, NodeLeaseError> {
    let number = integer(node.number())?;
    // At most twice: the first attempt has locked the row of a faster process.
    loop {
        let stored = stored(tx, claim, number..=number)?.remove(&node.number());
        if let Some(Stored {
            holder: Some(holder),
            ends_in_ms,
            ..
        }) = &stored
            && is_live(*ends_in_ms, 0)
        {
            return Err(NodeLeaseError::Held {
                layout: claim.layout.name(),
                node: node.number(),
                holder: holder.clone(),
                ends_in_ms: *ends_in_ms,
            });
        }
        let text = stored.as_ref().map(|stored| stored.record.as_str());
        let record = claim.next_record(node, text, now_us)?;
        if begin(tx, claim, &record, text, now_us)? {
            return Ok(record);
        }
    }
}

/// Extends a lease to `life_ms` from now, with the given record.
pub(super) fn renew(
    tx: &mut Tx<'_>,
    key: &Key,
    record: &str,
    life_ms: i64,
) -> Result<(), NodeLeaseError> {
    let now = now_sql(tx.dialect());
    let renewed = tx.execute(
        &format!(
            "update node_lease set record = $5, lease_until_ms = {now} + $6
             where layout = $1 and node = $2 and lease_fence = $3 and lease_holder = $4"
        ),
        &[
            &key.layout,
            &key.node,
            &key.fence,
            &key.holder,
            &record,
            &life_ms,
        ],
    )?;
    check_changed(tx, key, renewed)
}

/// Gives a node back, with the given record.
pub(super) fn release(tx: &mut Tx<'_>, key: &Key, record: &str) -> Result<(), NodeLeaseError> {
    let released = tx.execute(
        "update node_lease set record = $5, lease_holder = null
         where layout = $1 and node = $2 and lease_fence = $3 and lease_holder = $4",
        &[&key.layout, &key.node, &key.fence, &key.holder, &record],
    )?;
    check_changed(tx, key, released)
}

/// An unchanged row belongs to another holder by now.
fn check_changed(tx: &mut Tx<'_>, key: &Key, changed: u64) -> Result<(), NodeLeaseError> {
    if changed > 0 {
        return Ok(());
    }
    let holder = tx.query_opt(
        "select lease_holder from node_lease where layout = $1 and node = $2",
        &[&key.layout, &key.node],
        |row| row.opt_text("lease_holder"),
    )?;
    Err(NodeLeaseError::Lost {
        layout: key.layout,
        node: key.node.unsigned_abs(),
        holder: holder.flatten(),
    })
}

/// Writes the record of a new window, in place of the one as read. Returns `false` if another
/// window was begun or extended there since, so that the decision is outdated.
fn begin(
    tx: &mut Tx<'_>,
    claim: &Claim,
    record: &Record,
    previous: Option<&str>,
    now_us: i64,
) -> Result<bool, NodeLeaseError> {
    let now = now_sql(tx.dialect());
    let key = Key::new(claim, record)?;
    let begun = tx.execute(
        &format!(
            "insert into node_lease
                 (layout, node, lease_fence, lease_holder, record, lease_until_ms)
             values ($1, $2, $3, $4, $5, {now} + $6)
             on conflict (layout, node) do update
             set lease_fence = $3, lease_holder = $4, record = $5, lease_until_ms = {now} + $6
             where node_lease.record = $7"
        ),
        &[
            &key.layout,
            &key.node,
            &key.fence,
            &key.holder,
            &record.to_string(),
            &life_ms(record, now_us),
            &previous,
        ],
    )?;
    Ok(begun > 0)
}

/// A row as read.
struct Stored {
    record: String,
    holder: Option<String>,
    ends_in_ms: i64,
}

/// The rows of a layout's nodes, by their numbers.
fn stored(
    tx: &mut Tx<'_>,
    claim: &Claim,
    nodes: RangeInclusive<i64>,
) -> Result<HashMap<u64, Stored>, DbError> {
    let now = now_sql(tx.dialect());
    let rows = tx.query(
        &format!(
            "select node, record, lease_holder, lease_until_ms - {now} as ends_in_ms
             from node_lease where layout = $1 and node >= $2 and node <= $3"
        ),
        &[&claim.layout.name(), nodes.start(), nodes.end()],
        |row| {
            let stored = Stored {
                record: row.text("record")?,
                holder: row.opt_text("lease_holder")?,
                ends_in_ms: row.i64("ends_in_ms")?,
            };
            Ok((row.i64("node")?.unsigned_abs(), stored))
        },
    )?;
    Ok(rows.into_iter().collect())
}

impl Stored {
    fn is_held(&self) -> bool {
        self.holder.is_some() && is_live(self.ends_in_ms, 0)
    }
}

fn integer(number: u64) -> Result<i64, DbError> {
    i64::try_from(number).map_err(|_| DbError::invalid(format!("{number} needs more than 63 bits")))
}
