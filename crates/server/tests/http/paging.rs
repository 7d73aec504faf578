//! Pages: everything once, in one order, whatever way it is read.

use std::collections::BTreeSet;

use driftline_core::post::Visibility;
use driftline_db::testing::Fresh;
use driftline_sim::Status;
use serde_json::{Value, json};

use crate::world::{World, id, link, status, uri};

/// Of every five the third is not public.
fn mixed(ids: std::ops::Range<u64>) -> Vec<Status> {
    let visibilities = [
        Visibility::Unlisted,
        Visibility::Private,
        Visibility::Direct,
    ];
    let of = |n: u64| match n % 5 {
        2 => Status {
            visibility: visibilities[(n % 3) as usize],
            ..status(n)
        },
        _ => status(n),
    };
    ids.map(of).collect()
}

fn public_uris(statuses: &[Status]) -> BTreeSet<String> {
    let posts = statuses.iter().map(Status::to_post);
    posts
        .filter(|post| post.visibility == Visibility::Public)
        .map(|post| post.uri.unwrap())
        .collect()
}

fn uris(statuses: &[Status]) -> BTreeSet<String> {
    let posts = statuses.iter().map(Status::to_post);
    posts.map(|post| post.uri.unwrap()).collect()
}

fn check_walk(pages: &[Vec<Value>], expected: &BTreeSet<String>) -> Vec<u64> {
    for page in pages {
        assert!(page.windows(2).all(|pair| id(&pair[0]) > id(&pair[1])));
    }
    let mut ids: Vec<u64> = pages.iter().flatten().map(id).collect();
    ids.sort_unstable();
    let shown: BTreeSet<String> = pages.iter().flatten().map(|s| uri(s).to_owned()).collect();
    assert_eq!(&shown, expected);
    assert_eq!(ids.len(), expected.len(), "something is shown twice");
    ids
}

#[tokio::test]
async fn both_ways_cover_everything_once() {
    let world = World::new().await;
    let mut feeds = [world.feed("one").await, world.feed("two").await];
    let mut all = Vec::new();
    for turn in 0..5 {
        let batch = mixed(turn * 30..turn * 30 + 30);
        feeds[0].poll(&batch).await;
        // The other source sees some of the same posts, later.
        feeds[1].poll(&batch[10..]).await;
        all.extend(batch);
    }
    let seen_by_two: Vec<Status> = all.chunks(30).flat_map(|c| c[10..].to_vec()).collect();
    for (path, expected) in [
        ("/api/v1/timelines/public".to_owned(), public_uris(&all)),
        (feeds[0].path(), uris(&all)),
        (feeds[1].path(), uris(&seen_by_two)),
    ] {
        for limit in [7, 40] {
            let down = world.walk(&format!("{path}?limit={limit}"), "next").await;
            let up = world
                .walk(&format!("{path}?limit={limit}&min_id=0"), "prev")
                .await;
            let ids = check_walk(&down, &expected);
            assert_eq!(check_walk(&up, &expected), ids);
            assert!(down.iter().rev().skip(1).all(|page| page.len() == limit));
        }
    }
    world.close().await;
}

#[tokio::test]
async fn bounds_are_mastodons() {
    let world = World::new().await;
    let mut feed = world.feed("home").await;
    let statuses: Vec<Status> = (1..=9).map(status).collect();
    feed.poll(&statuses).await;
    let all = world.page(&feed.path()).await;
    let nth = |n: usize| id(&all[9 - n]);
    for (query, expected) in [
        (String::new(), [9, 8, 7].as_slice()),
        (format!("since_id={}", nth(2)), &[9, 8, 7]),
        (format!("since_id={}", nth(7)), &[9, 8]),
        (format!("min_id={}", nth(2)), &[5, 4, 3]),
        (format!("max_id={}", nth(3)), &[2, 1]),
        (format!("since_id={}&max_id={}", nth(3), nth(6)), &[5, 4]),
        (format!("min_id={}&max_id={}", nth(3), nth(6)), &[5, 4]),
        ("since_id=&max_id=&min_id=".to_owned(), &[9, 8, 7]),
        (format!("max_id={}", u64::MAX), &[9, 8, 7]),
        (format!("since_id={}", u64::MAX), &[]),
        (format!("min_id={}", i64::MAX), &[]),
        ("max_id=0".to_owned(), &[]),
        ("limit=2".to_owned(), &[9, 8]),
    ] {
        let expected: Vec<u64> = expected.iter().map(|n| nth(*n)).collect();
        for path in [feed.path(), "/api/v1/timelines/public".to_owned()] {
            let page = world.page(&format!("{path}?limit=3&{query}")).await;
            assert_eq!(page.iter().map(id).collect::<Vec<_>>(), expected, "{query}");
        }
    }
}

#[tokio::test]
async fn links_name_the_neighbours() {
    let world = World::new().await;
    let mut feed = world.feed("home").await;
    feed.poll(&(1..=3).map(status).collect::<Vec<_>>()).await;
    for path in [feed.path(), "/api/v1/timelines/public".to_owned()] {
        let query = "only=%3C%22%3E&max_id=9223372036854775807&limit=2&since_id=1";
        let answer = world.answer(&format!("{path}?{query}")).await;
        let header = answer.headers()["link"].to_str().unwrap().to_owned();
        let page = crate::world::parsed(answer).await;
        let (newest, oldest, base) = (id(&page[0]), id(&page[1]), &world.base);
        assert_eq!(
            header,
            format!(
                "<{base}{path}?only=%3C%22%3E&limit=2&max_id={oldest}>; rel=\"next\", \
                 <{base}{path}?only=%3C%22%3E&limit=2&min_id={newest}>; rel=\"prev\""
            )
        );
        let empty = world.answer(&format!("{path}?max_id=1")).await;
        assert!(!empty.headers().contains_key("link"));
    }
}

#[tokio::test]
async fn links_begin_with_the_public_address() {
    let fresh = Fresh::sqlite();
    let base = "https://social.example/driftline/".parse().unwrap();
    let world = World::on(fresh, |app| app.public_base = Some(base)).await;
    world.feed("home").await.poll(&[status(1)]).await;
    let answer = world.answer("/api/v1/timelines/public").await;
    let next = link(&answer, "next").unwrap();
    let start = "https://social.example/driftline/api/v1/timelines/public?max_id=";
    assert!(next.starts_with(start), "{next}");
    let instance = world.json("/api/v2/instance").await;
    assert_eq!(instance["domain"], "social.example");
    assert_eq!(
        instance["configuration"]["urls"]["streaming"],
        "wss://social.example"
    );
}

#[tokio::test]
async fn only_media_fills_its_pages_and_covers_everything_once() {
    let world = World::new().await;
    let mut feed = world.feed("one").await;
    // Far apart, more than one transaction reads: of 5,000 posts 12 have media.
    let has_media = |n: u64| n % 400 == 7;
    let of = |n: u64| {
        let mut post = status(n).to_post();
        let media = match n % 800 {
            7 => json!([{ "id": "1", "type": "image", "url": "https://up.example/1.png" }]),
            // What is not known counts.
            _ => json!([{ "type": "hologram" }]),
        };
        let none = [json!([]), Value::Null, json!("none")];
        let media = if has_media(n) {
            &media
        } else {
            &none[(n % 3) as usize]
        };
        let mut json: Value = serde_json::from_str(&post.raw).unwrap();
        json["media_attachments"] = media.clone();
        post.raw = json.to_string();
        post
    };
    for from in (1..=5_000).step_by(500) {
        feed.poll_posts((from..from + 500).map(of).collect()).await;
    }
    let expected: BTreeSet<String> = (1..=5_000)
        .filter(|n| has_media(*n))
        .map(|n| of(n).uri.unwrap())
        .collect();
    assert_eq!(expected.len(), 13);
    for path in ["/api/v1/timelines/public".to_owned(), feed.path()] {
        let path = format!("{path}?only_media=true");
        for limit in [5, 40] {
            let down = world.walk(&format!("{path}&limit={limit}"), "next").await;
            let up = world
                .walk(&format!("{path}&limit={limit}&min_id=0"), "prev")
                .await;
            let ids = check_walk(&down, &expected);
            assert_eq!(check_walk(&up, &expected), ids);
            for pages in [&down, &up] {
                let but_last = pages.iter().rev().skip(1);
                assert!(but_last.clone().all(|page| page.len() == limit), "{limit}");
            }
            let above = world.page(&format!("{path}&since_id={}", ids[10])).await;
            assert_eq!(above.iter().map(id).collect::<Vec<_>>(), [ids[12], ids[11]]);
        }
        let off = world.page(&path.replace("true", "0")).await;
        assert_eq!(off.len(), 20);
    }
    let gone = world.answer("/api/v1/timelines/list/5?only_media=1").await;
    assert_eq!(gone.status(), 404);
    world.close().await;
}
