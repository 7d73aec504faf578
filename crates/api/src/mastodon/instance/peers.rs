//! The servers that a viewer may know of.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::Json;
use driftline_store::{StoreError, Tx, author_hosts, source, timeline::Viewer};
use parking_lot::Mutex;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::{MayRead, RequestContext, needs},
    transport::{ApiResult, JsonResult},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(peers))
}

/// The hosts of the servers that the caller may know of.
///
/// Those that the sources read which the caller may read, and those of authors of whom the caller knows: strangers of
/// public posts of public sources alone. What authors there are may be as old as a minute.
#[utoipa::path(
    get, path = "/api/v1/instance/peers", tag = "server", security((), ("account" = [])),
    responses((status = 200, body = [String])),
)]
async fn peers(reader: MayRead<needs::NoScope>) -> JsonResult<BTreeSet<String>> {
    known_hosts(&reader).await.map(Json)
}

/// The hosts that a viewer may know of.
pub(crate) async fn known_hosts(context: &RequestContext) -> ApiResult<BTreeSet<String>> {
    let (authors, viewer) = (author_hosts(context).await?, context.viewer);
    let mut hosts = context.read(move |tx| hosts_of_sources(tx, viewer)).await?;
    hosts.extend(authors.iter().cloned());
    Ok(hosts)
}

async fn author_hosts(context: &RequestContext) -> ApiResult<Arc<BTreeSet<String>>> {
    let (cache, viewer) = (&context.app.people.peers, context.viewer);
    if let Some(known) = cache.get(viewer) {
        return Ok(known);
    }
    // It reads the names of all accounts, which must not be done for many at a time.
    let _turn = cache.turn.lock().await;
    if let Some(known) = cache.get(viewer) {
        return Ok(known);
    }
    let read = context.read(move |tx| author_hosts::known_to(tx, viewer));
    let hosts = Arc::new(read.await?);
    cache.keep(viewer, Arc::clone(&hosts));
    Ok(hosts)
}

/// The hosts of the servers that the sources read which a viewer may read.
pub(crate) fn hosts_of_sources(
    tx: &mut Tx<'_>,
    viewer: Viewer,
) -> Result<BTreeSet<String>, StoreError> {
    let sources = source::readable(tx, viewer)?;
    let hosts = sources.iter().filter_map(|source| {
        let (_, host) = source.instance.origin.split_once("://")?;
        Some(host.to_ascii_lowercase())
    });
    Ok(hosts.collect())
}

/// The hosts of authors that were read lately, by the viewer. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct PeerCache {
    known: Arc<Mutex<HashMap<Viewer, Cached>>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone)]
struct Cached {
    hosts: Arc<BTreeSet<String>>,
    read_at: Instant,
}

impl PeerCache {
    fn get(&self, viewer: Viewer) -> Option<Arc<BTreeSet<String>>> {
        let known = self.known.lock();
        let cached = known.get(&viewer)?;
        (cached.read_at.elapsed() < KEPT).then(|| Arc::clone(&cached.hosts))
    }

    fn keep(&self, viewer: Viewer, hosts: Arc<BTreeSet<String>>) {
        let mut known = self.known.lock();
        if known.len() >= MAX_VIEWERS {
            known.clear();
        }
        let read_at = Instant::now();
        known.insert(viewer, Cached { hosts, read_at });
    }
}

const KEPT: Duration = Duration::from_secs(60);
const MAX_VIEWERS: usize = 100;
