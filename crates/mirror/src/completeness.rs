//! The completeness report of a source.

use driftline_core::{
    answer::Abilities,
    timeline::{Counters, Gap, GapKind, LastError, Machine, Plan, Settings},
    upstream_id::Key,
};
use driftline_store::{completeness::StoredCounts, source::Source};
use serde::{Deserialize, Serialize};

/// The completeness of a source. Times are Unix ms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompletenessReport {
    /// The source's name.
    pub name: String,
    /// The upstream's address.
    pub upstream: String,
    /// The timeline there.
    pub timeline: String,
    /// Whether contiguous answers have read every range, and the last rung has read again every range
    /// of its age: no range is open, unrecoverable or passed over.
    pub complete: bool,
    /// Whether, besides, no range is left to be read again.
    pub settled: bool,
    /// Whether the requested history is stored.
    pub readable: bool,
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
    /// Beyond the upstream's depth.
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

/// Makes the report of a source at this time, Unix ms; `refreshed` says whether refreshing finds
/// edits and deletions of its posts.
pub fn completeness_report(
    source: &Source,
    machine: &Machine,
    counts: &StoredCounts,
    abilities: Abilities,
    refreshed: bool,
    now_ms: i64,
) -> CompletenessReport {
    let settings = Settings {
        refreshed,
        ..source.settings.clone()
    };
    let plan = machine.plan(&settings, abilities, now_ms);
    let ledger = machine.ledger();
    let id = |key: &Key| machine.scheme().map(|scheme| scheme.id(key).to_string());
    let gaps: Vec<GapReport> = ledger
        .gaps()
        .iter()
        .map(|gap| gap_report(machine, &plan, gap))
        .collect();
    let counters = *machine.counters();
    CompletenessReport {
        name: source.name.clone(),
        upstream: source.upstream.clone(),
        timeline: source.timeline.clone(),
        complete: ledger.frontier().is_some()
            && gaps.iter().all(|gap| gap.kind == GapState::Provisional),
        settled: ledger.frontier().is_some() && gaps.is_empty(),
        readable: source.readable,
        posts: counts.entries,
        deleted: counts.entries - counts.live - counts.left,
        left: counts.left,
        streamed: counts.streamed,
        covered_from: ledger.origin().and_then(|key| match key.is_lowest() {
            true => Some("the beginning".to_owned()),
            false => id(key),
        }),
        covered_to: ledger.frontier().and_then(id),
        gaps,
        lateness: lateness_report(machine),
        clock_lead_ms: machine.clock_lead_ms(),
        rungs: plan
            .ladder
            .rungs()
            .iter()
            .enumerate()
            .map(|(index, rung)| RungReport {
                age_ms: rung.age_ms,
                found: machine.rung_stats().get(index).copied().unwrap_or_default(),
            })
            .collect(),
        plan,
        fetched_per_post: (counters.stored > 0)
            .then(|| counters.fetched as f64 / counters.stored as f64),
        counters,
        throttle: machine.quota().tightest,
        last_error: machine.last_error().cloned(),
    }
}

fn gap_report(machine: &Machine, plan: &Plan, gap: &Gap) -> GapReport {
    let scheme = machine.scheme();
    let text = |key: &Key| scheme.map_or_else(String::new, |scheme| scheme.id(key).to_string());
    let time_ms = |key: &Key| scheme.and_then(|scheme| scheme.time_ms(key));
    let (kind, read_age_ms) = match gap.kind {
        GapKind::Open { history: true, .. } => (GapState::History, None),
        GapKind::Open { .. } => (GapState::Open, None),
        GapKind::Provisional(read) => (GapState::Provisional, Some(read.read_age_ms)),
        GapKind::PassedOver { read_age_ms } => (GapState::PassedOver, Some(read_age_ms)),
        GapKind::Unrecoverable => (GapState::Unrecoverable, None),
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
