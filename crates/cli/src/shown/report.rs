//! The completeness report as text.

use driftline_core::{
    answer::Throttle,
    timeline::{Counters, Ladder, LastError, Yield},
};
use serde::Deserialize;

use super::{histogram, time::time};
use crate::{duration::show_ms, error::CliError, output};

/// A report (`driftline_server::Report`) as it comes from a store here or
/// through the socket.
#[derive(Debug, Clone, Deserialize)]
pub struct ShownReport {
    name: String,
    upstream: String,
    timeline: String,
    complete: bool,
    settled: bool,
    readable: bool,
    posts: u64,
    deleted: u64,
    streamed: u64,
    covered_from: Option<String>,
    covered_to: Option<String>,
    gaps: Vec<ShownGap>,
    lateness: ShownLateness,
    plan: ShownPlan,
    rungs: Vec<ShownRung>,
    counters: Counters,
    fetched_per_post: Option<f64>,
    throttle: Option<Throttle>,
    last_error: Option<LastError>,
}

#[derive(Debug, Clone, Deserialize)]
struct ShownGap {
    low: Option<String>,
    high: String,
    low_ms: Option<i64>,
    high_ms: Option<i64>,
    kind: String,
    rung: Option<usize>,
}

#[derive(Debug, Clone, Deserialize)]
struct ShownLateness {
    posts: u64,
    ahead: u64,
    longest_ms: i64,
    at_least: Vec<(f64, i64)>,
    at_most: Vec<(f64, i64)>,
    histogram: Vec<(i64, u32)>,
}

#[derive(Debug, Clone, Deserialize)]
struct ShownPlan {
    overlap_ms: i64,
    every_ms: i64,
    ladder: Ladder,
    reasons: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct ShownRung {
    age_ms: i64,
    #[serde(flatten)]
    found: Yield,
}

/// Prints a report for people.
///
/// # Errors
/// As for [`output::line`].
pub fn print(report: &ShownReport) -> Result<(), CliError> {
    output::line(report.text().trim_end())
}

impl ShownReport {
    fn text(&self) -> String {
        let mut text = Text::default();
        text.line(&format!(
            "{}: {} of {}, {}",
            self.name,
            self.timeline,
            self.upstream,
            self.verdict()
        ));
        self.posts_text(&mut text);
        self.gaps_text(&mut text);
        self.lateness_text(&mut text);
        self.plan_text(&mut text);
        self.cost_text(&mut text);
        text.0
    }

    fn verdict(&self) -> &'static str {
        match (self.settled, self.complete) {
            (true, _) => "complete, nothing left to be read again",
            (_, true) if self.readable => "complete but for what waits to be read again",
            _ if self.covered_to.is_none() => "nothing read yet",
            _ => "NOT complete",
        }
    }

    fn posts_text(&self, text: &mut Text) {
        text.item(
            "posts",
            &format!(
                "{} stored, {} of them deleted since",
                self.posts, self.deleted
            ),
        );
        if self.streamed > 0 {
            text.item(
                "unproven",
                &format!(
                    "{} posts that only the stream has shown so far",
                    self.streamed
                ),
            );
        }
        if let (Some(from), Some(to)) = (&self.covered_from, &self.covered_to) {
            text.item("covered", &format!("from {from} to {to}"));
        }
        let counters = &self.counters;
        text.item(
            "caught",
            &format!(
                "{} posts only by the overlap, {} only by a rescan; {} edits, {} deletions seen",
                counters.caught_by_overlap,
                counters.caught_by_rescan,
                counters.edited,
                counters.deleted
            ),
        );
    }

    fn gaps_text(&self, text: &mut Text) {
        for (kind, title) in [
            ("open", "open gaps"),
            ("history", "history"),
            ("unrecoverable", "lost"),
        ] {
            let gaps: Vec<&ShownGap> = self.gaps.iter().filter(|gap| gap.kind == kind).collect();
            if gaps.is_empty() {
                if kind == "open" {
                    text.item(title, "none");
                }
                continue;
            }
            let what = match kind {
                "unrecoverable" => "beyond the upstream's depth",
                "history" => "not read yet",
                _ => "not read yet; `source fill` asks for one by its first ID",
            };
            text.item(title, &format!("{}, {what}", gaps.len()));
            text.list(gaps.iter().map(|gap| gap.range()));
        }
        for (rung, of) in self.rungs.iter().enumerate() {
            let waiting: Vec<&ShownGap> = self
                .gaps
                .iter()
                .filter(|gap| gap.rung == Some(rung))
                .collect();
            let (Some(first), Some(last)) = (waiting.first(), waiting.last()) else {
                continue;
            };
            let span = match (first.low_ms, last.high_ms) {
                (Some(from), Some(to)) => format!(", {} to {}", time(from), time(to)),
                _ => String::new(),
            };
            text.item(
                "provisional",
                &format!(
                    "{} until the {} at {}{span}",
                    count(waiting.len() as u64, "range", "ranges"),
                    rung_name(rung),
                    show_ms(of.age_ms)
                ),
            );
        }
    }

    fn lateness_text(&self, text: &mut Text) {
        let lateness = &self.lateness;
        if lateness.posts == 0 {
            text.item("lateness", "not measured yet");
            return;
        }
        text.item(
            "lateness",
            &format!(
                "of the last {}: longest {}, {} ahead of the server's time",
                count(lateness.posts, "post", "posts"),
                show_ms(lateness.longest_ms),
                lateness.ahead
            ),
        );
        let quantiles: Vec<String> = lateness
            .at_most
            .iter()
            .map(|&(share, at_most_ms)| {
                let at_least = lateness
                    .at_least
                    .iter()
                    .find(|(other, _)| *other == share)
                    .map_or_else(String::new, |&(_, ms)| format!("{} to ", show_ms(ms)));
                format!("{}% {at_least}{}", share * 100.0, show_ms(at_most_ms))
            })
            .collect();
        text.list([quantiles.join("; ")]);
        text.list(histogram::rows(&lateness.histogram));
    }

    fn plan_text(&self, text: &mut Text) {
        let ages: Vec<String> = self
            .plan
            .ladder
            .rungs()
            .iter()
            .map(|rung| show_ms(rung.age_ms))
            .collect();
        text.item(
            "plan",
            &format!(
                "a poll every {} with an overlap of {}, read again at {}",
                show_ms(self.plan.every_ms),
                show_ms(self.plan.overlap_ms),
                ages.join(", ")
            ),
        );
        text.list(self.plan.reasons.iter().cloned());
        for (rung, of) in self.rungs.iter().enumerate() {
            let found = &of.found;
            if found.looks + found.skipped_idle + found.skipped_quota + found.unreachable == 0 {
                continue;
            }
            text.item(
                rung_name(rung),
                &format!(
                    "{}: {} posts, {} edits, {} deletions; skipped {} idle, {} for the quota, {} out of reach",
                    count(found.looks, "look", "looks"),
                    found.found,
                    found.edited,
                    found.deleted,
                    found.skipped_idle,
                    found.skipped_quota,
                    found.unreachable
                ),
            );
        }
    }

    fn cost_text(&self, text: &mut Text) {
        let counters = &self.counters;
        let ratio = self
            .fetched_per_post
            .map_or_else(String::new, |ratio| format!(", {ratio:.2} times each"));
        text.item(
            "cost",
            &format!(
                "{} ({} failed), {} posts fetched{ratio}",
                count(counters.requests, "request", "requests"),
                counters.failures,
                counters.fetched
            ),
        );
        if let Some(throttle) = self.throttle {
            text.item(
                "quota",
                &format!(
                    "{} of {} requests left until {}",
                    throttle.remaining,
                    throttle.limit,
                    time(throttle.reset_at_ms)
                ),
            );
        }
        if let Some(error) = &self.last_error {
            let standing = if error.over { "over since" } else { "STANDING" };
            text.item(
                "last error",
                &format!(
                    "{} at {}, {standing}: {}",
                    error.kind,
                    time(error.at_ms),
                    error.message
                ),
            );
        }
    }

    /// Open ranges, history included, that nobody has read.
    pub fn open_gaps(&self) -> usize {
        self.gaps
            .iter()
            .filter(|gap| matches!(gap.kind.as_str(), "open" | "history"))
            .count()
    }

    /// The error that the source stands at, if nothing was ever fetched.
    pub fn never_fetched(&self) -> Option<&LastError> {
        let counters = &self.counters;
        self.last_error
            .as_ref()
            .filter(|error| !error.over && counters.requests == counters.failures)
    }
}

impl ShownGap {
    fn range(&self) -> String {
        let low = self.low.as_deref().unwrap_or("the beginning");
        match (self.low_ms, self.high_ms) {
            (Some(from), Some(to)) => {
                format!("{low} to {} ({} to {})", self.high, time(from), time(to))
            }
            (None, Some(to)) => format!("{low} to {} (until {})", self.high, time(to)),
            _ => format!("{low} to {}", self.high),
        }
    }
}

/// Lines with their titles in a column.
#[derive(Debug, Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn item(&mut self, title: &str, line: &str) {
        self.line(&format!("  {title:<12} {line}"));
    }

    fn list(&mut self, lines: impl IntoIterator<Item = String>) {
        let lines: Vec<String> = lines.into_iter().collect();
        for line in lines.iter().take(LONGEST_LIST) {
            self.line(&format!("  {:<12} {line}", ""));
        }
        if lines.len() > LONGEST_LIST {
            let rest = lines.len() - LONGEST_LIST;
            self.line(&format!("  {:<12} and {rest} more (--json shows all)", ""));
        }
    }
}

fn rung_name(rung: usize) -> &'static str {
    if rung == 0 { "second look" } else { "rescan" }
}

fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

const LONGEST_LIST: usize = 20;
