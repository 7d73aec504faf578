//! The completeness report as text.

use std::ops::Deref;

use driftline_core::timeline::LastError;
use driftline_mirror::{CompletenessReport, GapReport, GapState};

use super::{histogram, time::time};
use crate::{duration::show_ms, error::CliError, output};

/// Prints a report for people.
///
/// # Errors
/// As for [`output::line`].
pub fn print(report: &CompletenessReport) -> Result<(), CliError> {
    output::line(Shown(report).text().trim_end())
}

/// Open ranges, history included, that have not been read.
pub fn open_gaps(report: &CompletenessReport) -> usize {
    let gaps = report.gaps.iter();
    gaps.filter(|gap| matches!(gap.kind, GapState::Open | GapState::History))
        .count()
}

/// The ongoing error, if nothing was ever fetched.
pub fn never_fetched(report: &CompletenessReport) -> Option<&LastError> {
    let counters = &report.counters;
    report
        .last_error
        .as_ref()
        .filter(|error| !error.over && counters.requests == counters.failures)
}

/// A report as text.
struct Shown<'r>(&'r CompletenessReport);

impl Deref for Shown<'_> {
    type Target = CompletenessReport;

    fn deref(&self) -> &CompletenessReport {
        self.0
    }
}

impl Shown<'_> {
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
        self.proof_text(&mut text);
        text.0
    }

    fn verdict(&self) -> &'static str {
        let is_left = |kind| self.gaps.iter().any(|gap| gap.kind == kind);
        match (self.settled, self.complete) {
            (true, _) => "complete, nothing left to be read again",
            (_, true) if self.readable => "no gaps; part of it waits to be read again",
            _ if self.covered_to.is_none() => "nothing read yet",
            _ if is_left(GapState::Open) || is_left(GapState::Unrecoverable) => "NOT complete",
            _ if is_left(GapState::History) => "history is still being read",
            _ => "no gaps; part of it was passed over by later looks",
        }
    }

    /// What reading again has proven, and what it rests on.
    fn proof_text(&self, text: &mut Text) {
        if self.covered_to.is_none() {
            return;
        }
        let proof = &self.plan.proof;
        let claim = |of: &str| {
            format!(
                "at most {of} lacks a post that came later than {} and within {} (95%; {} read again)",
                show_ms(proof.above_ms),
                show_ms(proof.up_to_ms),
                count(proof.page_fulls, "page", "pages")
            )
        };
        let line = match (proof.is_enough, proof.page_fulls) {
            (true, _) => claim("1 page in 10,000"),
            (_, 0) => format!(
                "nothing yet: no page has been read again up to the age of {} without a find",
                show_ms(proof.up_to_ms)
            ),
            _ => claim(&format!("1 page in {}", (1.0 / proof.bound).floor())),
        };
        text.item("proven", &line);
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
        for (kind, title, what) in [
            (
                GapState::Open,
                "open gaps",
                "not read yet; `source fill` asks for one by its first ID",
            ),
            (GapState::History, "history", "not read yet"),
            (
                GapState::PassedOver,
                "passed over",
                "read, but not again at the last age",
            ),
            (
                GapState::Unrecoverable,
                "lost",
                "beyond the upstream's depth",
            ),
        ] {
            let gaps: Vec<&GapReport> = self.gaps.iter().filter(|gap| gap.kind == kind).collect();
            if gaps.is_empty() {
                if kind == GapState::Open {
                    text.item(title, "none");
                }
                continue;
            }
            text.item(title, &format!("{}, {what}", gaps.len()));
            text.list(gaps.iter().map(|gap| range(gap)));
        }
        for rung in 0..=self.rungs.len() {
            let waiting: Vec<&GapReport> = self
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
            let until = match self.rungs.get(rung) {
                Some(of) => format!("until the {} at {}", rung_name(rung), show_ms(of.age_ms)),
                None => format!("until they are {} old", show_ms(self.plan.proof.up_to_ms)),
            };
            text.item(
                "provisional",
                &format!(
                    "{} {until}{span}",
                    count(waiting.len() as u64, "range", "ranges")
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
                "estimated from {} read again: latest {}, {} ahead of the server's time",
                count(lateness.posts, "post", "posts"),
                show_ms(lateness.longest_ms),
                lateness.ahead
            ),
        );
        let quantiles: Vec<String> = lateness
            .quantiles
            .iter()
            .map(|&(share, ms)| format!("{}% {}", share * 100.0, show_ms(ms)))
            .collect();
        text.list([quantiles.join("; ")]);
        text.list(histogram::rows(&lateness.bins));
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
            if found.looks + found.skipped_quota + found.unreachable == 0 {
                continue;
            }
            text.item(
                rung_name(rung),
                &format!(
                    "{}: {} posts, {} edits, {} deletions; skipped {} for the quota, {} out of reach",
                    count(found.looks, "look", "looks"),
                    found.found,
                    found.edited,
                    found.deleted,
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
        match self.clock_lead_ms {
            None if self.covered_to.is_some() => text.item(
                "clock",
                "the server sends no Date header: this machine's clock has to be right",
            ),
            Some(ms) if ms.abs() > REPORTED_CLOCK_LEAD_MS => text.item(
                "clock",
                &format!(
                    "this machine's clock is {} {} the server's",
                    show_ms(ms.abs()),
                    if ms > 0 { "ahead of" } else { "behind" }
                ),
            ),
            _ => {}
        }
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
            let state = if error.over { "over since" } else { "ONGOING" };
            text.item(
                "last error",
                &format!(
                    "{} at {}, {state}: {}",
                    error.kind,
                    time(error.at_ms),
                    error.message
                ),
            );
        }
    }
}

fn range(gap: &GapReport) -> String {
    let (low, high) = (gap.low.as_deref().unwrap_or("the beginning"), &gap.high);
    match (gap.low_ms, gap.high_ms) {
        (Some(from), Some(to)) => format!("{low} to {high} ({} to {})", time(from), time(to)),
        (None, Some(to)) => format!("{low} to {high} (until {})", time(to)),
        _ => format!("{low} to {high}"),
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
        for line in lines.iter().take(MAX_LIST) {
            self.line(&format!("  {:<12} {line}", ""));
        }
        if lines.len() > MAX_LIST {
            let rest = lines.len() - MAX_LIST;
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

const MAX_LIST: usize = 20;
/// The server's time is known to a second and a round trip.
const REPORTED_CLOCK_LEAD_MS: i64 = 2_500;
