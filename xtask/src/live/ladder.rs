//! When a trial's sources are read again, and when they are ready to be compared.

use serde_json::Value;

/// The ages at which posts are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ladder {
    /// One that ends within a trial's time.
    Short,
    /// Driftline's own, which takes a day.
    Default,
}

impl Ladder {
    /// The arguments of `driftline source add` for it.
    pub(super) fn settings(self) -> &'static [&'static str] {
        match self {
            Ladder::Short => &["--rung", "90s/10s"],
            Ladder::Default => &[],
        }
    }

    /// Whether a source is ready, by what `source verify` reports of it. On the short ladder it is
    /// settled. On the default one a poll has succeeded since `written_ms`, nothing is open, and
    /// nothing waits for its second look.
    pub(super) fn is_ready(self, report: &Value, written_ms: i64) -> bool {
        match self {
            Ladder::Short => report["settled"] == true,
            Ladder::Default => is_polled_since(report, written_ms) && !is_behind(report),
        }
    }

    /// The condition of a ready source.
    pub(super) fn ready(self) -> &'static str {
        match self {
            Ladder::Short => "settled",
            Ladder::Default => "read twice",
        }
    }
}

fn is_polled_since(report: &Value, written_ms: i64) -> bool {
    let last_ms = report["polls"]["last_ms"].as_i64();
    last_ms.is_some_and(|last_ms| last_ms > written_ms)
}

/// Whether something is not read yet, or waits for its second look.
fn is_behind(report: &Value) -> bool {
    let is_unread = |gap: &Value| gap["kind"] == "open" || gap["kind"] == "history";
    let waits = |gap: &Value| gap["kind"] == "provisional" && gap["rung"] == 0;
    let mut gaps = report["gaps"].as_array().into_iter().flatten();
    report["verdict"] == "catching_up" || gaps.any(|gap| is_unread(gap) || waits(gap))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_short_ladder_waits_until_a_source_is_settled() {
        let waiting = json!({ "settled": false, "polls": { "last_ms": 9 }, "gaps": [] });
        assert!(!Ladder::Short.is_ready(&waiting, 5));
        assert!(Ladder::Short.is_ready(&json!({ "settled": true }), 5));
    }

    #[test]
    fn the_default_ladder_waits_for_a_poll_and_for_the_second_look() {
        let report = |verdict: &str, last_ms: i64, kind: &str, rung: u64| {
            json!({
                "settled": false,
                "verdict": verdict,
                "polls": { "last_ms": last_ms },
                "gaps": [{ "kind": kind, "rung": rung }],
            })
        };
        let is_ready = |report| Ladder::Default.is_ready(&report, 5);
        assert!(is_ready(report("provisional", 9, "provisional", 1)));
        assert!(is_ready(report("gaps", 9, "unrecoverable", 0)));
        for unready in [
            report("provisional", 5, "provisional", 1),
            report("provisional", 9, "provisional", 0),
            report("gaps", 9, "open", 0),
            report("history", 9, "history", 0),
            report("catching_up", 9, "provisional", 1),
            json!({}),
        ] {
            assert!(!is_ready(unready));
        }
    }
}
