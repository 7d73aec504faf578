//! Predicates as filters: `export --matching`, `tail --matching` and `find --follow`.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::BTreeSet,
    fs, io,
    path::Path,
    process::{Child, Command},
};

use driftline_core::{answer::LookUp, post::Post};
use driftline_sim::http::Timeline;
use driftline_store::{
    SourceKey, Store, Target, local_ids, source,
    source::NewSource,
    testing::{Feed, START_MS, new_source},
};
use driftline_upstream::parse;
use rand::{RngExt as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use support::{DataDir, exported, lines, quiet::lively, wait_for};

const POSTS: u64 = 120;
const WORDS: [&str; 6] = ["cat", "dog", "bird", "猫", "ネコ", "1.95"];

/// A version of a post, and the server through which it is seen.
#[derive(Clone, Copy)]
struct Version {
    number: u64,
    is_edited: bool,
    is_copy: bool,
}

impl Version {
    fn first(number: u64) -> Self {
        Self {
            number,
            is_edited: false,
            is_copy: false,
        }
    }

    fn status(self) -> Value {
        let Version {
            number,
            is_edited,
            is_copy,
        } = self;
        let mut rng = ChaCha8Rng::seed_from_u64(2 * number + u64::from(is_edited));
        let text: Vec<&str> = (0..rng.random_range(0..4))
            .map(|_| *WORDS.choose(&mut rng).unwrap())
            .collect();
        let name = ["ann", "bob"][(number % 2) as usize];
        let media = match rng.random_bool(0.3) {
            true => {
                json!([{"id": "1", "type": "image", "url": "https://sim.example/1.png", "description": "a cat"}])
            }
            false => json!([]),
        };
        let language = *["en", "ja"].choose(&mut rng).unwrap();
        let boosted = match number % 9 {
            0 => Version {
                number: number - 1,
                ..self
            }
            .status(),
            _ => Value::Null,
        };
        json!({
            "id": self.id(),
            "uri": format!("https://sim.example/statuses/{number}"),
            "created_at": format!("2026-01-{:02}T10:00:00.000Z", 1 + number % 28),
            "edited_at": is_edited.then_some("2026-02-01T00:00:00.000Z"),
            "visibility": "public",
            "language": language,
            "content": format!("<p>{} {number}</p>", text.join(" ")),
            "media_attachments": media,
            "tags": match rng.random_bool(0.3) { true => json!([{"name": "pets"}]), false => json!([]) },
            "favourites_count": rng.random_range(0..9),
            "reblog": boosted,
            "account": {
                "id": name,
                "username": name,
                "acct": if is_copy { format!("{name}@sim.example") } else { name.to_owned() },
                "display_name": if name == "ann" { "Ann who likes birds" } else { "Bob" },
            },
        })
    }

    fn id(self) -> String {
        (self.number + if self.is_copy { 5_000 } else { 0 }).to_string()
    }

    fn post(self) -> Post {
        parse::post(self.status().to_string().as_bytes()).unwrap()
    }
}

fn open(data_dir: &DataDir) -> Store {
    let path = data_dir.data().join("driftline.db");
    Store::open(Target::Sqlite { path }).unwrap()
}

/// A source whose first page was empty.
fn add(store: &Store, new: NewSource) -> Feed {
    let add = move |tx: &mut driftline_store::Tx<'_>| source::add(tx, &new, START_MS);
    let key: SourceKey = store
        .write_blocking(local_ids::root(), add)
        .unwrap()
        .unwrap();
    let mut feed = Feed::of(store, key, |_| ());
    feed.poll(Vec::new());
    feed
}

/// A store with two sources of a server that share posts, and one of another server with copies.
/// Some posts are edited, some deleted.
fn fill(data_dir: &DataDir) {
    let added = ["source", "add", "http://127.0.0.1:1", "--no-check"];
    data_dir.json(&[&added[..], &["--name", "other"]].concat());
    let store = open(data_dir);
    let mut home = add(&store, new_source("home"));
    let mut local = add(&store, new_source("local"));
    let mut far = add(
        &store,
        NewSource {
            origin: "https://far.example".to_owned(),
            upstream: "https://far.example".to_owned(),
            ..new_source("far")
        },
    );
    let page = |numbers: &[u64], which: fn(u64) -> bool, is_copy: bool, is_edited: bool| {
        let numbers = numbers.iter().rev().filter(|number| which(**number));
        numbers
            .map(|number| {
                Version {
                    number: *number,
                    is_edited,
                    is_copy,
                }
                .post()
            })
            .collect::<Vec<Post>>()
    };
    for is_edited in [false, true] {
        for numbers in (1..=POSTS).collect::<Vec<_>>().chunks(30) {
            let numbers: Vec<u64> = numbers
                .iter()
                .copied()
                .filter(|number| !is_edited || number.is_multiple_of(5))
                .collect();
            home.poll(page(&numbers, |number| number % 3 != 0, false, is_edited));
            local.poll(page(&numbers, |number| number % 2 == 0, false, is_edited));
            far.poll(page(&numbers, |number| number % 4 != 1, true, is_edited));
        }
    }
    for number in [7, 16, 40, 61] {
        home.look_up(&Version::first(number).id(), LookUp::Gone);
    }
    store.close_blocking();
}

fn run(data_dir: &DataDir, arguments: &[&str]) -> String {
    let ended = data_dir.run(arguments);
    assert_eq!(ended.status, 0, "{arguments:?}: {}", ended.stderr);
    ended.stdout
}

fn uris(rows: &[Value]) -> BTreeSet<String> {
    let uris = rows.iter().map(|row| row["uri"].as_str().unwrap());
    uris.map(str::to_owned).collect()
}

const QUERIES: [&str; 20] = [
    "{}",
    "cat",
    "-cat",
    "猫 OR ネコ",
    "=ネコ",
    "cat XOR dog",
    "(cat dog) OR -{lang:ja bird}",
    "birds",
    "from:ann@sim.example lang:en",
    "instance:sim.example 1.95",
    "#pets -cat",
    "has:media",
    "is:boost",
    "cat (is:boost OR -is:boost)",
    "is:edited cat",
    "after:2026-01-05 before:2026-01-20",
    "source:far cat",
    "-source:far cat",
    "source:home source:local",
    "favourites:>5",
];

#[test]
fn an_export_has_the_posts_that_a_search_finds() {
    let data_dir = DataDir::new();
    fill(&data_dir);
    let mut sizes = BTreeSet::new();
    for query in QUERIES {
        let found = uris(&lines(&run(&data_dir, &["find", query, "--all", "--json"])));
        let export = ["export", "home", "local", "far", "--matching", query];
        assert_eq!(uris(&lines(&run(&data_dir, &export))), found, "{query}");
        sizes.insert(found.len());
        let found = run(
            &data_dir,
            &["find", query, "--all", "--json", "--source", "local"],
        );
        let export = run(&data_dir, &["export", "local", "--matching", query]);
        assert_eq!(uris(&lines(&export)), uris(&lines(&found)), "{query}");
    }
    assert!(sizes.len() > 10 && !sizes.contains(&0), "{sizes:?}");
    let cats = lines(&run(
        &data_dir,
        &["export", "home", "--matching", "cat dog"],
    ));
    let csv = ["export", "home", "--matching", "cat dog", "--format", "csv"];
    let rows = csv::Reader::from_reader(run(&data_dir, &csv).as_bytes())
        .records()
        .count();
    assert_eq!(rows, cats.len());

    // A folder is for one predicate, however it is written.
    let out = data_dir.folder().join("archive");
    let write = |query: &[&str]| {
        let export = [
            "export",
            "home",
            "--out",
            out.to_str().unwrap(),
            "--media",
            "list",
        ];
        data_dir.run(&[&export[..], query].concat())
    };
    assert_eq!(write(&["--matching", "cat dog"]).status, 0);
    assert_eq!(exported::rows(&out, "posts"), cats);
    assert_eq!(exported::manifest(&out)["filter"]["matching"], "cat dog");
    assert_eq!(write(&["--matching", "(dog cat)"]).status, 0);
    assert_eq!(exported::rows(&out, "posts"), cats);
    for other in [&["--matching", "cat"][..], &[]] {
        let refused = write(other);
        assert_eq!(refused.status, 2, "{refused:?}");
        assert!(
            refused.stderr.contains("--matching 'cat dog'"),
            "{refused:?}"
        );
    }
}

#[test]
fn a_tail_passes_on_each_match_and_goes_on_where_it_was() {
    let data_dir = DataDir::new();
    fill(&data_dir);
    let got = || {
        let text = fs::read_to_string(data_dir.folder().join("got.jsonl")).unwrap_or_default();
        let events = lines(&text).into_iter();
        let named = events.map(|event| format!("{} {}", event["event"], event["post"]["id"]));
        named.collect::<Vec<String>>()
    };
    let tail = |more: &[&str]| {
        // The tenth command kills `tail` before it can note that the command has ended.
        let command = "cat >> got.jsonl; [ $(wc -l < got.jsonl) -ne 10 ] || kill -KILL $PPID";
        let mut tail = vec!["tail", "home", "--since", "start", "--no-follow"];
        tail.extend(["--state", "state", "--exec", command, "--matching"]);
        data_dir.run(&[&tail[..], more].concat())
    };
    let ids = lines(&run(&data_dir, &["export", "home", "--matching", "cat"]));
    let ids = ids.iter().map(|row| format!("\"new\" {}", row["id"]));
    let mut expected: Vec<String> = ids.collect();
    assert!(expected.len() > 15);
    assert_eq!(tail(&["cat"]).status, -1);
    assert_eq!(got(), expected[..10]);
    let ended = tail(&["cat"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    // At least once: the tenth comes again.
    expected.insert(9, expected[9].clone());
    assert_eq!(got(), expected);

    // The position is that of all posts, so another predicate goes on there.
    assert_eq!(tail(&["{}"]).status, 0);
    assert_eq!(got(), expected);

    // Of edits the new version counts, and deletions are passed on.
    let has_cat = |number: u64, is_edited: bool| {
        let version = Version {
            is_edited,
            ..Version::first(number)
        };
        let post = version.post();
        post.boost_of.is_none() && post.raw.contains("cat")
    };
    let numbers =
        || (1..=POSTS).filter(|number| number % 3 != 0 && number % 5 != 0 && number % 9 != 0);
    let edited = |before: bool, after: bool| {
        let mut fitting = numbers()
            .filter(|number| has_cat(*number, false) == before && has_cat(*number, true) == after);
        fitting.find(|number| *number > 62).unwrap()
    };
    let (into, away, other) = (
        edited(false, true),
        edited(true, false),
        edited(false, false),
    );
    let store = open(&data_dir);
    let key = store.read_blocking(|tx| source::by_name(tx, "home"));
    let mut home = Feed::of(&store, key.unwrap().unwrap().key(), |_| ());
    let mut numbers = [into, away];
    numbers.sort_unstable();
    let edits = numbers.iter().rev().map(|number| {
        let edited = Version {
            is_edited: true,
            ..Version::first(*number)
        };
        edited.post()
    });
    home.poll(edits.collect());
    home.look_up(&Version::first(other).id(), LookUp::Gone);
    store.close_blocking();
    let id_of = |number: u64| {
        let (rows, name) = (data_dir.export("home").into_iter(), number.to_string());
        let mut named = rows.filter(|row| row["upstream_id"] == name);
        named.next().unwrap()["id"].clone()
    };
    assert_eq!(tail(&["cat", "--events", "new,edit,delete"]).status, 0);
    expected.push(format!("\"edit\" {}", id_of(into)));
    expected.push(format!("\"delete\" {}", id_of(other)));
    assert_eq!(got(), expected);
}

#[test]
fn an_invalid_predicate_is_refused_before_anything_else_happens() {
    let data_dir = DataDir::new();
    for (arguments, words) in [
        (
            &["tail", "--state", "state", "--matching", "cat (dog"][..],
            ["column 5", "Add `)`"],
        ),
        (
            &["export", "home", "--out", "out", "--matching", "cat fly:1"],
            ["column 5", "unknown operator"],
        ),
        (&["find", "-", "--follow"], ["column 1", "directly after"]),
        (
            &["tail", "--matching", "cat favourites:>1"],
            ["`favourites:>1`", "standing search"],
        ),
        (
            &["find", "is:followed", "--follow"],
            ["`is:followed`", "standing search"],
        ),
        (
            &["find", "cat", "--follow", "--count"],
            ["--follow", "--count"],
        ),
        (&["find", "cat", "--follow", "--all"], ["--follow", "--all"]),
        (
            &["find", "cat", "--follow", "--explain"],
            ["--follow", "--explain"],
        ),
        (
            &["export", "home", "--deleted", "--matching", "cat"],
            ["--deleted", "--matching"],
        ),
    ] {
        let refused = data_dir.run(arguments);
        assert_eq!(refused.status, 2, "{refused:?}");
        for word in words {
            assert!(refused.stderr.contains(word), "{word}: {refused:?}");
        }
    }
    let mut made = fs::read_dir(data_dir.folder()).unwrap();
    assert!(made.next().is_none(), "{:?}", made.next());
}

/// A process that is killed when it is dropped.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn whole_lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_follows_prints_each_new_match_once() {
    let upstream = lively(20.0, 3).await;
    let data_dir = DataDir::new();
    let (server, _) = data_dir.serve(&["--allow-private"]);
    let url = upstream.url();
    let add = ["source", "add", &url, "--name", "sim", "--every", "100ms"];
    data_dir.json(&[&add[..], &["--second-look", "1s"]].concat());
    let query = "(tide OR wave) -reef";
    let all = || {
        let found = run(&data_dir, &["find", query, "--all", "--json"]);
        let mut ids: Vec<String> = lines(&found)
            .iter()
            .map(|post| post["id"].to_string())
            .collect();
        ids.reverse();
        ids
    };
    wait_for("posts are found", || all().len() > 5);
    let follow = |name: &str, more: &[&str]| {
        let path = data_dir.folder().join(name);
        let arguments = [&["find", query, "--follow", "--limit", "2"][..], more].concat();
        let out = fs::File::create(&path).unwrap();
        let child = data_dir.command(&arguments).stdout(out).spawn().unwrap();
        (Following(child), path)
    };
    let (mut json, json_path) = follow("json", &["--json"]);
    let (_csv, csv_path) = follow("csv", &["--csv", "--source", "sim"]);
    wait_for("new posts are printed", || {
        whole_lines(&json_path).len() > 10
    });
    server.kill();
    let (mut server, _) = data_dir.serve(&["--allow-private"]);
    let printed = || {
        let text = whole_lines(&json_path).join("\n");
        let posts = lines(&text);
        posts
            .iter()
            .map(|post| post["id"].to_string())
            .collect::<Vec<_>>()
    };
    let since = |ids: Vec<String>, first: &String| {
        let place = ids.iter().position(|id| id == first).unwrap();
        ids[place..].to_vec()
    };
    assert!(upstream.fall_silent(&Timeline::Public));
    let last = upstream.truth(&Timeline::Public).unwrap().posts.pop();
    let last = last.unwrap().id.to_string();
    wait_for("the last post is stored", || {
        let rows = data_dir.export("sim");
        rows.iter().any(|row| row["upstream_id"] == last.as_str())
    });
    wait_for("all is printed", || {
        let printed = printed();
        printed == since(all(), &printed[0])
    });
    let csv = whole_lines(&csv_path);
    assert!(csv[0].starts_with("id,uri,url,"), "{csv:?}");
    wait_for("all is printed as a table, too", || {
        let rows = whole_lines(&csv_path).len() - 1;
        rows >= printed().len() - 2
    });
    let ended = Command::new("kill")
        .args(["-INT", &json.0.id().to_string()])
        .status();
    assert!(ended.unwrap().success() && json.0.wait().unwrap().success());
    // Nobody reads it.
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut closed = data_dir.command(&["find", query, "--follow"]);
    assert!(closed.stdout(writer).status().unwrap().success());
    // None of the newest posts is asked for, and without a server it says what it waits for.
    server.stop();
    let path = data_dir.folder().join("waiting");
    let mut waiting = data_dir.command(&["find", query, "--follow", "--limit", "0"]);
    let waiting = waiting.stderr(fs::File::create(&path).unwrap());
    let waiting = Following(
        waiting
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap(),
    );
    wait_for("it waits", || {
        whole_lines(&path)
            .iter()
            .any(|line| line.contains("waiting for"))
    });
    drop(waiting);
}
