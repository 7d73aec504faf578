//! The progress of a mirror, while it runs.

use std::time::{Duration, Instant};

use driftline_core::timeline::GapKind;
use driftline_mirror::Session;
use driftline_runtime::now_ms;
use indicatif::{ProgressBar, ProgressStyle};

use crate::{duration::show_ms, output};

/// One line that changes, on a terminal; elsewhere a line now and then.
pub struct Progress {
    bar: Option<ProgressBar>,
    shown_at: Option<Instant>,
}

impl Progress {
    /// Begins to show.
    pub fn start() -> Self {
        let bar = output::is_watched().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) =
                ProgressStyle::with_template("{spinner} {elapsed_precise} {wide_msg}")
            {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self {
            bar,
            shown_at: None,
        }
    }

    /// Shows the progress of the session.
    pub fn show(&mut self, session: &Session, settling: bool) {
        let between = match self.bar {
            Some(_) => Duration::from_millis(200),
            None => Duration::from_secs(5),
        };
        if self.shown_at.is_some_and(|at| at.elapsed() < between) {
            return;
        }
        self.shown_at = Some(Instant::now());
        let text = text(session, settling);
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None => output::note(&text),
        }
    }

    /// Ends showing.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
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
    let error = match machine.last_error() {
        Some(error) if !error.over => format!(", failing with {}", error.kind),
        _ => String::new(),
    };
    let settling = if settling { "settling: " } else { "" };
    format!(
        "{settling}{} posts, {:.1}/s, {open} open gaps, {provisional} ranges to read again, overlap {}, {quota}{error}",
        machine.counters().stored,
        machine.rate_per_s(),
        show_ms(plan.overlap_ms),
    )
}
