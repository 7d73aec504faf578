//! What is known of servers.

use std::{collections::BTreeMap, sync::Arc};

use axum::Json;
use driftline_core::social::InstanceInfo;
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
    auth::{MayRead, needs},
    mastodon::instance::peers::known_hosts,
    transport::{JsonResult, OwnOrigin},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(instances))
}

/// What is known of a server. What it says of itself is text, and empty where it says nothing.
#[derive(Debug, Serialize, ToSchema)]
struct InstanceRecord {
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
    fn new(origin: String, kind: InstanceKind, info: &InstanceInfo) -> Self {
        Self {
            origin,
            kind,
            name: info.name().to_owned(),
            description: info.description().to_owned(),
            version: info.version().to_owned(),
            software_name: info.software_name().to_owned(),
            extensions: info.extensions().to_vec(),
            maintainer_name: info.maintainer_name().to_owned(),
            fetched_at: None,
        }
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
    let hosts = known_hosts(&reader).await?;
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
    let mut records = vec![InstanceRecord::new(
        own,
        InstanceKind::Own,
        &reader.app.own.info,
    )];
    let (mut read_hosts, nothing) = (Vec::new(), InstanceInfo::default());
    for (origin, said) in read.await? {
        let host = origin.split_once("://").map(|(_, host)| host);
        read_hosts.extend(host.map(str::to_ascii_lowercase));
        let info = said.as_ref().map_or(&nothing, |said| &said.info);
        records.push(InstanceRecord {
            fetched_at: said.as_ref().map(|said| iso_8601(said.fetched_at_ms)),
            ..InstanceRecord::new(origin, InstanceKind::Upstream, info)
        });
    }
    let others = hosts.iter().filter(|host| !read_hosts.contains(host));
    records.extend(others.map(|host| {
        let origin = format!("https://{host}");
        InstanceRecord::new(origin, InstanceKind::AuthorHost, &nothing)
    }));
    Ok(Json(records))
}
