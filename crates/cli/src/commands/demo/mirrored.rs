//! Driftline's part of the demo.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use driftline_core::{api::Api, upstream_id::UpstreamId};
use driftline_mirror::{
    Policies, Session, UpstreamAccess,
    refresh::{RefreshOptions, RefreshStats, Refreshers},
};
use driftline_net::Http;
use driftline_runtime::now_ms;
use driftline_server::admin::{self, AddCredential, AddSource, Host, Request as _};
use driftline_store::{
    SourceId, Store, StoreError, Target, export,
    refresh::refresh_state,
    source::{self, TokenLocation},
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use super::{Shared, lock, scene::Scene, score::Seen};
use crate::{
    error::CliError,
    source_reader::{ReadUntil, SourceReader},
};

/// A running Driftline, on a temporary database.
pub(super) struct Mirrored {
    pub(super) seen: Shared,
    store: Store,
    source: SourceId,
    refreshers: Refreshers,
    reading: JoinHandle<Result<String, CliError>>,
    counting: JoinHandle<Result<(), StoreError>>,
    _folder: tempfile::TempDir,
}

/// The result.
pub(super) struct Outcome {
    pub(super) seen: Seen,
    /// The ledger at the end, as JSON.
    pub(super) ledger: String,
    /// The counts that it holds, by post.
    pub(super) counts: HashMap<UpstreamId, i64>,
    /// What refreshing took.
    pub(super) refresh_stats: RefreshStats,
}

impl Mirrored {
    /// Starts it.
    ///
    /// # Errors
    /// [`CliError`] if its files cannot be made.
    pub(super) async fn start(
        url: &str,
        http: Http,
        scene: &Scene,
        begun_ms: i64,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, CliError> {
        let wrong = |error| CliError::failed(format!("cannot create temporary files: {error}"));
        let folder = tempfile::Builder::new()
            .prefix("driftline-demo-")
            .tempdir()
            .map_err(wrong)?;
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, "driftline").map_err(wrong)?;
        let target = Target::Sqlite {
            path: folder.path().join("driftline.db"),
        };
        let store = tokio::task::spawn_blocking(move || Store::open(target))
            .await
            .map_err(|error| CliError::failed(format!("the store was not opened: {error}")))??;
        let add = AddSource {
            name: Some("demo".into()),
            address: url.to_owned(),
            api: Api::Mastodon,
            timeline: "public".into(),
            token: Some(TokenLocation::File(
                token_file.to_string_lossy().into_owned(),
            )),
            settings: scene.settings(),
            check: false,
        };
        add.execute(&Host::of(&store)).await?;
        let source = admin::find(&store, "demo").await?;
        let id = source.id;
        let access = UpstreamAccess {
            policies: Policies::new(scene.plan()),
            ..UpstreamAccess::new(&store, http)
        };
        let refreshers = refresh(&store, &access, url, folder.path()).await?;
        let reader = SourceReader::open(store.clone(), &access, source, "demo").await?;

        let seen = Shared::new(Mutex::new(Seen::default()));
        let until = ReadUntil {
            // Nothing is published after this.
            at_ms: Some(begun_ms + scene.publish_ms() + 500),
            settle_rungs: Some(scene.settings().rungs.len() + 1),
            settle_ms: MAX_SETTLING_MS,
        };
        let reading = tokio::spawn(Box::pin(read(reader, until, stop, Arc::clone(&seen))));
        let counting = tokio::spawn(count(store.clone(), id, Arc::clone(&seen)));
        Ok(Self {
            seen,
            store,
            source: id,
            refreshers,
            reading,
            counting,
            _folder: folder,
        })
    }

    /// Waits until nothing is left to be read again.
    ///
    /// # Errors
    /// [`CliError`] if it broke.
    pub(super) async fn end(self) -> Result<Outcome, CliError> {
        let read = self
            .reading
            .await
            .map_err(|error| CliError::failed(format!("driftline broke: {error}")));
        self.counting.abort();
        let _ = self.counting.await;
        self.refreshers.stop().await;
        let counted = count_once(&self.store, self.source, &self.seen).await;
        let counts = counts(&self.store, self.source).await;
        let instances = self.store.read(source::instances).await;
        self.store.close().await;
        let ledger = read??;
        counted?;
        let instance = instances?.first().map(|instance| instance.id);
        Ok(Outcome {
            seen: lock(&self.seen).clone(),
            ledger,
            counts: counts?,
            refresh_stats: instance.map_or_else(RefreshStats::default, |id| {
                self.refreshers.refresh_stats(id)
            }),
        })
    }
}

/// Keeps posts fresh with a token of its own: the polls keep the budget that the others have.
async fn refresh(
    store: &Store,
    access: &UpstreamAccess,
    url: &str,
    folder: &Path,
) -> Result<Refreshers, CliError> {
    let token_file = folder.join("refresh-token");
    std::fs::write(&token_file, FRESH)
        .map_err(|error| CliError::failed(format!("the token cannot be written: {error}")))?;
    let add = AddCredential {
        name: Some(FRESH.into()),
        address: url.to_owned(),
        api: Api::Mastodon,
        token: Some(TokenLocation::File(
            token_file.to_string_lossy().into_owned(),
        )),
        monthly_posts: None,
    };
    add.execute(&Host::of(store)).await?;
    let options = RefreshOptions {
        credentials: vec![FRESH.into()],
        buffer_ttl: Duration::from_millis(500),
        ..RefreshOptions::new("demo")
    };
    Ok(Refreshers::start(store.clone(), access.clone(), options))
}

/// The counts of stored posts.
async fn counts(store: &Store, source: SourceId) -> Result<HashMap<UpstreamId, i64>, StoreError> {
    store
        .read(move |tx| {
            let mut counts = HashMap::new();
            for row in export::rows(tx, source, 0, u32::MAX)? {
                if let Some(state) = refresh_state(tx, row.post_id)? {
                    let total = state.freshness.counts.total();
                    counts.insert(UpstreamId::new(row.post.upstream_id), total);
                }
            }
            Ok(counts)
        })
        .await
}

async fn read(
    mut reader: SourceReader,
    until: ReadUntil,
    mut stop: watch::Receiver<bool>,
    seen: Shared,
) -> Result<String, CliError> {
    reader
        .run(until, &mut stop, |session, _| observe(session, &seen))
        .await?;
    observe(reader.session(), &seen);
    let machine = reader.session().machine();
    let plan = machine.plan(
        &reader.session().source().settings,
        reader.session().abilities(),
        now_ms(),
    );
    let ledger = serde_json::json!({
        "ledger": machine.ledger(),
        "counters": machine.counters(),
        "rung_stats": machine.rung_stats(),
        "ladder": plan.ladder,
        "last_error": machine.last_error(),
    });
    reader.close().await?;
    Ok(ledger.to_string())
}

fn observe(session: &Session, seen: &Shared) {
    let machine = session.machine();
    let counters = machine.counters();
    let mut seen = lock(seen);
    seen.requests = counters.requests;
    seen.redundant = counters.fetched.saturating_sub(counters.stored);
    seen.remark = Some(format!(
        "{} caught by the overlap, {} by a rescan",
        counters.caught_by_overlap, counters.caught_by_rescan
    ));
}

async fn count(store: Store, source: SourceId, seen: Shared) -> Result<(), StoreError> {
    let mut next = Instant::now();
    loop {
        next += Duration::from_millis(500);
        sleep_until(next).await;
        count_once(&store, source, &seen).await?;
    }
}

/// The store says what is stored, not the machine.
async fn count_once(store: &Store, source: SourceId, seen: &Shared) -> Result<(), StoreError> {
    let rows = store.read(move |tx| export::rows(tx, source, 0, u32::MAX));
    let stored = rows.await?.into_iter();
    let stored = stored.map(|row| (UpstreamId::new(row.post.upstream_id), row.arrived_at_ms));
    lock(seen).stored_at_ms = stored.collect();
    Ok(())
}

/// The name and the token of the credential that posts are refreshed with.
const FRESH: &str = "freshness";
const MAX_SETTLING_MS: i64 = 40_000;
