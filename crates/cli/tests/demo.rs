//! `demo`.
#![allow(clippy::unwrap_used)]

mod support;

use support::DataDir;

#[test]
fn driftline_misses_nothing_where_baseline_pollers_do() {
    let data_dir = DataDir::new();
    let result = data_dir.json(&["demo", "--for", "30s"]);
    let missed = |poller: &str| result[poller]["missed"].as_u64().unwrap();
    assert!(result["published"].as_u64() > Some(300), "{result}");
    assert_eq!(missed("driftline"), 0, "{result}");
    assert!(missed("naive") > 0, "{result}");
    assert!(missed("clamp") > 0, "{result}");
    for poller in ["naive", "clamp", "driftline"] {
        let number = |key: &str| result[poller][key].as_u64().unwrap();
        let published = result["published"].as_u64().unwrap();
        assert_eq!(number("stored") + number("missed"), published, "{result}");
        assert!(number("requests") > 20, "{result}");
        assert!(number("delay_p50_ms") <= number("delay_p99_ms"), "{result}");
    }
    let read = |key: &str| result["home"][key].as_u64();
    assert_eq!(
        (read("missing"), read("repeated")),
        (Some(0), Some(0)),
        "{result}"
    );
    assert!(
        read("read") > Some(250) && read("pages") > Some(5),
        "{result}"
    );
    let devices = &result["devices"];
    assert_eq!(devices["is_equal"], true, "{result}");
    assert_eq!(devices["conflicts"], 0, "{result}");
    assert!(devices["posts"].as_u64() > Some(250), "{result}");
    let known = |poller: &str| result["freshness"][poller].as_i64().unwrap();
    assert!(known("counts") > 500, "{result}");
    assert!(known("driftline") > known("naive"), "{result}");
}

#[test]
fn a_demo_too_short_for_its_last_rung_is_refused() {
    let ended = DataDir::new().run(&["demo", "--for", "5s"]);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.contains("at least 20s"), "{ended:?}");
}
