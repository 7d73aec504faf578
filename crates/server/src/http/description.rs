//! What the HTTP API is, for programs.

use serde::Serialize;
use utoipa::{
    Modify, OpenApi, ToSchema,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};

use super::track;
use crate::{admin::Track, ids};

/// The OpenAPI description of what is not Mastodon's here, that of IDs included.
pub fn api_description() -> utoipa::openapi::OpenApi {
    let mut description = Description::openapi();
    description.merge(ids::api_description());
    description
}

/// What went wrong.
#[derive(Serialize, ToSchema)]
pub(super) struct Problem {
    /// A sentence for people.
    error: String,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Driftline",
        description = "What is Driftline's own; the rest is as Mastodon documents it. Where other machines may reach the server, what asks for `operator` needs the operator's token, and so do lists, their timelines and /metrics. IDs are strings in JSON: numbers above 2^53 lose digits in most readers.",
        license(name = "MIT OR Apache-2.0")
    ),
    paths(track::note, track::stands),
    components(schemas(Track, track::Noted, track::Stands, Problem)),
    modifiers(&Operator)
)]
struct Description;

struct Operator;

impl Modify for Operator {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "The operator's token. Not asked for where only the server's own machine reaches it.",
            ))
            .build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("operator", SecurityScheme::Http(scheme));
    }
}
