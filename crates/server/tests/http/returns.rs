//! Posts that are there again after their deletion.

use std::collections::BTreeMap;

use driftline_db::testing::databases;
use driftline_sim::Status;

use crate::world::{Feed, World, id, status, uri};

/// Polls that source and then the other, neither before what either was told.
async fn poll(feeds: &mut [Feed; 2], first: usize, statuses: &[Status]) {
    let now_ms = feeds[0].now_ms.max(feeds[1].now_ms);
    for feed in [first, 1 - first] {
        feeds[feed].now_ms = now_ms;
        feeds[feed].poll(statuses).await;
    }
}

#[tokio::test]
async fn a_naive_since_id_client_sees_what_returns() {
    for fresh in databases() {
        let world = World::on(fresh, |_| {}).await;
        let mut feeds = [world.feed("one").await, world.feed("two").await];
        let all: Vec<Status> = (1..=6).map(status).collect();
        let paths = [
            feeds[0].path(),
            feeds[1].path(),
            "/api/v1/timelines/public".to_owned(),
        ];
        // Of each timeline, the newest ID and how often each post was shown.
        let mut clients = [0; 3].map(|newest| (newest, BTreeMap::<String, u32>::new()));
        let mut olds = [const { Vec::new() }; 3];
        for turn in 0..3 {
            poll(&mut feeds, (turn + 1) % 2, &all).await;
            for (path, (newest, shown)) in paths.iter().zip(&mut clients) {
                let page = world.page(&format!("{path}?since_id={newest}")).await;
                for status in page.iter().rev() {
                    assert!(id(status) > *newest);
                    *newest = id(status);
                    *shown.entry(uri(status).to_owned()).or_default() += 1;
                }
                assert_eq!(page.len(), if turn == 0 { 6 } else { 1 }, "{path}");
            }
            for (path, olds) in paths.iter().zip(&mut olds) {
                let pages = world.walk(&format!("{path}?limit=2"), "next").await;
                assert_eq!(pages.len(), 3, "{path}");
                let mut shown = pages.iter().flatten();
                let place = shown.find(|status| uri(status).ends_with("/2"));
                olds.extend(place.map(id));
                let upward = format!("{path}?limit=4&min_id=0");
                let pages = world.walk(&upward, "prev").await;
                assert_eq!(pages.iter().flatten().count(), 6);
            }
            feeds[turn % 2].now_ms = feeds[0].now_ms.max(feeds[1].now_ms);
            feeds[turn % 2].delete(2).await;
        }
        poll(&mut feeds, 0, &all).await;
        for (path, olds) in paths.iter().zip(&olds) {
            let shown = world.page(path).await;
            let now = id(&shown[0]);
            assert!(uri(&shown[0]).ends_with("/2"));
            for old in olds.iter().copied().chain([now]) {
                let answer = world.json(&format!("/api/v1/statuses/{old}")).await;
                assert_eq!(id(&answer), old);
                let link = format!("/api/v1/statuses/{old}/history");
                assert_eq!(world.page(&link).await.len(), 1);
            }
        }
        world.close().await;
    }
}
