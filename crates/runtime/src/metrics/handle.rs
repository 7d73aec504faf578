use std::time::Duration;

use ::metrics::{Label, SharedString};

use super::Metric;

/// A counter of the list, with this number of labels.
#[derive(Debug, Clone, Copy)]
pub struct Counter<const LABELS: usize = 0>(pub(super) &'static Metric);

/// A gauge of the list, with this number of labels.
#[derive(Debug, Clone, Copy)]
pub struct Gauge<const LABELS: usize = 0>(pub(super) &'static Metric);

/// A histogram of the list, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Histogram<const LABELS: usize = 0>(pub(super) &'static Metric);

impl<const LABELS: usize> Counter<LABELS> {
    /// The series with these label values, in the order of the list.
    pub fn with<V: Into<SharedString>>(self, values: [V; LABELS]) -> ::metrics::Counter {
        ::metrics::counter!(self.0.name, labels(self.0, values))
    }
}

impl Counter {
    /// Increases the counter.
    pub fn increment(self, by: u64) {
        ::metrics::counter!(self.0.name).increment(by);
    }
}

impl<const LABELS: usize> Gauge<LABELS> {
    /// The series with these label values, in the order of the list.
    pub fn with<V: Into<SharedString>>(self, values: [V; LABELS]) -> ::metrics::Gauge {
        ::metrics::gauge!(self.0.name, labels(self.0, values))
    }
}

impl Gauge {
    /// Sets the gauge.
    pub fn set(self, value: f64) {
        ::metrics::gauge!(self.0.name).set(value);
    }

    /// Increases the gauge.
    pub fn add(self, by: f64) {
        ::metrics::gauge!(self.0.name).increment(by);
    }
}

impl Histogram {
    /// Records a duration.
    pub fn record(self, passed: Duration) {
        ::metrics::histogram!(self.0.name).record(passed);
    }
}

fn labels<V: Into<SharedString>>(
    metric: &Metric,
    values: impl IntoIterator<Item = V>,
) -> Vec<Label> {
    let labels = metric.labels.iter().zip(values).map(|(label, value)| {
        let value = value.into();
        debug_assert!(
            label.allows(&value),
            "{value:?} is not a listed value of {} of {}",
            label.name,
            metric.name
        );
        Label::new(label.name, value)
    });
    labels.collect()
}
