//! NodeInfo, in both versions that are in use: what any program may ask any server.

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
        .routes(routes!(version_2_0))
        .routes(routes!(version_2_1))
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

/// [NodeInfo](https://nodeinfo.diaspora.software).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NodeInfo {
    #[schema(example = "2.1")]
    version: &'static str,
    software: NodeInfoSoftware,
    /// Of the network whose posts are here. Driftline reads other servers by their client APIs, and none can read it by
    /// a protocol; but the schemas want at least one of their list.
    #[schema(value_type = Vec<String>, min_items = 1)]
    protocols: [&'static str; 1],
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
    /// Of 2.1 alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<&'static str>,
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
        links: [V2_1, V2_0]
            .map(|version| NodeInfoLink {
                rel: version.schema,
                href: address.url(&format!("/nodeinfo/{}", version.number)),
            })
            .into(),
    })
}

/// What this server is, as NodeInfo 2.0.
#[utoipa::path(
    get, path = "/nodeinfo/2.0", tag = "server", security(()),
    responses((status = 200, body = NodeInfo)),
)]
async fn version_2_0(State(app): State<Arc<App>>) -> Response {
    node_info(&app, &V2_0)
}

/// What this server is, as NodeInfo 2.1.
#[utoipa::path(
    get, path = "/nodeinfo/2.1", tag = "server", security(()),
    responses((status = 200, body = NodeInfo)),
)]
async fn version_2_1(State(app): State<Arc<App>>) -> Response {
    node_info(&app, &V2_1)
}

fn node_info(app: &App, version: &Version) -> Response {
    let node_info = NodeInfo {
        version: version.number,
        software: NodeInfoSoftware {
            name: "driftline",
            version: env!("CARGO_PKG_VERSION"),
            repository: version.repository,
        },
        protocols: [NETWORK],
        services: NodeInfoServices {
            inbound: [],
            outbound: [],
        },
        open_registrations: app.people.sign_up.mode != SignUpMode::Closed,
        usage: NodeInfoUsage { users: Map::new() },
        metadata: metadata(&app.own),
    };
    let kind = format!("application/json; profile=\"{}#\"", version.schema);
    ([(CONTENT_TYPE, kind)], Json(node_info)).into_response()
}

const NETWORK: &str = "activitypub";

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

/// A version of NodeInfo.
struct Version {
    number: &'static str,
    schema: &'static str,
    /// The schema of 2.0 allows none.
    repository: Option<&'static str>,
}

const V2_0: Version = Version {
    number: "2.0",
    schema: "http://nodeinfo.diaspora.software/ns/schema/2.0",
    repository: None,
};
const V2_1: Version = Version {
    number: "2.1",
    schema: "http://nodeinfo.diaspora.software/ns/schema/2.1",
    repository: Some(env!("CARGO_PKG_REPOSITORY")),
};
