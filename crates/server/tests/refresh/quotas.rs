//! A quota that binds while posts are overdue, and its report.

use driftline_core::{api::Api, tracking::Track};
use driftline_mirror::refresh::RefreshOptions;
use driftline_server::admin::{AddCredential, ShowRefreshStatus, TrackPosts};
use driftline_sim::http::Timeline;
use driftline_store::source::TokenLocation;

use crate::world::{World, growing, now, plan, wait};

#[tokio::test(flavor = "multi_thread")]
async fn a_monthly_cap_holds_refreshing_back_and_says_so() {
    const CAP: u32 = 400;
    let options = RefreshOptions {
        credentials: vec!["capped".to_owned()],
        ..RefreshOptions::new("test")
    };
    let world = World::unread(growing(), Api::X, plan(), options).await;
    let add = AddCredential {
        name: Some("capped".to_owned()),
        address: world.sim.url(),
        api: Api::X,
        token: Some(TokenLocation::File(world.file_of("driftline"))),
        monthly_posts: Some(CAP),
    };
    world.run(add).await;
    let truth = world.sim.truth(&Timeline::Home).unwrap();
    let ids = truth.posts.iter().take(30);
    let posts = Track {
        instance: world.sim.url(),
        api: Some(Api::X),
        ids: ids.map(|post| post.id.to_string()).collect(),
        once: false,
    };
    let track = TrackPosts {
        posts,
        allow_private: false,
        check: false,
    };
    world.run(track).await;
    // Every post is due each second.
    let mut shown = None;
    wait("it is held back", async || {
        let status = world.run(ShowRefreshStatus).await;
        shown = status.credentials.into_iter().next();
        shown.as_ref().is_some_and(|row| row.state == "held back")
    })
    .await;
    let shown = shown.unwrap();
    let reason = shown.reason.as_deref().unwrap();
    assert!(reason.contains("cap of 400 posts a month"), "{shown:?}");
    assert!(shown.until_ms > Some(now()), "{shown:?}");
    let traffic = world.sim.traffic();
    assert!(traffic.posts_refreshed <= u64::from(CAP), "{traffic:?}");
    world.stop().await;
}
