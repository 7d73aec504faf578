//! Commands on the processes that share the work.

use std::collections::HashMap;

use driftline_runtime::CommandError;
use driftline_store::{
    Root, StoreError, Tx, database_clock,
    sharing::member::{self, MemberRow},
    source,
};

use super::{DrainNode, DrainedNode, Host, ListNodes, NodeRow, NodeState};

/// The processes, those that have ended too.
pub(super) async fn list(host: &Host, _: ListNodes) -> Result<Vec<NodeRow>, CommandError> {
    Ok(host.store.read(rows).await?)
}

/// Asks a process to give up its work, or to take its share again.
pub(super) async fn drain(host: &Host, request: DrainNode) -> Result<DrainedNode, CommandError> {
    let DrainNode { name, draining } = request;
    let rows = host.store.read(rows).await?;
    let row = find(&rows, &name)?.clone();
    if row.state == NodeState::Left {
        return Err(CommandError::usage(format!("{} has ended", row.name)));
    }
    let whole = row.name.clone();
    let changed = host
        .store
        .write(Root::none(), move |tx| {
            member::set_draining(tx, &whole, draining)
        })
        .await?;
    let Some(changed) = changed else {
        return Err(unknown(&name));
    };
    let others = rows
        .iter()
        .filter(|other| other.name != row.name && other.state == NodeState::Active);
    Ok(DrainedNode {
        draining,
        changed,
        state: row.state,
        others: others.count() as u64,
        name: row.name,
    })
}

/// The process of that name; else the one whose name begins so, of those that have not left.
fn find<'r>(rows: &'r [NodeRow], name: &str) -> Result<&'r NodeRow, CommandError> {
    if let Some(row) = rows.iter().find(|row| row.name == name) {
        return Ok(row);
    }
    let is_there = |row: &&NodeRow| {
        !name.is_empty() && row.name.starts_with(name) && row.state != NodeState::Left
    };
    let found: Vec<&NodeRow> = rows.iter().filter(is_there).collect();
    match found[..] {
        [row] => Ok(row),
        [] => Err(unknown(name)),
        _ => {
            let names: Vec<&str> = found.iter().map(|row| &*row.name).collect();
            Err(CommandError::usage(format!(
                "{name:?} begins the names of several processes: {}",
                names.join(", ")
            )))
        }
    }
}

fn unknown(name: &str) -> CommandError {
    CommandError::usage(format!(
        "there is no process named {name:?}; `driftline node list` shows the names"
    ))
}

fn rows(tx: &mut Tx<'_>) -> Result<Vec<NodeRow>, StoreError> {
    let members = member::list(tx)?;
    let sources = source::list(tx)?;
    let now_ms = database_clock::now_ms(tx)?;
    let mut held: HashMap<String, u64> = HashMap::new();
    for holding in sources.into_iter().filter_map(|source| source.holding) {
        if database_clock::is_live(holding.until_ms, now_ms) {
            *held.entry(holding.holder).or_default() += 1;
        }
    }
    let rows = members.into_iter().map(|member| {
        let sources = held.get(&member.name).copied().unwrap_or(0);
        let is_live = database_clock::is_live(member.lease_until_ms, now_ms);
        NodeRow {
            state: state(&member, is_live, sources),
            share: member.share,
            draining: member.is_draining,
            sources,
            buckets: match is_live {
                true => member.buckets.unsigned_abs(),
                false => 0,
            },
            refused_sources: member.refusals.sources.len() as u64,
            since_ms: member.since_ms,
            seen_ms: member.seen_ms,
            seen_ago_ms: now_ms.saturating_sub(member.seen_ms).max(0),
            version: member.version,
            name: member.name,
        }
    });
    Ok(rows.collect())
}

fn state(member: &MemberRow, is_live: bool, sources: u64) -> NodeState {
    match member {
        MemberRow {
            left_ms: Some(_), ..
        } => NodeState::Left,
        _ if !is_live => NodeState::Vanished,
        MemberRow {
            is_draining: true, ..
        } if sources > 0 => NodeState::Draining,
        MemberRow {
            is_draining: true, ..
        } => NodeState::Drained,
        MemberRow { share: 0, .. } => NodeState::NoShare,
        _ => NodeState::Active,
    }
}
