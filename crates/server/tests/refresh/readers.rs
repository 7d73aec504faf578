//! Several credentials of one upstream, and what one of them is refused.

use std::time::Duration;

use driftline_core::{api::Api, refresh::LookupOutcome, upstream_id::UpstreamId};
use driftline_mirror::refresh::RefreshOptions;
use driftline_server::admin::{ListCredentials, RemoveCredential, RemoveSource, Request as _};
use driftline_sim::{
    BatchAbility, FaultKind, FaultsConfig, Hiding, PoisonAnswer, SpanMs, WorldConfig,
};
use driftline_store::{LocalId, StoreError, source};

use crate::world::{World, growing, growing_for, now, plan, wait};

/// Posts are refreshed with the first source's token alone; another source is read with another.
async fn two_readers(api: Api) -> World {
    let config = growing_for(25_000);
    let options = RefreshOptions {
        credentials: vec!["mirrored".into()],
        ..RefreshOptions::new("test")
    };
    let world = World::start_options(config, api, plan(), options).await;
    world.mirror_as(api, "second", "other").await;
    wait("the posts are refreshed", async || {
        let posts = world.posts().await;
        let refreshed = posts.iter().filter(|(.., s)| s.freshness.refreshes > 0);
        refreshed.count() >= 40
    })
    .await;
    world.host.pollers.as_ref().unwrap().stop().await;
    world
}

async fn hide(world: &World, at: usize, token: Option<&str>) -> (LocalId, u32) {
    let (id, local, state) = world.posts().await[at].clone();
    world.faults(|faults| {
        faults.hidings.push(Hiding {
            id,
            token: token.map(str::to_owned),
            after_ms: 0,
        });
    });
    (local, state.freshness.refreshes)
}

fn is_seen(outcome: Option<LookupOutcome>) -> bool {
    matches!(
        outcome,
        Some(LookupOutcome::Updated | LookupOutcome::Unchanged)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_another_credential_sees_is_not_hidden() {
    let world = two_readers(Api::X).await;
    let (post, before) = hide(&world, 5, Some("driftline")).await;
    wait("it is refreshed all the same", async || {
        world.refresh_state(post).await.freshness.refreshes >= before + 4
    })
    .await;
    assert!(is_seen(world.refresh_state(post).await.outcome));
    assert_eq!(world.count(LookupOutcome::Hidden).await, 0);
    let (secret, _) = hide(&world, 6, None).await;
    wait("a post that no credential sees is hidden", async || {
        world.refresh_state(secret).await.outcome == Some(LookupOutcome::Hidden)
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_to_be_hidden_is_asked_for_with_one_credential() {
    let world = two_readers(Api::X).await;
    let (secret, _) = hide(&world, 5, None).await;
    wait("it is hidden", async || {
        world.refresh_state(secret).await.outcome == Some(LookupOutcome::Hidden)
    })
    .await;
    // Whoever it is shown to from now on but the first credential is never asked.
    world.faults(|faults| faults.hidings[0].token = Some("driftline".into()));
    let before = world.refresh_state(secret).await.freshness.refreshes;
    wait("it is asked for again", async || {
        world.refresh_state(secret).await.freshness.refreshes >= before + 3
    })
    .await;
    assert_eq!(
        world.refresh_state(secret).await.outcome,
        Some(LookupOutcome::Hidden)
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_counts_as_deleted_when_no_credential_sees_it() {
    let world = two_readers(Api::Mastodon).await;
    let (seen, before) = hide(&world, 5, Some("driftline")).await;
    let (gone, _) = hide(&world, 6, None).await;
    for post in [seen, gone] {
        wait("it is left out", async || {
            world.refresh_state(post).await.outcome == Some(LookupOutcome::Missing)
        })
        .await;
        world.hasten(post).await;
    }
    wait("the one is seen, the other gone", async || {
        let (seen, gone) = (
            world.refresh_state(seen).await,
            world.refresh_state(gone).await,
        );
        seen.freshness.refreshes > before
            && is_seen(seen.outcome)
            && gone.outcome == Some(LookupOutcome::Deleted)
    })
    .await;
    // It is counted after it is stored.
    wait("one is counted as deleted", async || {
        world.count(LookupOutcome::Deleted).await == 1
    })
    .await;
    world.stop().await;
}

async fn state(world: &World, name: &str) -> String {
    let mut all = world.run(ListCredentials).await.into_iter();
    all.find(|row| row.name == name).unwrap().state
}

async fn a_forbidden_post_is_hidden(ability: BatchAbility) {
    let mut config = WorldConfig {
        rate_per_s: 1.0,
        publish_for_ms: Some(25_000),
        ..growing()
    };
    config.batches.ability = ability;
    let world = World::start(config, Api::Mastodon).await;
    wait("the posts are refreshed", async || {
        let posts = world.posts().await;
        let refreshed = posts.iter().filter(|(.., s)| s.freshness.refreshes > 0);
        refreshed.count() >= 10
    })
    .await;
    let (poison, local, _) = world.posts().await[3].clone();
    world.faults(|faults| {
        faults.poison_ids = vec![poison];
        faults.poison_answer = PoisonAnswer::Forbidden;
    });
    wait("it is hidden", async || {
        world.refresh_state(local).await.outcome == Some(LookupOutcome::Hidden)
    })
    .await;
    let since_ms = now();
    wait("all others are refreshed", async || {
        let posts = world.posts().await;
        let fresh = posts
            .iter()
            .filter(|(.., s)| s.freshness.refreshed_ms > since_ms);
        fresh.count() >= posts.len() - 1
    })
    .await;
    assert_eq!(state(&world, "mirrored").await, "in use");
    // What is refused for every post is the credential's own.
    world.faults(|faults| faults.poison_share = 1.0);
    wait("the credential rests", async || {
        state(&world, "mirrored").await == "resting"
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_403_to_one_post_is_about_that_post() {
    a_forbidden_post_is_hidden(BatchAbility::MethodNotAllowed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_403_to_a_batch_is_about_a_post_of_it() {
    a_forbidden_post_is_hidden(BatchAbility::Served).await;
}

/// Posts that are refreshed by workers with a short timeout.
async fn hasty(faults: FaultsConfig, workers: usize) -> World {
    let config = WorldConfig {
        publish_for_ms: Some(25_000),
        faults,
        ..growing()
    };
    let options = RefreshOptions {
        lease: Duration::from_secs(2),
        workers,
        ..RefreshOptions::new("test")
    };
    World::start_options(config, Api::Mastodon, plan(), options).await
}

async fn refreshed(world: &World, least: usize) {
    wait("the posts are refreshed", async || {
        let posts = world.posts().await;
        let refreshed = posts.iter().filter(|(.., s)| s.freshness.refreshes > 0);
        refreshed.count() >= least
    })
    .await;
}

/// Look-ups that name any of these, or that share of all, are not answered.
fn silence(ids: Vec<UpstreamId>, share: f64) -> FaultsConfig {
    FaultsConfig {
        poison_ids: ids,
        poison_share: share,
        poison_answer: PoisonAnswer::Silence,
        stall_ms: SpanMs::new(60_000, 60_000),
        ..FaultsConfig::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_nothing_is_answered_to_does_not_hold_the_others_up() {
    let world = hasty(FaultsConfig::default(), 2).await;
    refreshed(&world, 40).await;
    let (poison, local, _) = world.posts().await[7].clone();
    world.faults(|faults| *faults = silence(vec![poison], 0.0));
    world.all_but_one_refreshed().await;
    let state = world.refresh_state(local).await;
    assert_eq!(state.outcome, Some(LookupOutcome::Failed));
    assert!(state.due_at_ms.is_some(), "it is due again");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_answered_an_outage_costs_a_posts_patience_a_turn() {
    let world = hasty(FaultsConfig::default(), 2).await;
    refreshed(&world, 40).await;
    world.faults(|faults| *faults = silence(Vec::new(), 1.0));
    // What was claimed before is over after so many requests.
    unanswered(&world, 6).await;
    let failed = world.count(LookupOutcome::Failed).await;
    let requests = world.refresh_stats().await.requests;
    unanswered(&world, 8).await;
    // A turn without an answer is one request; the first of each worker may have been under way.
    let turns = world.refresh_stats().await.requests - requests + 2;
    let more = world.count(LookupOutcome::Failed).await - failed;
    assert!(more <= turns, "{more} posts in {turns} turns");
    world.stop().await;
}

async fn unanswered(world: &World, more: u64) {
    let requests = world.refresh_stats().await.requests;
    wait("requests stay without an answer", async || {
        world.refresh_stats().await.requests >= requests + more
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_nothing_is_answered_to_may_be_the_first_of_all() {
    let world = hasty(silence(Vec::new(), 1.0), 1).await;
    world.stored(50).await;
    let posts = world.posts().await;
    let first = posts.iter().min_by_key(|(.., state)| state.due_at_ms);
    let (first, ..) = first.unwrap().clone();
    world.faults(|faults| *faults = silence(vec![first], 0.0));
    refreshed(&world, 40).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_of_a_sources_token_is_not_removed() {
    let world = World::start(growing(), Api::Mastodon).await;
    wait("the source is read", async || {
        world.posts().await.len() >= 20
    })
    .await;
    let remove = |name: &str| {
        let name = name.to_owned();
        RemoveCredential { name }.execute(&world.host)
    };
    let refused = remove("mirrored").await.expect_err("in use");
    assert!(refused.to_string().contains("\"mirrored\""), "{refused}");
    assert_eq!(state(&world, "mirrored").await, "in use");
    let name = "mirrored".to_owned();
    world
        .run(RemoveSource {
            name,
            keep_posts: false,
        })
        .await;
    remove("mirrored").await.expect("no source uses it");
    world.stop().await;
}

/// The number of notes in the outbox.
async fn notes(world: &World) -> i64 {
    let count = world.store.read(|tx| {
        let count = tx.query_one("select count(*) from outbox", &[], |row| row.i64(0))?;
        Ok::<_, StoreError>(count)
    });
    count.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_cannot_be_told_keeps_the_others_from_nothing() {
    let config = growing_for(25_000);
    let world = World::start(config, Api::Mastodon).await;
    world.stored(50).await;
    world
        .mirror_timeline(Api::Mastodon, "broken", "public", "driftline")
        .await;
    let stored = async |name: &'static str| {
        let found = world.store.read(move |tx| source::by_name(tx, name)).await;
        found.unwrap().expect("a source")
    };
    wait("both sources are read", async || {
        stored("broken").await.update_count >= 20
    })
    .await;
    world.host.pollers.as_ref().unwrap().stop().await;
    let broken = stored("broken").await;
    let trigger = format!(
        "create trigger broken before update on library when new.owner_id = {} \
         begin select raise(abort, 'it is broken'); end",
        u64::from(broken.id)
    );
    world
        .store
        .write(driftline_store::Root::none(), move |tx| {
            tx.execute(&trigger, &[])?;
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    // As if a worker had died before it relayed all of them.
    world
        .store
        .write(driftline_store::Root::none(), |tx| {
            tx.execute(
                "insert into outbox (instance_id, post_id, since_ms, counts)
                 select instance_id, id, 1, true from post where true
                 on conflict (instance_id, post_id) do nothing",
                &[],
            )?;
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    // Notes that only the other source lists are relayed and removed; the rest is the broken one's.
    let foreign = async || {
        let source = i64::try_from(u64::from(broken.id)).unwrap();
        let count = world.store.read(move |tx| {
            let count = tx.query_one(
                "select count(*) from outbox u where not exists
                     (select 1 from entry e where e.source_id = $1 and e.post_id = u.post_id)",
                &[&source],
                |row| row.i64(0),
            )?;
            Ok::<_, StoreError>(count)
        });
        count.await.unwrap()
    };
    wait("nothing else stays", async || {
        foreign().await == 0 && notes(&world).await >= 20
    })
    .await;
    world.stop().await;
}

/// A server that is down is not asked again and again: the pauses double.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_asked_more_and_more_rarely() {
    let world = hasty(FaultsConfig::default(), 2).await;
    refreshed(&world, 40).await;
    world.faults(|faults| faults.shares = [(FaultKind::InternalError, 1.0)].into());
    // How many it takes to see that it is down depends on who asks first. Without growing pauses two
    // workers ask at least twice a second for ever.
    let mut windows = Vec::new();
    for _ in 0..15 {
        let before = world.refresh_stats().await.requests;
        tokio::time::sleep(Duration::from_secs(4)).await;
        windows.push(world.refresh_stats().await.requests - before);
        if windows.last() <= Some(&4) {
            break;
        }
    }
    assert!(
        windows.last() <= Some(&4),
        "requests in each 4 s: {windows:?}"
    );
    let since_ms = now();
    world.faults(|faults| faults.shares = [(FaultKind::InternalError, 0.0)].into());
    wait("its posts are refreshed again", async || {
        let posts = world.posts().await;
        let fresh = posts
            .iter()
            .filter(|(.., s)| s.freshness.refreshed_ms > since_ms);
        fresh.count() >= 40
    })
    .await;
    world.stop().await;
}
