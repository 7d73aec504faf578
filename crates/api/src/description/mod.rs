//! The OpenAPI description of all that is served: it is made of the routes themselves.
//!
//! # Adding a route
//! Its handler has `#[utoipa::path]`, and `routes!` adds both to an `OpenApiRouter`:
//!
//! ```text
//! /// The posts that the account has marked.      (the summary)
//! #[utoipa::path(
//!     get, path = "/api/v1/bookmarks", tag = "statuses", params(PageParams),
//!     security(("account" = ["read:bookmarks"])),
//!     responses((status = 200, body = [Status])),
//! )]
//! async fn all(caller: LoggedIn<needs::ReadBookmarks>, …)
//!
//! OpenApiRouter::new().routes(routes!(all)).routes(routes!(one, remove))   // handlers of one path together
//! ```
//!
//! `security` says who may call it, and tests attack the route by that:
//!
//! | extractor | `security` |
//! |---|---|
//! | none: tokens are not read | `(())` |
//! | `MayRead<S>` | `((), ("account" = ["S"]))` |
//! | `LoggedIn<S>` | `(("account" = ["S"]))` |
//! | `WithToken<S>` | `(("app" = ["S"]), ("account" = ["S"]))` |
//! | `OperatorOrAccount<S>` | `(("operator" = []), ("account" = ["S"]))` |
//! | `Operator` | `(("operator" = []))` |
//! | `Browser` and a form token | `(("form" = []))`, with who is logged in `(("session" = [], "form" = []))` |
//!
//! The refusals that follow from it (401, 403, 422), and 400 and 413 of a body, are added to every operation,
//! and so is its ID. IDs of entities have the types of [`ids`].

pub(crate) mod ids;
mod page;
mod refusals;

use std::sync::Arc;

use axum::{Json, extract::State};
use utoipa::{OpenApi, openapi::OpenApi as Description};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{App, Groups, transport::Problem};

/// The OpenAPI description of all routes, and of others that are served beside them.
pub fn api_description(others: impl IntoIterator<Item = Description>) -> Description {
    let Groups { open, own, ready } = Groups::new();
    let mut description = Base::openapi();
    for group in [open, own, ready] {
        description.merge(group.into_openapi());
    }
    for other in others {
        description.merge(other);
    }
    refusals::complete(&mut description);
    description
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Driftline",
        description = "All that Driftline serves over HTTP: Mastodon's client API, its own, its pages, health and metrics. An operation with an empty security requirement is for anyone; a token that is sent to it has to be valid all the same where another requirement stands beside it. Where only the server's own machine can reach it, the operator needs no token. IDs are strings: most parsers lose digits of numbers above 2^53. Each entity's IDs have a schema of their own.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(Problem)),
    tags(
        (name = "timelines", description = "Pages of posts"),
        (name = "statuses", description = "Single posts"),
        (name = "accounts", description = "People here and elsewhere"),
        (name = "lists", description = "Lists and sources"),
        (name = "filters", description = "What is hidden or marked"),
        (name = "notifications", description = "What concerns an account"),
        (name = "search", description = "What is found by words and addresses"),
        (name = "sync", description = "Libraries, as devices copy them"),
        (name = "streaming", description = "What comes, as it comes, for clients of Mastodon"),
        (name = "oauth", description = "Apps and their tokens"),
        (name = "log-ins", description = "Driftline's own: native tokens, and what is logged in"),
        (name = "pages", description = "For browsers: logging in, consent, signing up"),
        (name = "posts", description = "Driftline's own: posts to look up, and every change"),
        (name = "ids", description = "IDs, given out"),
        (name = "server", description = "What this server is, and others are"),
        (name = "health", description = "For operators"),
    )
)]
struct Base;

/// The description's own routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(described))
        .routes(routes!(page::docs))
}

/// This description.
#[utoipa::path(
    get, path = "/api/openapi.json", tag = "server", security(()),
    responses((status = 200, body = Object, description = "OpenAPI 3.1"))
)]
async fn described(State(app): State<Arc<App>>) -> Json<Description> {
    Json(app.description.clone())
}
