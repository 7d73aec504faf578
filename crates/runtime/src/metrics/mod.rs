//! The metrics of all components: one list, typed handles to its series, and the recorder that
//! serves it.
//!
//! Code names a constant of the list (`POSTS_STORED.increment(3)`), so a metric that is not listed
//! does not compile. `docs/metrics.md` is generated from the list.

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
    /// The component of Driftline that the metric describes.
    pub part: Part,
    /// The name, by Prometheus' conventions. It ends in the base unit, and in `_total` for a
    /// counter.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// The labels, in the order in which handles take their values.
    pub labels: &'static [MetricLabel],
    /// The meaning, in one sentence.
    pub help: &'static str,
    /// The initial value of a gauge; NaN if it is not known yet.
    pub start: f64,
}

/// A component that may run in a process without the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The process itself, with any components.
    Process,
    /// The store, its disk and its backups.
    Store,
    /// Sources, their requests and streams.
    Sources,
    /// The refresh of stored posts.
    Refresh,
    /// The division of work among the processes of one store.
    Sharing,
    /// Credentials and their quotas.
    Credentials,
    /// The ID service.
    IdService,
}

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// A value that only grows.
    Counter,
    /// A value that rises and falls.
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

/// The possible values of a label.
#[derive(Debug)]
pub enum LabelValues {
    /// Only these values. Each has a series from the start.
    Closed(&'static [&'static str]),
    /// Only this value, which is set at build time. The second text describes it.
    Fixed(&'static str, &'static str),
    /// Any value. The text describes the values, and each has a series from its first use.
    Open(&'static str),
}

impl Metric {
    /// The unit, which the name contains; `None` for counts and for gauges of 1 or 0.
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
