//! The completeness report as a reply.

use driftline_core::{
    answer::Throttle,
    timeline::{Counters, Ladder, LastError, Plan, Probe, Proof},
};
use driftline_mirror::{CompletenessReport, GapReport, LatenessReport, RungReport};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// The report on a source's completeness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceReport(
    /// The report.
    #[serde(deserialize_with = "ReportFields::deserialize")]
    pub CompletenessReport,
);

// The reports' own crates only write them. The compiler compares these fields with theirs.

#[derive(Deserialize)]
#[serde(remote = "CompletenessReport")]
struct ReportFields {
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
    #[serde(deserialize_with = "gaps")]
    gaps: Vec<GapReport>,
    lateness: LatenessReport,
    clock_lead_ms: Option<i64>,
    #[serde(deserialize_with = "PlanFields::deserialize")]
    plan: Plan,
    rungs: Vec<RungReport>,
    counters: Counters,
    fetched_per_post: Option<f64>,
    throttle: Option<Throttle>,
    last_error: Option<LastError>,
}

#[derive(Deserialize)]
#[serde(remote = "GapReport")]
struct GapFields {
    low: Option<String>,
    high: String,
    low_ms: Option<i64>,
    high_ms: Option<i64>,
    #[serde(deserialize_with = "gap_kind")]
    kind: Name,
    rung: Option<usize>,
    read_age_ms: Option<i64>,
}

#[derive(Deserialize)]
#[serde(remote = "Plan")]
struct PlanFields {
    overlap_ms: i64,
    every_ms: i64,
    ladder: Ladder,
    #[serde(deserialize_with = "probes")]
    probes: Vec<Probe>,
    #[serde(deserialize_with = "ProofFields::deserialize")]
    proof: Proof,
    fetched_per_post: f64,
    delay_ms: Option<f64>,
    reasons: Vec<String>,
}

#[derive(Deserialize)]
#[serde(remote = "Probe")]
struct ProbeFields {
    age_ms: i64,
    share: f64,
}

#[derive(Deserialize)]
#[serde(remote = "Proof")]
struct ProofFields {
    is_enough: bool,
    above_ms: i64,
    up_to_ms: i64,
    page_fulls: u64,
    bound: f64,
}

fn gaps<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<GapReport>, D::Error> {
    #[derive(Deserialize)]
    struct Item(#[serde(deserialize_with = "GapFields::deserialize")] GapReport);
    let items = Vec::<Item>::deserialize(from)?;
    Ok(items.into_iter().map(|Item(gap)| gap).collect())
}

fn probes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Probe>, D::Error> {
    #[derive(Deserialize)]
    struct Item(#[serde(deserialize_with = "ProbeFields::deserialize")] Probe);
    let items = Vec::<Item>::deserialize(from)?;
    Ok(items.into_iter().map(|Item(probe)| probe).collect())
}

fn gap_kind<'de, D: Deserializer<'de>>(from: D) -> Result<Name, D::Error> {
    let name = String::deserialize(from)?;
    let mut known = GAP_KINDS.into_iter();
    known
        .find(|known| *known == name)
        .ok_or_else(|| D::Error::unknown_variant(&name, &GAP_KINDS))
}

/// Serde would borrow a plain reference from its input.
type Name = &'static str;

const GAP_KINDS: [Name; 5] = [
    "open",
    "history",
    "provisional",
    "passed_over",
    "unrecoverable",
];

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    fn report(kind: &str) -> Value {
        let gap = json!({
            "low": null, "high": "9", "low_ms": null, "high_ms": 9, "kind": kind, "rung": 1,
            "read_age_ms": 5,
        });
        let rung = json!({
            "age_ms": 15_000, "looks": 1, "found": 2, "edited": 3, "deleted": 4,
            "skipped_quota": 5, "unreachable": 6,
        });
        let plan = json!({
            "overlap_ms": 1, "every_ms": 2, "probes": [{ "age_ms": 3, "share": 0.5 }],
            "ladder": {
                "rungs": [{ "age_ms": 4, "period_ms": 5 }], "complete_ms": 6, "is_probed": true,
            },
            "proof": {
                "is_enough": true, "above_ms": 7, "up_to_ms": 8, "page_fulls": 9, "bound": 0.25,
            },
            "fetched_per_post": 2.5, "delay_ms": null, "reasons": ["few posts"],
        });
        json!({
            "name": "a", "upstream": "https://a.example", "timeline": "public", "complete": false,
            "settled": false, "readable": true, "posts": 3, "deleted": 2, "streamed": 1,
            "covered_from": "1", "covered_to": null, "gaps": [gap], "plan": plan, "rungs": [rung],
            "lateness": {
                "posts": 1, "ahead": 2, "longest_ms": 3, "newest_ahead_ms": 4,
                "quantiles": [[0.5, 10]], "bins": [[10, 0.5]],
            },
            "clock_lead_ms": -3, "counters": to_value(Counters::default()).unwrap(),
            "fetched_per_post": 1.5,
            "throttle": { "limit": 300, "remaining": 299, "reset_at_ms": 1 },
            "last_error": { "kind": "throttled", "message": "429", "at_ms": 1, "over": false },
        })
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        for kind in GAP_KINDS {
            let written = report(kind);
            let read: SourceReport = from_value(written.clone()).unwrap();
            assert_eq!(read.0.gaps[0].kind, kind);
            assert_eq!(to_value(&read).unwrap(), written);
        }
        assert!(from_value::<SourceReport>(report("new")).is_err());
    }
}
