//! Answers of real servers: every post in the cassettes that Mastodon.py
//! records against Mastodon and ships in its source distribution.

use std::{
    collections::BTreeSet,
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::Command,
};

use driftline_core::post::Post;
use driftline_upstream::{Timeline, parse};
use serde::Deserialize;
use serde_json::Value;

const REQUIREMENT: &str = "Mastodon.py==2.1.4 --hash=sha256:6602e9ca4db37c70b5adae5964d02e9a529f6cc8473947a314261008add208a5\n";
const ARCHIVE: &str = "mastodon_py-2.1.4.tar.gz";
const MIN_STATUSES: usize = 500;

#[test]
fn every_recorded_post_is_read() {
    let mut seen = Seen::default();
    for cassette in cassettes() {
        let cassette: Cassette = serde_norway::from_str(&cassette.text)
            .unwrap_or_else(|e| panic!("{}: {e}", cassette.name));
        for interaction in cassette.interactions {
            let body = interaction.response.body.bytes();
            if let Ok(json) = serde_json::from_slice::<Value>(&body) {
                seen.body(&body, &json);
            }
        }
    }
    assert!(
        seen.statuses >= MIN_STATUSES,
        "only {} statuses in the cassettes: did their form change?",
        seen.statuses
    );
    assert!(
        seen.pages > 50 && seen.boosts > 0 && seen.mentions > 0,
        "{seen:?}"
    );
}

/// What was found, and checked when it was found.
#[derive(Debug, Default)]
struct Seen {
    statuses: usize,
    pages: usize,
    boosts: usize,
    edited: usize,
    mentions: usize,
    visibilities: BTreeSet<&'static str>,
}

impl Seen {
    fn body(&mut self, body: &[u8], json: &Value) {
        match json {
            Value::Array(items) if !items.is_empty() && items.iter().all(is_status) => {
                let listed = parse::page(body, &Timeline::Home).expect("a page").listed;
                assert_eq!(listed.len(), items.len());
                for (listed, item) in listed.iter().zip(items) {
                    assert_eq!(listed.position, listed.post.id);
                    self.status(&listed.post, item);
                }
                self.pages += 1;
            }
            Value::Array(items) if !items.is_empty() && items.iter().all(is_notification) => {
                let page = parse::page(body, &Timeline::Mentions).expect("a page");
                assert_eq!(page.listed.len() + page.passed.len(), items.len());
                let listed = page.listed;
                // Of one recorded page of 40 mentions, 36 have lost their post.
                let mentions: Vec<_> = items
                    .iter()
                    .filter(|n| n["type"] == "mention" && is_status(&n["status"]))
                    .collect();
                assert_eq!(listed.len(), mentions.len());
                for (listed, notification) in listed.iter().zip(mentions) {
                    assert_eq!(listed.position.as_str(), notification["id"]);
                    self.status(&listed.post, &notification["status"]);
                    self.mentions += 1;
                }
            }
            status if is_status(status) => {
                self.status(&parse::post(body).expect("a post"), status);
            }
            // Search results, threads, conversations: posts deeper inside.
            Value::Array(items) => items.iter().for_each(|item| self.inner(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.inner(field)),
            _ => {}
        }
    }

    fn inner(&mut self, json: &Value) {
        self.body(json.to_string().as_bytes(), json);
    }

    fn status(&mut self, post: &Post, json: &Value) {
        assert_eq!(post.id.as_str(), text_of(&json["id"]).expect("an ID"));
        assert_eq!(post.uri, text_of(&json["uri"]));
        assert_eq!(post.url, text_of(&json["url"]));
        assert_eq!(post.created_at_ms, ms_of(&json["created_at"]));
        assert!(post.created_at_ms.is_some());
        assert_eq!(post.edited_at_ms, ms_of(&json["edited_at"]));
        assert_eq!(Some(post.visibility.name()), json["visibility"].as_str());
        assert_eq!(post.counts.replies, json["replies_count"].as_i64());
        assert_eq!(post.counts.boosts, json["reblogs_count"].as_i64());
        assert_eq!(post.counts.favourites, json["favourites_count"].as_i64());
        let account = &json["account"];
        assert_eq!(
            post.author.id.as_str(),
            text_of(&account["id"]).expect("an ID")
        );
        assert_eq!(Some(post.author.acct.as_str()), account["acct"].as_str());
        assert_eq!(
            Some(post.author.display_name.as_str()),
            account["display_name"].as_str()
        );
        assert_eq!(&value_of(&post.author.raw), account);
        let mut whole = value_of(&post.raw);
        if let Some(viewer) = &post.viewer {
            merge(&mut whole, value_of(viewer));
        }
        assert_eq!(&whole, json);
        assert_eq!(post.boost_of.is_some(), json["reblog"].is_object());
        if let Some(boosted) = &post.boost_of {
            self.boosts += 1;
            self.status(boosted, &json["reblog"]);
        }
        self.edited += usize::from(post.edited_at_ms.is_some());
        self.visibilities.insert(post.visibility.name());
        self.statuses += 1;
    }
}

/// Puts back what was taken off.
fn merge(json: &mut Value, taken: Value) {
    match (json, taken) {
        (Value::Object(members), Value::Object(taken)) => {
            for (name, value) in taken {
                merge(members.entry(name).or_insert(Value::Null), value);
            }
        }
        (json, taken) => *json = taken,
    }
}

fn is_status(json: &Value) -> bool {
    ["id", "account", "content"]
        .iter()
        .all(|key| !json[key].is_null())
}

fn is_notification(json: &Value) -> bool {
    ["id", "type", "account"]
        .iter()
        .all(|key| !json[key].is_null())
}

fn text_of(json: &Value) -> Option<String> {
    match json {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn ms_of(json: &Value) -> Option<i64> {
    let time: jiff::Timestamp = json.as_str()?.parse().expect("a time");
    Some(time.as_millisecond())
}

fn value_of(raw: &str) -> Value {
    serde_json::from_str(raw).expect("JSON")
}

#[derive(Deserialize)]
struct Cassette {
    interactions: Vec<Interaction>,
}

#[derive(Deserialize)]
struct Interaction {
    response: Response,
}

#[derive(Deserialize)]
struct Response {
    body: Body,
}

#[derive(Deserialize)]
struct Body {
    string: serde_norway::Value,
}

impl Body {
    /// The body as it was sent, unpacked if it was sent packed.
    fn bytes(&self) -> Vec<u8> {
        match &self.string {
            serde_norway::Value::String(text) => text.clone().into_bytes(),
            serde_norway::Value::Tagged(tagged) => {
                let text = tagged.value.as_str().expect("base64");
                unpacked(base64(text))
            }
            serde_norway::Value::Null => Vec::new(),
            other => panic!("a body of an unknown form: {other:?}"),
        }
    }
}

fn unpacked(bytes: Vec<u8>) -> Vec<u8> {
    if !bytes.starts_with(b"\x1f\x8b") {
        return bytes;
    }
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice())
        .read_to_end(&mut body)
        .expect("gzip");
    body
}

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes() {
        let Some(value) = ALPHABET.iter().position(|&letter| letter == byte) else {
            continue;
        };
        bits = (bits << 6) | u32::try_from(value).expect("below 64");
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

struct File {
    name: String,
    text: String,
}

fn cassettes() -> Vec<File> {
    let archive = fs::File::open(archive()).expect("the archive");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let mut files = Vec::new();
    for entry in archive.entries().expect("a tar archive") {
        let mut entry = entry.expect("an entry");
        let name = entry.path().expect("a path").to_string_lossy().into_owned();
        if name.contains("/tests/cassettes") && name.ends_with(".yaml") {
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("text");
            files.push(File { name, text });
        }
    }
    files
}

/// The source distribution in the target folder, downloaded once.
fn archive() -> PathBuf {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mastodon-py");
    let archive = cache.join(ARCHIVE);
    if archive.exists() {
        return archive;
    }
    let download = cache.join(format!("download-{}", std::process::id()));
    fs::create_dir_all(&download).expect("the target folder can be written");
    let requirements = download.join("requirements.txt");
    fs::write(&requirements, REQUIREMENT).expect("the target folder can be written");
    let pip = Command::new("python3")
        .args(["-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--quiet"])
        .arg("--dest")
        .arg(&download)
        .arg("--requirement")
        .arg(&requirements)
        .output()
        .expect("this test downloads Mastodon.py's recorded answers from PyPI: install python3 with pip (Debian: apt install python3-pip)");
    assert!(
        pip.status.success(),
        "pip could not download Mastodon.py's recorded answers from PyPI; it needs pip (Debian: apt install python3-pip) and the network:\n{}",
        String::from_utf8_lossy(&pip.stderr)
    );
    // A rename is whole or not at all, so a killed download leaves no half.
    fs::rename(download.join(ARCHIVE), &archive).expect("pip wrote the archive");
    fs::remove_dir_all(&download).expect("the download's folder can be removed");
    archive
}
