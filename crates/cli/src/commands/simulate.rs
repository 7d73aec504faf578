//! `simulate`: one's own history under another policy or quota, or a timeline of one's own figures.

mod pace;
mod timeline;

use clap::{Args, Subcommand};
use driftline_core::refresh::RefreshPlan;
use driftline_runtime::now_ms;
use driftline_server::admin::ListGrowth;
use driftline_sim::refresh_policies::{History, PolicyOutcome, Quota, World, run};
use driftline_store::{LocalId, refresh::GrowthHistory};
use serde_json::{Value, json};

use self::pace::{Pace, pace};
use crate::{
    config::Config,
    duration::show_ms,
    error::CliError,
    output,
    progress::Waiting,
    refresh_section::PolicyName,
    store_access::{self, Missing, StoreAccess},
    table::{self, left, right},
};

/// Replays the stored history of counts under a policy and a quota, and shows how stale counts would
/// have been, and at what cost.
///
/// What lies between two answers is not known: a change that was noticed is put in the middle of
/// them. Posts that never changed count as well.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Simulate {
    #[command(subcommand)]
    what: Option<What>,
    /// The policy [default: both].
    #[arg(long, value_enum)]
    policy: Option<PolicyName>,
    /// Requests in a time: 300/5m.
    #[arg(long, default_value = "300/5m", value_parser = pace)]
    quota: Pace,
    /// Posts in a request.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    batch: u16,
    /// How many days of history.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=365))]
    days: u16,
    /// The server: its address or host, if the store knows several.
    #[arg(long)]
    instance: Option<String>,
}

/// What is simulated instead of refreshing.
#[derive(Debug, Subcommand)]
enum What {
    /// Reading a timeline
    Timeline(timeline::SimulateTimeline),
}

impl Simulate {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        if let Some(What::Timeline(timeline)) = self.what {
            return timeline.run(config, json);
        }
        let plan = config.refresh.plan()?;
        let until_ms = now_ms();
        let length_ms = i64::from(self.days) * DAY_MS;
        let since_ms = until_ms - length_ms;
        let read = async |access: &mut _| self.histories(access, since_ms).await;
        let (instance, histories) = store_access::with(config, Missing::Refuse, read).await?;
        let world = World::new(histories);
        if world.is_empty() {
            return Err(CliError::usage(format!(
                "no posts of {instance} were written in the last {} days; name more with --days",
                self.days
            )));
        }
        let quota = Quota {
            batch: usize::from(self.batch),
            every_ms: (self.quota.in_ms / self.quota.requests).max(1),
            outages: Vec::new(),
        };
        let table = RefreshPlan {
            by_value: None,
            ..plan.clone()
        };
        let value = RefreshPlan {
            by_value: Some(plan.by_value.unwrap_or_default()),
            ages: plan.ages,
        };
        let policies = [(PolicyName::Age, table), (PolicyName::Value, value)];
        let is_asked = |of: &(PolicyName, _)| self.policy.is_none_or(|policy| policy == of.0);
        let waiting = Waiting::start("replaying the history");
        let rows: Vec<_> = policies
            .into_iter()
            .filter(is_asked)
            .map(|(name, policy)| (name, run(&world, &quota, &policy, length_ms, None)))
            .collect();
        drop(waiting);
        let answer = self.answer(&instance, &world, &rows);
        output::reply(json, &answer, |_| self.lines(&instance, &world, &rows))
    }

    /// Every history, its times from the beginning of the replay.
    async fn histories(
        &self,
        access: &mut StoreAccess,
        since_ms: i64,
    ) -> Result<(String, Vec<History>), CliError> {
        let mut after = LocalId::new(0);
        let mut histories = Vec::new();
        loop {
            let request = ListGrowth {
                instance: self.instance.clone(),
                since_ms,
                after,
                limit: PAGE,
            };
            let page = access.execute(request).await?;
            histories.extend(page.rows.iter().map(|row| history(row, since_ms)));
            match page.next {
                Some(next) => after = next,
                None => return Ok((page.instance, histories)),
            }
        }
    }

    fn answer(&self, instance: &str, world: &World, rows: &[Row]) -> Value {
        let rows = rows.iter().map(|(name, outcome)| {
            json!({
                "policy": name,
                "refreshes": outcome.refreshes,
                "requests": sent(outcome),
                "requests_allowed": outcome.requests.len(),
                "mean_age_ms": outcome.mean_age_ms,
                "longest_ms": outcome.longest_ms,
                "unseen_count_hours": outcome.unseen_h,
                "stretch": outcome.stretch,
            })
        });
        json!({
            "instance": instance,
            "days": self.days,
            "posts": world.len(),
            "changes": world.changes(),
            "policies": rows.collect::<Vec<_>>(),
        })
    }

    fn lines(&self, instance: &str, world: &World, rows: &[Row]) -> Vec<String> {
        let head = format!(
            "{instance}, {} days: {} posts with {} changes of counts, {} requests in {}, {} posts each",
            self.days,
            world.len(),
            world.changes(),
            self.quota.requests,
            show_ms(self.quota.in_ms),
            self.batch
        );
        let cells = rows.iter().map(|(name, outcome)| {
            let part = 100.0 * sent(outcome) as f64 / outcome.requests.len().max(1) as f64;
            [
                left("POLICY", format!("{name:?}").to_lowercase()),
                right("REFRESHES", outcome.refreshes),
                right("REQUESTS", sent(outcome)),
                right("OF QUOTA", format!("{part:.1} %")),
                right("MEAN AGE OF COUNTS", show_ms(outcome.mean_age_ms)),
                right("LONGEST", show_ms(outcome.longest_ms)),
                right("UNSEEN, COUNT-HOURS", format!("{:.1}", outcome.unseen_h)),
            ]
        });
        let notes = rows.iter().map(|(_, outcome)| stretched(outcome));
        let notes = std::iter::once(None).chain(notes);
        let table = table::lines(cells).into_iter().zip(notes);
        let table = table.flat_map(|(line, note)| std::iter::once(line).chain(note));
        std::iter::once(head).chain(table).collect()
    }
}

fn stretched(PolicyOutcome { stretch, .. }: &PolicyOutcome) -> Option<String> {
    let note = || {
        format!("         the quota is short: intervals are {stretch:.1} times as long at the end")
    };
    (*stretch > 1.01).then(note)
}

fn history(row: &GrowthHistory, since_ms: i64) -> History {
    let totals = row.totals.iter();
    let totals: Vec<_> = totals
        .map(|(at_ms, total)| (at_ms - since_ms, *total))
        .collect();
    let created_at_ms = row.created_at_ms - since_ms;
    let first = totals.first();
    let first = first.map(|(_, total)| (created_at_ms, *total as f64));
    let grown = totals
        .array_windows()
        .filter_map(|[(from_ms, from), (to_ms, to)]| {
            let middle_ms = from_ms + (to_ms - from_ms) / 2;
            (to != from).then(|| (middle_ms, (to - from) as f64))
        });
    History {
        created_at_ms,
        first_stored_ms: (row.first_ms - since_ms).max(0),
        changes: first.into_iter().chain(grown).collect(),
    }
}

fn sent(outcome: &PolicyOutcome) -> usize {
    outcome.requests.iter().filter(|posts| **posts > 0).count()
}

type Row = (PolicyName, PolicyOutcome);

const DAY_MS: i64 = 86_400_000;
const PAGE: u32 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_requests_in_a_time() {
        let of = |requests, in_ms| Ok(Pace { requests, in_ms });
        assert_eq!(pace("300/5m"), of(300, 300_000));
        assert_eq!(pace("900 / 15m"), of(900, 900_000));
        for bad in ["", "300", "0/5m", "-1/5m", "300/0s", "300/soon", "x/5m"] {
            assert!(pace(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_history_begins_with_what_was_first_seen() {
        let row = GrowthHistory {
            post: LocalId::new(1),
            created_at_ms: 1_000,
            first_ms: 2_000,
            totals: vec![(2_000, 5), (4_000, 9), (6_000, 9), (8_000, 8)],
        };
        let history = history(&row, 1_000);
        assert_eq!(history.created_at_ms, 0);
        assert_eq!(history.first_stored_ms, 1_000);
        let expected = [(0, 5.0), (2_000, 4.0), (6_000, -1.0)];
        assert_eq!(history.changes, expected);
    }
}
