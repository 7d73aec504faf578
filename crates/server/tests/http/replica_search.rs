//! A replica's searches find what the server finds for the same account.

use std::path::Path;

use driftline_core::{names::audience::Audience, post::Post};
use driftline_replica::{
    Client, Direction, Replica, Retries, ServerUrl, SyncContext, SyncReport, TimelineQuery, Token,
};
use rand::{SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;
use reqwest::Url;
use serde_json::{Value, json};

use crate::{
    people::{Person, people_world},
    search::read,
    world::{START_MS, World, id, show, uri},
};

const TEXTS: [&str; 12] = [
    "a black cat",
    "the cats sleep on it",
    "地震です",
    "津波の心配はありません",
    "ねこが起きた",
    "Straße und Strasse",
    "café au lait",
    "👩‍👩‍👧 and 👍🏽",
    "x",
    "ok &amp; done",
    "100% of <b>it</b>",
    "Rust 1.95 is out",
];
const LANGUAGES: [&str; 3] = ["en", "ja", "de"];
const TERMS: [&str; 56] = [
    "cat",
    "cats",
    "\"black cat\"",
    "\"a cat\"",
    "=cat",
    "=Cat",
    "CAT",
    "word:cat",
    "ca",
    "c",
    "x",
    "ok",
    "地震",
    "地",
    "ネコ",
    "津波",
    "心配は",
    "strasse",
    "straße",
    "café",
    "cafe",
    "👍",
    "👩‍👩‍👧",
    "%",
    "1.95",
    "&",
    "lover",
    "\"cat lover\"",
    "\"dog person\"",
    "速報",
    "sofa",
    "option",
    "pets",
    "none-has-this",
    "{}",
    "from:ann@sim.example",
    "from:bob@sim.example",
    "from:eve@far.example",
    "from:nobody@far.example",
    "instance:far.example",
    "instance:sim.example",
    "lang:en",
    "lang:ja",
    "tag:cats",
    "#猫",
    "has:media",
    "has:poll",
    "has:cw",
    "is:reply",
    "is:boost",
    "is:edited",
    "is:sensitive",
    "visibility:unlisted",
    "after:2026-01-10",
    "before:2026-01-10",
    "during:2026-01-11",
];

/// The accounts, by their numbers.
fn account(number: u64, nickname: Option<&str>) -> Value {
    let (acct, name) = [
        ("ann", "Cat lover"),
        ("bob", "Bob"),
        ("eve@far.example", "地震速報"),
        ("dan@far.example", "dan"),
    ][number as usize % 4];
    let (username, host) = acct.split_once('@').unwrap_or((acct, "sim.example"));
    json!({
        "id": (900 + number % 4).to_string(), "acct": acct, "username": username,
        "display_name": nickname.unwrap_or(name), "url": format!("https://{host}/@{username}"),
        "uri": format!("https://{host}/users/{username}"),
    })
}

/// A post with this number, which decides about the rest of it.
fn post(n: u64) -> Value {
    let every = |of: u64, rest: u64| n % of == rest;
    let (tags, media) = (
        json!([{"name": "Cats"}, {"name": "猫"}]),
        json!([{
            "id": n.to_string(), "type": "image", "url": format!("https://sim.example/{n}.png"),
            "description": "a sofa",
        }]),
    );
    json!({
        "id": n.to_string(), "uri": format!("https://sim.example/posts/{n}"),
        "url": format!("https://sim.example/@x/{n}"), "account": account(n / 3, None),
        "content": format!("<p>{}</p>", TEXTS[n as usize % TEXTS.len()]),
        "language": LANGUAGES[n as usize / 2 % 3], "sensitive": every(7, 1),
        "spoiler_text": if every(5, 2) { "pets" } else { "" },
        "visibility": if every(6, 3) { "unlisted" } else { "public" },
        "created_at": format!("2026-01-{:02}T23:30:00.000Z", 1 + n % 28),
        "in_reply_to_id": every(9, 4).then(|| (n - 1).to_string()),
        "tags": if every(4, 1) { tags } else { json!([]) }, "mentions": [],
        "poll": every(8, 5).then(|| json!({
            "id": n.to_string(), "options": [{"title": "an option", "votes_count": 1}],
        })),
        "media_attachments": if every(6, 5) { media } else { json!([]) },
        "replies_count": 0, "reblogs_count": 0, "favourites_count": n,
    })
}

/// A boost of another post.
fn boost(n: u64, of: u64) -> Value {
    let mut boost = post(n);
    boost["content"] = json!("");
    boost["account"] = account(n, None);
    for (member, value) in [
        ("spoiler_text", json!("")),
        ("tags", json!([])),
        ("poll", Value::Null),
        ("media_attachments", json!([])),
        ("in_reply_to_id", Value::Null),
        ("visibility", json!("public")),
        ("reblog", post(of)),
    ] {
        boost[member] = value;
    }
    boost
}

fn posts(all: impl IntoIterator<Item = Value>) -> Vec<Post> {
    all.into_iter().map(|status| read(&status)).collect()
}

fn random() -> u128 {
    u128::from(driftline_runtime::random())
}

/// A replica of an account, which subscribes to these sources.
struct Device {
    replica: Replica,
    client: Client,
}

impl Device {
    async fn new(world: &World, person: &Person, folder: &Path, sources: &[&str]) -> Device {
        let server: ServerUrl = world.base.parse().unwrap();
        let token = Token::read(person.token.as_bytes()).unwrap();
        let client = Client::new(&server, token, Retries::few()).unwrap();
        let made = Replica::init(folder, &client, &mut random).await;
        let (replica, _) = made.unwrap();
        let sources: Vec<String> = sources.iter().map(|name| (*name).to_owned()).collect();
        let subscribed = replica
            .subscribe(&client, &sources, None, &mut random)
            .await;
        assert_eq!(subscribed.unwrap().len(), sources.len());
        Device { replica, client }
    }

    async fn sync(&self) -> SyncReport {
        let mut random = random;
        let mut context = SyncContext::new(START_MS, &mut random);
        let synced = self
            .replica
            .sync(&self.client, &mut context, Direction::Both);
        synced.await.unwrap()
    }

    /// The URIs of the posts that a query finds.
    async fn found(&self, query: &str) -> Vec<String> {
        let query = TimelineQuery {
            limit: 1_000,
            matching: Some(query.to_owned()),
            ..TimelineQuery::default()
        };
        let found = self.replica.timeline(query).await.unwrap().into_iter();
        found.map(|post| post.uri.unwrap()).collect()
    }
}

/// The URIs of the posts that the server finds.
async fn found_on_server(person: &Person, query: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut below = None;
    loop {
        let mut url = Url::parse("http://a/api/driftline/v1/find?limit=40").unwrap();
        url.query_pairs_mut().append_pair("q", query);
        if let Some(below) = below {
            url.query_pairs_mut()
                .append_pair("max_id", &u64::to_string(&below));
        }
        let path = format!("{}?{}", url.path(), url.query().unwrap());
        let page = person.page(&path).await;
        let Some(last) = page.last() else {
            return all;
        };
        below = Some(id(last));
        all.extend(page.iter().map(|post| uri(post).to_owned()));
    }
}

/// The terms, and random queries of several of them.
fn queries(seed: u64, count: usize) -> Vec<String> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut queries: Vec<String> = TERMS.iter().map(|term| (*term).to_owned()).collect();
    queries.extend(TERMS.iter().map(|term| format!("-{term}")));
    for _ in 0..count {
        let parts = [0; 3].map(|_| queries.choose(&mut random).expect("one").clone());
        let [one, other, third] = parts.map(|part| format!("({part})"));
        let signs = ["", "", "OR", "OR", "XOR", "-"];
        let sign = signs.choose(&mut random).expect("one");
        let next = signs.choose(&mut random).expect("one");
        let query = format!(
            "{one} {sign}{} {next}{}",
            spaced(sign, &other),
            spaced(next, &third)
        );
        if query.len() < 300 {
            queries.push(query);
        }
    }
    queries
}

/// An operand after a sign: a minus stands directly before it.
fn spaced(sign: &str, operand: &str) -> String {
    match sign {
        "-" => operand.to_owned(),
        _ => format!(" {operand}"),
    }
}

async fn compare(person: &Person, device: &Device, seed: u64) {
    let mut differences = Vec::new();
    let mut matches = 0;
    for query in queries(seed, 150) {
        let here = device.found(&query).await;
        let there = found_on_server(person, &query).await;
        if here != there {
            differences.push(format!("{query}\nhere  {here:?}\nthere {there:?}"));
        }
        matches += here.len();
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(matches > 2_000, "{matches}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_finds_what_its_server_finds() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut news = world.feed("news").await;
    let mut more = world.feed("more").await;
    for feed in [&news, &more] {
        show(&world, feed, Audience::Members).await;
    }
    news.poll_posts(posts((1..=30).map(post))).await;
    more.poll_posts(posts((101..=130).map(post))).await;
    let boosts = || [(31, 8), (33, 30), (35, 5)].map(|(n, of)| boost(n, of));
    news.poll_posts(posts(boosts().into_iter().chain([post(30)])))
        .await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("replica");
    let device = Device::new(&world, &ann, &folder, &["news", "more"]).await;
    let report = device.sync().await;
    assert_eq!(report.work.indexed, 63, "{report:?}");
    compare(&ann, &device, 1).await;

    // An edit, a deletion, a new name of an author in one of the sources, and a bookmark.
    let mut edited = post(29);
    edited["content"] = json!("<p>another cat</p>");
    edited["edited_at"] = json!("2026-02-02T00:00:00.000Z");
    edited["tags"] = json!([]);
    let mut renamed = post(36);
    renamed["account"] = account(0, Some("Dog person"));
    let others = boosts().into_iter().chain([post(30)]);
    news.poll_posts(posts(
        [edited, renamed, post(200)].into_iter().chain(others),
    ))
    .await;
    // Both sources have it.
    more.poll_posts(posts([130, 200].map(post))).await;
    news.delete(25).await;
    let marked = found_on_server(&ann, "from:eve@far.example").await;
    let page = ann
        .page("/api/driftline/v1/find?q=from:eve@far.example")
        .await;
    assert_eq!(uri(&page[0]), marked[0]);
    ann.post(&format!("/api/v1/statuses/{}/bookmark", id(&page[0])))
        .await;
    let report = device.sync().await;
    assert!((2..63).contains(&report.work.indexed), "{report:?}");
    assert_eq!(device.replica.status().await.unwrap().unindexed, 0);
    compare(&ann, &device, 2).await;
    assert_eq!(device.found("\"another cat\"").await.len(), 1);
    assert!(!device.found("\"dog person\"").await.is_empty());
    let all = device.found("{}").await;
    assert!(!all.contains(&"https://sim.example/posts/25".to_owned()));
    device.replica.close().await;

    // Another replica fetches everything at once, the newest first.
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("replica");
    let other = Device::new(&world, &ann, &folder, &["news", "more"]).await;
    other.sync().await;
    compare(&ann, &other, 3).await;
    other.replica.close().await;
    world.close().await;
}
