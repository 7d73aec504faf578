//! Searches by predicates, over HTTP.

use std::time::Duration;

use driftline_api::App;
use driftline_core::{names::audience::Audience, post::Post};
use driftline_db::testing::Fresh;
use reqwest::{StatusCode, Url};
use serde_json::{Value, json, value::RawValue};

use crate::{
    people::{Person, people_world},
    world::{World, id, link, numbers, parsed, show, with_token},
};

fn path(route: &str, query: &str) -> String {
    let mut url = Url::parse(&format!("http://a{route}")).unwrap();
    url.query_pairs_mut().append_pair("q", query);
    format!("{}?{}", url.path(), url.query().unwrap())
}

fn find(query: &str) -> String {
    path("/api/driftline/v1/find", query)
}

pub(crate) fn written(n: u64, html: &str) -> Value {
    json!({
        "id": n.to_string(), "content": html, "visibility": "public", "language": "ja",
        "created_at": "2026-02-03T04:05:06.000Z", "uri": format!("https://sim.example/{n}"),
        "account": { "id": "7", "acct": "ann", "username": "ann", "display_name": "Cat lover" },
        "tags": [{ "name": "Quake" }], "media_attachments": [], "favourites_count": n,
    })
}

pub(crate) fn read(status: &Value) -> Post {
    let raw = RawValue::from_string(status.to_string()).unwrap();
    driftline_mastodon::read_status(&raw).unwrap()
}

async fn filled(world: &World) {
    let mut feed = world.feed("public").await;
    let texts = [
        "<p>地震です</p>",
        "<p>津波の心配は<b>ありません</b></p>",
        "<p>ネコ</p>",
        "<p>a dog &amp; 地震</p>",
    ];
    let posts = (1..).zip(texts).map(|(n, text)| read(&written(n, text)));
    feed.poll_posts(posts.collect()).await;
    show(world, &feed, Audience::Public).await;
}

#[tokio::test]
async fn predicates_find_posts_in_pages() {
    let world = World::new().await;
    filled(&world).await;
    for (query, found) in [
        ("地震", vec![4, 1]),
        ("(地震 OR 津波) -dog", vec![2, 1]),
        ("ねこ", vec![3]),
        ("=ねこ", vec![]),
        ("心配はありません", vec![2]),
        ("tag:quake favourites:>2", vec![4, 3]),
        (
            "from:ann@sim.example lang:ja after:2026-02-02 地",
            vec![4, 1],
        ),
        ("instance:other.example", vec![]),
        ("\"cat LOVER\" is:reply", vec![]),
        ("\"cat LOVER\"", vec![4, 3, 2, 1]),
        ("source:public dog", vec![4]),
    ] {
        assert_eq!(numbers(&world.page(&find(query)).await), found, "{query}");
    }
    let first = world.page(&format!("{}&limit=1", find("地震"))).await;
    let rest = world
        .page(&format!("{}&max_id={}", find("地震"), id(&first[0])))
        .await;
    assert_eq!((numbers(&first), numbers(&rest)), (vec![4], vec![1]));
    let up = world
        .page(&format!("{}&limit=1&min_id=0", find("地震")))
        .await;
    assert_eq!(numbers(&up), [1]);
}

/// Posts of which a search without a term of the index checks the newest 2,000 in its first part, which
/// is all that its time allows.
const SLOW_POSTS: u64 = 2_100;

async fn slow_world() -> World {
    let no_time = |app: &mut App| {
        with_token(app);
        app.search_budget.time = Duration::ZERO;
    };
    let world = World::on(Fresh::sqlite(), no_time).await;
    let mut feed = world.feed("public").await;
    let numbers: Vec<u64> = (1..=SLOW_POSTS).collect();
    for numbers in numbers.chunks(100) {
        let post = |n: &u64| read(&written(*n, "<p>地震です</p>"));
        feed.poll_posts(numbers.iter().map(post).collect()).await;
    }
    show(&world, &feed, Audience::Public).await;
    world
}

#[tokio::test]
async fn a_search_whose_time_ends_goes_on_where_it_stopped() {
    let world = slow_world().await;
    let mut walked = Vec::new();
    let mut next = Some(format!("{}{}&limit=3", world.base, find("favourites:<4")));
    while let Some(url) = next {
        let answer = world.client.get(url).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        next = link(&answer, "next");
        walked.push(numbers(parsed(answer).await.as_array().unwrap()));
    }
    // The first page stopped before the matches, and the last one has no links.
    assert_eq!(walked, [vec![], vec![3, 2, 1], vec![]]);
    // The link names a post that the viewer may read, and tells nothing of others.
    let path = format!("{}&limit=3", find("favourites:<4"));
    let cursor = async || link(&world.answer(&path).await, "next").unwrap();
    let before = cursor().await;
    let (_, place) = before.rsplit_once("max_id=").unwrap();
    let status = format!("/api/v1/statuses/{place}");
    assert_eq!(world.answer(&status).await.status(), StatusCode::OK);
    let mut hidden = world.new_feed("hidden").await;
    let posts = (9_000..9_100).map(|n| read(&written(n, "<p>地震</p>")));
    hidden.poll_posts(posts.collect()).await;
    show(&world, &hidden, Audience::Private).await;
    assert_eq!(cursor().await, before);
    // Upward, the link to the newer page goes on.
    let query = format!("favourites:>{}", SLOW_POSTS - 3);
    let up = format!("{}&limit=3&min_id=1", find(&query));
    let answer = world.answer(&up).await;
    let more = link(&answer, "prev").unwrap();
    assert_eq!(parsed(answer).await, json!([]));
    let answer = world.client.get(more).send().await.unwrap();
    let found = numbers(parsed(answer).await.as_array().unwrap());
    assert_eq!(found, [SLOW_POSTS, SLOW_POSTS - 1, SLOW_POSTS - 2]);
}

#[tokio::test]
async fn a_page_of_mastodons_api_is_never_short() {
    let world = slow_world().await;
    for path in [
        "/api/v1/timelines/tag/quake?none[]=quake".to_owned(),
        format!("{}&type=statuses", path("/api/v2/search", "favourites:<4")),
    ] {
        let answer = world.answer(&path).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{path}");
        let error = parsed(answer).await["error"].to_string();
        assert!(error.contains("add a word"), "{path}: {error}");
    }
    // All of it is in one part.
    let found = world.page("/api/v1/timelines/tag/quake?limit=2").await;
    assert_eq!(numbers(&found), [SLOW_POSTS, SLOW_POSTS - 1]);
}

#[tokio::test]
async fn an_error_names_its_column() {
    let world = World::new().await;
    for (query, column) in [("cat (dog", "5"), ("cat has:wings", "5"), ("-", "1")] {
        let answer = world.answer(&find(query)).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{query}");
        let error = parsed(answer).await;
        let error = error["error"].as_str().unwrap();
        assert!(
            error.contains(&format!("column {column}")),
            "{query}: {error}"
        );
    }
}

#[tokio::test]
async fn the_largest_predicates_are_searched_for_and_larger_ones_refused() {
    let world = World::new().await;
    filled(&world).await;
    for (query, refusal) in [
        ("猫".repeat(5_461), None),
        ("a ".repeat(1_000), None),
        ("-(a XOR ".repeat(15) + "a" + &")".repeat(15), None),
        ("猫".repeat(5_462), Some("16384 bytes")),
        ("a ".repeat(1_001), Some("1000 terms")),
        ("-".repeat(33) + "a", Some("32 operators")),
    ] {
        let answer = world.answer(&find(&query)).await;
        let status = answer.status();
        let body = parsed(answer).await;
        let beginning: String = query.chars().take(40).collect();
        match refusal {
            None => assert_eq!(status, StatusCode::OK, "{beginning}: {body}"),
            Some(reason) => {
                assert_eq!(status, StatusCode::BAD_REQUEST, "{beginning}: {body}");
                let error = body["error"].as_str().unwrap();
                assert!(error.contains(reason), "{beginning}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn apps_find_posts_and_the_muted_are_left_out() {
    let (world, _) = people_world(|_| {}).await;
    filled(&world).await;
    let ann = Person::new(&world, "searcher").await;
    let statuses = |query: &str| format!("{}&type=statuses", path("/api/v2/search", query));
    let found = ann.get(&statuses("地震")).await;
    assert_eq!(numbers(found["statuses"].as_array().unwrap()), [4, 1]);
    // What is no predicate is searched for as it is.
    let found = ann.get(&statuses("(dog")).await;
    assert_eq!(found["statuses"], json!([]));
    let found = ann
        .get(&format!("{}&limit=1&offset=1", statuses("地震")))
        .await;
    assert_eq!(numbers(found["statuses"].as_array().unwrap()), [1]);
    let author = ann.look_up("ann@sim.example").await;
    let of_author = format!("{}&account_id={author}", statuses("dog"));
    let found = ann.get(&of_author).await;
    assert_eq!(numbers(found["statuses"].as_array().unwrap()), [4]);
    for (tag, names) in [
        ("quake", vec!["quake"]),
        ("#QUAKE", vec!["QUAKE"]),
        ("nothing", vec![]),
    ] {
        let found = ann
            .get(&format!("{}&type=hashtags", path("/api/v2/search", tag)))
            .await;
        let found = found["hashtags"].as_array().unwrap().iter();
        let found: Vec<&str> = found.map(|tag| tag["name"].as_str().unwrap()).collect();
        assert_eq!(found, names, "{tag}");
    }
    ann.post(&format!("/api/v1/accounts/{author}/mute")).await;
    assert_eq!(ann.get(&of_author).await["statuses"], json!([]));
}

#[tokio::test]
async fn private_posts_are_found_by_their_readers_alone() {
    let world = World::of_strangers().await;
    let mut feed = world.new_feed("private").await;
    feed.poll_posts(vec![read(&written(1, "<p>地震</p>"))])
        .await;
    show(&world, &feed, Audience::Private).await;
    assert_eq!(numbers(&world.page(&find("地震")).await), [0; 0]);
    show(&world, &feed, Audience::Public).await;
    assert_eq!(numbers(&world.page(&find("地震")).await), [1]);
}
