use driftline_core::{quota::Unit, timeline::Proof};
use driftline_mirror::{RangeCounts, SourceState, Verdict};
use driftline_server::admin::{
    CredentialRow, IdServiceStatus, NodeRow, ProcessStatus, QuotaLimit, RefreshLoad,
};

use super::*;

const NOW_MS: i64 = 1_760_000_000_000;
const NARROW: usize = 79;
const WIDE: usize = 131;

fn source(name: &str, state: SourceState) -> SourceStatus {
    SourceStatus {
        name: name.to_owned(),
        state,
        state_text: state.name().to_owned(),
        wait: None,
        verdict: Verdict::Provisional,
        posts_a_minute: 62.14,
        delay_ms: Some(1_234),
        lateness_ms: Some(4_100),
        longest_lateness_ms: Some(61_000),
        proof: Some(Proof {
            is_enough: false,
            above_ms: 15_000,
            up_to_ms: 900_000,
            page_fulls: 700,
            bound: 1.0 / 1_234.4,
        }),
        ranges: RangeCounts {
            provisional: 3,
            ..RangeCounts::default()
        },
        unreadable: 0,
        last_poll_ms: Some(NOW_MS - 1_200),
    }
}

fn node(name: &str, state: NodeState) -> NodeRow {
    NodeRow {
        name: name.to_owned(),
        state,
        share: 1,
        draining: false,
        sources: 2,
        buckets: 8,
        refused_sources: 0,
        since_ms: NOW_MS - 2_040_000,
        seen_ms: NOW_MS,
        seen_ago_ms: 0,
        version: "0.1.0".to_owned(),
    }
}

fn limit(scope: &str, remaining: u32) -> QuotaLimit {
    QuotaLimit {
        scope: scope.to_owned(),
        unit: Unit::Requests,
        limit: 300,
        remaining,
        reset_at_ms: NOW_MS + 252_000,
        used_by_others: 0,
    }
}

fn credential(name: &str, limits: Vec<QuotaLimit>) -> CredentialRow {
    CredentialRow {
        name: name.to_owned(),
        instance: Some("https://mastodon.example".to_owned()),
        api: None,
        token: "none".to_owned(),
        monthly_posts: None,
        state: "in use".to_owned(),
        reason: None,
        until_ms: None,
        limits,
    }
}

fn load(instance: &str) -> RefreshLoad {
    RefreshLoad {
        instance: instance.to_owned(),
        requests: Some(1_204),
        mean_posts_a_request: Some(17.26),
        max_posts_a_request: 20,
        overdue: 38,
        has_more: false,
        oldest_overdue_ms: Some(95_400),
        without_credential: false,
        failure: None,
    }
}

/// All that can be shown, with names that are too long.
fn overview() -> Overview {
    let failing = SourceStatus {
        state_text: format!("failing: {}", "the server does not answer ".repeat(5)),
        posts_a_minute: 0.0,
        delay_ms: None,
        lateness_ms: None,
        longest_lateness_ms: None,
        proof: None,
        ranges: RangeCounts {
            open: 2,
            unrecoverable: 1,
            ..RangeCounts::default()
        },
        unreadable: 1,
        ..source(
            "a-very-long-name.of-a-server.example-home",
            SourceState::Failing,
        )
    };
    let instances = vec![
        load("https://mastodon.example"),
        RefreshLoad {
            mean_posts_a_request: None,
            overdue: 10_000,
            has_more: true,
            oldest_overdue_ms: Some(187_000_000),
            without_credential: true,
            ..load(&format!("https://{}.example", "long.".repeat(14)))
        },
    ];
    Overview {
        running: true,
        store: StoreOverview {
            database: "driftline.db".to_owned(),
            bytes: Some(1_288_490_189),
            wal_bytes: Some(14_680_064),
            disk_free_bytes: Some(41_017_137_561),
            disk_bytes: Some(270_582_939_648),
        },
        mirror: MirrorStatus {
            private_sources: 0,
            low_disk: None,
            now_ms: NOW_MS,
            process: Some(ProcessStatus {
                command: "serve".to_owned(),
                pid: 4711,
                version: "0.1.0".to_owned(),
                since_ms: NOW_MS - 2_040_000,
                node: Some("own".to_owned()),
            }),
            nodes: vec![
                node("own", NodeState::Active),
                node("other", NodeState::Active),
                node("lost", NodeState::Vanished),
                node("ended", NodeState::Left),
            ],
            sources: vec![
                source("mastodon.example", SourceState::Reading),
                failing,
                source("tagged", SourceState::CannotBeProven),
            ],
            refreshing: true,
            instances,
            credentials: vec![
                credential(
                    "example",
                    vec![limit("timelines", 287), limit("statuses", 12)],
                ),
                credential("spare", vec![]),
            ],
            ids: Some(IdServiceStatus {
                layout: "twitter".to_owned(),
                node: 5,
                window_until_ms: NOW_MS + 9_540,
            }),
            postgresql_bytes: None,
            followers: Some(1),
        },
    }
}

fn shown(of: &Overview, columns: usize) -> Vec<String> {
    let lines = status(
        of,
        Room {
            columns,
            rows: None,
        },
    );
    for line in &lines {
        assert!(line.chars().count() <= columns, "{line}");
    }
    lines
}

#[test]
fn the_screen_fits_80_columns() {
    let found = shown(&overview(), NARROW).join("\n");
    assert_eq!(found, include_str!("narrow.txt").trim_end(), "\n{found}");
}

#[test]
fn the_screen_fits_132_columns_and_shows_more_there() {
    let found = shown(&overview(), WIDE).join("\n");
    assert_eq!(found, include_str!("wide.txt").trim_end(), "\n{found}");
}

#[test]
fn sources_without_trouble_are_left_out_of_a_low_window_first() {
    let mut of = overview();
    let quiet = (0..50).map(|n| source(&format!("quiet-{n}"), SourceState::Quiet));
    of.mirror.sources.splice(0..0, quiet);
    for rows in [12, 24, 40] {
        let room = Room {
            columns: NARROW,
            rows: Some(rows),
        };
        assert!(status(&of, room).len() <= rows);
    }
    let room = Room {
        columns: NARROW,
        rows: Some(40),
    };
    let found = status(&of, room).join("\n");
    assert!(found.contains("\na-very-long-name"), "{found}");
    assert!(
        found.contains("more sources; `driftline source list`"),
        "{found}"
    );
    assert!(!found.contains("in a taller window"), "{found}");
}

#[test]
fn without_a_process_it_says_that_nothing_runs() {
    let mut of = overview();
    of.mirror.process = None;
    of.mirror.ids = None;
    of.mirror.followers = None;
    of.mirror.nodes.retain(|node| node.name == "other");
    let found = shown(&of, NARROW);
    assert_eq!(
        found[1],
        "process  nothing runs here: `driftline serve` reads the sources"
    );
    assert_eq!(found[3], "work     1 process elsewhere shares it");
    assert_eq!(found[4], "");
    of.mirror.nodes.clear();
    of.mirror.sources.clear();
    of.mirror.instances.clear();
    of.mirror.credentials.clear();
    let found = shown(&of, NARROW);
    assert_eq!(
        found[3..],
        ["", "no sources yet; `driftline source add URL` adds one"]
    );
}

#[test]
fn durations_have_two_units_at_most() {
    let shown = [0, 834, 1_234, 15_600, 754_900, 12_345_678, 187_000_000].map(short);
    let expected = [
        "0ms", "834ms", "1s200ms", "15s", "12m34s", "3h25m", "2days 3h",
    ];
    assert_eq!(shown, expected.map(|text| text.replace(' ', "")));
}

#[test]
fn text_is_wrapped_below_its_title_and_moves_no_cursor() {
    let mut lines = Vec::new();
    wrap(&mut lines, "title: ", "one two\u{1b}[2J three\nfour", 16);
    assert_eq!(lines, ["title: one two", "       [2J three", "       four"]);
}
