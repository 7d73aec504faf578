//! `replica status`: the state of a replica.

use driftline_replica::{Replica, ReplicaStatus};

use super::subscribe;
use crate::{
    error::CliError,
    output,
    shown::{count, time},
};

/// Shows the state of the replica.
///
/// # Errors
/// [`CliError`] as the process ends.
pub async fn show(replica: &Replica, json: bool) -> Result<(), CliError> {
    output::reply(json, &replica.status().await?, lines)
}

fn lines(of: &ReplicaStatus) -> Vec<String> {
    let synced = of.synced_at_ms.map_or_else(|| "never".to_owned(), time);
    let mut lines = vec![
        format!("server:    {}", of.url),
        format!("account:   {}", of.account),
        format!("last sync: {synced}"),
    ];
    if !of.is_complete {
        lines.push("not complete yet: `driftline replica sync` goes on".to_owned());
    }
    let kinds = of.kinds.iter();
    lines.extend(kinds.map(|(kind, objects)| format!("{kind:13} {objects}")));
    lines.extend(of.subscriptions.iter().flat_map(subscribe::lines));
    if of.unindexed > 0 {
        let unindexed = count(of.unindexed, "post");
        lines.push(format!(
            "{unindexed} not indexed yet; searches read them too"
        ));
    }
    lines.push(match of.dirty {
        0 => "no change waits to be sent".to_owned(),
        dirty => format!("{} not sent yet", count(dirty, "change")),
    });
    lines.push(match of.open_conflicts {
        0 => "no conflicts".to_owned(),
        open => format!(
            "{} to be resolved; `driftline replica conflicts` lists them",
            count(open, "conflict")
        ),
    });
    lines
}
