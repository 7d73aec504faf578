//! `/oauth/revoke`: an app gives a token back.

use std::sync::Arc;

use axum::{Json, extract::State, http::HeaderMap};
use driftline_store::{
    Root, StoreError, Tx,
    social::{access_token, local_account},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    client,
    error::{OAuthError, OAuthProblem},
};
use crate::{
    App,
    auth::opaque_secret::{OpaqueSecret, SecretKind},
    transport::{ApiError, Params},
};

/// What is given back, and by whom.
#[derive(Deserialize, ToSchema)]
pub(super) struct Revocation {
    client_id: Option<String>,
    #[schema(value_type = Option<String>)]
    client_secret: Option<SecretString>,
    #[schema(value_type = String)]
    token: Option<SecretString>,
}

/// Revokes a token of the app.
///
/// A token that is unknown is as good as revoked (RFC 7009, 2.2); one of another app
/// stays.
#[utoipa::path(
    post, path = "/oauth/revoke", tag = "oauth",
    request_body(content((Revocation), (Revocation = "application/x-www-form-urlencoded"), (Revocation = "multipart/form-data"))),
    security(("client" = [])),
    responses(
        (status = 200, body = Object),
        (status = 403, body = OAuthProblem, description = "The app is unknown, or the token is another's"),
    ),
)]
pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    params: Result<Params<Revocation>, ApiError>,
) -> Result<Json<Value>, OAuthError> {
    let Params(revocation) = params.map_err(OAuthError::of_parameters)?;
    let Revocation {
        client_id,
        client_secret,
        token,
    } = revocation;
    let client = client::authenticated(&app, &headers, client_id, client_secret).await;
    let client = client.map_err(|error| match error {
        OAuthError::InvalidClient => OAuthError::UnauthorizedClient,
        error => error,
    })?;
    let token = token.ok_or(OAuthError::invalid_request("token is missing"))?;
    let Some(token) = OpaqueSecret::parse(SecretKind::AccessToken, token.expose_secret()) else {
        return Ok(Json(json!({})));
    };
    let (named, hash) = (token.account, token.hash());
    let revoke = move |tx: &mut Tx<'_>| {
        // A token that was given at a sign-up names the pending account.
        let signed_up = match named {
            Some(named) => local_account::signed_up_as(tx, named)?,
            None => None,
        };
        let account = signed_up.or(named);
        let is_revoked = access_token::revoke_secret(tx, account, &hash, client.id)?;
        let is_gone = is_revoked || access_token::find(tx, account, &hash)?.is_none();
        Ok::<_, StoreError>((is_gone, account))
    };
    let (is_gone, account) = app.store.write(Root::none(), revoke).await?;
    match account {
        Some(account) => app.people.callers.forget(account),
        None => app.people.callers.forget_all(),
    }
    match is_gone {
        true => Ok(Json(json!({}))),
        false => Err(OAuthError::UnauthorizedClient),
    }
}
