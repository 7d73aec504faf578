//! X and Twitter, polled and refreshed.

use driftline_core::{
    answer::Abilities,
    api::Api,
    timeline::{Plan, Settings},
};
use driftline_mirror::refresh::RefreshOptions;
use driftline_server::admin::{self, AddSource, CredentialRow, ListCredentials, TestCredential};
use driftline_sim::{PostsCap, ThrottleRule};
use driftline_store::{machine, source::TokenLocation};

use crate::world::{World, growing, now, plan, wait};

#[tokio::test(flavor = "multi_thread")]
async fn x_and_twitter_are_read_and_kept_fresh() {
    for api in [Api::X, Api::Twitter] {
        let world = World::start(growing(), api).await;
        world.refreshed(100, 2).await;
        let mean = world.refresh_stats().await.mean_posts().unwrap();
        assert!(mean > 40.0, "{mean} posts a request");
        world.stop().await;
    }
}

/// A look's period is as long as it takes to fill a page: 40 posts at Mastodon's servers.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_plans_with_what_the_sources_api_can_do() {
    for (api, page_limit) in [(Api::Mastodon, 40), (Api::X, 100), (Api::Twitter, 200)] {
        let options = RefreshOptions::new("test");
        let world = World::unread(growing(), api, plan(), options).await;
        let add = AddSource {
            owner: None,
            name: Some("mirrored".into()),
            address: world.sim.url(),
            api,
            timeline: "home".into(),
            token: Some(TokenLocation::File(world.file_of("driftline"))),
            settings: Settings {
                every_ms: 200,
                second_look_period_ms: 60_000,
                ..Settings::default()
            },
            allow_private: false,
            audience: None,
            check: false,
        };
        world.run(add).await;
        let pollers = world.host.pollers.as_ref().unwrap();
        // A page fills within the longest period, twelve times the least.
        wait("the rate is known", async || {
            let progress = pollers.progress().await;
            progress
                .iter()
                .any(|source| source.machine.rate_per_s() > 0.3)
        })
        .await;
        pollers.stop().await;
        let source = admin::find(&world.store, "mirrored").await.unwrap();
        let key = source.key();
        let machine = world.store.read(move |tx| machine::load(tx, key)).await;
        let abilities = Abilities {
            page_limit,
            min_id: api == Api::Mastodon,
        };
        let planned = machine.unwrap().plan(&source.settings, abilities, now());
        let report = admin::report_of(&world.store, "mirrored").await;
        let period_ms = |plan: &Plan| plan.ladder.rungs()[0].period_ms;
        let (reported, planned) = (period_ms(&report.unwrap().plan), period_ms(&planned));
        let apart_ms = (reported - planned).abs();
        assert!(
            apart_ms <= planned / 20,
            "{api:?}: {reported} for {planned}"
        );
        world.stop().await;
    }
}

/// X refuses what is above its own cap on posts a month with 429, next to a window with requests
/// left, or with 403.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_used_up_is_waited_for_and_told() {
    for forbidden in [false, true] {
        let mut config = growing();
        config.faults.throttles = vec![ThrottleRule::all(1_000, 10_000)];
        config.faults.posts_cap = Some(PostsCap {
            posts: 400,
            period_ms: 30 * 86_400_000,
            forbidden,
        });
        let world = World::start(config, Api::X).await;
        wait("the credential rests", async || {
            credential(&world)
                .await
                .is_some_and(|row| row.state == "resting")
        })
        .await;
        let shown = credential(&world).await.unwrap();
        let reason = shown.reason.as_deref().unwrap();
        assert!(
            reason.contains("are used up") && reason.contains("Monthly"),
            "{reason}"
        );
        let limits = &shown.limits;
        assert!(!limits.is_empty());
        assert!(
            limits.iter().all(|limit| limit.used_by_others < 20),
            "{shown:?}"
        );
        // One look-up or two that were on their way, and a poll.
        let failures = world.sim.traffic().failures;
        assert!(failures <= 4, "{failures} refusals");

        world.faults(|faults| faults.posts_cap = None);
        let before = world.refresh_stats().await.posts;
        world.run(TestCredential { name: shown.name }).await;
        wait("posts are refreshed again", async || {
            world.refresh_stats().await.posts > before + 100
        })
        .await;
        world.stop().await;
    }
}

async fn credential(world: &World) -> Option<CredentialRow> {
    world.run(ListCredentials).await.into_iter().next()
}
