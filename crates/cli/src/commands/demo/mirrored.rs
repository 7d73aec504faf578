//! Driftline's part of the demo.

use std::{collections::HashMap, path::Path, time::Duration};

use driftline_core::{api::Api, names::audience::Audience, upstream_id::UpstreamId};
use driftline_mirror::{
    CompletenessReport, Policies, Session, UpstreamAccess,
    refresh::{RefreshOptions, RefreshStats, Refreshers},
};
use driftline_net::Http;
use driftline_server::admin::{self, AddCredential, AddSource, Host, Request as _, report_of};
use driftline_store::{
    SourceKey, Store, StoreError, Target, Tx, export,
    refresh::refresh_state,
    source::{Source, TokenLocation},
};
use tokio::sync::watch;

use super::{
    home::{self, HomeRead},
    scene::Scene,
    score::{PollerRecord, Progress},
};
use crate::{
    error::CliError,
    source_reader::{ReadUntil, SourceReader},
};

/// The result.
pub(super) struct Mirrored {
    pub(super) seen: PollerRecord,
    /// The report at the end.
    pub(super) report: CompletenessReport,
    /// What an account reads of it.
    pub(super) home: HomeRead,
    /// The counts that it holds, by post.
    pub(super) counts: HashMap<UpstreamId, i64>,
    /// What refreshing took.
    pub(super) refresh_stats: RefreshStats,
}

/// Mirrors the server into a temporary database until nothing is left to be read again, or until
/// the stop signal.
///
/// # Errors
/// [`CliError`] if its files cannot be made, or if it broke.
pub(super) async fn mirror(
    url: &str,
    http: Http,
    scene: Scene,
    begun_ms: i64,
    mut stop: watch::Receiver<bool>,
    progress: &watch::Sender<Progress>,
) -> Result<Mirrored, CliError> {
    let folder = tempfile::Builder::new()
        .prefix("driftline-demo-")
        .tempdir()
        .map_err(|error| no_files(&error))?;
    let path = folder.path().join("driftline.db");
    let store = tokio::task::spawn_blocking(move || Store::open(Target::Sqlite { path }))
        .await
        .map_err(|error| CliError::failed(format!("the store was not opened: {error}")))??;
    let source = add(&store, url, scene, folder.path()).await?;
    let access = UpstreamAccess {
        policies: Policies::new(scene.plan()),
        ..UpstreamAccess::new(&store, http)
    };
    let options = RefreshOptions {
        credentials: vec![FRESH.into()],
        buffer_ttl: Duration::from_millis(500),
        ..RefreshOptions::new(NAME)
    };
    let refreshers = Refreshers::start(store.clone(), access.clone(), options);
    let (key, instance) = (source.key(), source.instance.id);
    let until = ReadUntil {
        // Nothing is published after this.
        at_ms: Some(begun_ms + scene.publish_ms() + 500),
        settle_rungs: Some(scene.settings().rungs.len() + 1),
        settle_ms: MAX_SETTLING_MS,
    };
    let mut reader = SourceReader::open(store.clone(), &access, source, NAME).await?;
    let show = |session: &Session, _| drop(progress.send_replace(progress_of(session)));
    let read = reader.run(until, &mut stop, show).await;
    let progress = progress_of(reader.session());
    let closed = reader.close().await;
    refreshers.stop().await;
    let report = report_of(&store, NAME).await;
    let stored = store.read(move |tx| stored(tx, key)).await;
    let home = match (&read, &closed) {
        (Ok(_), Ok(_)) => Some(Box::pin(home::read(&store, access, (key, NAME))).await),
        _ => None,
    };
    store.close().await;
    read?;
    closed?;
    let home = home.transpose()?.unwrap_or_default();
    let (stored_at_ms, counts) = stored?;
    Ok(Mirrored {
        seen: PollerRecord {
            stored_at_ms,
            progress,
        },
        report: report?,
        home,
        counts,
        refresh_stats: refreshers.refresh_stats(instance),
    })
}

/// Adds the source, and a credential that keeps its posts fresh: the polls keep the budget that the
/// others have.
async fn add(store: &Store, url: &str, scene: Scene, folder: &Path) -> Result<Source, CliError> {
    let token = |token: &str| {
        let path = folder.join(token);
        std::fs::write(&path, token).map_err(|error| no_files(&error))?;
        let path = path.to_string_lossy().into_owned();
        Ok::<_, CliError>(Some(TokenLocation::File(path)))
    };
    let source = AddSource {
        owner: None,
        name: Some(NAME.into()),
        address: url.to_owned(),
        api: Api::Mastodon,
        timeline: "public".into(),
        token: token("driftline")?,
        settings: scene.settings(),
        allow_private: false,
        audience: Some(Audience::Public),
        check: false,
    };
    source.execute(&Host::of(store)).await?;
    let credential = AddCredential {
        name: Some(FRESH.into()),
        address: url.to_owned(),
        api: Api::Mastodon,
        token: token(FRESH)?,
        monthly_posts: None,
    };
    credential.execute(&Host::of(store)).await?;
    Ok(admin::find(store, NAME).await?)
}

/// When each post was stored, and its counts: the store says it, not the machine.
fn stored(tx: &mut Tx<'_>, source: SourceKey) -> Result<Stored, StoreError> {
    let (mut stored_at_ms, mut counts) = (HashMap::new(), HashMap::new());
    for row in export::rows(tx, source, 0, u32::MAX)? {
        let id = UpstreamId::new(row.post.upstream_id);
        if let Some(state) = refresh_state(tx, row.post_id)? {
            counts.insert(id.clone(), state.freshness.counts.total());
        }
        stored_at_ms.insert(id, row.arrived_at_ms);
    }
    Ok((stored_at_ms, counts))
}

fn progress_of(session: &Session) -> Progress {
    let counters = session.machine().counters();
    let (overlap, rescan) = (counters.caught_by_overlap, counters.caught_by_rescan);
    Progress {
        stored: counters.stored,
        requests: counters.requests,
        redundant: counters.fetched.saturating_sub(counters.stored),
        remark: format!(", {overlap} caught by the overlap, {rescan} by a rescan"),
    }
}

/// The error of temporary files that cannot be made.
pub(super) fn no_files(error: &std::io::Error) -> CliError {
    CliError::failed(format!("cannot create temporary files: {error}"))
}

type Stored = (HashMap<UpstreamId, i64>, HashMap<UpstreamId, i64>);

const NAME: &str = "demo";
/// The name and the token of the credential that posts are refreshed with.
const FRESH: &str = "freshness";
const MAX_SETTLING_MS: i64 = 40_000;
