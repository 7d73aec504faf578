//! The progress of commands that take long: a line that changes on a terminal, elsewhere a line now and
//! then. All look alike: the time, a bar where the end is known, what is done, its rate of the last 10 s,
//! and the time left.

use std::{
    collections::VecDeque,
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::{io::Errno, termios::tcgetwinsize};

use crate::{duration::show_ms, output, shown::count};

/// The progress of a command.
pub struct Progress {
    bar: ProgressBar,
    end: End,
    begun: Instant,
    recent: RecentRate,
    shown_at: Option<Instant>,
}

/// Where a command ends.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// It is not known.
    Unknown,
    /// When so many are done.
    Count(u64),
    /// When about so many are done.
    Estimate(u64),
    /// After this time.
    Time(Duration),
}

impl Progress {
    /// Begins to show.
    pub fn start(end: End) -> Self {
        let bar = bar(end, &template(end, columns()));
        bar.enable_steady_tick(REDRAWN);
        Self {
            bar,
            end,
            begun: Instant::now(),
            recent: RecentRate::default(),
            shown_at: None,
        }
    }

    /// Sets the number of things after which it ends, as far as it is known by now.
    pub fn set_estimate(&mut self, total: u64) {
        self.end = End::Estimate(total);
        self.bar.set_length(total);
    }

    /// Shows how many of these things are done, if it is time for that, and what else is known: the
    /// parts that a narrow terminal needs least come last, and are left out there.
    pub fn show(&mut self, done: u64, thing: &str, parts: impl FnOnce() -> Vec<String>) {
        self.recent.add(Instant::now(), done);
        let is_shown = |at: Instant| at.elapsed() < between(&self.bar);
        if self.shown_at.is_some_and(is_shown) {
            return;
        }
        let is_first = self.shown_at.replace(Instant::now()).is_none();
        let elapsed = self.begun.elapsed();
        let mut all = vec![amount(self.end, done, thing)];
        let per_s = self.recent.per_s();
        all.push(rate(per_s));
        all.extend(left(self.end, done, per_s, elapsed));
        all.extend(parts());
        match self.end {
            End::Count(_) | End::Estimate(_) => self.bar.set_position(done),
            End::Time(_) => self.bar.set_position(ms(elapsed)),
            End::Unknown => {}
        }
        // A command that ends at once has nothing to say of its progress.
        if self.bar.is_hidden() && !is_first {
            output::note(&format!("{}: {}", clock(self.end, elapsed), all.join(", ")));
        }
        // A terminal may have been resized.
        let columns = columns();
        if let Ok(style) = ProgressStyle::with_template(&template(self.end, columns)) {
            self.bar.set_style(style);
        }
        let room = columns.saturating_sub(prefix_columns(self.end, columns));
        self.bar.set_prefix(clock(self.end, elapsed));
        self.bar.set_message(fit(&all, room));
    }

    /// Ends showing.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A command that fails leaves no bar behind.
impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The wait for something whose progress is not known, shown until it is dropped.
pub struct Waiting {
    bar: ProgressBar,
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// Begins to show what is done, in words.
    pub fn start(what: &'static str) -> Self {
        let bar = bar(End::Unknown, "{spinner} {elapsed} {wide_msg}");
        bar.set_message(what);
        bar.enable_steady_tick(REDRAWN);
        let (end, ended) = mpsc::channel();
        let begun = Instant::now();
        // The work may hold up every other thread of the runtime.
        let thread = bar.is_hidden().then(|| {
            thread::spawn(move || {
                while ended.recv_timeout(PRINTED) == Err(RecvTimeoutError::Timeout) {
                    let elapsed = clock(End::Unknown, begun.elapsed());
                    output::note(&format!("{elapsed}: {what}"));
                }
            })
        });
        Self {
            bar,
            end: Some(end),
            thread,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A bar, or a spinner where the end is not known; hidden unless a person watches.
pub fn bar(end: End, template: &str) -> ProgressBar {
    let bar = match end {
        End::Unknown => ProgressBar::new_spinner(),
        End::Count(total) | End::Estimate(total) => ProgressBar::new(total),
        End::Time(time) => ProgressBar::new(ms(time)),
    };
    if output::is_quiet() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// The time between two messages of progress: below a hidden bar, each is a line of its own.
pub fn between(bar: &ProgressBar) -> Duration {
    match bar.is_hidden() {
        true => PRINTED,
        false => REDRAWN,
    }
}

/// How many a second, over the last 10 s.
#[derive(Debug, Default)]
struct RecentRate(VecDeque<(Instant, u64)>);

impl RecentRate {
    fn add(&mut self, now: Instant, done: u64) {
        let samples = &mut self.0;
        // Every step of a fast command would keep too many.
        let last_but_one = samples.len().checked_sub(2).and_then(|at| samples.get(at));
        if last_but_one.is_some_and(|(at, _)| now - *at < SAMPLED) {
            samples.pop_back();
        }
        samples.push_back((now, done));
        while samples.get(1).is_some_and(|(at, _)| now - *at >= RECENT) {
            samples.pop_front();
        }
    }

    /// `None` before there is anything to compare.
    fn per_s(&self) -> Option<f64> {
        let ((from, before), (to, now)) = (self.0.front()?, self.0.back()?);
        let seconds = (*to - *from).as_secs_f64();
        (seconds >= SAMPLED.as_secs_f64()).then(|| now.saturating_sub(*before) as f64 / seconds)
    }
}

fn rate(per_s: Option<f64>) -> String {
    match per_s {
        None => "-/s".to_owned(),
        Some(per_s) if per_s >= 100.0 => format!("{per_s:.0}/s"),
        Some(per_s) => format!("{per_s:.1}/s"),
    }
}

fn left(end: End, done: u64, per_s: Option<f64>, elapsed: Duration) -> Option<String> {
    let left = match end {
        End::Unknown => return None,
        End::Time(time) => time.checked_sub(elapsed)?,
        End::Count(total) | End::Estimate(total) => {
            let per_s = per_s.filter(|per_s| *per_s > 0.0)?;
            let undone = total.checked_sub(done).filter(|undone| *undone > 0)?;
            Duration::try_from_secs_f64((undone as f64 / per_s).ceil()).ok()?
        }
    };
    let about = match end {
        End::Count(_) | End::Estimate(_) => "about ",
        End::Unknown | End::Time(_) => "",
    };
    Some(format!("{about}{} left", seconds(left)))
}

/// The number of things that are done, and of all where that is known.
fn amount(end: End, done: u64, thing: &str) -> String {
    match end {
        // The time left says that an estimate is one.
        End::Count(total) | End::Estimate(total) => format!("{done} of {}", count(total, thing)),
        End::Unknown | End::Time(_) => count(done, thing),
    }
}

/// The time that has passed, and all of it where that is known.
fn clock(end: End, elapsed: Duration) -> String {
    match end {
        End::Time(time) => format!("{} of {}", seconds(elapsed), seconds(time)),
        End::Unknown | End::Count(_) | End::Estimate(_) => seconds(elapsed),
    }
}

/// A span to the second, as durations are written everywhere.
fn seconds(span: Duration) -> String {
    show_ms(i64::try_from(span.as_secs() * 1_000).unwrap_or(i64::MAX))
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// As many of the parts, in their order, as have room; the first always, cut by the bar.
fn fit(parts: &[String], columns: usize) -> String {
    let mut text = String::new();
    for (number, part) in parts.iter().enumerate() {
        let width = text.chars().count() + 2 + part.chars().count();
        if number > 0 && width > columns {
            break;
        }
        if number > 0 {
            text.push_str(", ");
        }
        text.push_str(part);
    }
    text
}

fn template(end: End, columns: usize) -> String {
    let clock = clock_columns(end);
    match (end, columns >= WIDE) {
        (End::Unknown, _) => format!("{{spinner}} {{prefix:{clock}}} {{wide_msg}}"),
        (_, false) => format!("{{prefix:{clock}}} {{wide_msg}}"),
        (_, true) => format!("{{prefix:{clock}}} [{{bar:20}}] {{wide_msg}}"),
    }
}

/// The columns before the message.
fn prefix_columns(end: End, columns: usize) -> usize {
    let bar = match (end, columns >= WIDE) {
        (End::Unknown, _) => 2,
        (_, false) => 0,
        (_, true) => 23,
    };
    clock_columns(end) + 1 + bar
}

/// Room for the time, so that nothing moves when it grows.
fn clock_columns(end: End) -> usize {
    match end {
        End::Time(time) => 2 * seconds(time).len().max(3) + 4,
        End::Unknown | End::Count(_) | End::Estimate(_) => 6,
    }
}

/// The width of the terminal that progress is shown on.
fn columns() -> usize {
    let size: Result<_, Errno> = tcgetwinsize(std::io::stderr());
    match size {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => 80,
    }
}

/// The time between two drawings of a bar.
const REDRAWN: Duration = Duration::from_millis(200);
/// The time between two lines in a pipe.
const PRINTED: Duration = Duration::from_secs(10);
/// What a rate is of.
const RECENT: Duration = Duration::from_secs(10);
const SAMPLED: Duration = Duration::from_millis(500);
/// Where a bar has room.
const WIDE: usize = 72;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_ten_seconds() {
        let begun = Instant::now();
        let mut recent = RecentRate::default();
        assert_eq!(recent.per_s(), None);
        let mut done = 0;
        // 100 a second for a minute, then 10 a second for 12 s, in steps of 100 ms.
        for step in 0..=720 {
            recent.add(begun + Duration::from_millis(step * 100), done);
            done += if step < 600 { 10 } else { 1 };
        }
        let per_s = recent.per_s().unwrap();
        assert!((9.5..11.5).contains(&per_s), "{per_s}");
        assert!(recent.0.len() < 30, "{}", recent.0.len());
        assert_eq!(rate(Some(per_s)).len(), 6);
    }

    #[test]
    fn what_a_narrow_terminal_needs_least_is_left_out() {
        let parts = ["1234 posts", "2.5/s", "2 gaps", "no quota reported"].map(str::to_owned);
        assert_eq!(fit(&parts, 80), parts.join(", "));
        assert_eq!(fit(&parts, 26), "1234 posts, 2.5/s, 2 gaps");
        assert_eq!(fit(&parts, 5), "1234 posts");
    }

    #[test]
    fn an_estimate_has_room_on_80_columns() {
        let end = End::Estimate(20_000);
        let shown = |end, done, per_s| {
            let parts = [
                amount(end, done, "object"),
                rate(Some(per_s)),
                left(end, done, Some(per_s), Duration::from_secs(2)).unwrap(),
            ];
            fit(&parts, 80 - prefix_columns(end, 80))
        };
        let expected = "12000 of 20000 objects, 9000/s, about 1s left";
        assert_eq!(shown(end, 12_000, 9_000.0), expected);
        let expected = "100000 of 1000000 objects, 15000/s, about 1m left";
        assert_eq!(shown(End::Estimate(1_000_000), 100_000, 15_000.0), expected);
        assert_eq!(amount(End::Unknown, 12_000, "object"), "12000 objects");
        assert_eq!(amount(End::Count(3), 1, "hour"), "1 of 3 hours");
        // More came than was expected.
        assert_eq!(left(end, 20_010, Some(1.0), Duration::ZERO), None);
    }

    #[test]
    fn the_time_left_follows_from_the_end() {
        let elapsed = Duration::from_secs(20);
        let of = |end, per_s| left(end, 40, per_s, elapsed);
        assert_eq!(of(End::Unknown, Some(2.0)), None);
        assert_eq!(of(End::Count(100), None), None);
        assert_eq!(of(End::Count(100), Some(0.0)), None);
        let in_30_s = Some("about 30s left".to_owned());
        assert_eq!(of(End::Count(100), Some(2.0)), in_30_s);
        let minute = End::Time(Duration::from_secs(60));
        assert_eq!(of(minute, Some(2.0)), Some("40s left".to_owned()));
        assert_eq!(of(End::Time(elapsed / 2), None), None);
        assert_eq!(clock(minute, elapsed), "20s of 1m");
        for columns in [60, 80, 132] {
            let prefix = prefix_columns(minute, columns);
            assert!(prefix + 30 < columns, "{prefix} of {columns}");
        }
    }
}
