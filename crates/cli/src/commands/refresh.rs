//! `refresh`: how fresh stored posts are.

use clap::Subcommand;
use driftline_server::admin::Command;
use serde_json::Value;

use super::credential;
use crate::{
    config::Config,
    duration::show_ms,
    error::CliError,
    output,
    reach::{Missing, once},
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
        let answer = once(config, Missing::Refuse, Command::RefreshStatus).await?;
        if json {
            output::json(&answer)
        } else {
            print(&answer)
        }
    }
}

fn print(answer: &Value) -> Result<(), CliError> {
    let instances = answer["instances"].as_array();
    let instances = instances.map(Vec::as_slice).unwrap_or_default();
    if instances.is_empty() {
        output::line("no servers yet; `driftline source add URL` adds a timeline of one")?;
    }
    if answer["running"] == false {
        output::line("nothing refreshes posts now: `driftline serve` does")?;
    }
    for instance in instances {
        let ms = |key: &str| show_ms(instance[key].as_i64().unwrap_or(0));
        output::line(&format!(
            "{}: {} posts scheduled, {} overdue (the oldest for {}), {} named and not looked up yet, {} being looked up",
            instance["instance"].as_str().unwrap_or("?"),
            instance["scheduled"],
            instance["overdue"],
            ms("oldest_overdue_ms"),
            instance["wanted"],
            instance["leased"],
        ))?;
        output::line("    YOUNGER THAN   TARGET    POSTS  OVERDUE   MEAN AGE OF COUNTS   OLDEST")?;
        for band in instance["bands"].as_array().into_iter().flatten() {
            let ms = |key: &str| show_ms(band[key].as_i64().unwrap_or(0));
            output::line(&format!(
                "    {:>12}  {:>7}  {:>7}  {:>7}  {:>19}  {:>7}",
                ms("below_ms"),
                ms("every_ms"),
                band["posts"],
                band["overdue"],
                ms("mean_staleness_ms"),
                ms("most_staleness_ms"),
            ))?;
        }
        let since = &instance["since_start"];
        if let Some(mean) = instance["mean_posts_a_request"].as_f64() {
            let outcomes = since["outcomes"].as_object().into_iter().flatten();
            let outcomes = outcomes
                .filter(|(_, count)| count.as_u64() != Some(0))
                .map(|(name, count)| format!("{count} {name}"));
            output::line(&format!(
                "    since the server began: {} requests, {mean:.1} posts each: {}",
                since["requests"],
                outcomes.collect::<Vec<_>>().join(", ")
            ))?;
        }
    }
    output::line("")?;
    credential::print(&answer["credentials"])
}
