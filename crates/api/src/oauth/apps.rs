//! Apps register themselves, and ask whether their token works.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use driftline_core::social::without_bidi_controls;
use driftline_store::{
    local_ids,
    social::app::{self, App as OAuthApp, NewApp},
};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;
use utoipa::ToSchema;

use super::redirect_uri;
use crate::{
    App,
    auth::{
        CallerKind, ScopeSet, WithToken,
        caller::Credential,
        needs,
        opaque_secret::{OpaqueSecret, SecretKind, random_text},
    },
    mastodon::entities::{Application, CredentialApplication},
    transport::{ApiError, ClientAddress, Params, Problem},
};

/// What an app says of itself.
#[derive(Deserialize, ToSchema)]
pub(super) struct Registration {
    client_name: String,
    /// With white space between them, or a list.
    #[schema(value_type = String, example = "urn:ietf:wg:oauth:2.0:oob")]
    redirect_uris: OneOrMore,
    /// With white space between them; `read` without it.
    #[serde(default)]
    scopes: String,
    website: Option<String>,
}

/// A text with white space between its parts, or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    Text(String),
    List(Vec<String>),
}

impl OneOrMore {
    fn into_parts(self) -> Vec<String> {
        match self {
            Self::Text(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
            Self::List(list) => list,
        }
    }
}

/// Registers an app.
#[utoipa::path(
    post, path = "/api/v1/apps", tag = "oauth",
    request_body(content((Registration), (Registration = "application/x-www-form-urlencoded"), (Registration = "multipart/form-data"))),
    security(()),
    responses(
        (status = 200, body = CredentialApplication),
        (status = 422, body = Problem, description = "Values that cannot be used"),
        (status = 429, body = Problem, description = "Too many apps were registered from this address"),
    ),
)]
pub(super) async fn register(
    State(app): State<Arc<App>>,
    ClientAddress(address): ClientAddress,
    Params(new): Params<Registration>,
) -> Result<Response, ApiError> {
    // Nothing in a name may turn around what the page of consent says beside it.
    let name = without_bidi_controls(new.client_name.trim()).into_owned();
    if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(ApiError::invalid("Application name is invalid"));
    }
    let redirect_uris = new.redirect_uris.into_parts();
    let is_good = (1..=MAX_REDIRECT_URIS).contains(&redirect_uris.len())
        && redirect_uris
            .iter()
            .all(|uri| redirect_uri::is_allowed(uri));
    if !is_good {
        return Err(ApiError::invalid("Redirect URI must be an absolute URI."));
    }
    let scopes = ScopeSet::parse(&new.scopes)
        .map_err(|_| ApiError::invalid("Scopes doesn't match configured on the server."))?;
    let website = new.website.filter(|website| !website.is_empty());
    if website.as_deref().is_some_and(|website| !is_page(website)) {
        return Err(ApiError::invalid("Website is invalid"));
    }
    app.people.count_registration(address)?;
    let secret = OpaqueSecret::generate(SecretKind::App, None)?;
    let new = NewApp {
        client_id: random_text()?,
        secret_hash: secret.hash(),
        name,
        website,
        redirect_uris,
        scopes: scopes.to_string(),
    };
    let now_ms = app.people.now_ms();
    let add = move |tx: &mut driftline_store::Tx<'_>| {
        let id = app::add(tx, &new, now_ms)?;
        app::by_id(tx, id)
    };
    let added = app.store.write(local_ids::root(), add).await?;
    let added = added.ok_or(ApiError::Internal)?;
    let mut entity = app_entity(&added);
    entity["client_id"] = json!(added.client_id);
    entity["client_secret"] = json!(secret.expose());
    entity["client_secret_expires_at"] = json!(0);
    Ok(Json(entity).into_response())
}

/// The app that the token is of.
#[utoipa::path(
    get, path = "/api/v1/apps/verify_credentials", tag = "oauth",
    security(("app" = []), ("account" = [])),
    responses((status = 200, body = Application), (status = 404, body = Problem, description = "The token is of no app")),
)]
pub(super) async fn verify(
    WithToken(caller, _): WithToken<needs::NoScope>,
    State(app): State<Arc<App>>,
) -> Result<Response, ApiError> {
    let id = match caller.kind {
        CallerKind::App(id) => id,
        CallerKind::Account {
            by: Credential::Token(_, id),
            ..
        } => id,
        _ => return Err(ApiError::NotFound),
    };
    let found = app.store.read(move |tx| app::by_id(tx, id)).await?;
    let found = found.ok_or(ApiError::NotFound)?;
    Ok(Json(app_entity(&found)).into_response())
}

/// The entity `Application`, without what only its maker gets.
fn app_entity(app: &OAuthApp) -> Value {
    let scopes: Vec<&str> = app.scopes.split(' ').collect();
    json!({
        "id": app.id.to_string(),
        "name": app.name,
        "website": app.website,
        "scopes": scopes,
        "redirect_uris": app.redirect_uris,
        "redirect_uri": app.redirect_uris.join("\n"),
        "vapid_key": "",
    })
}

fn is_page(text: &str) -> bool {
    let url = Url::parse(text).ok();
    text.len() <= 2_000 && url.is_some_and(|url| matches!(url.scheme(), "http" | "https"))
}

const MAX_NAME: usize = 60;
const MAX_REDIRECT_URIS: usize = 20;
