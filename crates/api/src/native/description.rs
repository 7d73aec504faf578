//! The OpenAPI description of the HTTP API.

use std::sync::Arc;

use axum::{Json, extract::State};
use utoipa::{
    OpenApi,
    openapi::{
        OpenApi as Description,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{
    health,
    ids::{AccountId, ListId, ServerId, StatusId},
    track,
};
use crate::{App, open_routes, transport::Problem};

/// The OpenAPI description of all routes: it is made of what is served.
pub fn api_description() -> Description {
    let routes = open_routes()
        .merge(track::routes())
        .merge(health::routes(None));
    let (_, served) = routes.split();
    let mut description = Base::openapi();
    description.merge(served);
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "The operator's token. Not needed where only the server's own machine can reach it.",
        ))
        .build();
    let components = description.components.get_or_insert_default();
    components.add_security_scheme("operator", SecurityScheme::Http(scheme));
    description
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Driftline",
        description = "All that Driftline serves over HTTP: Mastodon's client API, its own, health and metrics. A route without a security scheme is for anyone; one with the scheme `operator` needs the operator's token where other machines may reach the server. IDs are strings: most parsers lose digits of numbers above 2^53. Each entity's IDs have a schema of their own.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(AccountId, ListId, ServerId, StatusId, Problem)),
    tags(
        (name = "timelines", description = "Pages of posts"),
        (name = "statuses", description = "Single posts"),
        (name = "lists", description = "Sources"),
        (name = "streaming", description = "What comes, as it comes, for clients of Mastodon"),
        (name = "posts", description = "Driftline's own: posts to look up, and every change"),
        (name = "ids", description = "IDs, given out"),
        (name = "server", description = "What this server is, and others are"),
        (name = "health", description = "For operators"),
    )
)]
struct Base;

/// This description.
#[utoipa::path(
    get, path = "/api/openapi.json", tag = "server", security(()),
    responses((status = 200, body = Object, description = "OpenAPI 3.1"))
)]
pub(crate) async fn described(State(app): State<Arc<App>>) -> Json<Description> {
    Json(app.description.clone())
}
