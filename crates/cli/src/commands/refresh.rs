//! `refresh`: how fresh stored posts are.

use clap::Subcommand;
use driftline_server::admin::{BandRow, InstanceRow, RefreshStatus, ShowRefreshStatus};

use super::credential;
use crate::{
    config::Config,
    duration::show_ms,
    error::CliError,
    output,
    store_access::show,
    table::{self, Column},
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
        show(config, json, ShowRefreshStatus, print).await
    }
}

fn print(status: &RefreshStatus) -> Result<(), CliError> {
    if status.instances.is_empty() {
        output::line("no servers yet; `driftline source add URL` adds a timeline of one")?;
    }
    if !status.running {
        output::line("nothing refreshes posts now: `driftline serve` does")?;
    }
    for name in &status.unknown_credentials {
        output::line(&format!(
            "refresh.credentials names {name:?}, and there is no such credential; `driftline credential list` shows the names"
        ))?;
    }
    status.instances.iter().try_for_each(print_instance)?;
    output::line("")?;
    credential::print(&status.credentials)
}

fn print_instance(instance: &InstanceRow) -> Result<(), CliError> {
    output::line(&format!(
        "{}: {} posts scheduled, {} overdue (the oldest for {}), {} pending look-ups, {} being looked up",
        instance.instance,
        instance.scheduled,
        instance.overdue,
        show_ms(instance.oldest_overdue_ms),
        instance.pending_lookups,
        instance.leased,
    ))?;
    if instance.without_credential {
        output::line("    not refreshed: refresh.credentials names no credential of this server")?;
    }
    if instance.policy == "value" {
        output::line(
            "    by value: TARGET is the interval by age; no wait is longer than twice that while the quota suffices",
        )?;
    }
    table::print(4, COLUMNS, instance.bands.iter().map(cells))?;
    if let (Some(since), Some(mean)) = (&instance.since_start, instance.mean_posts_a_request) {
        let outcomes = since.outcomes.iter().filter(|(_, count)| **count != 0);
        let outcomes = outcomes.map(|(name, count)| format!("{count} {name}"));
        output::line(&format!(
            "    since the server began: {} requests, {mean:.1} posts each: {}",
            since.requests,
            outcomes.collect::<Vec<_>>().join(", ")
        ))?;
    }
    Ok(())
}

fn cells(row: &BandRow) -> [String; 6] {
    [
        show_ms(row.band.below_ms),
        show_ms(row.band.every_ms),
        row.state.posts.to_string(),
        row.state.overdue.to_string(),
        show_ms(row.state.mean_staleness_ms),
        show_ms(row.state.max_staleness_ms),
    ]
}

const COLUMNS: [Column; 6] = [
    Column::Right("YOUNGER THAN"),
    Column::Right("TARGET"),
    Column::Right("POSTS"),
    Column::Right("OVERDUE"),
    Column::Right("MEAN AGE OF COUNTS"),
    Column::Right("OLDEST"),
];
