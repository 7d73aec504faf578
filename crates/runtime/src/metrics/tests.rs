use std::{collections::HashSet, fmt::Write as _, path::Path};

use super::{
    LabelValues, METRICS, Metric, MetricKind, POSTS_STORED, Part, REQUESTS,
    recorder::{begin, builder},
};

#[test]
fn names_follow_the_conventions_of_prometheus() {
    let names: HashSet<_> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), METRICS.len(), "a name is listed twice");
    for metric in METRICS {
        let (name, help) = (metric.name, metric.help);
        let words: Vec<_> = name.split('_').collect();
        let is_plain = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase());
        assert_eq!(words[0], "driftline", "{name}");
        assert!(words.iter().all(is_plain), "{name}");
        let is_counter = metric.kind == MetricKind::Counter;
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        for suffix in ["_count", "_sum", "_bucket"] {
            assert!(!name.ends_with(suffix), "{name}");
        }
        let is_info =
            matches!(metric.labels, [label] if matches!(label.values, LabelValues::Fixed(..)));
        assert_eq!(name.ends_with("_info"), is_info, "{name}");
        assert!(
            help.ends_with('.') && !help.contains("  "),
            "{name}: {help:?}"
        );
        if let MetricKind::Histogram(bounds) = metric.kind {
            assert!(name.ends_with("_seconds"), "{name}");
            assert!(bounds.is_sorted_by(|one, other| one < other), "{name}");
        }
        let is_reserved = |label: &str| ["le", "quantile", "job"].contains(&label);
        assert!(!metric.labels.iter().any(|label| is_reserved(label.name)));
        if let Some(used) = help.strip_prefix("Deprecated: use ") {
            assert!(names.contains(used.trim_end_matches('.')), "{name}: {help}");
            continue;
        }
        for unit in ["ms", "milliseconds", "us", "minutes", "hours", "days", "kb"] {
            assert!(!words.contains(&unit), "{name} is not in a base unit");
        }
    }
}

#[test]
fn series_of_the_parts_that_run_exist_from_the_start() {
    let recorder = builder().unwrap().build_recorder();
    let handle = recorder.handle();
    ::metrics::with_local_recorder(&recorder, || {
        begin(|part| part != Part::Refresh);
        POSTS_STORED.increment(3);
        REQUESTS.with(["poll"]).increment(2);
    });
    let text = handle.render();
    for line in [
        "# HELP driftline_posts_stored_total Posts that were stored as new entries of a source.",
        "driftline_posts_stored_total 3",
        "driftline_edits_total 0",
        "driftline_requests_total{purpose=\"poll\"} 2",
        "driftline_requests_total{purpose=\"look_up\"} 0",
        "driftline_stream_connected 0",
        "driftline_id_clock_offset_seconds NaN",
        "driftline_id_wait_seconds_bucket{le=\"0.0001\"} 0",
        "driftline_id_wait_seconds_bucket{le=\"+Inf\"} 0",
    ] {
        assert!(text.lines().any(|served| served == line), "{line}: {text}");
    }
    for absent in [
        "driftline_posts_hydrated_total",
        "driftline_throttled_total",
    ] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
}

#[test]
#[should_panic(expected = "is not a listed value of purpose")]
fn a_value_that_is_not_listed_is_noticed() {
    REQUESTS.with(["pool"]).increment(1);
}

#[test]
fn metrics_docs_are_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = page();
    if std::env::var_os("DRIFTLINE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).is_ok_and(|written| written == page),
        "docs/metrics.md is not current; write it with\n{COMMAND}"
    );
}

fn page() -> String {
    let mut page = INTRODUCTION.replace("COMMAND", COMMAND);
    let mut part = None;
    for metric in METRICS {
        if part.replace(metric.part) != Some(metric.part) {
            let title = match metric.part {
                Part::Process => "Process",
                Part::Store => "Store",
                Part::Sources => "Sources",
                Part::Refresh => "Refresh",
                Part::Sharing => "Sharing",
                Part::Credentials => "Credentials",
                Part::IdService => "ID service",
            };
            write!(page, "\n## {title}\n\n{HEADER}").unwrap();
        }
        page.push_str(&row(metric));
    }
    page
}

fn row(metric: &Metric) -> String {
    let (kind, buckets) = match metric.kind {
        MetricKind::Counter => ("counter", String::new()),
        MetricKind::Gauge => ("gauge", String::new()),
        MetricKind::Histogram(bounds) => {
            let bounds: Vec<_> = bounds.iter().map(ToString::to_string).collect();
            ("histogram", format!(" Buckets: {}.", bounds.join(", ")))
        }
    };
    let labels = metric.labels.iter().map(|label| {
        let values = match label.values {
            LabelValues::Closed(values) => format!("`{}`", values.join("`, `")),
            LabelValues::Fixed(_, text) | LabelValues::Open(text) => text.to_owned(),
        };
        format!("`{}`: {values}", label.name)
    });
    format!(
        "| `{}` | {kind} | {} | {} | {}{buckets} |\n",
        metric.name,
        metric.unit().map_or("", |unit| unit.as_str()),
        labels.collect::<Vec<_>>().join("; "),
        metric.help,
    )
}

const COMMAND: &str = "DRIFTLINE_WRITE_DOCS=1 cargo test -p driftline-runtime metrics_docs";
const INTRODUCTION: &str = "\
# Metrics

<!-- Made from crates/runtime/src/metrics/list.rs: COMMAND -->

`GET /metrics` of `driftline serve`, and of `driftline id serve --listen-http`, serves these
metrics in Prometheus' text form. `driftline serve` shows those of the ID service only if it
runs one, and `driftline id serve` no others.

All series exist from the start: at 0, or NaN for what is not known yet. Only a label that
takes any value begins a series with its first value. A renamed metric keeps its old name
for one release.
";
const HEADER: &str = "\
| metric | kind | unit | labels | meaning |
|---|---|---|---|---|
";
