//! `/oauth/token`: a token for a code, for an app alone, or for a passphrase.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header::CACHE_CONTROL},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use driftline_store::{
    LocalAccountId, Root, Tx,
    social::{
        access_token::{self, NewToken},
        app::{App as OAuthApp, AppId},
        authorization_code::{self, Exchange, ExchangeRefused},
        local_account,
    },
};
use ring::digest::{SHA256, digest};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    client,
    error::{OAuthError, OAuthProblem},
};
use crate::{
    App,
    auth::{
        ScopeSet,
        log_in::{self, LogInFailed},
        opaque_secret::{OpaqueSecret, SecretKind},
    },
    transport::{ApiError, ClientAddress, Params, Problem},
};

/// The parameters of every grant.
#[derive(Deserialize, ToSchema)]
pub(super) struct TokenRequest {
    /// `authorization_code`, `client_credentials` or `password`.
    #[schema(example = "client_credentials")]
    grant_type: String,
    client_id: Option<String>,
    #[schema(value_type = Option<String>)]
    client_secret: Option<SecretString>,
    #[schema(value_type = Option<String>)]
    code: Option<SecretString>,
    redirect_uri: Option<String>,
    /// Of PKCE.
    #[schema(value_type = Option<String>)]
    code_verifier: Option<SecretString>,
    scope: Option<String>,
    username: Option<String>,
    #[schema(value_type = Option<String>)]
    password: Option<SecretString>,
}

/// A token.
#[derive(Serialize, ToSchema)]
#[schema(as = Token)]
pub(crate) struct TokenJson {
    access_token: String,
    token_type: &'static str,
    scope: String,
    /// Unix seconds.
    created_at: i64,
}

impl TokenJson {
    pub(crate) fn new(token: &OpaqueSecret, scope: String, now_ms: i64) -> Self {
        Self {
            access_token: token.expose().to_owned(),
            token_type: "Bearer",
            scope,
            created_at: now_ms.div_euclid(1000),
        }
    }

    pub(crate) fn answer(self) -> Response {
        ([(CACHE_CONTROL, "no-store")], Json(self)).into_response()
    }
}

/// A token for a code, for an app alone, or for a passphrase.
#[utoipa::path(
    post, path = "/oauth/token", tag = "oauth",
    request_body(content((TokenRequest), (TokenRequest = "application/x-www-form-urlencoded"), (TokenRequest = "multipart/form-data"))),
    security(("client" = [])),
    responses(
        (status = 200, body = TokenJson),
        (status = 400, body = OAuthProblem, description = "The grant is refused, or a secret is in the address"),
        (status = 401, body = OAuthProblem, description = "The app is unknown"),
        (status = 429, body = Problem, description = "It was tried too often; `Retry-After` says when to try again"),
    ),
)]
pub(super) async fn token(
    State(app): State<Arc<App>>,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    params: Result<Params<TokenRequest>, ApiError>,
) -> Result<Response, OAuthError> {
    let Params(request) = params.map_err(OAuthError::of_parameters)?;
    let TokenRequest {
        grant_type,
        client_id,
        client_secret,
        code,
        redirect_uri,
        code_verifier,
        scope,
        username,
        password,
    } = request;
    let client = client::authenticated(&app, &headers, client_id, client_secret).await?;
    match grant_type.as_str() {
        "authorization_code" => {
            let code = code.ok_or(OAuthError::invalid_request("code is missing"))?;
            let redirect_uri =
                redirect_uri.ok_or(OAuthError::invalid_request("redirect_uri is missing"))?;
            exchange(&app, &client, &code, redirect_uri, code_verifier).await
        }
        "client_credentials" => {
            let scopes = requested(&client, scope.as_deref())?;
            app.people.count_registration(address)?;
            Ok(give(&app, None, client.id, scopes).await?.answer())
        }
        "password" => {
            let scopes = requested(&client, scope.as_deref())?;
            let (Some(who), Some(passphrase)) = (username, password) else {
                return Err(OAuthError::invalid_request(
                    "username or password is missing",
                ));
            };
            let now_ms = app.people.now_ms();
            let give = move |tx: &mut Tx<'_>, account| {
                let (token, new) = match new_token(Some(account), client.id, scopes) {
                    Ok(made) => made,
                    Err(error) => return Ok(Err(error)),
                };
                access_token::add(tx, &new, now_ms)?;
                Ok(Ok(TokenJson::new(&token, new.scopes, now_ms)))
            };
            let from = (address, None);
            let given = match log_in::log_in(&app, &who, &passphrase, from, give).await? {
                Ok((_, given)) => given?,
                Err(early @ LogInFailed::TooEarly(_)) => return Err(ApiError::from(early).into()),
                // Whether the account may log in is told on our own page alone.
                Err(_) => return Err(OAuthError::InvalidGrant),
            };
            Ok(given.answer())
        }
        _ => Err(OAuthError::UnsupportedGrantType),
    }
}

async fn exchange(
    app: &App,
    client: &OAuthApp,
    code: &SecretString,
    redirect_uri: String,
    verifier: Option<SecretString>,
) -> Result<Response, OAuthError> {
    let code = OpaqueSecret::parse(SecretKind::AuthorizationCode, code.expose_secret());
    let code = code.ok_or(OAuthError::InvalidGrant)?;
    let account = code.account.ok_or(OAuthError::InvalidGrant)?;
    let token = OpaqueSecret::generate(SecretKind::AccessToken, Some(account))?;
    let exchange = Exchange {
        account,
        hash: code.hash(),
        app: client.id,
        redirect_uri,
        challenge: verifier.as_ref().map(challenge_of).transpose()?,
        token: token.hash(),
    };
    let now_ms = app.people.now_ms();
    let run = move |tx: &mut Tx<'_>| authorization_code::exchange(tx, &exchange, now_ms);
    // A forged code may name any account.
    let known = app.store.read(move |tx| local_account::by_id(tx, account));
    known.await?.ok_or(OAuthError::InvalidGrant)?;
    // Not beside a freeze or a new passphrase, which revokes what was given before.
    match app.store.write(local_account::root(account), run).await? {
        Ok(given) => Ok(TokenJson::new(&token, given.scopes, now_ms).answer()),
        Err(refused) => {
            if refused == ExchangeRefused::Reused {
                tracing::warn!("an authorization code came twice: its token is revoked");
                app.people.callers.forget(account);
            }
            Err(OAuthError::InvalidGrant)
        }
    }
}

/// The S256 challenge of a verifier (RFC 7636, 4.6).
fn challenge_of(verifier: &SecretString) -> Result<String, OAuthError> {
    let text = verifier.expose_secret();
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    match (43..=128).contains(&text.len()) && text.bytes().all(is_unreserved) {
        true => Ok(BASE64.encode(digest(&SHA256, text.as_bytes()))),
        false => Err(OAuthError::InvalidGrant),
    }
}

/// The scopes that an app asks for, which must be covered by those it registered.
fn requested(client: &OAuthApp, scope: Option<&str>) -> Result<ScopeSet, OAuthError> {
    scopes_for(client, scope).ok_or(OAuthError::InvalidScope)
}

/// The same; `None` if some are unknown, or not covered.
pub(super) fn scopes_for(client: &OAuthApp, scope: Option<&str>) -> Option<ScopeSet> {
    let registered = ScopeSet::parse(&client.scopes).ok()?;
    let requested = ScopeSet::parse(scope.unwrap_or_default()).ok()?;
    registered.covers_all(requested).then_some(requested)
}

fn new_token(
    account: Option<LocalAccountId>,
    client: AppId,
    scopes: ScopeSet,
) -> Result<(OpaqueSecret, NewToken), ApiError> {
    let token = OpaqueSecret::generate(SecretKind::AccessToken, account)?;
    let new = NewToken {
        account,
        hash: token.hash(),
        app: client,
        scopes: scopes.to_string(),
    };
    Ok((token, new))
}

/// Gives an app a token.
pub(crate) async fn give(
    app: &App,
    account: Option<LocalAccountId>,
    client: AppId,
    scopes: ScopeSet,
) -> Result<TokenJson, ApiError> {
    let (token, new) = new_token(account, client, scopes)?;
    let now_ms = app.people.now_ms();
    let add = move |tx: &mut Tx<'_>| access_token::add(tx, &new, now_ms);
    app.store.write(Root::none(), add).await?;
    Ok(TokenJson::new(&token, scopes.to_string(), now_ms))
}
