//! `node`: the processes that share the work of a store.

use clap::{Args, Subcommand};
use driftline_server::admin::{DrainNode, DrainedNode, ListNodes, NodeRow, NodeState};

use crate::{
    config::Config,
    duration::show_ms,
    error::CliError,
    output,
    store_access::show,
    table::{self, left, right},
};

/// What can be done with processes.
#[derive(Debug, Subcommand)]
pub enum Node {
    /// List the processes on this store, those that have ended within the last hour too.
    List,
    /// Let a process give up its sources and all refreshing, as before it is stopped; others take over.
    Drain(NodeName),
    /// Let a drained process take its share again.
    Undrain(NodeName),
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
        let (name, draining) = match self {
            Self::List => return show(config, json, ListNodes, list).await,
            Self::Drain(NodeName { name }) => (name, true),
            Self::Undrain(NodeName { name }) => (name, false),
        };
        show(config, json, DrainNode { name, draining }, drained).await
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
