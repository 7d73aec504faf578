//! The metrics of all parts: one list, typed handles to its series, and the recorder that serves it.
//!
//! A call site names a constant of the list (`POSTS_STORED.increment(3)`), so a metric that is not
//! listed does not compile. `docs/metrics.md` is made from the list.

mod handle;
mod list;
mod recorder;
#[cfg(test)]
mod tests;

use ::metrics::Unit;

pub use handle::{Counter, Gauge, Histogram};
pub use list::*;
pub use recorder::install;

/// A metric of the list.
#[derive(Debug)]
pub struct Metric {
    /// The part of Driftline that it shows.
    pub part: Part,
    /// The name, by Prometheus' conventions: it ends in the base unit, and in `_total` for a counter.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// The labels, in the order in which handles take their values.
    pub labels: &'static [MetricLabel],
    /// One sentence on what it shows.
    pub help: &'static str,
    /// The value of a gauge from the start: NaN for what is not known yet.
    pub start: f64,
}

/// What may run in one process without the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The process itself, whatever runs in it.
    Process,
    /// The store, its disk and its backups.
    Store,
    /// Sources, their requests and streams.
    Sources,
    /// The refresh of stored posts.
    Refresh,
    /// What processes on one store share.
    Sharing,
    /// Credentials and their quotas.
    Credentials,
    /// The ID service.
    IdService,
}

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It rises and falls.
    Gauge,
    /// A distribution, with the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

/// A label of a metric.
#[derive(Debug)]
pub struct MetricLabel {
    /// The name.
    pub name: &'static str,
    /// The values.
    pub values: LabelValues,
}

/// The values that a label takes.
#[derive(Debug)]
pub enum LabelValues {
    /// These alone: each has its series from the start.
    Closed(&'static [&'static str]),
    /// This alone, which the program was built with, described by the second text.
    Fixed(&'static str, &'static str),
    /// Any, described by this text: a series begins with its first value.
    Open(&'static str),
}

impl Metric {
    /// The unit, which the name states; `None` for counts and for what is 1 or 0.
    pub fn unit(&self) -> Option<Unit> {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        match name.rsplit('_').next() {
            Some("seconds") => Some(Unit::Seconds),
            Some("bytes") => Some(Unit::Bytes),
            _ => None,
        }
    }
}

impl MetricLabel {
    fn allows(&self, value: &str) -> bool {
        match self.values {
            LabelValues::Closed(values) => values.contains(&value),
            LabelValues::Fixed(only, _) => value == only,
            LabelValues::Open(_) => true,
        }
    }
}
