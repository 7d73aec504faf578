//! Servers, as they present themselves.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use driftline_core::social::Instance;
use driftline_id::Id;
use driftline_store::instance_info::{self, InstanceInfo};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    App,
    auth::Operator,
    mastodon::own_instance,
    native::ids::ServerId,
    transport::{Address, ApiError, Problem, Routes},
};

pub(super) fn routes() -> Routes<Arc<App>> {
    Routes::new().add(__path_own, own).add(__path_one, one)
}

/// A server: this one, one that is mirrored, or one that only a mirrored author belongs to.
#[derive(Serialize, ToSchema)]
#[schema(as = Server)]
pub(crate) struct ShownInstance {
    /// Its ID, which follows from its host.
    #[schema(value_type = ServerId)]
    id: String,
    /// Scheme, host and port.
    #[schema(example = "https://mastodon.example")]
    origin: String,
    /// Its name; its host, until it has said another.
    name: String,
    /// What it is, as it says.
    description: String,
    /// The version of its software.
    version: String,
    /// The name of its software.
    #[schema(example = "mastodon")]
    software_name: String,
    /// The protocols and features that it offers.
    extensions: Vec<String>,
    /// Who runs it.
    maintainer_name: String,
    /// When it said so, Unix ms; null if it was never asked.
    fetched_at_ms: Option<i64>,
}

impl ShownInstance {
    fn new(instance: Instance, fetched_at_ms: Option<i64>) -> Self {
        let profile = instance.profile;
        Self {
            id: instance.id.to_string(),
            origin: instance.origin,
            name: profile.name,
            description: profile.description,
            version: profile.version,
            software_name: profile.software_name,
            extensions: profile.extensions,
            maintainer_name: profile.maintainer_name,
            fetched_at_ms,
        }
    }
}

/// This server.
#[utoipa::path(get, path = "/api/driftline/v1/instance", tag = "server", security(()), responses((status = 200, body = ShownInstance)))]
pub(crate) async fn own(State(app): State<Arc<App>>, address: Address) -> Json<ShownInstance> {
    Json(ShownInstance::new(own_instance(&app, &address), None))
}

/// A server, by its ID or its host. For the operator: which servers are known tells what is read.
#[utoipa::path(
    get,
    path = "/api/driftline/v1/instances/{id}",
    tag = "server",
    params(("id" = ServerId, Path, description = "Its ID, or its host")),
    security(("operator" = [])),
    responses(
        (status = 200, body = ShownInstance),
        (status = 404, body = Problem, description = "It is not known"),
    )
)]
pub(crate) async fn one(
    _: Operator,
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<Json<ShownInstance>, ApiError> {
    let is_id = name.bytes().all(|byte| byte.is_ascii_digit());
    let id = match name.parse() {
        Ok(raw) if is_id => Id::new(raw),
        _ => Instance::id_of(&name),
    };
    let known = app.store.read(move |tx| instance_info::by_id(tx, id)).await?;
    let InstanceInfo {
        instance,
        fetched_ms,
        ..
    } = known.ok_or(ApiError::NotFound)?;
    Ok(Json(ShownInstance::new(instance, fetched_ms)))
}
