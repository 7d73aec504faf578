//! The progress of a mirror, while it runs.

use driftline_core::timeline::GapKind;
use driftline_mirror::Session;
use driftline_runtime::now_ms;

use crate::{
    duration::{duration, show_ms},
    progress::{self, End},
    shown::count,
};

/// Shows the progress of a session, on a terminal or in a pipe.
pub struct Progress {
    shown: progress::Progress,
    /// Posts that were stored before.
    stored_before: u64,
    /// When settling ends at the latest, Unix ms.
    settled_at_ms: Option<i64>,
}

impl Progress {
    /// Begins to show a session that is to end at `at_ms`, Unix ms, and settles then for so long at most.
    pub fn start(session: &Session, at_ms: Option<i64>, settling_ms: i64) -> Self {
        let end = at_ms.map_or(End::Unknown, |at_ms| {
            // The store took a part of the first second.
            let left_ms = at_ms.saturating_sub(now_ms()).saturating_add(999);
            End::Time(duration(left_ms / 1_000 * 1_000))
        });
        Self {
            shown: progress::Progress::start(end),
            stored_before: session.machine().counters().stored,
            settled_at_ms: at_ms.map(|at_ms| at_ms.saturating_add(settling_ms)),
        }
    }

    /// Shows the progress of the session.
    pub fn show(&mut self, session: &Session, settling: bool) {
        let stored = session.machine().counters().stored;
        let stored = stored.saturating_sub(self.stored_before);
        let until_ms = self.settled_at_ms.filter(|_| settling);
        self.shown.show(stored, "post", || parts(session, until_ms));
    }

    /// Ends showing.
    pub fn finish(&self) {
        self.shown.finish();
    }
}

fn parts(session: &Session, settling_until_ms: Option<i64>) -> Vec<String> {
    let (machine, now) = (session.machine(), now_ms());
    let plan = machine.plan(&session.source().settings, session.abilities(), now);
    let number = |is_counted: fn(&GapKind) -> bool| {
        let gaps = machine.ledger().gaps().iter();
        gaps.filter(|gap| is_counted(&gap.kind)).count() as u64
    };
    let open = number(|kind| matches!(kind, GapKind::Open { .. }));
    let provisional = number(|kind| matches!(kind, GapKind::Provisional(_)));
    let mut parts = Vec::new();
    if let Some(until_ms) = settling_until_ms {
        let left_s = until_ms.saturating_sub(now).max(0) / 1_000;
        parts.push(format!("settling, {left_s}s at most"));
    }
    if session.low_disk().is_some() {
        parts.push("pausing: the disk is nearly full".to_owned());
    }
    if let Some(error) = machine.ongoing_error() {
        parts.push(format!("failing with {}", error.kind));
    }
    if open > 0 {
        parts.push(count(open, "open gap"));
    }
    if provisional > 0 {
        parts.push(format!("{} to read again", count(provisional, "range")));
    }
    if let Some(throttle) = machine.quota().tightest {
        let requests = count(throttle.limit.into(), "request");
        parts.push(format!("{} of {requests} left", throttle.remaining));
    }
    parts.push(format!("overlap {}", show_ms(plan.overlap_ms)));
    parts
}
