//! `refresh`: how fresh stored posts are.

use clap::Subcommand;
use driftline_server::admin::{BandRow, InstanceRow, RefreshStatus, ShowRefreshStatus};

use super::credential;
use crate::{
    config::Config,
    duration::show_ms,
    error::CliError,
    store_access::show,
    table::{self, Cell, right},
};

/// What can be asked about refreshing.
#[derive(Debug, Subcommand)]
pub enum Refresh {
    /// How much is overdue, by age, what it costs, and what is left of quotas.
    Status,
}

impl Refresh {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let Self::Status = self;
        show(config, json, ShowRefreshStatus, lines).await
    }
}

fn lines(status: &RefreshStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if status.instances.is_empty() {
        lines.push("no servers yet; `driftline source add URL` adds a timeline of one".to_owned());
    }
    if !status.running {
        lines.push("nothing refreshes posts now: `driftline serve` does".to_owned());
    }
    lines.extend(status.unknown_credentials.iter().map(|name| {
        format!("refresh.credentials names {name:?}, and there is no such credential; `driftline credential list` shows the names")
    }));
    lines.extend(status.instances.iter().flat_map(instance_lines));
    lines.push(String::new());
    lines.extend(credential::list(&status.credentials));
    lines
}

fn instance_lines(instance: &InstanceRow) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {} posts scheduled, {} overdue (the oldest for {}), {} pending look-ups, {} being looked up",
        instance.instance,
        instance.scheduled,
        instance.overdue,
        show_ms(instance.oldest_overdue_ms),
        instance.pending_lookups,
        instance.leased,
    )];
    if instance.without_credential {
        let why = "refresh.credentials names no credential of this server";
        lines.push(format!("    not refreshed: {why}"));
    }
    if instance.policy == "value" {
        lines.push("    by value: TARGET is the interval by age; no wait is longer than twice that while the quota suffices".to_owned());
    }
    let table = table::lines(instance.bands.iter().map(cells)).into_iter();
    lines.extend(table.map(|line| format!("    {line}")));
    if let (Some(since), Some(mean)) = (&instance.since_start, instance.mean_posts_a_request) {
        let outcomes = since.outcomes.iter().filter(|(_, count)| **count != 0);
        let outcomes = outcomes.map(|(name, count)| format!("{count} {name}"));
        lines.push(format!(
            "    since the server began: {} requests, {mean:.1} posts each: {}",
            since.requests,
            outcomes.collect::<Vec<_>>().join(", ")
        ));
    }
    lines
}

fn cells(row: &BandRow) -> [Cell; 6] {
    [
        right("YOUNGER THAN", show_ms(row.band.below_ms)),
        right("TARGET", show_ms(row.band.every_ms)),
        right("POSTS", row.state.posts),
        right("OVERDUE", row.state.overdue),
        right("MEAN AGE OF COUNTS", show_ms(row.state.mean_staleness_ms)),
        right("OLDEST", show_ms(row.state.max_staleness_ms)),
    ]
}
