//! The progress of a mirror, while it runs.

use std::time::Instant;

use driftline_core::timeline::GapKind;
use driftline_mirror::Session;
use driftline_runtime::now_ms;
use indicatif::ProgressBar;

use crate::{duration::show_ms, output};

/// One line that changes, on a terminal; elsewhere a line now and then.
pub struct Progress {
    bar: ProgressBar,
    shown_at: Option<Instant>,
}

impl Progress {
    /// Begins to show.
    pub fn start() -> Self {
        let bar = output::bar(None, "{spinner} {elapsed_precise} {wide_msg}");
        bar.enable_steady_tick(output::REDRAWN);
        Self {
            bar,
            shown_at: None,
        }
    }

    /// Shows the progress of the session.
    pub fn show(&mut self, session: &Session, settling: bool) {
        let is_shown = |at: Instant| at.elapsed() < output::between_progress(&self.bar);
        if self.shown_at.is_some_and(is_shown) {
            return;
        }
        self.shown_at = Some(Instant::now());
        let text = text(session, settling);
        if self.bar.is_hidden() {
            output::note(&text);
        }
        self.bar.set_message(text);
    }

    /// Ends showing.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
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
