//! Which app a request is of, by its ID and secret.

use axum::http::{HeaderMap, header::AUTHORIZATION};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use driftline_store::social::app::{self, App as OAuthApp};
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;

use super::error::OAuthError;
use crate::{App, auth::opaque_secret};

/// The app that names itself in the parameters, or by HTTP's basic authentication.
pub(super) async fn authenticated(
    app: &App,
    headers: &HeaderMap,
    client_id: Option<String>,
    secret: Option<SecretString>,
) -> Result<OAuthApp, OAuthError> {
    let named = client_id.zip(secret).or_else(|| basic(headers));
    let (client_id, secret) = named.ok_or(OAuthError::InvalidClient)?;
    let found = app.store.read(move |tx| app::by_client_id(tx, &client_id));
    let found = found.await?.ok_or(OAuthError::InvalidClient)?;
    let presented = opaque_secret::hash(secret.expose_secret());
    let is_right = presented.as_bytes().ct_eq(found.secret_hash.as_bytes());
    match is_right.into() {
        true => Ok(found),
        false => Err(OAuthError::InvalidClient),
    }
}

fn basic(headers: &HeaderMap) -> Option<(String, SecretString)> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = text.split_once(' ')?;
    let decoded = scheme
        .eq_ignore_ascii_case("basic")
        .then(|| BASE64.decode(encoded.trim()).ok())??;
    let decoded = String::from_utf8(decoded).ok()?;
    let (id, secret) = decoded.split_once(':')?;
    let plain = |text| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    Some((plain(id)?, plain(secret)?.into()))
}
