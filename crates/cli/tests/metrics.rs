//! `/metrics` serves the listed metrics and no others, in Prometheus' text form.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::{BTreeMap, HashSet},
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use driftline_runtime::metrics::{LabelValues, METRICS, Metric, MetricKind, Part};
use driftline_sim::{
    FaultKind, FaultsConfig, SpanMs, ThrottleRule, WorldConfig,
    http::{Clock, SimServer},
};
use support::{DataDir, Running, get, wait_for};

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

/// A server with all parts, and its upstream.
struct Mirror {
    sim: SimServer,
    data_dir: DataDir,
    base: String,
    _server: Running,
}

impl Mirror {
    async fn start() -> Self {
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
        let (server, base) = data_dir.serve(&["--allow-private"]);
        Self {
            sim,
            data_dir,
            base,
            _server: server,
        }
    }

    fn metrics(&self) -> String {
        self.data_dir.get(&format!("{}/metrics", self.base)).1
    }

    /// What is served once each listed metric has a series.
    fn complete_answer(&self) -> String {
        let url = self.sim.url();
        let add = ["source", "add", &url, "--no-check", "--every", "300ms"];
        self.data_dir.json(&add);
        let ids = format!("{}/api/v1/ids", self.base);
        assert_eq!(self.data_dir.post(&ids).0, 200);
        let mut missing = Vec::new();
        let mut text = String::new();
        let is_complete = support::soon(|| {
            text = self.metrics();
            let served = families(&text);
            check_all(&served);
            let names = METRICS.iter().map(|metric| metric.name);
            missing = names.filter(|name| !served.contains_key(*name)).collect();
            missing.is_empty()
        });
        assert!(is_complete, "not served: {missing:?}");
        text
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_listed_metric_is_served_and_no_other() {
    let mirror = Mirror::start().await;
    let served = families(&mirror.metrics());
    check_all(&served);
    for metric in METRICS {
        let (name, from_start) = (metric.name, is_from_start(metric));
        assert_eq!(served.contains_key(name), from_start, "{name}");
    }
    mirror.complete_answer();
}

/// Whether all values of its labels are listed.
fn is_from_start(metric: &Metric) -> bool {
    let mut labels = metric.labels.iter();
    labels.all(|label| !matches!(label.values, LabelValues::Open(_)))
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
        let is_served =
            [Part::IdService, Part::Process].contains(&metric.part) && is_from_start(metric);
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

/// Alerts, dashboard and `/metrics` fit together, says Prometheus' own tool: Debian's package
/// `prometheus`, which `cargo xtask setup` installs, has it.
#[tokio::test(flavor = "multi_thread")]
async fn alerts_and_dashboard_use_metrics_that_are_served() {
    let mirror = Mirror::start().await;
    let text = mirror.complete_answer();
    let served = families(&text);
    // A name is kept for one release because it was not a good one.
    let of_deprecated = |line: &str| names(line).next().is_some_and(is_deprecated);
    let kept = text.lines().filter(|line| !of_deprecated(line));
    let kept: String = kept.map(|line| format!("{line}\n")).collect();
    promtool(&["check", "metrics"], &kept);
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib");
    let alerts = contrib.join("prometheus/alerts.yml");
    let tests = contrib.join("prometheus/alerts.test.yml");
    promtool(&["check", "rules", alerts.to_str().unwrap()], "");
    promtool(&["test", "rules", tests.to_str().unwrap()], "");
    let alerts = std::fs::read_to_string(alerts).unwrap();
    let tests = std::fs::read_to_string(tests).unwrap();
    for alert in alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
    {
        for outcome in ["fires", "does not fire"] {
            assert!(
                tests.contains(&format!("- name: {alert} {outcome}\n")),
                "{alert} {outcome}"
            );
        }
    }

    let dashboard = std::fs::read_to_string(contrib.join("grafana/driftline.json")).unwrap();
    // A variable of that name is known where a dashboard is imported by hand, and nowhere else.
    assert!(!dashboard.contains("DS_PROMETHEUS"));
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert_eq!(dashboard["uid"], "driftline");
    assert_eq!(dashboard["templating"]["list"][0]["name"], "datasource");
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries: Vec<_> = targets
        .inspect(|target| assert_eq!(target["datasource"]["uid"], "${datasource}"))
        .map(|target| target["expr"].as_str().unwrap())
        .collect();
    assert!(queries.len() > 20, "{queries:?}");
    let rules: String = queries.iter().enumerate().fold(
        "groups:\n- name: dashboard\n  rules:\n".to_owned(),
        |rules, (number, query)| {
            let query = query
                .replace("$instance", ".*")
                .replace("$__rate_interval", "5m");
            assert!(!query.contains('$'), "a variable is left in {query}");
            format!("{rules}  - record: panel:{number}\n    expr: {query:?}\n")
        },
    );
    let file = mirror.data_dir.file("dashboard.yml", &rules);
    promtool(&["check", "rules", &file], "");
    for text in queries.into_iter().chain(alerts.lines()) {
        for name in names(text) {
            let is_served = served.iter().any(|(family, of)| {
                *family == name || of.series.iter().any(|(series, ..)| *series == name)
            });
            assert!(is_served, "{name} of {text:?} is not served");
            assert!(!is_deprecated(name), "{name} is deprecated");
        }
    }
}

fn is_deprecated(name: &str) -> bool {
    let metric = METRICS.iter().find(|metric| metric.name == name);
    metric.is_some_and(|metric| metric.help.starts_with("Deprecated: "))
}

/// The metrics' names in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("driftline_"))
}

/// Runs Prometheus' tool.
///
/// # Panics
/// If it is missing, fails or has anything to say.
fn promtool(arguments: &[&str], input: &str) {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool of Debian's package prometheus; `cargo xtask setup` installs it");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat();
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
}
