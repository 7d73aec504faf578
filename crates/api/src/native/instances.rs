//! What is known of servers.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use axum::Json;
use driftline_core::{names::host::HostKey, social::InstanceInfo};
use driftline_mastodon::iso_8601;
use driftline_store::{
    InstanceId,
    instance_info::{self, StoredInstanceInfo},
    source,
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::{MayRead, RequestContext, needs},
    description::ids::InstanceId as InstanceIdText,
    mastodon::{answer::found, instance::peers::known_hosts},
    transport::{ApiResult, JsonResult, OwnOrigin, PathId, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(instances))
        .routes(routes!(instance))
}

/// What is known of a server. What it says of itself is text, and empty where it says nothing.
#[derive(Debug, Serialize, ToSchema)]
struct InstanceRecord {
    /// 2^62 and the first 60 bits of the SHA-256 of its host, which is the same on every server. `http` and `https`
    /// of one host are one instance.
    #[schema(value_type = InstanceIdText)]
    id: String,
    /// Its address; of an author's host, which is not read, the one that it most likely has. Of this server
    /// `public_url`, or else the address that it listens on.
    #[schema(example = "https://mastodon.social")]
    origin: String,
    /// What it is to this server.
    kind: InstanceKind,
    name: String,
    description: String,
    /// Of its software.
    version: String,
    software_name: String,
    /// The protocols and extensions that it lists.
    extensions: Vec<String>,
    maintainer_name: String,
    /// When it said so; of an author's host, and of one that has not answered yet, null.
    #[schema(format = DateTime)]
    fetched_at: Option<String>,
}

/// What a server is to this one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum InstanceKind {
    /// This one.
    Own,
    /// One that sources are read from.
    Upstream,
    /// One that is known by its authors alone.
    AuthorHost,
}

impl InstanceRecord {
    fn new(origin: String, kind: InstanceKind, info: &InstanceInfo) -> Option<Self> {
        Some(Self {
            id: HostKey::new(&origin)?.instance_id().to_string(),
            origin,
            kind,
            name: info.name().to_owned(),
            description: info.description().to_owned(),
            version: info.version().to_owned(),
            software_name: info.software_name().to_owned(),
            extensions: info.extensions().to_vec(),
            maintainer_name: info.maintainer_name().to_owned(),
            fetched_at: None,
        })
    }
}

/// What is known of servers: of this one, and of those that the caller may know of.
///
/// Those are the servers of sources that the caller may read, and the hosts of authors of whom the caller knows: strangers of
/// public posts of public sources alone. What hosts there are may be as old as a minute.
#[utoipa::path(
    get, path = "/api/driftline/v1/instances", tag = "server", security((), ("account" = [])),
    responses((status = 200, body = [InstanceRecord])),
)]
async fn instances(
    reader: MayRead<needs::NoScope>,
    OwnOrigin(own): OwnOrigin,
) -> JsonResult<Vec<InstanceRecord>> {
    records(&reader, own).await.map(Json)
}

/// A server by its ID, if it is among those that the caller may know of.
///
/// An ID is looked for among these alone, so the answer tells nothing about servers that others know of.
#[utoipa::path(
    get, path = "/api/driftline/v1/instances/{id}", tag = "server", params(("id" = InstanceIdText, Path)),
    security((), ("account" = [])),
    responses((status = 200, body = InstanceRecord), (status = 404, body = Problem)),
)]
async fn instance(
    reader: MayRead<needs::NoScope>,
    OwnOrigin(own): OwnOrigin,
    PathId(id): PathId,
) -> JsonResult<InstanceRecord> {
    let (records, id) = (records(&reader, own).await?, id.to_string());
    found(records.into_iter().find(|record| record.id == id))
}

async fn records(reader: &RequestContext, own: String) -> ApiResult<Vec<InstanceRecord>> {
    let hosts = known_hosts(reader).await?;
    let viewer = reader.viewer;
    let read = reader.read(move |tx| {
        let mut said = instance_info::all(tx)?;
        let sources = source::readable(tx, viewer)?;
        // Of an instance that only others read, nothing is told but that it is an author's host.
        // A record that was fetched before the viewer's sources there were added was fetched for others.
        let mut since: BTreeMap<String, (InstanceId, i64)> = BTreeMap::new();
        for source in sources {
            let (instance, at_ms) = (source.instance, source.created_at_ms);
            let first = since.entry(instance.origin).or_insert((instance.id, at_ms));
            first.1 = first.1.min(at_ms);
        }
        let read: BTreeMap<String, Option<StoredInstanceInfo>> = since
            .into_iter()
            .map(|(origin, (id, since_ms))| {
                let said = said.remove(&id);
                (origin, said.filter(|said| said.fetched_at_ms >= since_ms))
            })
            .collect();
        Ok(read)
    });
    let own = InstanceRecord::new(own, InstanceKind::Own, &reader.app.own.info);
    let mut records: Vec<InstanceRecord> = own.into_iter().collect();
    let nothing = InstanceInfo::default();
    for (origin, said) in read.await? {
        let info = said.as_ref().map_or(&nothing, |said| &said.info);
        let record = InstanceRecord::new(origin, InstanceKind::Upstream, info);
        records.extend(record.map(|record| InstanceRecord {
            fetched_at: said.as_ref().map(|said| iso_8601(said.fetched_at_ms)),
            ..record
        }));
    }
    let mut known: HashSet<String> = records.iter().map(|record| record.id.clone()).collect();
    let others = hosts.iter().filter_map(|host| {
        let origin = format!("https://{host}");
        InstanceRecord::new(origin, InstanceKind::AuthorHost, &nothing)
    });
    // Names may spell one host in several ways.
    records.extend(others.filter(|record| known.insert(record.id.clone())));
    Ok(records)
}
