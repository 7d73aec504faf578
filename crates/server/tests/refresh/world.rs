//! A Driftline with pollers and workers, and the simulated upstream that it reads.

use std::time::Duration;

use driftline_core::{
    api::Api,
    refresh::{AgeBand, AgeTable, LookupOutcome, RefreshPlan},
    timeline::{Backfill, Settings},
    upstream_id::UpstreamId,
};
use driftline_db::testing::Fresh;
use driftline_mirror::{
    Policies, UpstreamAccess,
    refresh::{RefreshOptions, RefreshStats, Refreshers},
};
use driftline_net::testing::http_client;
use driftline_runtime::now_ms;
pub(crate) use driftline_server::testing::wait;
use driftline_server::{
    admin::{AddSource, Host, Request},
    testing::start_pollers,
};
use driftline_sim::{
    FaultsConfig, Growth, WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use driftline_store::{
    InstanceId, LocalId, Store, StoreError,
    refresh::RefreshState,
    source::{self, TokenLocation},
    testing,
};

pub(crate) struct World {
    pub(crate) sim: SimServer,
    pub(crate) store: Store,
    pub(crate) host: Host,
    folder: tempfile::TempDir,
    _fresh: Fresh,
}

/// Posts that grow fast, published before the server begins.
pub(crate) fn growing() -> WorldConfig {
    WorldConfig {
        rate_per_s: 5.0,
        growth: Some(Growth {
            half_life_ms: 20_000,
            ..Growth::default()
        }),
        ..WorldConfig::default()
    }
}

/// The same, published for so many ms.
pub(crate) fn growing_for(publish_for_ms: i64) -> WorldConfig {
    WorldConfig {
        publish_for_ms: Some(publish_for_ms),
        ..growing()
    }
}

/// Everything is refreshed once a second for an hour.
pub(crate) fn plan() -> RefreshPlan {
    let bands = vec![AgeBand {
        below_ms: 3_600_000,
        every_ms: 1_000,
    }];
    RefreshPlan {
        ages: AgeTable::new(bands, 300_000).unwrap(),
        ..RefreshPlan::default()
    }
}

impl World {
    pub(crate) async fn start(world: WorldConfig, api: Api) -> Self {
        Self::start_with(world, api, plan()).await
    }

    pub(crate) async fn start_with(world: WorldConfig, api: Api, plan: RefreshPlan) -> Self {
        let options = RefreshOptions::new("test");
        Self::start_options(world, api, plan, options).await
    }

    pub(crate) async fn start_options(
        world: WorldConfig,
        api: Api,
        plan: RefreshPlan,
        options: RefreshOptions,
    ) -> Self {
        let world = Self::unread(world, api, plan, options).await;
        world.mirror_as(api, "mirrored", "driftline").await;
        world
    }

    /// Without a source.
    pub(crate) async fn unread(
        world: WorldConfig,
        api: Api,
        plan: RefreshPlan,
        options: RefreshOptions,
    ) -> Self {
        let config = ServerConfig {
            world,
            api,
            history_ms: 30_000,
            ..ServerConfig::default()
        };
        let sim = SimServer::start(config, 1, Clock::Real).await.unwrap();
        let fresh = Fresh::sqlite();
        let store = testing::open(&fresh);
        let access = UpstreamAccess {
            policies: Policies::new(plan),
            ..UpstreamAccess::new(&store, http_client())
        };
        let options = RefreshOptions {
            buffer_ttl: Duration::from_millis(200),
            scan: Duration::from_millis(50),
            ..options
        };
        let host = Host {
            pollers: Some(start_pollers(&store, access.clone())),
            refreshers: Some(Refreshers::start(store.clone(), access.clone(), options)),
            access: Some(access),
            ..Host::of(&store)
        };
        Self {
            sim,
            store,
            host,
            folder: tempfile::tempdir().unwrap(),
            _fresh: fresh,
        }
    }

    /// A file with a token that the upstream takes.
    pub(crate) fn file_of(&self, token: &str) -> String {
        let path = self.folder.path().join(token);
        std::fs::write(&path, token).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Mirrors the home timeline as a source of that name, read with that token.
    pub(crate) async fn mirror_as(&self, api: Api, name: &str, token: &str) {
        let add = AddSource {
            owner: None,
            name: Some(name.into()),
            address: self.sim.url(),
            api,
            timeline: "home".into(),
            token: Some(TokenLocation::File(self.file_of(token))),
            settings: Settings {
                every_ms: 500,
                spacing_ms: 5,
                backfill: Backfill::All,
                ..Settings::default()
            },
            allow_private: false,
            audience: None,
            check: false,
        };
        self.run(add).await;
    }

    /// Waits until so many posts are stored.
    pub(crate) async fn stored(&self, posts: usize) {
        wait("the posts are stored", async || {
            self.posts().await.len() >= posts
        })
        .await;
    }

    /// Waits until all posts but one are refreshed from now on.
    pub(crate) async fn all_but_one_refreshed(&self) {
        let since_ms = now();
        wait("all others are refreshed again", async || {
            let posts = self.posts().await;
            let fresh = posts
                .iter()
                .filter(|(.., s)| s.freshness.refreshed_ms > since_ms + 1_000);
            fresh.count() >= posts.len() - 1
        })
        .await;
    }

    /// Waits until so many posts were refreshed that often.
    pub(crate) async fn refreshed(&self, posts: usize, times: u32) {
        wait("posts are refreshed", async || {
            let all = self.posts().await;
            let fresh = all.iter().filter(|(.., s)| s.freshness.refreshes >= times);
            fresh.count() >= posts
        })
        .await;
    }

    /// The refresh state of a post.
    pub(crate) async fn refresh_state(&self, post: LocalId) -> RefreshState {
        let found = self
            .store
            .read(move |tx| driftline_store::refresh::refresh_state(tx, post))
            .await;
        found.unwrap().expect("a refresh state")
    }

    /// Makes a scheduled post due at once.
    pub(crate) async fn hasten(&self, post: LocalId) {
        let id = i64::try_from(u64::from(post)).unwrap();
        self.store
            .write(driftline_store::Root::none(), move |tx| {
                for table in ["schedule", "freshness"] {
                    let sooner = format!("update {table} set due_at_ms = 1 where post_id = $1");
                    tx.execute(&sooner, &[&id])?;
                }
                Ok::<_, StoreError>(())
            })
            .await
            .unwrap();
    }

    pub(crate) async fn run<R: Request>(&self, request: R) -> R::Reply {
        request.execute(&self.host).await.unwrap()
    }

    pub(crate) async fn instance(&self) -> InstanceId {
        let all = self.store.read(source::instances).await.unwrap();
        all[0].id
    }

    pub(crate) async fn refresh_stats(&self) -> RefreshStats {
        let instance = self.instance().await;
        self.host
            .refreshers
            .as_ref()
            .unwrap()
            .refresh_stats(instance)
    }

    pub(crate) async fn count(&self, outcome: LookupOutcome) -> u64 {
        let at = LookupOutcome::ALL
            .iter()
            .position(|o| *o == outcome)
            .unwrap();
        self.refresh_stats().await.outcomes[at]
    }

    /// Every stored post: its upstream ID, its own, and its refresh state.
    pub(crate) async fn posts(&self) -> Vec<(UpstreamId, LocalId, RefreshState)> {
        self.store
            .read(|tx| {
                let ids = tx.query("select id, upstream_id from post order by id", &[], |row| {
                    Ok((row.i64(0)?, row.text(1)?))
                })?;
                let mut posts = Vec::new();
                for (id, upstream_id) in ids {
                    let id = LocalId::try_from(id).unwrap();
                    if let Some(state) = driftline_store::refresh::refresh_state(tx, id)? {
                        posts.push((UpstreamId::new(upstream_id), id, state));
                    }
                }
                Ok::<_, StoreError>(posts)
            })
            .await
            .unwrap()
    }

    pub(crate) fn faults(&self, change: impl FnOnce(&mut FaultsConfig)) {
        self.sim.change_faults(change);
    }

    pub(crate) async fn stop(self) {
        let Host {
            pollers,
            refreshers,
            ..
        } = self.host;
        pollers.unwrap().stop().await;
        refreshers.unwrap().stop().await;
        self.store.close().await;
        self.sim.shutdown().await;
    }
}

/// The local time, Unix ms.
pub(crate) fn now() -> i64 {
    now_ms()
}
