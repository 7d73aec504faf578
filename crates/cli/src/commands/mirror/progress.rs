//! The progress of a mirror, while it runs.

use driftline_core::timeline::GapKind;
use driftline_mirror::Session;
use driftline_runtime::now_ms;

use crate::{duration::show_ms, output};

/// Shows the progress of a session, on a terminal or in a pipe.
pub struct Progress(output::Progress);

impl Progress {
    /// Begins to show.
    pub fn start() -> Self {
        let template = "{spinner} {elapsed_precise} {wide_msg}";
        Self(output::Progress::start(template, None))
    }

    /// Shows the progress of the session.
    pub fn show(&mut self, session: &Session, settling: bool) {
        self.0.show(|_| text(session, settling));
    }

    /// Ends showing.
    pub fn finish(&self) {
        self.0.finish();
    }
}

fn text(session: &Session, settling: bool) -> String {
    let (machine, now) = (session.machine(), now_ms());
    let plan = machine.plan(&session.source().settings, session.abilities(), now);
    let count = |is_counted: fn(&GapKind) -> bool| {
        let gaps = machine.ledger().gaps().iter();
        gaps.filter(|gap| is_counted(&gap.kind)).count()
    };
    let open = count(|kind| matches!(kind, GapKind::Open { .. }));
    let provisional = count(|kind| matches!(kind, GapKind::Provisional(_)));
    let quota = machine.quota().tightest.map_or_else(
        || "no quota reported".to_owned(),
        |throttle| format!("{} of {} requests left", throttle.remaining, throttle.limit),
    );
    let error = machine.ongoing_error();
    let error = error.map_or_else(String::new, |error| {
        format!(", failing with {}", error.kind)
    });
    let settling = if settling { "settling: " } else { "" };
    format!(
        "{settling}{} posts, {:.1}/s, {open} open gaps, {provisional} ranges to read again, overlap {}, {quota}{error}",
        machine.counters().stored,
        machine.rate_per_s(),
        show_ms(plan.overlap_ms),
    )
}
