//! `replica conflicts`: edits that were not merged.

use clap::{Args, Subcommand};
use driftline_replica::{ConflictRow, Replica, Resolution};
use serde_json::json;

use super::show::excerpt;
use crate::{
    error::CliError,
    output,
    shown::{plain, time},
};

/// Lists the conflicts, or resolves one.
///
/// A conflict keeps the version of this device; the replica has the server's version until the conflict is resolved.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Conflicts {
    /// Also those that were resolved, and edits that a merge dropped.
    #[arg(long)]
    all: bool,
    #[command(subcommand)]
    command: Option<ConflictsCommand>,
}

/// The commands on one conflict.
#[derive(Debug, Subcommand)]
enum ConflictsCommand {
    /// Resolve a conflict: the version of this device is sent with the next sync, or dropped.
    Resolve {
        /// The conflict's number, as `conflicts` lists it.
        id: i64,
        #[command(flatten)]
        side: Side,
    },
}

/// The version that stays.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Side {
    /// The version of this device.
    #[arg(long)]
    mine: bool,
    /// The server's version.
    #[arg(long)]
    theirs: bool,
}

impl Conflicts {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, replica: &Replica, json: bool) -> Result<(), CliError> {
        match self.command {
            Some(ConflictsCommand::Resolve { id, side }) => resolve(replica, id, &side, json).await,
            None => list(replica, self.all, json).await,
        }
    }
}

async fn list(replica: &Replica, all: bool, json: bool) -> Result<(), CliError> {
    let rows = replica.conflicts(all).await?;
    if rows.is_empty() && !json {
        return output::line("no conflicts");
    }
    for row in &rows {
        output::reply(json, row, lines)?;
    }
    Ok(())
}

async fn resolve(replica: &Replica, id: i64, side: &Side, json: bool) -> Result<(), CliError> {
    let (resolution, outcome) = match side.mine {
        true => (
            Resolution::Mine,
            "the next sync sends this device's version of",
        ),
        false => (Resolution::Theirs, "the server's version stays of"),
    };
    let key = replica.resolve(id, resolution).await?;
    let reply = json!({ "id": id, "key": key, "resolution": resolution });
    output::reply(json, &reply, |_| {
        vec![format!("conflict {id}: {outcome}\n{key}")]
    })
}

fn lines(of: &ConflictRow) -> Vec<String> {
    let state = if of.is_resolved { " (resolved)" } else { "" };
    let mut lines = vec![
        format!("{}  {}{state}", of.id, time(of.at_ms)),
        format!("   {}", plain(of.key.as_str())),
        format!("   reason: {}", of.reason),
    ];
    if let Some(detail) = &of.detail {
        lines.push(format!("   {}", plain(detail)));
    }
    for (name, value) in [
        ("mine", &of.mine),
        ("theirs", &of.theirs),
        ("base", &of.base),
    ] {
        let shown = value.as_ref().map_or_else(|| "-".to_owned(), excerpt);
        lines.push(format!("   {name:7} {shown}"));
    }
    lines
}
