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
    store_access::{Missing, once},
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
    for name in answer["unknown_credentials"]
        .as_array()
        .into_iter()
        .flatten()
    {
        output::line(&format!(
            "refresh.credentials names {name}, and there is no such credential; `driftline credential list` shows the names"
        ))?;
    }
    for instance in instances {
        let ms = |key: &str| show_ms(instance[key].as_i64().unwrap_or(0));
        output::line(&format!(
            "{}: {} posts scheduled, {} overdue (the oldest for {}), {} pending look-ups, {} being looked up",
            instance["instance"].as_str().unwrap_or("?"),
            instance["scheduled"],
            instance["overdue"],
            ms("oldest_overdue_ms"),
            instance["pending_lookups"],
            instance["leased"],
        ))?;
        if instance["without_credential"] == true {
            output::line(
                "    not refreshed: refresh.credentials names no credential of this server",
            )?;
        }
        if instance["policy"] == "value" {
            output::line(
                "    by value: TARGET is the interval by age; no wait is longer than twice that while the quota suffices",
            )?;
        }
        output::line(&row(&HEAD.map(str::to_owned)))?;
        for band in instance["bands"].as_array().into_iter().flatten() {
            output::line(&row(&cells(band)))?;
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

fn cells(band: &Value) -> [String; 6] {
    let ms = |key: &str| show_ms(band[key].as_i64().unwrap_or(0));
    [
        ms("below_ms"),
        ms("every_ms"),
        band["posts"].to_string(),
        band["overdue"].to_string(),
        ms("mean_staleness_ms"),
        ms("max_staleness_ms"),
    ]
}

fn row([younger, target, posts, overdue, mean, oldest]: &[String; 6]) -> String {
    format!("    {younger:>12}  {target:>7}  {posts:>7}  {overdue:>7}  {mean:>18}  {oldest:>15}")
}

const HEAD: [&str; 6] = [
    "YOUNGER THAN",
    "TARGET",
    "POSTS",
    "OVERDUE",
    "MEAN AGE OF COUNTS",
    "OLDEST",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_end_below_their_heads() {
        let band = json!({
            "below_ms": 1_080_000,
            "every_ms": 180_000,
            "posts": 7,
            "overdue": 12345,
            "mean_staleness_ms": 95_258_000,
            "max_staleness_ms": 2_595_258_000_i64,
        });
        let head = row(&HEAD.map(str::to_owned));
        let line = row(&cells(&band));
        assert_eq!(line.len(), head.len());
        let end = |of: &str, word: &str| of.find(word).unwrap() + word.len();
        for (name, value) in [("POSTS", " 7"), ("OVERDUE", "12345"), ("TARGET", "3m")] {
            assert_eq!(end(&head, name), end(&line, value), "{line}");
        }
    }
}
