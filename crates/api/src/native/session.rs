//! Driftline's own log-in: native tokens, and the list of what is logged in.

use std::sync::Arc;

use axum::{
    Json,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode, header::CACHE_CONTROL},
    response::{IntoResponse as _, Response},
};
use driftline_mastodon::iso_8601;
use driftline_store::{
    LocalAccountId, Root, StoreError, Tx,
    social::{
        access_token::{self, AccessTokenId},
        log_ins::{self, LogIns},
        token_family::{self, Rotation, TokenFamily, TokenFamilyId},
        web_session::{self, WebSessionId},
    },
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::{
        LoggedIn,
        caller::{Credential, allowed},
        log_in, needs,
        opaque_secret::{OpaqueSecret, SecretKind, fill_random},
    },
    description::ids::DeviceId,
    oauth::MAX_BODY_BYTES,
    pages::session::user_agent,
    transport::{ApiError, ApiResult, ClientAddress, JsonResult, Params, PathText, Problem},
};

/// The routes. No page of another site may call them: they take passphrases.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(log_in))
        .routes(routes!(refresh))
        .routes(routes!(log_out))
        .routes(routes!(devices))
        .routes(routes!(revoke))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// A log-in with a passphrase.
#[derive(Deserialize, ToSchema)]
pub(crate) struct LogIn {
    /// The account's name or mail address.
    who: String,
    /// Its passphrase.
    #[schema(value_type = String)]
    passphrase: SecretString,
    /// What the device calls itself in the list of devices.
    device: Option<String>,
}

/// Tokens of a log-in, or of a refresh.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokensJson {
    /// The auth token, with the refresh token in it. Good for 15 minutes; to be refreshed also after
    /// that.
    token: String,
    /// When the auth token expires.
    expires_at: String,
    /// When the log-in ends, however often it is refreshed.
    ends_at: String,
}

/// What is to be refreshed.
#[derive(Deserialize, ToSchema)]
pub(crate) struct Refresh {
    /// The auth token, expired or not, or the refresh token that it nests.
    #[schema(value_type = String)]
    token: SecretString,
}

/// Logs in with a passphrase: a manual log-in, which begins a family of tokens.
#[utoipa::path(
    post, path = "/api/driftline/v1/log-in", tag = "log-ins",
    request_body(content((LogIn), (LogIn = "application/x-www-form-urlencoded"), (LogIn = "multipart/form-data"))),
    security(()),
    responses(
        (status = 200, body = TokensJson),
        (status = 400, body = Problem, description = "A parameter is missing or malformed"),
        (status = 401, body = Problem, description = "No account has that name or address with that passphrase"),
        (status = 403, body = Problem, description = "The account waits for approval or is frozen"),
        (status = 429, body = Problem, description = "It was tried too often; `Retry-After` says when to try again"),
    )
)]
pub(crate) async fn log_in(
    State(app): State<Arc<App>>,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    Params(request): Params<LogIn>,
) -> Result<Response, ApiError> {
    let device = request.device.unwrap_or_else(|| user_agent(&headers));
    let device: String = device.chars().take(MAX_DEVICE).collect();
    let (family, now_ms) = (new_id()?, app.people.now_ms());
    let begin = move |tx: &mut Tx<'_>, account| {
        let made = OpaqueSecret::generate(SecretKind::RefreshId, Some(account));
        let refresh = match made {
            Ok(refresh) => refresh,
            Err(error) => return Ok(Err(error)),
        };
        let family = token_family::begin(tx, account, &device, family, &refresh.hash(), now_ms)?;
        Ok(Ok((family, refresh)))
    };
    let logged_in = log_in::log_in(
        &app,
        &request.who,
        &request.passphrase,
        (address, None),
        begin,
    );
    let (account, begun) = logged_in.await??;
    let (family, refresh) = begun?;
    answer(&app, &family, account.name.as_str(), &refresh, now_ms)
}

/// Exchanges a refresh token for new tokens. Each refresh token works once; if a used one comes back after
/// a moment, the whole log-in ends, since somebody else may have it.
#[utoipa::path(
    post, path = "/api/driftline/v1/refresh", tag = "log-ins",
    request_body(content((Refresh), (Refresh = "application/x-www-form-urlencoded"), (Refresh = "multipart/form-data"))),
    security(()),
    responses(
        (status = 200, body = TokensJson),
        (status = 401, body = Problem, description = "The token is invalid, was used before, or its log-in has ended"),
        (status = 403, body = Problem, description = "The account is frozen"),
    )
)]
pub(crate) async fn refresh(
    State(app): State<Arc<App>>,
    Params(request): Params<Refresh>,
) -> Result<Response, ApiError> {
    let now_ms = app.people.now_ms();
    let invalid = ApiError::Unauthorized { presented: true };
    let token = app
        .people
        .native
        .refresh(request.token.expose_secret(), now_ms);
    let Ok(token) = token else {
        return Err(invalid);
    };
    let next = OpaqueSecret::generate(SecretKind::RefreshId, Some(token.account))?;
    let (account, family) = (token.account, token.family);
    let (used, hash) = (token.id.hash(), next.hash());
    let rotate = move |tx: &mut Tx<'_>| {
        // A frozen account's token is not used up.
        let Some((_, holder)) = token_family::find_with_holder(tx, account, family, now_ms)? else {
            return Ok((Rotation::Ended, None));
        };
        if allowed(holder.clone()).is_err() {
            return Ok((Rotation::Ended, Some(holder)));
        }
        let rotation = token_family::rotate(tx, account, family, &used, &hash, now_ms)?;
        Ok::<_, StoreError>((rotation, Some(holder)))
    };
    match app.store.write(Root::none(), rotate).await? {
        (Rotation::Rotated(family), Some(holder)) => {
            answer(&app, &family, holder.name.as_str(), &next, now_ms)
        }
        (Rotation::Reused, _) => {
            tracing::warn!(%account, "a used refresh token came back: its log-in has ended");
            app.people.callers.forget(account);
            Err(invalid)
        }
        (_, Some(holder)) => {
            allowed(holder)?;
            Err(invalid)
        }
        (_, None) => Err(invalid),
    }
}

/// Ends the log-in that the token is of.
#[utoipa::path(
    post, path = "/api/driftline/v1/log-out", tag = "log-ins",
    security(("account" = [])),
    responses(
        (status = 204),
        (status = 401, body = Problem, description = "The token is invalid"),
    )
)]
pub(crate) async fn log_out(caller: LoggedIn<needs::NoScope>) -> ApiResult<StatusCode> {
    let (account, by) = (caller.account.id, caller.by);
    let end = move |tx: &mut Tx<'_>| match by {
        Credential::Family(family) => token_family::end(tx, account, family),
        Credential::Token(token, _) => access_token::revoke(tx, account, token),
    };
    caller.app.store.write(Root::none(), end).await?;
    caller.app.people.callers.forget(account);
    Ok(StatusCode::NO_CONTENT)
}

/// Something that is logged in.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeviceJson {
    /// What it is: an `app` with a token of Mastodon's API, a `device` with native tokens, or a `browser` on this
    /// server's pages.
    kind: &'static str,
    /// Its ID among those of its kind.
    #[schema(value_type = DeviceId)]
    id: String,
    /// What it calls itself.
    name: String,
    /// What it may do; of an app alone.
    scopes: Option<String>,
    /// When it was let in.
    created_at: String,
    /// About when it was last used.
    last_used_at: Option<String>,
    /// When its log-in ends; never for an app.
    ends_at: Option<String>,
    /// Whether this request is of it.
    current: bool,
}

/// Lists what is logged in to the account.
#[utoipa::path(
    get, path = "/api/driftline/v1/devices", tag = "log-ins",
    security(("account" = ["read:accounts"])),
    responses(
        (status = 200, body = [DeviceJson]),
        (status = 401, body = Problem, description = "The token is invalid"),
        (status = 403, body = Problem, description = "The token lacks the scope `read:accounts`"),
    )
)]
pub(crate) async fn devices(caller: LoggedIn<needs::ReadAccounts>) -> JsonResult<Vec<DeviceJson>> {
    let now_ms = caller.now_ms();
    let log_ins = caller.read(move |tx, account| log_ins::list(tx, account, now_ms));
    let LogIns {
        tokens,
        families,
        sessions,
    } = log_ins.await?;
    let mut devices = Vec::new();
    devices.extend(tokens.into_iter().map(|listed| DeviceJson {
        kind: "app",
        id: listed.token.id.to_string(),
        name: listed.app_name,
        scopes: Some(listed.token.scopes),
        created_at: iso_8601(listed.token.created_at_ms),
        last_used_at: Some(iso_8601(listed.token.used_at_ms)),
        ends_at: None,
        current: matches!(caller.by, Credential::Token(id, _) if id == listed.token.id),
    }));
    devices.extend(families.into_iter().map(|family| DeviceJson {
        kind: "device",
        id: family.id.to_string(),
        name: family.device,
        scopes: None,
        created_at: iso_8601(family.created_at_ms),
        last_used_at: Some(iso_8601(family.rotated_at_ms)),
        ends_at: Some(iso_8601(family.ends_at_ms)),
        current: caller.by == Credential::Family(family.id),
    }));
    devices.extend(sessions.into_iter().map(|session| DeviceJson {
        kind: "browser",
        id: session.id.to_string(),
        name: session.browser,
        scopes: None,
        created_at: iso_8601(session.created_at_ms),
        last_used_at: None,
        ends_at: Some(iso_8601(session.ends_at_ms)),
        current: false,
    }));
    Ok(Json(devices))
}

/// Logs something out.
#[utoipa::path(
    delete, path = "/api/driftline/v1/devices/{kind}/{id}", tag = "log-ins",
    params(
        ("kind" = String, Path, description = "`app`, `device` or `browser`", example = "app"),
        ("id" = DeviceId, Path, description = "Its ID in the list"),
    ),
    security(("account" = ["write:accounts"])),
    responses(
        (status = 204),
        (status = 401, body = Problem, description = "The token is invalid"),
        (status = 403, body = Problem, description = "The token lacks the scope `write:accounts`"),
        (status = 404, body = Problem, description = "The account has none of that kind and ID"),
    )
)]
pub(crate) async fn revoke(
    caller: LoggedIn<needs::WriteAccounts>,
    PathText((kind, id)): PathText<(String, String)>,
) -> ApiResult<StatusCode> {
    let account = caller.account.id;
    let id: u64 = id.parse().map_err(|_| ApiError::NotFound)?;
    let revoke: fn(&mut Tx<'_>, LocalAccountId, u64) -> Result<bool, StoreError> =
        match kind.as_str() {
            "app" => |tx, account, id| access_token::revoke(tx, account, AccessTokenId::new(id)),
            "device" => |tx, account, id| token_family::end(tx, account, TokenFamilyId::new(id)),
            "browser" => |tx, account, id| web_session::end(tx, account, WebSessionId::new(id)),
            _ => return Err(ApiError::NotFound),
        };
    let job = move |tx: &mut Tx<'_>| revoke(tx, account, id);
    let is_revoked = caller.app.store.write(Root::none(), job).await?;
    caller.app.people.callers.forget(account);
    match is_revoked {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::NotFound),
    }
}

fn answer(
    app: &App,
    family: &TokenFamily,
    account_name: &str,
    refresh: &OpaqueSecret,
    now_ms: i64,
) -> Result<Response, ApiError> {
    let signed = app
        .people
        .native
        .sign(family, account_name, refresh, now_ms);
    let pair = signed.map_err(|_| ApiError::Internal)?;
    let tokens = TokensJson {
        token: pair.auth.expose_secret().to_owned(),
        expires_at: iso_8601(pair.auth_expires_at_ms),
        ends_at: iso_8601(family.ends_at_ms),
    };
    Ok(([(CACHE_CONTROL, "no-store")], Json(tokens)).into_response())
}

fn new_id() -> Result<TokenFamilyId, ApiError> {
    let mut bytes = [0; 8];
    fill_random(&mut bytes)?;
    Ok(TokenFamilyId::new(u64::from_be_bytes(bytes) >> 1))
}

const MAX_DEVICE: usize = 200;
