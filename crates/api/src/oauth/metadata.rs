//! `/.well-known/oauth-authorization-server` (RFC 8414).

use axum::Json;
use serde_json::{Value, json};

use crate::{auth::Scope, transport::Address};

/// What this server offers to apps (RFC 8414).
#[utoipa::path(
    get, path = "/.well-known/oauth-authorization-server", tag = "oauth", security(()),
    responses((status = 200, body = Object)),
)]
pub(super) async fn metadata(address: Address) -> Json<Value> {
    let scopes: Vec<&str> = Scope::ALL.iter().map(|scope| scope.name()).collect();
    Json(json!({
        "issuer": address.url("/"),
        "service_documentation": "https://docs.joinmastodon.org/",
        "authorization_endpoint": address.url("/oauth/authorize"),
        "token_endpoint": address.url("/oauth/token"),
        "revocation_endpoint": address.url("/oauth/revoke"),
        "userinfo_endpoint": address.url("/oauth/userinfo"),
        "app_registration_endpoint": address.url("/api/v1/apps"),
        "scopes_supported": scopes,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "code_challenge_methods_supported": ["S256"],
        "grant_types_supported": ["authorization_code", "client_credentials", "password"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
    }))
}
