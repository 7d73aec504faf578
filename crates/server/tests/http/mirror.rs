//! Another Driftline reads this one.

use std::collections::BTreeSet;

use driftline_core::{
    answer::{LookUp, PageRequest},
    api::Api,
};
use driftline_net::testing::http_client;
use driftline_sim::Status;
use driftline_upstream::{Address, Credential, Timeline, Upstream};

use crate::world::{World, status};

#[tokio::test]
async fn the_public_timeline_can_be_mirrored() {
    let world = World::new().await;
    let mut feed = world.feed("home").await;
    for turn in 0..3 {
        let statuses: Vec<Status> = (turn * 30..turn * 30 + 30).map(status).collect();
        feed.poll(&statuses).await;
    }
    let address = Address::parse(&world.base).unwrap();
    let client = Upstream::new(Api::Mastodon, http_client(), address, Credential::None).unwrap();
    let timeline: Timeline = "public".parse().unwrap();
    let mut uris = BTreeSet::new();
    let mut min_id = "0".into();
    loop {
        let request = PageRequest {
            min_id: Some(min_id),
            limit: 40,
            ..PageRequest::default()
        };
        let page = client.page(&timeline, &request).await.unwrap();
        assert!(page.headers.date_ms.is_some());
        let Some(newest) = page.listed.first() else {
            break;
        };
        min_id = newest.post.id.clone();
        for listed in &page.listed {
            let post = &listed.post;
            assert!(post.created_at_ms.is_some() && post.author.acct.contains('@'));
            assert!(uris.insert(post.uri.clone().unwrap()));
            let (found, _) = client.look_up(&post.id).await.unwrap();
            assert_eq!(found, LookUp::Found(Box::new(post.clone())));
        }
    }
    assert_eq!(uris.len(), 90);
    let (found, _) = client.look_up(&"1".into()).await.unwrap();
    assert_eq!(found, LookUp::Gone);
}
