//! The OpenAPI description of the HTTP API.

use utoipa::{
    Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};

use super::{session, sources, stream, track};
use crate::transport::Problem;
use driftline_core::tracking::{Track, TrackResult, TrackedPosts};

/// The OpenAPI description of these routes.
pub fn api_description() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Driftline",
        description = "Driftline's own routes; the others are as Mastodon documents them. Where other machines may reach the server, routes with the security scheme `operator` need the operator's token, and so do lists, their timelines and /metrics. IDs are strings in JSON: most parsers lose digits of numbers above 2^53.",
        license(name = "MIT OR Apache-2.0")
    ),
    paths(
        track::add_tracked,
        track::show_tracked,
        stream::posts,
        session::log_in,
        session::refresh,
        session::log_out,
        session::devices,
        session::revoke,
        sources::list,
        sources::add,
        sources::show,
        sources::change,
        sources::remove
    ),
    components(schemas(Track, TrackResult, TrackedPosts, Problem, session::LogIn, session::Refresh, session::TokensJson, session::DeviceJson, sources::OwnSource, sources::NewOwnSource, sources::OwnSourceChange)),
    modifiers(&Operator)
)]
struct Description;

struct Operator;

impl Modify for Operator {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "The operator's token. Not needed where only the server's own machine can reach it.",
            ))
            .build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("operator", SecurityScheme::Http(scheme));
        let of_an_account = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A token of an account: of an app by OAuth, with the scopes that are listed, or a native one.",
            ))
            .build();
        components.add_security_scheme("account", SecurityScheme::Http(of_an_account));
    }
}
