//! `/metrics` serves the listed metrics and no others, in Prometheus' text form.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, HashSet};

use driftline_runtime::metrics::{LabelValues, METRICS, Metric, MetricKind, Part};
use driftline_sim::{
    FaultKind, FaultsConfig, SpanMs, ThrottleRule, WorldConfig,
    http::{Clock, SimServer},
};
use support::{DataDir, get, post, wait_for};

/// What is served of one metric.
#[derive(Debug, Default)]
struct Family {
    help: String,
    kind: String,
    /// The name with its suffix, the labels and the value of each series.
    series: Vec<(String, Labels, f64)>,
}

type Labels = Vec<(String, String)>;

/// Parses Prometheus' text form.
///
/// # Panics
/// If it is not well-formed.
fn families(text: &str) -> BTreeMap<String, Family> {
    assert!(text.ends_with('\n'), "the last line ends");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    let mut seen = HashSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect(line);
            let family = families.entry(name.to_owned()).or_default();
            assert!(family.help.is_empty() && family.series.is_empty(), "{line}");
            help.clone_into(&mut family.help);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect(line);
            let family = families.entry(name.to_owned()).or_default();
            assert!(family.kind.is_empty() && family.series.is_empty(), "{line}");
            kind.clone_into(&mut family.kind);
            name.clone_into(&mut current);
        } else {
            let (series, value) = line.rsplit_once(' ').expect(line);
            assert!(seen.insert(series), "twice: {line}");
            let (name, labels) = match series.split_once('{') {
                Some((name, labels)) => (name, parse_labels(labels, line)),
                None => (series, Labels::new()),
            };
            let family = families.get_mut(&current).expect(line);
            let suffix = name.strip_prefix(&*current).expect(line);
            let of_histogram = ["_bucket", "_sum", "_count"].contains(&suffix);
            assert_eq!(of_histogram, family.kind == "histogram", "{line}");
            assert!(of_histogram || suffix.is_empty(), "{line}");
            let value = value.parse().expect(line);
            family.series.push((name.to_owned(), labels, value));
        }
    }
    families
}

/// Labels up to the closing brace. No value of this test needs an escape.
fn parse_labels(text: &str, line: &str) -> Labels {
    let text = text.strip_suffix("\"}").expect(line);
    let pairs = text.split("\",").map(|pair| {
        let (name, value) = pair.split_once("=\"").expect(line);
        assert!(!value.contains(['"', '\\']), "{line}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
        (name.to_owned(), value.to_owned())
    });
    pairs.collect()
}

/// Holds what is served of a metric against the list.
fn check(metric: &Metric, family: &Family) {
    let name = metric.name;
    assert_eq!(family.help, metric.help, "{name}");
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram(_) => "histogram",
    };
    assert_eq!(family.kind, kind, "{name}");
    if let MetricKind::Histogram(bounds) = metric.kind {
        let of = |suffix: &str| -> Vec<f64> {
            let series = family.series.iter();
            let series = series.filter(|(name, ..)| name.ends_with(suffix));
            series.map(|series| series.2).collect()
        };
        let buckets = of("_bucket");
        assert_eq!(buckets.len(), bounds.len() + 1, "{name}");
        assert!(buckets.is_sorted(), "{name}: {buckets:?}");
        assert_eq!(buckets.last(), of("_count").first(), "{name}");
        return;
    }
    for (_, labels, _) in &family.series {
        let names: Vec<_> = labels.iter().map(|(name, _)| name.as_str()).collect();
        let listed: Vec<_> = metric.labels.iter().map(|label| label.name).collect();
        assert_eq!(names, listed, "{name}");
    }
}

fn check_all(served: &BTreeMap<String, Family>) {
    for (name, family) in served {
        let metric = METRICS.iter().find(|metric| metric.name == name);
        check(metric.expect("each metric is listed"), family);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_listed_metric_is_served_and_no_other() {
    let faults = FaultsConfig {
        throttles: vec![ThrottleRule::all(10_000, 60_000)],
        shares: [(FaultKind::Throttled, 0.2)].into(),
        throttled_reset_ms: SpanMs::new(500, 1_000),
        ..FaultsConfig::default()
    };
    let world = WorldConfig {
        faults,
        ..WorldConfig::punctual(20.0)
    };
    let sim = SimServer::start(world, 1, Clock::Real).await.unwrap();
    let data_dir = DataDir::new();
    data_dir.file(
        "driftline.toml",
        "[id]\nserve = true\nnode = 5\nlisten_thrift = \"none\"\n\
         [refresh]\nbuffer_ttl = \"200ms\"\n[refresh.ages]\n\"25h\" = \"2s\"\n",
    );
    let (_server, base) = data_dir.serve(&["--allow-private"]);
    let metrics = || get(&format!("{base}/metrics")).1;
    let served = families(&metrics());
    check_all(&served);
    for metric in METRICS {
        let (name, from_start) = (metric.name, is_from_start(metric));
        assert_eq!(served.contains_key(name), from_start, "{name}");
    }

    let url = sim.url();
    let add = ["source", "add", &url, "--no-check", "--every", "300ms"];
    data_dir.json(&add);
    assert_eq!(post(&format!("{base}/api/v1/ids")).0, 200);
    let mut missing = Vec::new();
    let is_complete = support::soon(|| {
        let served = families(&metrics());
        check_all(&served);
        let names = METRICS.iter().map(|metric| metric.name);
        missing = names.filter(|name| !served.contains_key(*name)).collect();
        missing.is_empty()
    });
    assert!(is_complete, "not served: {missing:?}");
}

/// Whether all values of its labels are listed.
fn is_from_start(metric: &Metric) -> bool {
    let mut labels = metric.labels.iter();
    labels.all(|label| matches!(label.values, LabelValues::Closed(_)))
}

#[test]
fn the_id_service_serves_its_own_metrics_alone() {
    let data_dir = DataDir::new();
    let mut arguments = vec!["--json", "id", "serve", "--listen-thrift", "none"];
    arguments.extend(["--listen-http", "127.0.0.1:0", "--node", "5"]);
    let mut service = data_dir.start(&arguments);
    let announced: serde_json::Value = serde_json::from_str(&service.line()).unwrap();
    let url = format!("{}/metrics", announced["http"].as_str().unwrap());
    let served = families(&get(&url).1);
    check_all(&served);
    for metric in METRICS {
        let is_served = metric.part == Part::IdService && is_from_start(metric);
        assert_eq!(
            served.contains_key(metric.name),
            is_served,
            "{}",
            metric.name
        );
    }
    wait_for("the watcher has looked", || {
        let served = families(&get(&url).1);
        let value = |name: &str| served[name].series[0].2;
        let left_s = value("driftline_id_layout_left_seconds");
        let days = value("driftline_id_layout_days_left");
        (left_s / 86_400.0 - days).abs() < 0.001 && value("driftline_id_lease_held") == 1.0
    });
}
