//! NodeInfo 2.1: what any program may ask any server.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{App, OwnInstance, people::SignUpMode, transport::Address};

/// Its routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(links))
        .routes(routes!(node_info))
}

/// Where NodeInfo is.
#[derive(Serialize, ToSchema)]
struct NodeInfoLinks {
    links: Vec<NodeInfoLink>,
}

/// A document of NodeInfo.
#[derive(Serialize, ToSchema)]
struct NodeInfoLink {
    /// The address of its schema.
    rel: &'static str,
    href: String,
}

/// [NodeInfo 2.1](https://nodeinfo.diaspora.software).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NodeInfo {
    #[schema(example = "2.1")]
    version: &'static str,
    software: NodeInfoSoftware,
    /// None: Driftline reads other servers by their client APIs, and none can read it by a protocol.
    protocols: [&'static str; 0],
    services: NodeInfoServices,
    open_registrations: bool,
    /// Nothing is counted: counts would tell of people.
    usage: NodeInfoUsage,
    /// `nodeName`, `nodeDescription`, `features`, and `maintainer` with its `name` and `email`, where there is one.
    #[schema(value_type = Object)]
    metadata: Value,
}

#[derive(Serialize, ToSchema)]
struct NodeInfoSoftware {
    name: &'static str,
    version: &'static str,
    repository: &'static str,
}

#[derive(Serialize, ToSchema)]
struct NodeInfoServices {
    inbound: [&'static str; 0],
    outbound: [&'static str; 0],
}

#[derive(Serialize, ToSchema)]
struct NodeInfoUsage {
    #[schema(value_type = Object)]
    users: Map<String, Value>,
}

/// Where NodeInfo is.
#[utoipa::path(
    get, path = "/.well-known/nodeinfo", tag = "server", security(()),
    responses((status = 200, body = NodeInfoLinks)),
)]
async fn links(address: Address) -> Json<NodeInfoLinks> {
    Json(NodeInfoLinks {
        links: vec![NodeInfoLink {
            rel: SCHEMA,
            href: address.of("/nodeinfo/2.1"),
        }],
    })
}

/// What this server is, as NodeInfo 2.1.
#[utoipa::path(
    get, path = "/nodeinfo/2.1", tag = "server", security(()),
    responses((status = 200, body = NodeInfo)),
)]
async fn node_info(State(app): State<Arc<App>>) -> Response {
    let node_info = NodeInfo {
        version: "2.1",
        software: NodeInfoSoftware {
            name: "driftline",
            version: env!("CARGO_PKG_VERSION"),
            repository: env!("CARGO_PKG_REPOSITORY"),
        },
        protocols: [],
        services: NodeInfoServices {
            inbound: [],
            outbound: [],
        },
        open_registrations: app.people.sign_up.mode != SignUpMode::Closed,
        usage: NodeInfoUsage { users: Map::new() },
        metadata: metadata(&app.own),
    };
    ([(CONTENT_TYPE, PROFILED_JSON)], Json(node_info)).into_response()
}

fn metadata(own: &OwnInstance) -> Value {
    let mut metadata = json!({
        "nodeName": own.info.name(),
        "nodeDescription": own.info.description(),
        "features": own.info.extensions(),
    });
    let maintainer = [
        ("name", own.info.maintainer_name()),
        ("email", &own.maintainer_mail),
    ];
    let known: Map<String, Value> = maintainer
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| (name.to_owned(), json!(text)))
        .collect();
    if !known.is_empty() {
        metadata["maintainer"] = Value::Object(known);
    }
    metadata
}

const SCHEMA: &str = "http://nodeinfo.diaspora.software/ns/schema/2.1";
const PROFILED_JSON: &str =
    "application/json; profile=\"http://nodeinfo.diaspora.software/ns/schema/2.1#\"";
