//! A Driftline in this process, and the simulated upstream.

use std::time::Duration;

use driftline_core::timeline::{Backfill, Rung, Settings};
use driftline_db::testing::Fresh;
use driftline_mirror::{Pollers, UpstreamAccess};
use driftline_net::testing::http_client;
use driftline_server::{
    admin::{AddSource, Host, Request as _},
    testing::{Served, app, start_pollers},
};
use driftline_sim::{
    WorldConfig,
    http::{Clock, SimServer},
};
use driftline_store::{
    Store, completeness, export, machine,
    source::{self, TokenLocation},
    testing,
};
use tokio::time::Instant;

pub(crate) struct Driftline {
    store: Store,
    pollers: Pollers,
    served: Served,
    _fresh: Fresh,
    _folder: tempfile::TempDir,
}

pub(crate) async fn upstream(world: WorldConfig) -> SimServer {
    SimServer::start(world, 1, Clock::Real).await.unwrap()
}

/// The ladder scaled down to seconds.
pub(crate) fn settings() -> Settings {
    let rung = |age_ms, period_ms| Rung { age_ms, period_ms };
    Settings {
        every_ms: 300,
        spacing_ms: 5,
        backfill: Backfill::All,
        second_look_ms: 2_000,
        second_look_period_ms: 500,
        rungs: vec![rung(11_000, 2_000)],
        ..Settings::default()
    }
}

impl Driftline {
    pub(crate) async fn start() -> Self {
        let fresh = Fresh::sqlite();
        let store = testing::open(&fresh);
        let pollers = start_pollers(&store, UpstreamAccess::new(&store, http_client()));
        Self {
            served: Served::start(app(&store, pollers.health())).await,
            store,
            pollers,
            _fresh: fresh,
            _folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn url(&self) -> String {
        self.served.url.clone()
    }

    pub(crate) async fn mirror(&self, address: &str, timeline: &str, settings: Settings) {
        let token_file = self._folder.path().join("token");
        std::fs::write(&token_file, "driftline").unwrap();
        let add = AddSource {
            owner: None,
            name: Some("mirrored".into()),
            address: address.into(),
            api: driftline_core::api::Api::Mastodon,
            timeline: timeline.into(),
            // A Driftline refuses a token that is not its own.
            token: (timeline != "public")
                .then(|| TokenLocation::File(token_file.to_str().unwrap().into())),
            settings,
            allow_private: false,
            audience: Some(driftline_core::names::audience::Audience::Public),
            check: false,
        };
        let host = Host {
            pollers: Some(self.pollers.clone()),
            ..Host::of(&self.store)
        };
        add.execute(&host).await.unwrap();
    }

    pub(crate) async fn source(&self) -> source::Source {
        self.store
            .read(|tx| source::by_name(tx, "mirrored"))
            .await
            .unwrap()
            .unwrap()
    }

    /// Whether nothing is open and every rung has read what is older than now.
    pub(crate) async fn is_settled(&self) -> bool {
        let source = self.source().await;
        let key = source.key();
        let machine = self
            .store
            .read(move |tx| machine::load(tx, key))
            .await
            .unwrap();
        let is_empty = machine.ledger().frontier().is_none();
        !is_empty && machine.is_settled(&source.settings, driftline_runtime::now_ms(), 2)
    }

    pub(crate) async fn stored(&self) -> usize {
        let key = self.source().await.key();
        let counts = self
            .store
            .read(move |tx| completeness::counts(tx, key))
            .await
            .unwrap();
        usize::try_from(counts.entries).unwrap()
    }

    /// All that it stores.
    pub(crate) async fn rows(&self) -> Vec<export::ExportRow> {
        let key = self.source().await.key();
        let read = self
            .store
            .read(move |tx| export::rows(tx, key, 0, u32::MAX));
        read.await.unwrap()
    }

    /// Waits until it is so.
    pub(crate) async fn until(&self, mut condition: impl AsyncFnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !condition().await {
            let stored = self.stored().await;
            assert!(Instant::now() < deadline, "{stored} are stored");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) async fn stop(self) {
        self.pollers.stop().await;
        self.served.stop().await;
        self.store.close().await;
    }
}
