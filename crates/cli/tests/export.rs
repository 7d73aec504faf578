//! `export` into a folder: files that others read, a manifest that proves them, and what came since.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, Stdio},
};

use driftline_sim::{
    SpanMs, WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use serde_json::{Value, json};
use support::{
    DataDir, Ended,
    exported::{files, manifest, rows},
    lines,
    quiet::quiet,
    wait_for,
};

/// Mirrors a quiet timeline.
async fn mirrored(data_dir: &DataDir) -> SimServer {
    let server = quiet(20.0, 1).await;
    data_dir.mirror(&server.url(), "sim");
    server
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The ID, the moment of creation and the content of each row, as Python reads them.
fn as_python_reads(program: &str, dir: &Path) -> BTreeSet<Vec<String>> {
    let python = std::env::var("DRIFTLINE_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(python)
        .args(["-c", program])
        .arg(dir)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "the script failed (are pyarrow and duckdb there? `cargo xtask setup` installs them):\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

const WITH_PYARROW: &str = "
import sys, json, glob, pyarrow.parquet as pq
table = pq.read_table(sorted(glob.glob(sys.argv[1] + '/posts-*.parquet')))
assert str(table.schema.field('created_at').type) == 'timestamp[ms, tz=UTC]', table.schema
json.dump([[row['upstream_id'], str(int(row['created_at'].timestamp() * 1000 + 0.5)), row['content']]
           for row in table.to_pylist()], sys.stdout)
";

const WITH_DUCKDB: &str = "
import sys, json, duckdb
kind = 'parquet' if len(sys.argv) < 3 else sys.argv[2]
rows = duckdb.sql(f\"select upstream_id, epoch_ms(created_at), content from '{sys.argv[1]}/posts-*.{kind}'\").fetchall()
json.dump([[str(a), str(b), c] for a, b, c in rows], sys.stdout)
";

#[tokio::test(flavor = "multi_thread")]
async fn others_read_what_is_exported() {
    let data_dir = DataDir::new();
    let _server = mirrored(&data_dir).await;
    let rows = data_dir.export("sim");
    assert!(rows.len() > 300);
    let expected: BTreeSet<Vec<String>> = rows
        .iter()
        .map(|row| {
            let content = text(&row["status"]["content"]);
            vec![
                text(&row["upstream_id"]),
                row["created_at_ms"].to_string(),
                content,
            ]
        })
        .collect();
    let out = data_dir.folder().join("parquet");
    let path = out.to_str().unwrap();
    let wrote = data_dir.json(&[
        "export", "--out", path, "--format", "parquet", "--rows", "150",
    ]);
    assert!(files(&out, "posts").len() > 2, "{wrote}");
    assert_eq!(as_python_reads(WITH_PYARROW, &out), expected);
    assert_eq!(as_python_reads(WITH_DUCKDB, &out), expected);
    // The statement of completeness stands beside it.
    assert_eq!(wrote["sources"][0]["name"], "sim");
    assert!(
        wrote["sources"][0]["report"]["posts"].as_u64() > Some(300),
        "{wrote}"
    );
    let out = data_dir.folder().join("csv");
    data_dir.json(&["export", "--out", out.to_str().unwrap(), "--format", "csv"]);
    let csv = WITH_DUCKDB.replace("'parquet' if", "'csv' if");
    assert_eq!(as_python_reads(&csv, &out), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_goes_on_where_it_was_and_proves_itself() {
    let data_dir = DataDir::new();
    let server = mirrored(&data_dir).await;
    let out = data_dir.folder().join("archive");
    let path = out.to_str().unwrap().to_owned();
    let export = ["export", "--out", &path, "--changes", "--history"];
    data_dir.json(&export);
    let first = manifest(&out);
    data_dir.json(&["export", "check", &path]);
    // Nothing came.
    data_dir.json(&export);
    assert_eq!(manifest(&out)["files"], first["files"]);
    // What a killed export leaves is no part of it.
    fs::write(out.join("posts-00002.jsonl.part"), "half").unwrap();
    let other = quiet(20.0, 1).await;
    data_dir.mirror(&other.url(), "other");
    data_dir.json(&export);
    let mut exported: Vec<String> = Vec::new();
    for file in files(&out, "posts") {
        let rows = lines(&fs::read_to_string(file).unwrap());
        exported.extend(
            rows.iter()
                .map(|row| format!("{} {}", text(&row["source"]), text(&row["id"]))),
        );
    }
    let mut expected: Vec<String> = Vec::new();
    for name in ["sim", "other"] {
        let rows = data_dir.export(name);
        expected.extend(
            rows.iter()
                .map(|row| format!("{name} {}", text(&row["id"]))),
        );
    }
    exported.sort();
    expected.sort();
    assert_eq!(exported, expected);
    assert_eq!(
        data_dir.json(&["export", "check", &path])["faults"],
        json!([])
    );
    // One at a time.
    let held = fs::File::open(&out).unwrap();
    held.lock().unwrap();
    let refused = data_dir.run(&export);
    assert!(refused.stderr.contains("another export"), "{refused:?}");
    drop(held);
    data_dir.json(&export);
    // Other options are another export.
    let refused = data_dir.run(&["export", "--out", &path]);
    assert_eq!(refused.status, 2, "{refused:?}");
    // One bit.
    let file = files(&out, "posts").remove(0);
    let mut bytes = fs::read(&file).unwrap();
    bytes[100] ^= 1;
    fs::write(&file, bytes).unwrap();
    let ended = data_dir.run(&["export", "check", &path]);
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(ended.stdout.contains("SHA-256"), "{ended:?}");
    drop(server);
}

/// The last row of each post.
fn by_id(rows: Vec<Value>) -> BTreeMap<String, Value> {
    let rows = rows.into_iter().map(|row| (text(&row["id"]), row));
    rows.collect()
}

/// An archive that was begun while posts were written, edited and deleted says after its next
/// export what is stored: its posts, each with its last change.
#[tokio::test(flavor = "multi_thread")]
async fn exports_among_edits_and_deletions_replay_to_what_is_stored() {
    let config = ServerConfig {
        world: WorldConfig {
            publish_for_ms: Some(4_000),
            edited_share: 0.7,
            edited_after_ms: SpanMs::new(100, 900),
            deleted_share: 0.1,
            deleted_after_ms: SpanMs::new(100, 900),
            ..WorldConfig::punctual(60.0)
        },
        ..ServerConfig::default()
    };
    let upstream = SimServer::start(config, 1, Clock::Real).await.unwrap();
    let data_dir = DataDir::new();
    let (mut server, _) = data_dir.serve(&["--allow-private"]);
    let url = upstream.url();
    let add = ["source", "add", &url, "--name", "sim", "--every", "100ms"];
    data_dir.json(&[&add[..], &["--second-look", "1s"]].concat());
    let export = |number: usize| {
        let path = data_dir.folder().join(format!("archive-{number}"));
        let text = path.to_str().unwrap();
        data_dir.json(&["export", "--out", text, "--changes", "--rows", "10"]);
        data_dir.json(&["export", "check", text]);
        path
    };
    let mut begun = 0;
    wait_for("many posts are edited", || {
        export(begun);
        export(begun / 2);
        begun += 1;
        let rows = data_dir.export("sim");
        let edited = rows.iter().filter(|row| !row["edited_at_ms"].is_null());
        begun > 3 && edited.count() > 50
    });
    // The last is one of its own, after all others.
    for number in 0..=begun {
        let (mut archive, mut stored) = Default::default();
        wait_for("nothing changes while it is exported", || {
            stored = by_id(data_dir.export("sim"));
            archive = export(number);
            by_id(data_dir.export("sim")) == stored
        });
        let mut replayed = by_id(rows(&archive, "posts"));
        let posts = replayed.len();
        replayed.extend(by_id(rows(&archive, "changes")));
        assert_eq!(replayed.len(), posts, "changes of posts without a row");
        for (id, row) in &stored {
            for member in ["status", "deleted_at_ms", "edited_at_ms"] {
                assert_eq!(
                    replayed[id][member], row[member],
                    "archive {number} of {begun}, {id}: {member}"
                );
            }
        }
    }
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn times_bound_an_export() {
    let data_dir = DataDir::new();
    let _server = mirrored(&data_dir).await;
    let rows = data_dir.export("sim");
    let middle = rows[rows.len() / 2]["created_at_ms"].as_i64().unwrap();
    let time = jiff_text(middle);
    let part = |bound: &str| {
        let ended = data_dir.run(&["export", "sim", "--by", "written", bound, &time]);
        assert_eq!(ended.status, 0, "{ended:?}");
        lines(&ended.stdout)
    };
    let (before, after) = (part("--until"), part("--since"));
    assert_eq!(before.len() + after.len(), rows.len());
    assert!(
        !before.is_empty()
            && after
                .iter()
                .all(|row| row["created_at_ms"].as_i64() >= Some(middle))
    );
    let wrong = data_dir.run(&["export", "sim", "--since", "noon"]);
    assert_eq!(wrong.status, 2, "{wrong:?}");
    // Who reads it may end early.
    let mut child = data_dir.command(&["export", "sim"]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    drop(child.stdout.take());
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.status, &*ended.stderr), (0, ""));
    let none = data_dir.run(&["export", "sim", "--until", "1999-12-31"]);
    assert_eq!((none.status, &*none.stdout), (0, ""), "{none:?}");
    let csv = data_dir.run(&["export", "sim", "--format", "csv"]).stdout;
    assert!(csv.starts_with("event,source,arrival,"), "{}", &csv[..60]);
    let refused = data_dir.run(&["export", "sim", "--format", "parquet"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("--out"), "{refused:?}");
}

/// A time by RFC 3339.
fn jiff_text(unix_ms: i64) -> String {
    let seconds = unix_ms.div_euclid(1_000);
    let output = Command::new("date")
        .args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%S"])
        .output()
        .unwrap();
    let second = String::from_utf8(output.stdout).unwrap();
    format!("{}.{:03}Z", second.trim(), unix_ms.rem_euclid(1_000))
}
