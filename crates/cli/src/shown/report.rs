//! The completeness report as text.

use driftline_core::timeline::{FailedRequest, LastError};
use driftline_mirror::{
    CompletenessReport, GapReport, GapState, RungReport, SourceState, SourceWait, Verdict,
};

use super::{histogram, time::time};
use crate::duration::show_ms;

/// The lines of a report for people.
pub fn report(report: &CompletenessReport) -> Vec<String> {
    let mut text = Text::default();
    let (name, timeline, upstream) = (&report.name, &report.timeline, &report.upstream);
    let verdict = verdict(report);
    text.line(format!("{name}: {timeline} of {upstream}, {verdict}"));
    // The first line gives the reason already.
    let state = match (report.state, report.verdict) {
        (SourceState::CannotBeProven, Verdict::CannotBeProven) => "cannot be proven",
        _ => &report.state_text,
    };
    text.item("state", state);
    if let Some(SourceWait {
        server, until_ms, ..
    }) = &report.wait
    {
        let until = time(*until_ms);
        text.item("waits", &format!("until {until}, as {server} asked"));
    }
    text.posts(report);
    text.gaps(report);
    text.lateness(report);
    text.plan(report);
    text.cost(report);
    text.proof(report);
    text.0
}

/// Whether the source is complete, in words; if it is not, what is in the way first.
fn verdict(report: &CompletenessReport) -> String {
    let (unreadable, last_poll) = (report.unreadable, last_poll(report));
    let complete = |rest: &str| match unreadable {
        0 => format!("complete{rest}"),
        _ => format!("complete but for {unreadable} unreadable{rest}"),
    };
    match report.verdict {
        Verdict::Settled => complete(", nothing left to be read again"),
        Verdict::Empty => format!("complete: it has no posts, say {}", polls(report)),
        Verdict::Provisional if unreadable > 0 => complete("; part of it waits to be read again"),
        Verdict::Provisional => "no gaps; part of it waits to be read again".to_owned(),
        Verdict::EmptySoFar => format!("no posts so far in {}", polls(report)),
        Verdict::NothingRead => "nothing read yet".to_owned(),
        Verdict::PollsFail => format!("NOT known to be complete: polls fail; {last_poll}"),
        Verdict::NotPolled => format!("NOT known to be complete: no poll recently; {last_poll}"),
        Verdict::CatchingUp => {
            "NOT complete yet: more than a page is news, which is being read".to_owned()
        }
        Verdict::CannotBeProven => {
            let why = report.unprovable.as_deref().unwrap_or_default();
            format!("NOT known to be complete: it cannot be proven here: {why}")
        }
        Verdict::Gaps => "NOT complete".to_owned(),
        Verdict::History => "history is still being read".to_owned(),
        Verdict::LooksOverdue => {
            let late = show_ms(report.overdue_ms.unwrap_or_default());
            format!("NOT known to be complete: a range should have been read again {late} ago")
        }
        Verdict::LaterThanLooks => {
            let late = show_ms(report.late_ms.unwrap_or_default());
            format!(
                "NOT known to be complete: posts came up to {late} late, and no look comes later"
            )
        }
        Verdict::PassedOver => "no gaps; part of it was passed over by later looks".to_owned(),
    }
}

/// How many polls succeeded, and since when.
fn polls(report: &CompletenessReport) -> String {
    let polls = count(report.polls.answered, "poll");
    let since = report.polls.first_ms.map(time);
    since.map_or_else(String::new, |since| format!("{polls} since {since}"))
}

fn last_poll(report: &CompletenessReport) -> String {
    match report.polls.last_ms {
        Some(at_ms) => format!("the last good one was at {}", time(at_ms)),
        None => "none has succeeded recently".to_owned(),
    }
}

/// Lines with their titles in a column.
#[derive(Debug, Default)]
struct Text(Vec<String>);

impl Text {
    fn line(&mut self, line: impl Into<String>) {
        self.0.push(line.into());
    }

    fn item(&mut self, title: &str, line: &str) {
        self.line(format!("  {title:<12} {line}"));
    }

    fn list(&mut self, lines: impl ExactSizeIterator<Item = String>) {
        let rest = lines.len().saturating_sub(MAX_LIST);
        lines.take(MAX_LIST).for_each(|line| self.item("", &line));
        if rest > 0 {
            self.item("", &format!("and {rest} more (--json shows all)"));
        }
    }

    /// What reading again has proven, and what it rests on.
    fn proof(&mut self, report: &CompletenessReport) {
        if report.covered_to.is_none() {
            return;
        }
        let proof = &report.plan.proof;
        let (above, up_to) = (show_ms(proof.above_ms), show_ms(proof.up_to_ms));
        let pages = count(proof.page_fulls, "page");
        let at_most = match (proof.is_enough, proof.page_fulls) {
            (true, _) => "10,000".to_owned(),
            (_, 0) => {
                return self.line(format!(
                    "  proven       nothing yet: no page has been read again up to the age of {up_to} without a find"
                ));
            }
            _ => (1.0 / proof.bound).floor().to_string(),
        };
        self.line(format!(
            "  proven       at most 1 page in {at_most} lacks a post that came later than {above} and within {up_to} (95%; {pages} read again)"
        ));
    }

    fn posts(&mut self, report: &CompletenessReport) {
        let (posts, deleted, streamed) = (report.posts, report.deleted, report.streamed);
        self.line(format!(
            "  posts        {posts} stored, {deleted} of them deleted since"
        ));
        if report.left > 0 {
            self.line(format!(
                "  left         {} of them: the timeline lists them no more, which need not be a deletion",
                report.left
            ));
        }
        let not_confirmed = report.counters.not_confirmed;
        if not_confirmed > 0 {
            let look_ups = match not_confirmed {
                1 => "1 look-up of a post that was".to_owned(),
                _ => format!("{not_confirmed} look-ups of posts that were"),
            };
            let text = format!("{look_ups} missing from a page proved nothing");
            self.item("unconfirmed", &text);
        }
        if streamed > 0 {
            self.line(format!(
                "  unproven     {streamed} posts that only the stream has shown so far"
            ));
        }
        if report.unreadable > 0 {
            let unreadable = match report.unreadable {
                1 => "1 post, kept as it came".to_owned(),
                many => format!("{many} posts, kept as they came"),
            };
            let lists = format!("see `driftline source unreadable {}`", report.name);
            self.item("unreadable", &format!("{unreadable}; {lists}"));
        }
        if let (Some(from), Some(to)) = (&report.covered_from, &report.covered_to) {
            self.line(format!("  covered      from {from} to {to}"));
        }
        let of = &report.counters;
        self.line(format!(
            "  caught       {} posts only by the overlap, {} only by a rescan; {} edits, {} deletions seen",
            of.caught_by_overlap, of.caught_by_rescan, of.edited, of.deleted
        ));
    }

    fn gaps(&mut self, report: &CompletenessReport) {
        for (kind, title, what) in [
            (GapState::Open, "open gaps", OPEN),
            (GapState::History, "history", "not read yet"),
            (GapState::PassedOver, "passed over", PASSED_OVER),
            (GapState::Unrecoverable, "lost", BEYOND),
        ] {
            let gaps = report.gaps.iter().filter(|gap| gap.kind == kind);
            let ranges: Vec<String> = gaps.map(range).collect();
            if !ranges.is_empty() {
                self.item(title, &format!("{}, {what}", ranges.len()));
                self.list(ranges.into_iter());
            } else if kind == GapState::Open {
                self.line("  open gaps    none");
            }
        }
        for rung in 0..=report.rungs.len() {
            let waiting = report.gaps.iter().filter(|gap| gap.rung == Some(rung));
            let waiting: Vec<&GapReport> = waiting.collect();
            let (Some(first), Some(last)) = (waiting.first(), waiting.last()) else {
                continue;
            };
            let span = match (first.low_ms, last.high_ms) {
                (Some(from), Some(to)) => format!(", {} to {}", time(from), time(to)),
                _ => String::new(),
            };
            let until = match report.rungs.get(rung) {
                Some(of) => format!("until the {} at {}", rung_name(rung), show_ms(of.age_ms)),
                None => format!("until they are {} old", show_ms(report.plan.proof.up_to_ms)),
            };
            let ranges = count(waiting.len() as u64, "range");
            self.line(format!("  provisional  {ranges} {until}{span}"));
        }
    }

    fn lateness(&mut self, report: &CompletenessReport) {
        let of = &report.lateness;
        if of.posts == 0 {
            return self.line("  lateness     not measured yet");
        }
        let (posts, latest, ahead) = (count(of.posts, "post"), show_ms(of.longest_ms), of.ahead);
        self.line(format!(
            "  lateness     estimated from {posts} read again: latest {latest}, {ahead} ahead of the server's time"
        ));
        let quantiles = of.quantiles.iter();
        let quantiles = quantiles.map(|(share, ms)| format!("{}% {}", share * 100.0, show_ms(*ms)));
        self.item("", &quantiles.collect::<Vec<_>>().join("; "));
        self.list(histogram::rows(&of.bins).into_iter());
    }

    fn plan(&mut self, report: &CompletenessReport) {
        let plan = &report.plan;
        let ages = plan.ladder.rungs().iter().map(|rung| show_ms(rung.age_ms));
        let ages = ages.collect::<Vec<_>>().join(", ");
        let (every, overlap) = (show_ms(plan.every_ms), show_ms(plan.overlap_ms));
        self.line(format!(
            "  plan         a poll every {every} with an overlap of {overlap}, read again at {ages}"
        ));
        self.list(plan.reasons.iter().cloned());
        for (rung, RungReport { found: of, .. }) in report.rungs.iter().enumerate() {
            if of.looks + of.skipped_quota + of.unreachable == 0 {
                continue;
            }
            let looks = count(of.looks, "look");
            let line = format!(
                "{looks}: {} posts, {} edits, {} deletions; skipped {} for the quota, {} out of reach",
                of.found, of.edited, of.deleted, of.skipped_quota, of.unreachable
            );
            self.item(rung_name(rung), &line);
        }
    }

    fn cost(&mut self, report: &CompletenessReport) {
        let (failures, fetched) = (report.counters.failures, report.counters.fetched);
        let requests = count(report.counters.requests, "request");
        let ratio = report.fetched_per_post;
        let ratio = ratio.map_or_else(String::new, |ratio| format!(", {ratio:.2} times each"));
        self.line(format!(
            "  cost         {requests} ({failures} failed), {fetched} posts fetched{ratio}"
        ));
        match report.clock_lead_ms {
            None if report.covered_to.is_some() => self.line(
                "  clock        the server sends no Date header: this machine's clock has to be right",
            ),
            Some(ms) if ms.abs() > REPORTED_CLOCK_LEAD_MS => {
                let lead = show_ms(ms.abs());
                let side = if ms > 0 { "ahead of" } else { "behind" };
                self.line(format!(
                    "  clock        this machine's clock is {lead} {side} the server's"
                ));
            }
            _ => {}
        }
        if let Some(of) = report.throttle {
            let (left, limit, reset) = (of.remaining, of.limit, time(of.reset_at_ms));
            self.line(format!(
                "  quota        {left} of {limit} requests left until {reset}"
            ));
        }
        if let Some(error) = &report.last_error {
            self.item("last error", &last_error(error));
        }
    }
}

/// An error with its count in a row and since when.
pub fn last_error(error: &LastError) -> String {
    let (kind, at, message) = (error.kind, time(error.at_ms), &error.message);
    let row = match error.count {
        1 => String::new(),
        count => format!(", {count} in a row since {}", time(error.since_ms)),
    };
    let state = if error.over { "over since" } else { "ONGOING" };
    format!(
        "{kind} of {} at {at}{row}, {state}: {message}",
        request_name(error.request)
    )
}

fn request_name(request: FailedRequest) -> &'static str {
    match request {
        FailedRequest::Poll => "a poll",
        FailedRequest::Page => "a later look",
        FailedRequest::LookUp => "a look-up",
        FailedRequest::Stream => "the stream",
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

fn rung_name(rung: usize) -> &'static str {
    if rung == 0 { "second look" } else { "rescan" }
}

/// A number of things with a regular plural.
pub fn count(number: u64, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

const OPEN: &str = "not read yet; `source fill` asks for one by its first ID";
const PASSED_OVER: &str = "read, but not again at the last age";
const BEYOND: &str = "the upstream's pages do not reach it";
const MAX_LIST: usize = 20;
/// The server's time is known to a second and a round trip.
const REPORTED_CLOCK_LEAD_MS: i64 = 2_500;
