//! The completeness report as text.

use std::ops::Deref;

use driftline_core::timeline::{Counters, LastError, RungStats};
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
        let (name, timeline, upstream) = (&self.name, &self.timeline, &self.upstream);
        let verdict = self.verdict();
        text.line(&format!("{name}: {timeline} of {upstream}, {verdict}"));
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
        let (above, up_to) = (show_ms(proof.above_ms), show_ms(proof.up_to_ms));
        let pages = count(proof.page_fulls, "page");
        let at_most = match (proof.is_enough, proof.page_fulls) {
            (true, _) => "10,000".to_owned(),
            (_, 0) => {
                return text.item(
                    "proven",
                    &format!(
                        "nothing yet: no page has been read again up to the age of {up_to} without a find"
                    ),
                );
            }
            _ => (1.0 / proof.bound).floor().to_string(),
        };
        text.item(
            "proven",
            &format!(
                "at most 1 page in {at_most} lacks a post that came later than {above} and within {up_to} (95%; {pages} read again)"
            ),
        );
    }

    fn posts_text(&self, text: &mut Text) {
        let Self(CompletenessReport {
            posts,
            deleted,
            streamed,
            ..
        }) = self;
        text.item(
            "posts",
            &format!("{posts} stored, {deleted} of them deleted since"),
        );
        if *streamed > 0 {
            let unproven = format!("{streamed} posts that only the stream has shown so far");
            text.item("unproven", &unproven);
        }
        if let (Some(from), Some(to)) = (&self.covered_from, &self.covered_to) {
            text.item("covered", &format!("from {from} to {to}"));
        }
        let Counters {
            caught_by_overlap,
            caught_by_rescan,
            edited,
            deleted,
            ..
        } = &self.counters;
        text.item(
            "caught",
            &format!(
                "{caught_by_overlap} posts only by the overlap, {caught_by_rescan} only by a rescan; {edited} edits, {deleted} deletions seen"
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
            let ranges = count(waiting.len() as u64, "range");
            text.item("provisional", &format!("{ranges} {until}{span}"));
        }
    }

    fn lateness_text(&self, text: &mut Text) {
        let lateness = &self.lateness;
        if lateness.posts == 0 {
            text.item("lateness", "not measured yet");
            return;
        }
        let (posts, ahead) = (count(lateness.posts, "post"), lateness.ahead);
        let latest = show_ms(lateness.longest_ms);
        text.item(
            "lateness",
            &format!(
                "estimated from {posts} read again: latest {latest}, {ahead} ahead of the server's time"
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
        let plan = &self.plan;
        let ages = plan.ladder.rungs().iter().map(|rung| show_ms(rung.age_ms));
        let ages = ages.collect::<Vec<_>>().join(", ");
        let (every, overlap) = (show_ms(plan.every_ms), show_ms(plan.overlap_ms));
        text.item(
            "plan",
            &format!("a poll every {every} with an overlap of {overlap}, read again at {ages}"),
        );
        text.list(plan.reasons.iter().cloned());
        for (rung, of) in self.rungs.iter().enumerate() {
            let RungStats {
                looks,
                found,
                edited,
                deleted,
                skipped_quota,
                unreachable,
            } = of.found;
            if looks + skipped_quota + unreachable == 0 {
                continue;
            }
            let looks = count(looks, "look");
            text.item(
                rung_name(rung),
                &format!(
                    "{looks}: {found} posts, {edited} edits, {deleted} deletions; skipped {skipped_quota} for the quota, {unreachable} out of reach"
                ),
            );
        }
    }

    fn cost_text(&self, text: &mut Text) {
        let (failures, fetched) = (self.counters.failures, self.counters.fetched);
        let requests = count(self.counters.requests, "request");
        let ratio = self.fetched_per_post;
        let ratio = ratio.map_or_else(String::new, |ratio| format!(", {ratio:.2} times each"));
        text.item(
            "cost",
            &format!("{requests} ({failures} failed), {fetched} posts fetched{ratio}"),
        );
        match self.clock_lead_ms {
            None if self.covered_to.is_some() => text.item(
                "clock",
                "the server sends no Date header: this machine's clock has to be right",
            ),
            Some(ms) if ms.abs() > REPORTED_CLOCK_LEAD_MS => {
                let lead = show_ms(ms.abs());
                let side = if ms > 0 { "ahead of" } else { "behind" };
                text.item(
                    "clock",
                    &format!("this machine's clock is {lead} {side} the server's"),
                );
            }
            _ => {}
        }
        if let Some(throttle) = self.throttle {
            let (remaining, limit) = (throttle.remaining, throttle.limit);
            let reset = time(throttle.reset_at_ms);
            text.item(
                "quota",
                &format!("{remaining} of {limit} requests left until {reset}"),
            );
        }
        if let Some(error) = &self.last_error {
            let state = if error.over { "over since" } else { "ONGOING" };
            let (kind, at, message) = (error.kind, time(error.at_ms), &error.message);
            text.item("last error", &format!("{kind} at {at}, {state}: {message}"));
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

/// A number of things with a regular plural.
fn count(number: u64, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

const MAX_LIST: usize = 20;
/// The server's time is known to a second and a round trip.
const REPORTED_CLOCK_LEAD_MS: i64 = 2_500;
