//! The completeness report of a source.

use driftline_core::{
    answer::Abilities,
    timeline::{Counters, Gap, GapKind, LastError, Machine, Plan},
    upstream_id::Key,
};
use driftline_store::{source::Source, verify::Counts};
use serde::Serialize;

/// What is known about a source's completeness. Times are Unix ms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The source's name.
    pub name: String,
    /// The upstream's address.
    pub upstream: String,
    /// The timeline there.
    pub timeline: String,
    /// Whether nothing lies in an open or unrecoverable range.
    pub complete: bool,
    /// Whether nothing is left to be read again either.
    pub settled: bool,
    /// Whether the history that was asked for is there.
    pub readable: bool,
    /// Posts stored, tombstones included.
    pub posts: u64,
    /// Of these, posts known to be deleted.
    pub deleted: u64,
    /// Of these, posts that only the stream has shown: no poll has proven yet that nothing is
    /// missing beside them.
    pub streamed: u64,
    /// The ID where coverage begins; `None` before the first post.
    pub covered_from: Option<String>,
    /// The ID where coverage ends, exclusive.
    pub covered_to: Option<String>,
    /// Every range that is not proven complete, in order. What lies between
    /// `covered_from` and `covered_to` and in none of them is complete.
    pub gaps: Vec<GapReport>,
    /// Lateness as measured.
    pub lateness: LatenessReport,
    /// What the source does now, and why.
    pub plan: Plan,
    /// What each rung found, the second look first.
    pub rungs: Vec<RungReport>,
    /// Sums since the source began.
    pub counters: Counters,
    /// Posts fetched for each post stored.
    pub fetched_per_post: Option<f64>,
    /// The throttle that leaves the least, if the upstream reported one.
    pub throttle: Option<driftline_core::answer::Throttle>,
    /// The error that the source stands at, or stood at last.
    pub last_error: Option<LastError>,
}

/// A range that is not proven complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GapReport {
    /// The lowest ID; `None` for the timeline's beginning.
    pub low: Option<String>,
    /// The ID that it ends below.
    pub high: String,
    /// The time in the lowest ID, where IDs carry time.
    pub low_ms: Option<i64>,
    /// The time in the highest ID, likewise.
    pub high_ms: Option<i64>,
    /// `open`, `history`, `provisional` or `unrecoverable`.
    pub kind: &'static str,
    /// For a provisional range, the rung that is to read it next; 0 is the
    /// second look.
    pub rung: Option<usize>,
}

/// Lateness as polling can know it: an interval a post.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatenessReport {
    /// Posts measured, older ones counted half.
    pub posts: u64,
    /// Posts whose ID was surely ahead of the server's time.
    pub ahead: u64,
    /// The largest lower bound, ms.
    pub longest_ms: i64,
    /// The newest ID's time less the server's time at the last read, ms.
    pub newest_ahead_ms: i64,
    /// Quantiles of the lower bounds: share and ms.
    pub at_least: Vec<(f64, i64)>,
    /// Quantiles of the upper bounds: share and ms.
    pub at_most: Vec<(f64, i64)>,
    /// The histogram of the upper bounds: upper edge of a bucket in ms, posts.
    pub histogram: Vec<(i64, u32)>,
}

/// What a rung did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RungReport {
    /// The age at which it reads, ms.
    pub age_ms: i64,
    /// What it found and skipped.
    #[serde(flatten)]
    pub found: driftline_core::timeline::Yield,
}

/// Makes the report of a source at this time, Unix ms.
pub fn report(
    source: &Source,
    machine: &Machine,
    counts: &Counts,
    abilities: Abilities,
    now_ms: i64,
) -> Report {
    let plan = machine.plan(&source.settings, abilities, now_ms);
    let ledger = machine.ledger();
    let id = |key: &Key| machine.scheme().map(|scheme| scheme.id(key).to_string());
    let gaps: Vec<GapReport> = ledger
        .gaps()
        .iter()
        .map(|gap| gap_report(machine, gap))
        .collect();
    let counters = *machine.counters();
    Report {
        name: source.name.clone(),
        upstream: source.upstream.clone(),
        timeline: source.timeline.clone(),
        complete: ledger.frontier().is_some() && gaps.iter().all(|gap| gap.kind == "provisional"),
        settled: ledger.frontier().is_some() && gaps.is_empty(),
        readable: source.readable,
        posts: counts.entries,
        deleted: counts.entries - counts.live,
        streamed: counts.streamed,
        covered_from: ledger.origin().and_then(|key| match key.is_lowest() {
            true => Some("the beginning".to_owned()),
            false => id(key),
        }),
        covered_to: ledger.frontier().and_then(id),
        gaps,
        lateness: lateness_report(machine),
        rungs: plan
            .ladder
            .rungs()
            .iter()
            .enumerate()
            .map(|(index, rung)| RungReport {
                age_ms: rung.age_ms,
                found: machine.yields().get(index).copied().unwrap_or_default(),
            })
            .collect(),
        plan,
        fetched_per_post: (counters.stored > 0)
            .then(|| counters.fetched as f64 / counters.stored as f64),
        counters,
        throttle: machine.throttles().tightest(now_ms),
        last_error: machine.last_error().cloned(),
    }
}

fn gap_report(machine: &Machine, gap: &Gap) -> GapReport {
    let scheme = machine.scheme();
    let text = |key: &Key| scheme.map_or_else(String::new, |scheme| scheme.id(key).to_string());
    let time_ms = |key: &Key| scheme.and_then(|scheme| scheme.time_ms(key));
    let (kind, rung) = match gap.kind {
        GapKind::Open { history: true, .. } => ("history", None),
        GapKind::Open { .. } => ("open", None),
        GapKind::Provisional { rung, .. } => ("provisional", Some(rung)),
        GapKind::Unrecoverable => ("unrecoverable", None),
    };
    GapReport {
        low: (!gap.low.is_lowest()).then(|| text(&gap.low)),
        high: text(&gap.high),
        low_ms: time_ms(&gap.low),
        high_ms: time_ms(&gap.high),
        kind,
        rung,
    }
}

fn lateness_report(machine: &Machine) -> LatenessReport {
    let lateness = machine.lateness();
    let quantiles = |histogram: &driftline_core::timeline::Histogram| {
        QUANTILES
            .iter()
            .filter_map(|&share| Some((share, histogram.quantile_ms(share)?)))
            .collect()
    };
    LatenessReport {
        posts: lateness.at_most.total(),
        ahead: lateness.ahead,
        longest_ms: lateness.longest_ms,
        newest_ahead_ms: lateness.newest_ahead_ms,
        at_least: quantiles(&lateness.at_least),
        at_most: quantiles(&lateness.at_most),
        histogram: lateness.at_most.buckets().collect(),
    }
}

const QUANTILES: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 1.0];
