//! `simulate timeline`: what reading a timeline of one's own figures would miss and cost.

use clap::Args;
use driftline_core::timeline::{Backfill, Overlap, Settings};
use driftline_sim::{
    ThrottleRule,
    baseline::Poller,
    workload::{Length, PollerOutcome, Tail, Workload, run, run_baseline},
};
use serde_json::{Value, json};

use super::pace::{Pace, pace};
use crate::{
    config::Config,
    duration::{parse_ms, show_ms},
    error::CliError,
    output, parse,
    progress::{End, Progress},
    table::{self, left, right},
};

/// Draws a timeline with your own figures and reads it in virtual time, next to baseline pollers:
/// what each misses, what it fetches, and how long posts take from visible to stored.
///
/// Most posts are as late as measured on tweets; `--late` adds a share that is later. A plan needs
/// 30,000 pages read again before it may leave looks out, so a quiet timeline never does.
#[derive(Debug, Args)]
pub struct SimulateTimeline {
    /// New posts a second.
    #[arg(long, default_value_t = 20.0, value_parser = rate)]
    rate: f64,
    /// A share of the posts that is late by a time between two: 2%:20s-90s. Evenly over the
    /// logarithm of time with a ~ instead of the dash: 1%:1m~1h. May be repeated.
    #[arg(long, value_parser = late)]
    late: Vec<Tail>,
    /// The time between two polls [default: as configured].
    #[arg(long, value_name = "DURATION", value_parser = parse_ms)]
    every: Option<i64>,
    /// The overlap: adaptive or a duration [default: as configured].
    #[arg(long, value_parser = parse::overlap)]
    overlap: Option<Overlap>,
    /// Posts fetched for each post stored [default: as configured].
    #[arg(long, value_name = "NUMBER", value_parser = parse::fetches)]
    fetches: Option<u32>,
    /// What the server allows of requests that name an ID: 300/15m on Mastodon.
    #[arg(long, value_parser = pace)]
    throttle: Option<Pace>,
    /// How many days, if the bound is not proven before.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=60))]
    days: u16,
    /// Another timeline of the same figures.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl SimulateTimeline {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let configured = config.settings();
        let settings = Settings {
            backfill: Backfill::None,
            refreshed: true,
            every_ms: self.every.unwrap_or(configured.every_ms).max(1),
            overlap: self.overlap.unwrap_or(configured.overlap),
            fetches_percent: self.fetches.unwrap_or(configured.fetches_percent),
            ..configured
        };
        let workload = Workload {
            tails: self.late.clone(),
            throttle: self.throttle.map(|pace| {
                let requests = u32::try_from(pace.requests).unwrap_or(u32::MAX);
                ThrottleRule::paged(requests, pace.in_ms)
            }),
            ..Workload::tweets(self.rate)
        };
        let posts = self.rate * f64::from(self.days) * 86_400.0;
        if posts > MAX_POSTS {
            return Err(CliError::usage(format!(
                "{posts:.0} posts are more than a simulation holds ({MAX_POSTS}); name a smaller --rate or fewer --days"
            )));
        }
        let length = Length {
            unproven_ms: i64::from(self.days) * DAY_MS,
            proven_ms: DAY_MS,
        };
        let (ours_ms, peer_ms) = (length.max_ms(&settings), length.unproven_ms.min(DAY_MS));
        let (mut elapsed, mut before_ms) = (Elapsed::of(ours_ms + 2 * peer_ms), ours_ms);
        let ours = run(&workload, &settings, length, self.seed, &mut |ms| {
            elapsed.show(ms);
        });
        let mut peer = |poller| {
            let every_ms = settings.every_ms;
            let outcome =
                run_baseline(&workload, poller, every_ms, peer_ms, self.seed, &mut |ms| {
                    elapsed.show(before_ms + ms);
                });
            before_ms += peer_ms;
            outcome
        };
        let rows = [
            ("driftline", ours),
            ("clamp 1s", peer(Poller::clamp(1_000))),
            ("newest ID", peer(Poller::naive())),
        ];
        drop(elapsed);
        let answer = json!({ "pollers": rows.each_ref().map(row_json) });
        output::reply(json, &answer, |_| lines(&rows))
    }
}

/// The hours that are simulated, of those that it takes at most: a bound that is proven ends a run.
struct Elapsed {
    progress: Progress,
    minutes: i64,
}

impl Elapsed {
    fn of(all_ms: i64) -> Self {
        let hours = u64::try_from(all_ms / HOUR_MS).unwrap_or(0);
        Self {
            progress: Progress::start(End::Count(hours)),
            minutes: 0,
        }
    }

    fn show(&mut self, ms: i64) {
        if self.minutes == ms / MINUTE_MS {
            return;
        }
        self.minutes = ms / MINUTE_MS;
        let hours = u64::try_from(ms / HOUR_MS).unwrap_or(0);
        self.progress.show(hours, "hour", Vec::new);
    }
}

type Row = (&'static str, PollerOutcome);

fn row_json((name, of): &Row) -> Value {
    json!({
        "poller": name,
        "posts": of.posts,
        "missed": of.missed,
        "listed": of.listed,
        "requests": of.requests,
        "proven_after_ms": of.proven_after_ms,
        "fetches_before": of.fetches_before,
        "fetches_after": of.fetches_after,
        "delay_ms": SHARES.map(|share| json!([share, of.delays.quantile_ms(share)])),
    })
}

fn lines(rows: &[Row; 3]) -> Vec<String> {
    let cells = rows.iter().map(|(name, of)| {
        let [p50, p99, p999] = SHARES.map(|share| show_ms(of.delays.quantile_ms(share)));
        let proven = of.proven_after_ms.map_or_else(|| "-".to_owned(), show_ms);
        [
            left("POLLER", name),
            right("POSTS", of.posts),
            right("MISSED", of.missed),
            right("LISTED", of.listed),
            right("REQUESTS", of.requests),
            right("FETCHES/POST", format!("{:.2}", of.fetches_after)),
            right("PROVEN", proven),
            right("DELAY P50", p50),
            right("P99", p99),
            right("P99.9", p999),
        ]
    });
    let mut lines = table::lines(cells);
    lines.extend(rows[0].1.plans.last().map(|plan| {
        let looks: Vec<String> = plan.looks_ms.iter().map(|ms| show_ms(*ms)).collect();
        let (overlap, looks) = (show_ms(plan.overlap_ms), looks.join(", "));
        let proven = if plan.is_proven { ", proven" } else { "; not proven" };
        format!("The plan at the end: an overlap of {overlap}, every post read again at {looks}{proven}.")
    }));
    lines
}

fn rate(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| *number > 0.0 && *number <= 1_000.0)
        .ok_or_else(|| format!("invalid rate {text:?}: expected a number above 0 and up to 1000"))
}

fn late(text: &str) -> Result<Tail, String> {
    let wrong =
        || format!("invalid lateness {text:?}: expected 2%:20s-90s or 1%:1m~1h, for example");
    let (share, span) = text.split_once(':').ok_or_else(wrong)?;
    let share = share.trim().strip_suffix('%').ok_or_else(wrong)?;
    let share: f64 = share.trim().parse().map_err(|_| wrong())?;
    let logarithmic = span.contains('~');
    let (from, to) = span.split_once(['-', '~']).ok_or_else(wrong)?;
    let from_ms = parse_ms(from.trim()).map_err(|_| wrong())?;
    let to_ms = parse_ms(to.trim()).map_err(|_| wrong())?;
    if !(0.0..=100.0).contains(&share) || from_ms > to_ms {
        return Err(wrong());
    }
    Ok(Tail {
        logarithmic,
        ..Tail::always(share / 100.0, from_ms as f64, to_ms as f64)
    })
}

const SHARES: [f64; 3] = [0.5, 0.99, 0.999];
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 86_400_000;
const MAX_POSTS: f64 = 40_000_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_a_share_and_two_times() {
        let even = late("2%:20s-90s").expect("written right");
        assert_eq!(even, Tail::always(0.02, 20_000.0, 90_000.0));
        let logarithmic = late("0.5% : 1m~1h").expect("written right");
        assert!(logarithmic.logarithmic && logarithmic.to_ms > 3_599_000.0);
        for bad in "|2%|2:1s-2s|2%:9s-1s|101%:1s-2s|x%:1s-2s|2%:1s".split('|') {
            assert!(late(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rate_is_above_zero() {
        assert_eq!(rate("0.5"), Ok(0.5));
        for bad in ["0", "-1", "inf", "NaN", "1e9", "fast"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }
}
