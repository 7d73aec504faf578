//! What any program may ask any server: NodeInfo.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{App, mastodon::own_instance, transport::{Address, Routes}};

/// Its routes.
pub(crate) fn routes() -> Routes<Arc<App>> {
    Routes::new()
        .add(__path_links, links)
        .add(__path_node_info, node_info)
}

/// Where NodeInfo is.
#[derive(Serialize, ToSchema)]
pub(crate) struct NodeInfoLinks {
    links: Vec<NodeInfoLink>,
}

#[derive(Serialize, ToSchema)]
struct NodeInfoLink {
    /// The address of the schema.
    rel: &'static str,
    /// The address of the document.
    href: String,
}

/// [NodeInfo 2.1](https://nodeinfo.diaspora.software).
#[derive(Serialize, ToSchema)]
pub(crate) struct NodeInfo {
    #[schema(example = "2.1")]
    version: &'static str,
    software: NodeInfoSoftware,
    /// None: Driftline reads other servers by their client APIs.
    protocols: Vec<&'static str>,
    services: NodeInfoServices,
    #[serde(rename = "openRegistrations")]
    open_registrations: bool,
    usage: NodeInfoUsage,
    /// `nodeName`, `nodeDescription`, `maintainer`, `features`.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
}

#[derive(Serialize, ToSchema)]
struct NodeInfoSoftware {
    name: String,
    version: String,
    repository: &'static str,
}

#[derive(Serialize, ToSchema)]
struct NodeInfoServices {
    inbound: Vec<&'static str>,
    outbound: Vec<&'static str>,
}

#[derive(Serialize, ToSchema)]
struct NodeInfoUsage {
    #[schema(value_type = Object)]
    users: Map<String, Value>,
}

/// Where NodeInfo is.
#[utoipa::path(get, path = "/.well-known/nodeinfo", tag = "server", security(()), responses((status = 200, body = NodeInfoLinks)))]
pub(crate) async fn links(address: Address) -> Json<NodeInfoLinks> {
    Json(NodeInfoLinks {
        links: vec![NodeInfoLink {
            rel: SCHEMA,
            href: address.of("/nodeinfo/2.1"),
        }],
    })
}

/// What this server is, as NodeInfo 2.1.
#[utoipa::path(get, path = "/nodeinfo/2.1", tag = "server", security(()), responses((status = 200, body = NodeInfo)))]
pub(crate) async fn node_info(State(app): State<Arc<App>>, address: Address) -> Response {
    let profile = own_instance(&app, &address).profile;
    let mut metadata = Map::new();
    metadata.insert("nodeName".to_owned(), profile.name.into());
    metadata.insert("nodeDescription".to_owned(), profile.description.into());
    metadata.insert("features".to_owned(), profile.extensions.into());
    if !profile.maintainer_name.is_empty() {
        let maintainer = Map::from_iter([("name".to_owned(), profile.maintainer_name.into())]);
        metadata.insert("maintainer".to_owned(), maintainer.into());
    }
    let node_info = NodeInfo {
        version: "2.1",
        software: NodeInfoSoftware {
            name: profile.software_name,
            version: profile.version,
            repository: env!("CARGO_PKG_REPOSITORY"),
        },
        protocols: Vec::new(),
        services: NodeInfoServices {
            inbound: Vec::new(),
            outbound: Vec::new(),
        },
        open_registrations: false,
        usage: NodeInfoUsage { users: Map::new() },
        metadata,
    };
    let mut response = Json(node_info).into_response();
    let profiled = HeaderValue::from_static(PROFILED_JSON);
    response.headers_mut().insert(CONTENT_TYPE, profiled);
    response
}

const SCHEMA: &str = "http://nodeinfo.diaspora.software/ns/schema/2.1";
const PROFILED_JSON: &str =
    "application/json; profile=\"http://nodeinfo.diaspora.software/ns/schema/2.1#\"";
