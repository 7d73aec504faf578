//! `export --honour-deletions`: what was exported of a post goes once the post is deleted.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
    time::Duration,
};

use driftline_sim::{
    Growth, SpanMs, WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use serde_json::{Value, json};
use support::{
    DataDir,
    exported::{manifest, rows},
    wait_for,
};

const CONFIG: &str = "[refresh]\nbuffer_ttl = \"200ms\"\n[refresh.ages]\n\"25h\" = \"1s\"\n";

/// A timeline that has fallen silent, whose posts are deleted one after the other from soon on.
async fn fading() -> SimServer {
    let config = ServerConfig {
        world: WorldConfig {
            publish_for_ms: Some(24_000),
            deleted_share: 0.4,
            deleted_after_ms: SpanMs::new(60_000, 61_000),
            growth: Some(Growth {
                half_life_ms: 30_000,
                ..Growth::default()
            }),
            ..WorldConfig::punctual(5.0)
        },
        history_ms: 25_000,
        ..ServerConfig::default()
    };
    SimServer::start(config, 7, Clock::Real).await.unwrap()
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Post ID, moment of deletion, and whether there is content, as DuckDB reads them.
fn as_duckdb_reads(dir: &Path, format: &str) -> BTreeMap<String, (bool, bool)> {
    const PROGRAM: &str = "
import sys, json, duckdb
rows = duckdb.sql(f\"select post_id, deleted_at is not null, coalesce(author, author_name, author_url, language, content, status) is not null or coalesce(sensitive, replies >= 0, false) from '{sys.argv[1]}/posts-*.{sys.argv[2]}'\").fetchall()
json.dump({str(a): [b, c] for a, b, c in rows}, sys.stdout)
";
    let python = std::env::var("DRIFTLINE_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(python)
        .args(["-c", PROGRAM])
        .arg(dir)
        .arg(format)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "the script failed (is duckdb there? `cargo xtask setup` installs it):\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_posts_lose_their_content_in_what_was_exported() {
    let sim = fading().await;
    let data_dir = DataDir::new();
    data_dir.file("driftline.toml", CONFIG);
    let (_server, _) = data_dir.serve(&["--allow-private"]);
    let url = sim.url();
    let mut add = vec!["source", "add", &url, "--name", "sim"];
    add.extend(["--backfill", "all", "--every", "300ms"]);
    data_dir.json(&add);
    wait_for("posts are there", || data_dir.export("sim").len() > 100);
    wait_for("posts are refreshed", || {
        let status = data_dir.json(&["refresh", "status"]);
        status["instances"][0]["since_start"]["outcomes"]["updated"].as_u64() > Some(150)
    });
    let folder = |format: &str| data_dir.folder().join(format);
    let export = |format: &str| {
        let out = folder(format);
        let mut command = vec!["export", "--out", out.to_str().unwrap()];
        command.extend(["--format", format, "--honour-deletions", "--rows", "40"]);
        if format == "jsonl" {
            command.extend(["--changes", "--history"]);
        }
        data_dir.json(&command)
    };
    for format in ["jsonl", "csv", "parquet"] {
        export(format);
    }
    let jsonl = folder("jsonl");
    let before: BTreeMap<String, Value> = rows(&jsonl, "posts")
        .into_iter()
        .filter(|row| !row["status"].is_null())
        .map(|row| (text(&row["post_id"]), row))
        .collect();
    let deleted = || {
        let rows = data_dir.export("sim").into_iter();
        rows.filter(|row| !row["deleted_at_ms"].is_null())
            .map(|row| text(&row["post_id"]))
            .filter(|id| before.contains_key(id))
            .collect::<BTreeSet<String>>()
    };
    wait_for("posts are deleted", || deleted().len() > 8);
    let known = deleted();
    kills_leave_the_old_state_or_the_new(&data_dir, &jsonl, &known);
    for format in ["jsonl", "csv", "parquet"] {
        let old = names(&folder(format));
        let reply = export(format);
        let path = folder(format);
        let redacted: u64 = reply["files"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|file| file["redacted"].as_u64())
            .sum();
        assert!(redacted >= known.len() as u64, "{format}: {reply}");
        // The old files are gone, and their names are not used again.
        assert_ne!(old, names(&path));
        let listed = reply["files"].as_array().unwrap().iter();
        let mut listed: BTreeSet<String> = listed.map(|file| text(&file["name"])).collect();
        listed.insert("manifest.json".to_owned());
        assert_eq!(listed, names(&path), "{format}");
        let checked = data_dir.json(&["export", "check", path.to_str().unwrap()]);
        assert_eq!(checked["faults"], json!([]), "{format}");
    }
    let is_known = |row: &&Value| known.contains(&text(&row["post_id"]));
    let after = rows(&jsonl, "posts");
    for row in after.iter().filter(is_known) {
        let mut expected = before[&text(&row["post_id"])].clone();
        assert!(row["deleted_at_ms"].as_i64() > expected["created_at_ms"].as_i64());
        expected["status"] = Value::Null;
        expected["deleted_at_ms"] = row["deleted_at_ms"].clone();
        assert_eq!(*row, expected);
    }
    assert_eq!(after.iter().filter(is_known).count(), known.len());
    // Others are as they were.
    let mut untouched = 0;
    for row in after.iter().filter(|row| row["deleted_at_ms"].is_null()) {
        let id = text(&row["post_id"]);
        assert_eq!(before.get(&id).unwrap_or(row), row);
        untouched += 1;
    }
    assert!(untouched > 20);
    for row in rows(&jsonl, "changes").iter().filter(is_known) {
        assert!(row["status"].is_null(), "{row}");
    }
    let histories = rows(&jsonl, "history");
    assert!(
        histories
            .iter()
            .any(|history| known.contains(&text(&history["id"])))
    );
    for history in histories {
        if known.contains(&text(&history["id"])) {
            assert_eq!(history["versions"], json!([]));
            assert_eq!(history["counts"], json!([]));
        }
    }
    for format in ["csv", "parquet"] {
        let read = as_duckdb_reads(&folder(format), format);
        assert_eq!(read.len(), after.len());
        for (id, (is_deleted, has_content)) in read {
            assert_eq!(is_deleted, !has_content, "{format} {id}");
            assert!(is_deleted || !known.contains(&id), "{format} {id}");
        }
    }
    // Another export tells what deleted posts held before only where it is asked for.
    for (name, is_asked) in [("plain", None), ("whole", Some("--deleted"))] {
        let out = folder(name);
        let mut command = vec!["export", "--out", out.to_str().unwrap(), "--history"];
        command.extend(is_asked);
        data_dir.json(&command);
        let told = rows(&out, "history");
        let of_known = |history: &Value| known.contains(&text(&history["id"]));
        assert_eq!(told.iter().any(of_known), is_asked.is_some(), "{name}");
        assert!(!told.iter().all(of_known), "{name}");
    }
    // What a kill leaves behind goes with the next export; other files stay.
    fs::write(jsonl.join("posts-80000.jsonl"), "old").unwrap();
    fs::write(jsonl.join("posts-90000.jsonl.part"), "half").unwrap();
    fs::write(jsonl.join("posts-notes.txt"), "mine").unwrap();
    export("jsonl");
    let left = names(&jsonl);
    assert!(left.contains("posts-notes.txt"), "{left:?}");
    assert!(!left.contains("posts-80000.jsonl") && !left.contains("posts-90000.jsonl.part"));
}

/// Kills exports that go on from copies of a folder, each later than the one before.
fn kills_leave_the_old_state_or_the_new(data_dir: &DataDir, of: &Path, known: &BTreeSet<String>) {
    let old = manifest(of);
    for place in 0..10_u64 {
        let out = data_dir.folder().join(format!("killed-{place}"));
        let copied = Command::new("cp").arg("-r").arg(of).arg(&out).status();
        assert!(copied.unwrap().success());
        let path = out.to_str().unwrap();
        let mut export = vec![
            "export",
            "--out",
            path,
            "--honour-deletions",
            "--rows",
            "40",
        ];
        export.extend(["--changes", "--history"]);
        let running = data_dir.start(&export);
        std::thread::sleep(Duration::from_millis(20 + place * 25));
        running.kill();
        let checked = data_dir.json(&["export", "check", path]);
        assert_eq!(checked["faults"], json!([]), "{place}");
        let has_content =
            |row: &Value| known.contains(&text(&row["post_id"])) && !row["status"].is_null();
        let is_new = manifest(&out) != old;
        let still = rows(&out, "posts")
            .iter()
            .filter(|row| has_content(row))
            .count();
        assert_eq!(still, if is_new { 0 } else { known.len() }, "{place}");
        data_dir.json(&export);
        assert_eq!(
            rows(&out, "posts")
                .iter()
                .filter(|row| has_content(row))
                .count(),
            0
        );
        let listed = manifest(&out);
        let listed = listed["files"].as_array().unwrap().iter();
        let mut listed: BTreeSet<String> = listed.map(|file| text(&file["name"])).collect();
        listed.insert("manifest.json".to_owned());
        assert_eq!(names(&out), listed, "{place}");
    }
}

#[test]
fn what_deleted_posts_held_is_not_both_taken_out_and_added() {
    let data_dir = DataDir::new();
    for arguments in [
        &["export", "--out", "a", "--deleted", "--honour-deletions"][..],
        &["export", "sim", "--honour-deletions"],
    ] {
        let refused = data_dir.run(arguments);
        assert_eq!(refused.status, 2, "{refused:?}");
    }
}
