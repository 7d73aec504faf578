//! `node`: the processes that share the work of a store.

use std::time::Duration;

use clap::{Args, Subcommand};
use driftline_server::admin::{DrainNode, DrainedNode, ListNodes, NodeRow, NodeState};

use tokio::time::{Instant, sleep};

use crate::{
    config::Config,
    duration::{HumanMs, duration, show_ms},
    error::CliError,
    output, shown,
    store_access::{Missing, once, show},
    table::{self, left, right},
};

/// What can be done with processes.
#[derive(Debug, Subcommand)]
pub enum Node {
    /// List the processes on this store, those that have ended within the last hour too.
    List,
    /// Let a process give up its sources and all refreshing, as before it is stopped; others take over.
    Drain(Drain),
    /// Let a drained process take its share again.
    Undrain(NodeName),
}

/// Lets a process give up its work.
#[derive(Debug, Args)]
pub struct Drain {
    #[command(flatten)]
    node: NodeName,
    /// Wait until it has none left, TIME at most [default: 1m].
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "1m")]
    wait: Option<HumanMs>,
}

/// A process's name.
#[derive(Debug, Args)]
pub struct NodeName {
    /// The process's name, as `node list` shows it, or its beginning.
    name: String,
}

impl Node {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        match self {
            Self::List => show(config, json, ListNodes, list).await,
            Self::Undrain(NodeName { name }) => {
                let draining = false;
                show(config, json, DrainNode { name, draining }, drained).await
            }
            Self::Drain(Drain { node, wait }) => {
                let (name, draining) = (node.name, true);
                let request = DrainNode { name, draining };
                let reply = once(config, Missing::Refuse, request).await?;
                output::reply(json, &reply, drained)?;
                match wait {
                    Some(HumanMs(wait_ms)) => {
                        wait_until_idle(config, &reply.name, duration(wait_ms)).await
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

/// Waits until the process of that name has no work: it may have ended meanwhile.
async fn wait_until_idle(config: &Config, name: &str, wait: Duration) -> Result<(), CliError> {
    let deadline = Instant::now() + wait;
    loop {
        let nodes = once(config, Missing::Refuse, ListNodes).await?;
        let Some(node) = nodes.iter().find(|node| node.name == name) else {
            return Ok(());
        };
        match node.state {
            NodeState::Left => return Ok(()),
            NodeState::Drained if node.buckets == 0 => return Ok(()),
            NodeState::Active | NodeState::NoShare => {
                return Err(CliError::failed(format!("{name} was undrained meanwhile")));
            }
            // What it had is free for others once its leases have ended.
            NodeState::Vanished if node.sources == 0 => return Ok(()),
            NodeState::Draining | NodeState::Drained | NodeState::Vanished => {}
        }
        if Instant::now() >= deadline {
            return Err(CliError::Unsettled(format!(
                "{name} still has {} and {}; it goes on giving them up",
                shown::count(node.sources, "source"),
                shown::count(node.buckets, "bucket"),
            )));
        }
        sleep(LOOK_EVERY.min(deadline - Instant::now())).await;
    }
}

#[expect(clippy::ptr_arg, reason = "a reply")]
fn list(nodes: &Vec<NodeRow>) -> Vec<String> {
    if nodes.is_empty() {
        return vec!["no process has shared the work yet; `driftline serve` does".to_owned()];
    }
    table::lines(nodes.iter().map(|node| {
        [
            left("NAME", &node.name),
            left("STATE", node.state),
            right("SHARE", node.share),
            right("SOURCES", node.sources),
            right("BUCKETS", node.buckets),
            right("SEEN", format!("{} ago", show_ms(node.seen_ago_ms))),
            left("VERSION", &node.version),
        ]
    }))
}

fn drained(of: &DrainedNode) -> Vec<String> {
    let name = &of.name;
    if of.draining && of.others == 0 {
        output::note("no other process takes part: what it gives up is not read until one does");
    }
    vec![match (of.draining, of.changed, of.state) {
        (true, false, _) => format!("{name} drains already"),
        (true, true, NodeState::Vanished) => {
            format!("{name} has vanished; should it come back, it takes no work")
        }
        (true, true, _) => {
            format!("{name} gives up its work; `driftline node list` shows when it has none")
        }
        (false, true, _) => format!("{name} takes its share again"),
        (false, false, _) => format!("{name} does not drain"),
    }]
}

const LOOK_EVERY: Duration = Duration::from_millis(100);
