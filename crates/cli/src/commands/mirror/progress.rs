//! How a mirror stands, while it runs.

use std::time::{Duration, Instant};

use driftline_core::timeline::GapKind;
use driftline_server::{Session, now_ms};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{duration::show_ms, output};

/// One line that changes, on a terminal; elsewhere a line now and then.
pub struct Progress {
    bar: Option<ProgressBar>,
    told: Option<Instant>,
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
        Self { bar, told: None }
    }

    /// Shows how the session stands.
    pub fn tell(&mut self, session: &Session, settling: bool) {
        let between = match self.bar {
            Some(_) => Duration::from_millis(200),
            None => Duration::from_secs(5),
        };
        if self.told.is_some_and(|told| told.elapsed() < between) {
            return;
        }
        self.told = Some(Instant::now());
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
    let count = |wanted: fn(&GapKind) -> bool| {
        let gaps = machine.ledger().gaps().iter();
        gaps.filter(|gap| wanted(&gap.kind)).count()
    };
    let open = count(|kind| matches!(kind, GapKind::Open { .. }));
    let provisional = count(|kind| matches!(kind, GapKind::Provisional { .. }));
    let quota = machine.throttles().tightest(now).map_or_else(
        || "no quota told".to_owned(),
        |throttle| format!("{} of {} requests left", throttle.remaining, throttle.limit),
    );
    let error = match machine.last_error() {
        Some(error) if !error.over => format!(", standing at {}", error.kind),
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
