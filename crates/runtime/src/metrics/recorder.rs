use ::metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use super::{LabelValues, METRICS, Metric, MetricKind, Part};

/// Records this process's metrics from now on. All metrics are described. The series of components
/// that run here exist from the start, unless their labels take any value.
///
/// # Errors
/// [`BuildError`] if a recorder is already installed.
pub fn install(runs_here: impl Fn(Part) -> bool) -> Result<PrometheusHandle, BuildError> {
    let handle = builder()?.install_recorder()?;
    begin(runs_here);
    Ok(handle)
}

/// A recorder with the buckets of each histogram.
pub(super) fn builder() -> Result<PrometheusBuilder, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for metric in METRICS {
        if let MetricKind::Histogram(bounds) = metric.kind {
            let name = Matcher::Full(metric.name.to_owned());
            builder = builder.set_buckets_for_metric(name, bounds)?;
        }
    }
    Ok(builder)
}

/// Describes all metrics to the current recorder and begins their series.
pub(super) fn begin(runs_here: impl Fn(Part) -> bool) {
    for metric in METRICS {
        describe(metric);
        if metric.part == Part::Process || runs_here(metric.part) {
            for labels in first_series(metric) {
                begin_series(metric, labels);
            }
        }
    }
}

fn describe(metric: &Metric) {
    // The recorder ignores units, because names contain them.
    match metric.kind {
        MetricKind::Counter => describe_counter!(metric.name, metric.help),
        MetricKind::Gauge => describe_gauge!(metric.name, metric.help),
        MetricKind::Histogram(_) => describe_histogram!(metric.name, metric.help),
    }
}

fn begin_series(metric: &Metric, labels: Vec<::metrics::Label>) {
    match metric.kind {
        MetricKind::Counter => counter!(metric.name, labels).increment(0),
        MetricKind::Gauge => gauge!(metric.name, labels).set(metric.start),
        MetricKind::Histogram(_) => drop(histogram!(metric.name, labels)),
    }
}

/// The labels of each series that exists from the start: one series for each listed value. No
/// metric has two labels with listed values.
fn first_series(metric: &Metric) -> Vec<Vec<::metrics::Label>> {
    match metric.labels {
        [] => vec![Vec::new()],
        [label] if let LabelValues::Closed(values) = label.values => {
            let first = |value| vec![::metrics::Label::from_static_parts(label.name, value)];
            values.iter().copied().map(first).collect()
        }
        [label] if let LabelValues::Fixed(value, _) = label.values => {
            vec![vec![::metrics::Label::from_static_parts(label.name, value)]]
        }
        _ => Vec::new(),
    }
}
