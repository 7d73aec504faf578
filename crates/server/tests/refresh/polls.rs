//! What polls do for posts that are refreshed, where look-ups cannot.

use driftline_core::{
    api::Api,
    refresh::{AgeBand, AgeTable, LookupOutcome, RefreshPlan},
};
use driftline_sim::WorldConfig;
use driftline_store::{StoreError, Tx};

use crate::world::{World, growing, wait};

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_without_news_ends_the_doubt_that_a_look_up_left() {
    let still = WorldConfig {
        publish_for_ms: Some(20_000),
        ..WorldConfig::default()
    };
    let world = World::start_with(still, Api::Mastodon, rarely()).await;
    world.stored(10).await;
    let (poison, post, _) = world.posts().await.pop().unwrap();
    world.faults(|faults| faults.poison_ids = vec![poison]);
    world.hasten(post).await;
    wait("its look-up fails", async || {
        world.count(LookupOutcome::Failed).await > 0
    })
    .await;
    wait("a poll shows that it is there", async || {
        let state = world.refresh_state(post).await;
        state.freshness.failures == 0 && state.outcome == Some(LookupOutcome::Unchanged)
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn libraries_hear_of_counts_that_polls_show_without_workers() {
    let world = World::start_with(growing(), Api::Mastodon, rarely()).await;
    world.host.refreshers.as_ref().unwrap().stop().await;
    world.stored(20).await;
    // Two hours pass.
    let age = |tx: &mut Tx<'_>| {
        tx.execute(
            "update freshness set refreshed_at_ms = refreshed_at_ms - 7200000,
                 notified_at_ms = notified_at_ms - 7200000",
            &[],
        )?;
        Ok::<_, StoreError>(())
    };
    world
        .store
        .write(driftline_store::Root::none(), age)
        .await
        .unwrap();
    wait("entries of known posts move", async || {
        number(&world, "select count(*) from entry where usn <> first_usn").await > 0
    })
    .await;
    wait("the outbox is empty", async || {
        number(&world, "select count(*) from outbox").await == 0
    })
    .await;
    world.stop().await;
}

/// Nothing is due while a test runs.
fn rarely() -> RefreshPlan {
    let bands = vec![AgeBand {
        below_ms: 86_400_000,
        every_ms: 3_600_000,
    }];
    RefreshPlan {
        ages: AgeTable::new(bands, 300_000).unwrap(),
        ..RefreshPlan::default()
    }
}

async fn number(world: &World, sql: &'static str) -> i64 {
    let count = move |tx: &mut Tx<'_>| Ok::<_, StoreError>(tx.query_one(sql, &[], |r| r.i64(0))?);
    world.store.read(count).await.unwrap()
}
