//! The pollers go on from what ends a session, and keep one source's trouble from the others.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use driftline_core::{
    api::Api,
    timeline::{Backfill, Settings},
};
use driftline_db::testing::Fresh;
use driftline_mirror::{Pollers, UpstreamAccess};
use driftline_net::testing::http_client;
use driftline_runtime::{IndexBacklog, steady_ms};
use driftline_server::{
    admin::{AddSource, Host, Request as _},
    testing::{start_pollers, wait as until},
};
use driftline_sim::{
    WorldConfig,
    http::{Clock, SimServer},
};
use driftline_store::{
    Root, SourceKey, Store, StoreError, completeness,
    source::{self, Source},
    testing,
};
use tokio::time::sleep;

/// What servers say of themselves.
mod instance_watch;

struct World {
    _sim: SimServer,
    _fresh: Fresh,
    store: Store,
    pollers: Pollers,
    sources: Vec<SourceKey>,
    index_backlog: IndexBacklog,
}

impl World {
    /// Two sources of one server.
    async fn new() -> Self {
        let sim = SimServer::start(WorldConfig::punctual(20.0), 1, Clock::Real);
        let sim = sim.await.unwrap();
        let fresh = Fresh::sqlite();
        let store = testing::open(&fresh);
        for timeline in ["public", "tag:rust"] {
            let add = AddSource {
                owner: None,
                name: Some(timeline.replace(':', "-")),
                address: sim.url(),
                api: Api::Mastodon,
                timeline: timeline.into(),
                token: None,
                settings: Settings {
                    every_ms: 200,
                    backfill: Backfill::None,
                    ..Settings::default()
                },
                allow_private: false,
                audience: None,
                check: false,
            };
            add.execute(&Host::of(&store)).await.unwrap();
        }
        let all = store.read(source::list).await.unwrap();
        let sources = all.iter().map(Source::key).collect();
        let access = UpstreamAccess::new(&store, http_client());
        Self {
            _sim: sim,
            _fresh: fresh,
            index_backlog: access.index_backlog.clone(),
            pollers: start_pollers(&store, access),
            store,
            sources,
        }
    }

    async fn execute(&self, sql: &'static str) {
        let done = self.store.write(Root::none(), move |tx| {
            tx.execute(sql, &[])?;
            Ok::<_, StoreError>(())
        });
        done.await.unwrap();
    }

    async fn stored(&self, source: SourceKey) -> u64 {
        let counts = self.store.read(move |tx| completeness::counts(tx, source));
        counts.await.unwrap().entries
    }

    async fn fence(&self, source: SourceKey) -> i64 {
        let source = self.store.read(move |tx| source::by_id(tx, source.id));
        let holding = source.await.unwrap().unwrap().holding;
        holding.map_or(0, |holding| holding.fence)
    }

    fn fault(&self, source: SourceKey) -> Option<String> {
        let fault = self.pollers.health().fault(source.id)?;
        Some(fault.kind.into_owned())
    }

    /// Waits until more of a source is stored than now.
    async fn goes_on(&self, source: SourceKey) {
        let before = self.stored(source).await;
        until("it goes on", async || self.stored(source).await > before).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_store_refuses_of_one_source_halts_that_one_alone() {
    let world = World::new().await;
    let [bad, good] = world.sources[..] else {
        panic!("two sources")
    };
    world.goes_on(bad).await;
    world.goes_on(good).await;
    world
        .execute(
            "create trigger refused before insert on entry
             when new.source_id = (select min(id) from source)
             begin select raise(abort, 'not this one'); end",
        )
        .await;
    until("it is reported", async || {
        world.fault(bad).as_deref() == Some("stored")
    })
    .await;
    let stored = world.stored(bad).await;
    world.goes_on(good).await;
    assert_eq!(world.fault(good), None);
    assert_eq!(world.stored(bad).await, stored);
    let message = world.pollers.health().fault(bad.id).unwrap().message;
    assert!(message.contains("not this one"), "{message}");
    world.execute("drop trigger refused").await;
    world.goes_on(bad).await;
    until("it is over", async || world.fault(bad).is_none()).await;
    world.pollers.stop().await;
    world.store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_wait_for_an_index_that_is_behind_until_its_keeper_stalls() {
    let world = World::new().await;
    let source = world.sources[0];
    world.goes_on(source).await;
    let backlog = world.index_backlog.clone();
    let keeper = tokio::spawn(async move {
        loop {
            backlog.report(5_000, steady_ms());
            sleep(Duration::from_millis(100)).await;
        }
    });
    // Requests in flight are answered.
    sleep(Duration::from_millis(500)).await;
    let stored = world.stored(source).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(world.stored(source).await, stored);
    keeper.abort();
    world.goes_on(source).await;
    world.pollers.stop().await;
    world.store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_of_this_process_without_a_session_is_taken_back() {
    let world = World::new().await;
    let source = world.sources[0];
    world.goes_on(source).await;
    let before = world.fence(source).await;
    // As after a claim whose commit was never answered.
    world
        .execute(
            "update source set lease_fence = lease_fence + 1,
                 lease_until_ms = lease_until_ms + 3600000
             where id = (select min(id) from source)",
        )
        .await;
    world.goes_on(source).await;
    assert_eq!(world.fence(source).await, before + 2);
    assert_eq!(world.fault(source), None);
    world.pollers.stop().await;
    assert_eq!(world.fence(source).await, 0, "it was given back");
    world.store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_somebody_elses_ends_the_session_and_is_not_renewed() {
    let world = World::new().await;
    let source = world.sources[0];
    world.goes_on(source).await;
    world
        .execute(
            "update source set lease_fence = lease_fence + 1, lease_holder = 'other',
                 lease_until_ms = cast(unixepoch('subsec') * 1000 as integer) + 8000
             where id = (select min(id) from source)",
        )
        .await;
    let reads = async || {
        let all = world.pollers.progress().await;
        all.iter().any(|progress| progress.source.key() == source)
    };
    until("its session ends", async || !reads().await).await;
    assert_eq!(world.fault(source), None, "nothing is wrong with it");
    // The other one dies: its lease ends by itself.
    until("it is claimed again", async || reads().await).await;
    world.goes_on(source).await;
    world.pollers.stop().await;
    world.store.close().await;
}
