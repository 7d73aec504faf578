//! The completeness report of a source.

use driftline_core::{
    answer::Abilities,
    timeline::{
        Counters, Gap, GapKind, LastError, Machine, Plan, Polls, Settings, session::SAVED_EVERY_MS,
    },
    upstream_id::Key,
};
use driftline_store::{completeness::StoredCounts, source::Source};
use serde::{Deserialize, Serialize};

use crate::{
    source_health::SourceFault,
    source_state::{RangeCounts, SourceFacts, SourceState, SourceWait, Verdict},
};

/// The completeness of a source. Times are Unix ms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompletenessReport {
    /// The source's name.
    pub name: String,
    /// The upstream's address.
    pub upstream: String,
    /// The timeline there.
    pub timeline: String,
    /// What the source is doing.
    pub state: SourceState,
    /// The state in words.
    pub state_text: String,
    /// Whether it is complete up to its last poll, or what is in the way first.
    pub verdict: Verdict,
    /// Whether contiguous answers have read every range, and the last rung has read again every range
    /// of its age: no range is open, unrecoverable or passed over, no look is overdue, and the last
    /// poll succeeded and was in time; and the last rung looks later than posts were found to come, or
    /// it is proven how little it leaves out.
    pub complete: bool,
    /// Whether, besides, no range is left to be read again.
    pub settled: bool,
    /// Whether a first page is stored, so that readers are shown the source.
    pub readable: bool,
    /// Why this server's answers cannot prove that nothing is missing, if they cannot.
    pub unprovable: Option<String>,
    /// Posts whose answers could not be read; the ranges around them are.
    pub unreadable: u64,
    /// What polls have had recently.
    pub polls: Polls,
    /// For how long the look that waits the longest has been overdue, ms, if one is.
    pub overdue_ms: Option<i64>,
    /// How late posts come that the last look may come before, ms, if some do.
    pub late_ms: Option<i64>,
    /// Posts stored, tombstones included.
    pub posts: u64,
    /// Of these, posts known to be deleted.
    pub deleted: u64,
    /// Of these, posts that the source lists no more, which are not known to be deleted.
    pub left: u64,
    /// Of these, posts that only the stream has shown: no poll has proven yet that nothing is
    /// missing next to them.
    pub streamed: u64,
    /// The ID where coverage begins; `None` before the first post.
    pub covered_from: Option<String>,
    /// The ID where coverage ends, exclusive.
    pub covered_to: Option<String>,
    /// Every range that is not proven complete, in order. What lies between
    /// `covered_from` and `covered_to` and in none of them is complete.
    pub gaps: Vec<GapReport>,
    /// Lateness as estimated.
    pub lateness: LatenessReport,
    /// The local clock's time less the server's, ms; `None` where answers do not carry the
    /// server's time: then the local clock has to be right.
    pub clock_lead_ms: Option<i64>,
    /// What the source does now, and why.
    pub plan: Plan,
    /// The statistics of each rung, the second look first.
    pub rungs: Vec<RungReport>,
    /// Totals since the source was added.
    pub counters: Counters,
    /// Posts fetched for each post stored.
    pub fetched_per_post: Option<f64>,
    /// The tightest throttle, if the upstream reported one.
    pub throttle: Option<driftline_core::answer::Throttle>,
    /// The current error, or the last one.
    pub last_error: Option<LastError>,
    /// The wait that the server has asked for, if it is not over.
    pub wait: Option<SourceWait>,
}

/// A range that is not proven complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapReport {
    /// The lowest ID; `None` for the timeline's beginning.
    pub low: Option<String>,
    /// The ID that it ends below.
    pub high: String,
    /// The time in the lowest ID, where IDs carry time.
    pub low_ms: Option<i64>,
    /// The time in the highest ID, likewise.
    pub high_ms: Option<i64>,
    /// Why it is not.
    pub kind: GapState,
    /// For a provisional range, the rung that reads it next; 0 is the second look. The number of
    /// rungs if none does and the range only has to reach its age.
    pub rung: Option<usize>,
    /// For a provisional or passed-over range, the age at which it was read last, ms.
    pub read_age_ms: Option<i64>,
}

/// Why a range is not proven complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapState {
    /// Not read.
    Open,
    /// Requested history, not read yet.
    History,
    /// Read, and to be read again.
    Provisional,
    /// Read, but not again at the last age.
    PassedOver,
    /// The upstream's pages do not reach it.
    Unrecoverable,
}

/// Lateness as estimated from reading ranges again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatenessReport {
    /// Posts in the estimate, each as often as it was read again; older ones count less.
    pub posts: u64,
    /// Posts whose ID was certainly ahead of the server's time.
    pub ahead: u64,
    /// The greatest proven lateness of a post, ms.
    pub longest_ms: i64,
    /// The newest ID's time less the server's time at the last read, ms.
    pub newest_ahead_ms: i64,
    /// Quantiles: share, and a bound in ms.
    pub quantiles: Vec<(f64, i64)>,
    /// The estimate: upper edge of a bin in ms, and share of the posts.
    pub bins: Vec<(i64, f64)>,
}

/// The statistics of a rung.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RungReport {
    /// The age at which it reads, ms.
    pub age_ms: i64,
    /// Posts found and ranges skipped.
    #[serde(flatten)]
    pub found: driftline_core::timeline::RungStats,
}

/// Who reads a source, and with what fault.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reader {
    /// Whether a process reads it.
    pub is_read: bool,
    /// Whether that is another process, so that the machine is the stored one.
    pub is_elsewhere: bool,
    /// What keeps it from being read, or parts of it.
    pub fault: Option<SourceFault>,
    /// Whether the disk has no room for what would be read.
    pub is_out_of_room: bool,
}

/// The facts about a source at this time, Unix ms. The plan is its machine's.
pub fn source_facts(
    source: &Source,
    machine: &Machine,
    plan: &Plan,
    reader: &Reader,
    now_ms: i64,
) -> SourceFacts {
    let polls = machine.polls();
    let rarest_ms = plan.every_ms.max(source.settings.streamed_every_ms);
    let saved_ms = i64::from(reader.is_elsewhere) * SAVED_EVERY_MS;
    SourceFacts {
        is_paused: source.paused,
        is_out_of_room: reader.is_out_of_room,
        is_tracked: !source.kind.is_polled(),
        is_read: reader.is_read,
        fault: reader.fault.clone(),
        wait: machine.waiting(now_ms).map(|waiting| SourceWait {
            server: source.upstream.clone(),
            until_ms: waiting.until_ms,
            left_ms: waiting.until_ms.saturating_sub(now_ms),
        }),
        unprovable: machine.unprovable().map(|why| why.to_string()),
        polls_fail: machine.polls_fail(),
        polled_ago_ms: ago_ms(polls.last_ms, now_ms),
        may_be_ago_ms: rarest_ms.saturating_mul(POLLS_IN_TIME) + IN_TIME_MS + saved_ms,
        is_catching_up: machine.is_catching_up(),
        overdue_ms: machine.overdue_ms(plan, now_ms),
        late_ms: machine.later_than_looks_ms(plan),
        quiet_ms: polls.quiet_ms(now_ms),
        empty_ms: ago_ms(machine.empty_since_ms(), now_ms),
        has_posts: machine.ledger().frontier().is_some(),
        ranges: range_counts(machine.ledger().gaps()),
        history_posts: machine.counters().history,
    }
}

/// How long ago a time is. One that has not come yet was written by a clock that was set since: then it
/// is not known.
fn ago_ms(at_ms: Option<i64>, now_ms: i64) -> Option<i64> {
    let ago_ms = now_ms.saturating_sub(at_ms?);
    (ago_ms >= -MAX_CLOCK_SKEW_MS).then_some(ago_ms.max(0))
}

fn range_counts(gaps: &[Gap]) -> RangeCounts {
    let mut counts = RangeCounts::default();
    for gap in gaps {
        *match gap_state(&gap.kind) {
            GapState::Open => &mut counts.open,
            GapState::History => &mut counts.history,
            GapState::Provisional => &mut counts.provisional,
            GapState::PassedOver => &mut counts.passed_over,
            GapState::Unrecoverable => &mut counts.unrecoverable,
        } += 1;
    }
    counts
}

/// Makes the report of a source at this time, Unix ms; `refreshed` says whether refreshing finds
/// edits and deletions of its posts.
pub fn completeness_report(
    source: &Source,
    machine: &Machine,
    counts: &StoredCounts,
    abilities: Abilities,
    refreshed: bool,
    reader: &Reader,
    now_ms: i64,
) -> CompletenessReport {
    let settings = Settings {
        refreshed,
        ..source.settings.clone()
    };
    let plan = machine.plan(&settings, abilities, now_ms);
    let ledger = machine.ledger();
    let id = |key: &Key| machine.scheme().map(|scheme| scheme.id(key).to_string());
    let facts = source_facts(source, machine, &plan, reader, now_ms);
    let verdict = facts.verdict();
    let counters = *machine.counters();
    CompletenessReport {
        name: source.name.clone(),
        upstream: source.upstream.clone(),
        timeline: source.timeline.clone(),
        state: facts.state(),
        state_text: facts.state_text(),
        verdict,
        complete: verdict.is_complete(),
        settled: verdict.is_settled(),
        readable: source.readable,
        unprovable: facts.unprovable,
        unreadable: counts.unreadable,
        polls: *machine.polls(),
        overdue_ms: facts.overdue_ms,
        late_ms: facts.late_ms,
        posts: counts.entries,
        deleted: counts.entries - counts.live - counts.left,
        left: counts.left,
        streamed: counts.streamed,
        covered_from: ledger.origin().and_then(|key| match key.is_lowest() {
            true => Some("the beginning".to_owned()),
            false => id(key),
        }),
        covered_to: ledger.frontier().and_then(id),
        gaps: gap_reports(machine, &plan),
        lateness: lateness_report(machine),
        clock_lead_ms: machine.clock_lead_ms(),
        rungs: rung_reports(machine, &plan),
        plan,
        fetched_per_post: (counters.stored > 0)
            .then(|| counters.fetched as f64 / counters.stored as f64),
        counters,
        throttle: machine.quota().tightest,
        last_error: machine.last_error().cloned(),
        wait: facts.wait,
    }
}

fn rung_reports(machine: &Machine, plan: &Plan) -> Vec<RungReport> {
    let rungs = plan.ladder.rungs().iter().enumerate();
    let found = |index| machine.rung_stats().get(index).copied().unwrap_or_default();
    rungs
        .map(|(index, rung)| RungReport {
            age_ms: rung.age_ms,
            found: found(index),
        })
        .collect()
}

fn gap_reports(machine: &Machine, plan: &Plan) -> Vec<GapReport> {
    let gaps = machine.ledger().gaps().iter();
    gaps.map(|gap| gap_report(machine, plan, gap)).collect()
}

const fn gap_state(kind: &GapKind) -> GapState {
    match kind {
        GapKind::Open { history: true, .. } => GapState::History,
        GapKind::Open { .. } => GapState::Open,
        GapKind::Provisional(_) => GapState::Provisional,
        GapKind::PassedOver { .. } => GapState::PassedOver,
        GapKind::Unrecoverable => GapState::Unrecoverable,
    }
}

fn gap_report(machine: &Machine, plan: &Plan, gap: &Gap) -> GapReport {
    let scheme = machine.scheme();
    let text = |key: &Key| scheme.map_or_else(String::new, |scheme| scheme.id(key).to_string());
    let time_ms = |key: &Key| scheme.and_then(|scheme| scheme.time_ms(key));
    let kind = gap_state(&gap.kind);
    let read_age_ms = match gap.kind {
        GapKind::Provisional(read) => Some(read.read_age_ms),
        GapKind::PassedOver { read_age_ms } => Some(read_age_ms),
        GapKind::Open { .. } | GapKind::Unrecoverable => None,
    };
    let rung = read_age_ms
        .filter(|_| kind == GapState::Provisional)
        .map(|read_age_ms| plan.ladder.next(read_age_ms));
    GapReport {
        low: (!gap.low.is_lowest()).then(|| text(&gap.low)),
        high: text(&gap.high),
        low_ms: time_ms(&gap.low),
        high_ms: time_ms(&gap.high),
        kind,
        rung,
        read_age_ms,
    }
}

fn lateness_report(machine: &Machine) -> LatenessReport {
    let lateness = machine.lateness();
    let estimate = lateness.distribution();
    let quantiles = estimate.iter().flat_map(|estimate| {
        QUANTILES
            .iter()
            .map(|&share| (share, estimate.quantile_ms(share)))
    });
    LatenessReport {
        posts: estimate
            .as_ref()
            .map_or(0, |estimate| estimate.posts as u64),
        ahead: lateness.ahead,
        longest_ms: lateness.longest_ms,
        newest_ahead_ms: lateness.newest_ahead_ms,
        quantiles: quantiles.collect(),
        bins: estimate
            .iter()
            .flat_map(|estimate| estimate.bins())
            .collect(),
    }
}

const QUANTILES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 1.0];
/// A poll is in time if it comes within so many intervals and a while.
const POLLS_IN_TIME: i64 = 3;
const IN_TIME_MS: i64 = 60_000;
/// The clock of the process that polled may be so far ahead.
const MAX_CLOCK_SKEW_MS: i64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_at_a_time_that_has_not_come_yet_is_not_known() {
        let now_ms = 1_700_000_000_000;
        let ago = |ms: i64| ago_ms(Some(now_ms - ms), now_ms);
        assert_eq!(ago(2_000), Some(2_000));
        assert_eq!(
            ago(-2_000),
            Some(0),
            "another process, whose clock is ahead"
        );
        assert_eq!(ago(-20 * 60_000), None);
        assert_eq!(ago_ms(None, now_ms), None);
    }
}
