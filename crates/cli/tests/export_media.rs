//! `export --media`: attachments as lines, and as files that prove themselves.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use driftline_sim::http::SimServer;
use serde_json::{Value, json};
use support::{DataDir, exported::rows, quiet::quiet};

/// A server before a simulated one, whose posts have attachments. Its thread ends with the test's process.
struct MediaServer {
    url: String,
    /// The attachments that were requested.
    requests: Arc<Mutex<Vec<String>>>,
    /// Whether what was missing is there.
    is_healed: Arc<AtomicBool>,
    /// Whether it wants to be left alone.
    is_busy: Arc<AtomicBool>,
}

impl MediaServer {
    fn before(behind: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let is_healed = Arc::new(AtomicBool::new(false));
        let is_busy = Arc::new(AtomicBool::new(false));
        let server = Self {
            url: url.clone(),
            requests: Arc::clone(&requests),
            is_healed: Arc::clone(&is_healed),
            is_busy: Arc::clone(&is_busy),
        };
        let behind = behind.to_owned();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (behind, url) = (behind.clone(), url.clone());
                let (requests, is_healed) = (Arc::clone(&requests), Arc::clone(&is_healed));
                let is_busy = Arc::clone(&is_busy);
                thread::spawn(move || {
                    answer(stream, &behind, &url, &requests, [&is_healed, &is_busy])
                });
            }
        });
        server
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

const PICTURE: &[u8] = b"\x89PNG a picture";

fn answer(
    mut stream: TcpStream,
    behind: &str,
    url: &str,
    requests: &Mutex<Vec<String>>,
    [is_healed, is_busy]: [&AtomicBool; 2],
) -> Option<()> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        request.extend(byte);
    }
    let request = String::from_utf8(request).ok()?;
    let path = request.split(' ').nth(1)?.to_owned();
    let (status, kind, body) = if let Some(name) = path.strip_prefix("/files/") {
        requests.lock().unwrap().push(name.to_owned());
        match name {
            _ if is_busy.load(Relaxed) => (429, "text/plain", b"later".to_vec()),
            "missing.jpg" if !is_healed.load(Relaxed) => (404, "text/plain", b"no".to_vec()),
            "missing.jpg" => (200, "image/jpeg; x=1", b"a photograph".to_vec()),
            "large.mp4" => (200, "video/mp4", vec![7; 50_000]),
            "typeless.ogv" => (200, "application/octet-stream", b"a film".to_vec()),
            _ => (200, "image/png", PICTURE.to_vec()),
        }
    } else {
        let (status, body) = support::get(&format!("{behind}{path}"));
        let body = with_media(&body, url).into_bytes();
        (status, "application/json", body)
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body).ok()
}

/// A page whose posts have attachments, each post one.
fn with_media(body: &str, url: &str) -> String {
    let Ok(Value::Array(mut items)) = serde_json::from_str(body) else {
        return body.to_owned();
    };
    for item in &mut items {
        let Some(id) = item["id"].as_str().map(str::to_owned) else {
            continue;
        };
        let digits: u32 = id.bytes().map(u32::from).sum();
        let address = match digits % 6 {
            // The same file under two addresses.
            0 => format!("{url}/files/a.png"),
            1 => format!("{url}/files/b.png"),
            2 => format!("{url}/files/missing.jpg"),
            3 => format!("{url}/files/large.mp4"),
            4 => format!("{url}/files/typeless.ogv"),
            // What others must not reach through us.
            _ => "http://127.0.0.1:9/private.png".to_owned(),
        };
        item["media_attachments"] = json!([{
            "id": id,
            "type": "image",
            "url": address,
            "preview_url": "https://example.com/small.png",
            "remote_url": null,
            "description": "what it shows",
            "blurhash": "UBL_:rOpGG-;~qRPt7of",
        }]);
    }
    Value::Array(items).to_string()
}

async fn mirrored(data_dir: &DataDir) -> (SimServer, MediaServer) {
    let sim = quiet(4.0, 5).await;
    let media = MediaServer::before(&sim.url());
    data_dir.mirror(&media.url, "sim");
    (sim, media)
}

fn files(dir: &Path) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(dir.join("media")).unwrap();
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), entry.path())
        })
        .collect()
}

/// Runs an export that cannot fetch so many attachments. Returns its reply.
fn lacks(data_dir: &DataDir, export: &[&str], missing: u64) -> Value {
    let ended = data_dir.run(&[&["--json"][..], export].concat());
    assert_eq!(ended.status, 3, "{ended:?}");
    let count = match missing {
        1 => "1 attachment of".to_owned(),
        _ => format!("{missing} attachments of"),
    };
    assert!(ended.stderr.contains(&count), "{ended:?}");
    let reply: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(reply["media_missing"], missing, "{reply}");
    reply
}

/// Checks that `export check` names these as missing, and nothing else as wrong.
fn names(data_dir: &DataDir, path: &str, missing: &[&str]) {
    let ended = data_dir.run(&["export", "check", path]);
    assert_eq!(ended.status, 3, "{ended:?}");
    let listed = ended
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("not fetched: "));
    let listed: Vec<&str> = listed.collect();
    assert_eq!(listed.len(), missing.len(), "{ended:?}");
    for name in missing {
        assert!(
            listed.iter().any(|line| line.contains(name)),
            "{name}: {ended:?}"
        );
    }
    assert!(
        ended.stdout.contains("all as the manifest says"),
        "{ended:?}"
    );
}

fn of<'r>(rows: &'r [Value], name: &str) -> Vec<&'r Value> {
    let is_it = |row: &&Value| row["url"].as_str().is_some_and(|url| url.ends_with(name));
    let found: Vec<&Value> = rows.iter().filter(is_it).collect();
    assert!(!found.is_empty(), "{name}");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_are_listed_and_fetched() {
    let data_dir = DataDir::new();
    let (_sim, media) = mirrored(&data_dir).await;
    let posts = data_dir.export("sim").len();
    let out = data_dir.folder().join("listed");
    let path = out.to_str().unwrap();
    data_dir.json(&[
        "export", "--out", path, "--format", "csv", "--media", "list",
    ]);
    let listed = rows(&out, "media");
    assert_eq!(listed.len(), posts);
    let first = &listed[0];
    assert_eq!(first["source"], "sim");
    assert_eq!(first["attachment_id"], first["upstream_id"]);
    assert_eq!(first["type"], "image");
    assert_eq!(first["description"], "what it shows");
    assert_eq!(first["blurhash"], "UBL_:rOpGG-;~qRPt7of");
    assert!(first["sha256"].is_null() && !out.join("media").exists());
    assert_eq!(media.requests(), [""; 0]);

    let out = data_dir.folder().join("fetched");
    let path = out.to_str().unwrap();
    let export = ["export", "--out", path, "--media", "fetch"];
    let export: Vec<&str> = [&export[..], &["--media-max-size", "40kB"]].concat();
    lacks(&data_dir, &export, 3);
    // Each address once.
    let mut requests = media.requests();
    requests.sort();
    assert_eq!(
        requests,
        ["a.png", "b.png", "large.mp4", "missing.jpg", "typeless.ogv"]
    );
    let fetched = rows(&out, "media");
    assert_eq!(fetched.len(), posts);
    for name in ["a.png", "b.png", "typeless.ogv"] {
        for row in of(&fetched, name) {
            let file = row["file"].as_str().unwrap();
            assert_eq!(file.split('.').next(), row["sha256"].as_str());
            let bytes = fs::read(out.join("media").join(file)).unwrap();
            assert_eq!(row["bytes"], bytes.len());
            assert!(row["error"].is_null() && row["fetched_at_ms"].as_i64() > Some(0));
        }
    }
    assert_eq!(of(&fetched, "a.png")[0]["content_type"], "image/png");
    assert_eq!(
        of(&fetched, "a.png")[0]["file"],
        of(&fetched, "b.png")[0]["file"]
    );
    for (name, word) in [
        ("missing.jpg", "404"),
        ("large.mp4", "--media-max-size"),
        ("private.png", "private address"),
    ] {
        for row in of(&fetched, name) {
            assert!(row["error"].as_str().unwrap().contains(word), "{row}");
            assert!(row["sha256"].is_null(), "{row}");
        }
    }
    let endings: BTreeSet<String> = files(&out)
        .into_keys()
        .map(|name| name.split_once('.').unwrap().1.to_owned())
        .collect();
    assert_eq!(endings, ["ogv", "png"].map(str::to_owned).into());
    let not_fetched = ["missing.jpg", "large.mp4", "private.png"];
    names(&data_dir, path, &not_fetched);

    // What failed is tried once more, and no more; what is there is not.
    media.is_healed.store(true, Relaxed);
    fs::write(out.join("media").join("fetch-1.part"), "half").unwrap();
    fs::write(out.join("media").join("mine.txt"), "mine").unwrap();
    let reply = lacks(&data_dir, &export, 2);
    let mut requests = media.requests();
    requests.sort();
    assert_eq!(requests, ["large.mp4", "missing.jpg"]);
    let again = rows(&out, "media");
    assert_eq!(again.len(), posts);
    for row in of(&again, "missing.jpg") {
        assert!(row["error"].is_null(), "{row}");
        assert!(row["file"].as_str().unwrap().ends_with(".jpg"), "{row}");
    }
    assert_eq!(of(&again, "large.mp4")[0]["tries"], 2);
    assert_eq!(of(&again, "a.png"), of(&fetched, "a.png"));
    assert_eq!(reply["media_files"]["count"], 3);
    assert!(!files(&out).contains_key("fetch-1.part") && files(&out).contains_key("mine.txt"));
    lacks(&data_dir, &export, 2);
    assert_eq!(media.requests(), [""; 0]);
    names(&data_dir, path, &not_fetched[1..]);
    // No server was ever asked for what is private: it is not given up.
    assert_eq!(of(&again, "private.png")[0]["tries"], 0);

    // One byte.
    let names = files(&out);
    let (name, file) = names
        .iter()
        .find(|(name, _)| name.ends_with(".png"))
        .unwrap();
    fs::write(file, b"\x89PNG b picture").unwrap();
    let ended = data_dir.run(&["export", "check", path]);
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(
        ended.stdout.contains(&format!("media/{name}: ")),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_server_is_left_alone() {
    let data_dir = DataDir::new();
    let (_sim, media) = mirrored(&data_dir).await;
    let out = data_dir.folder().join("fetched");
    let path = out.to_str().unwrap();
    let export = ["export", "--out", path, "--media", "fetch"];
    media.is_busy.store(true, Relaxed);
    for _ in 0..3 {
        lacks(&data_dir, &export, 6);
        assert_eq!(media.requests().len(), 1);
        for row in of(&rows(&out, "media"), ".png") {
            assert!(row["error"].is_string(), "{row}");
        }
    }
    media.is_busy.store(false, Relaxed);
    lacks(&data_dir, &export, 2);
    assert_eq!(media.requests().len(), 5);
    assert!(of(&rows(&out, "media"), "a.png")[0]["error"].is_null());
    names(&data_dir, path, &["missing.jpg", "private.png"]);
}

#[test]
fn options_of_attachments_need_them() {
    let data_dir = DataDir::new();
    for (arguments, word) in [
        (&["export", "sim", "--media", "list"][..], "--out"),
        (
            &["export", "--out", "a", "--media-max-size", "1MiB"],
            "--media",
        ),
        (
            &[
                "export",
                "--out",
                "a",
                "--media",
                "fetch",
                "--media-max-size",
                "much",
            ],
            "invalid size",
        ),
    ] {
        let refused = data_dir.run(arguments);
        assert_eq!(refused.status, 2, "{refused:?}");
        assert!(refused.stderr.contains(word), "{refused:?}");
    }
}
