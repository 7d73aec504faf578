//! An account of this server for itself, and signing up by an app.

use std::sync::Arc;

use axum::{
    Json,
    extract::{DefaultBodyLimit, State},
    http::{
        HeaderMap, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse as _, Response},
};
use driftline_core::social::{PassphraseError, Profile, Role};
use driftline_mastodon::iso_8601;
use driftline_store::{
    StoreError, Tx,
    social::{
        local_account::{self, LocalAccount},
        profile,
    },
};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::entities::CredentialAccount;
use crate::{
    App,
    auth::{CallerKind, LoggedIn, WithToken, needs},
    oauth::{self, MAX_BODY_BYTES, TokenJson},
    pages::Language,
    sign_up::{self, Faults, NameFault, SignUpRequest},
    transport::{Address, ApiError, ClientAddress, Params},
};

/// The routes.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(missing_picture))
        .routes(routes!(verify_credentials))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// The caller's own account.
#[utoipa::path(
    get, path = "/api/v1/accounts/verify_credentials", tag = "accounts",
    security(("account" = ["read:accounts"])),
    responses((status = 200, body = CredentialAccount)),
)]
async fn verify_credentials(
    caller: LoggedIn<needs::ReadAccounts>,
    State(app): State<Arc<App>>,
    address: Address,
) -> Result<Json<Value>, ApiError> {
    let id = caller.account.id;
    let read = move |tx: &mut Tx<'_>| {
        let Some(account) = local_account::by_id(tx, id)? else {
            return Ok(None);
        };
        Ok::<_, StoreError>(Some((account, profile::load(tx, id)?)))
    };
    let found = app.store.read(read).await?;
    let (account, profile) = found.ok_or(ApiError::Unauthorized { presented: true })?;
    Ok(Json(credential_account(&account, &profile, &address)))
}

fn credential_account(account: &LocalAccount, profile: &Profile, address: &Address) -> Value {
    let name = account.name.as_str();
    let url = address.of(&format!("/@{name}"));
    let nickname = account.nickname.as_str();
    let picture = |set: &Option<String>| set.clone().unwrap_or_else(|| address.of(MISSING));
    let (avatar, header) = (picture(&profile.avatar), picture(&profile.header));
    let verified = Value::Null;
    let fields = profile.fields.iter();
    let as_html: Vec<Value> = fields
        .clone()
        .map(|field| {
            json!({ "name": escaped(&field.name), "value": escaped(&field.value), "verified_at": verified })
        })
        .collect();
    let as_written: Vec<Value> = fields
        .map(|field| json!({ "name": field.name, "value": field.value, "verified_at": verified }))
        .collect();
    json!({
        "id": account.id.to_string(),
        "username": name,
        "acct": name,
        "display_name": if nickname.is_empty() { name } else { nickname },
        "locked": profile.locked,
        "bot": profile.bot,
        "discoverable": profile.discoverable,
        "indexable": false,
        "group": false,
        "created_at": iso_8601(account.created_at_ms),
        "note": paragraphs(&profile.bio),
        "url": url,
        "uri": url,
        "avatar": avatar,
        "avatar_static": avatar,
        "header": header,
        "header_static": header,
        "followers_count": 0,
        "following_count": 0,
        "statuses_count": 0,
        "last_status_at": Value::Null,
        "hide_collections": false,
        "noindex": true,
        "emojis": [],
        "roles": [],
        "fields": as_html,
        "source": {
            "privacy": "public",
            "sensitive": false,
            "language": Value::Null,
            "note": profile.bio,
            "fields": as_written,
            "follow_requests_count": 0,
            "hide_collections": false,
            "discoverable": profile.discoverable,
            "indexable": false,
        },
        "role": role(account.role),
    })
}

fn role(role: Role) -> Value {
    let (id, name) = match role {
        Role::Admin => ("3", "Admin"),
        Role::Moderator => ("1", "Moderator"),
        Role::Member => ("-99", ""),
    };
    json!({ "id": id, "name": name, "color": "", "permissions": "0", "highlighted": false })
}

/// A text as HTML, by paragraphs.
fn paragraphs(text: &str) -> String {
    let paragraphs = text.split("\n\n").filter(|text| !text.trim().is_empty());
    let paragraph = |text: &str| format!("<p>{}</p>", escaped(text).replace('\n', "<br>"));
    paragraphs.map(paragraph).collect()
}

fn escaped(text: &str) -> String {
    maud::html! { (text) }.into_string()
}

/// What an app signs somebody up with.
#[derive(Deserialize, ToSchema)]
struct NewAccount {
    username: String,
    email: String,
    #[schema(value_type = String)]
    password: SecretString,
    #[schema(value_type = bool)]
    agreement: Agreement,
    locale: Option<String>,
    reason: Option<String>,
}

/// A truth value, as JSON or as a form says it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Agreement {
    Value(bool),
    Text(String),
}

/// Signs somebody up, for an app with a token of its own.
///
/// The token works once the address is confirmed and, where
/// that is needed, the account approved. If the address is known, it never will.
#[utoipa::path(
    post, path = "/api/v1/accounts", tag = "accounts",
    request_body(content((NewAccount), (NewAccount = "application/x-www-form-urlencoded"))),
    security(("app" = ["write:accounts"])),
    responses((status = 200, body = TokenJson), (status = 422, body = Object, description = "Values that cannot be used")),
)]
async fn create(
    WithToken(caller, _): WithToken<needs::WriteAccounts>,
    State(app): State<Arc<App>>,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    Params(new): Params<NewAccount>,
) -> Result<Response, ApiError> {
    let CallerKind::App(client) = caller.kind else {
        return Err(ApiError::Forbidden(
            "This method requires an app's own token",
        ));
    };
    let agrees = match new.agreement {
        Agreement::Value(agrees) => agrees,
        Agreement::Text(text) => matches!(text.as_str(), "true" | "1" | "on" | "True"),
    };
    if !agrees {
        return Ok(refusal(&[(
            "agreement",
            "ERR_ACCEPTED",
            "must be accepted",
        )]));
    }
    let locale = new.locale.as_deref().unwrap_or_default();
    let request = SignUpRequest {
        name: new.username,
        mail: new.email,
        passphrase: new.password,
        reason: new.reason.unwrap_or_default(),
        language: Language::of_tag(locale).unwrap_or(Language::English),
    };
    match sign_up::sign_up(&app, &headers, address, request).await? {
        Ok(account) => {
            let given = oauth::give(&app, Some(account), client, caller.scopes).await?;
            Ok(given.answer())
        }
        Err(faults) => Ok(refused(&faults)),
    }
}

fn refused(faults: &Faults) -> Response {
    let mut all = Vec::new();
    match faults.name {
        Some(NameFault::Taken) => {
            all.push(("username", "ERR_TAKEN", "has already been taken"));
        }
        Some(NameFault::Invalid) => {
            let rule = "must be 1 to 64 letters, digits, `.`, `_`, `~` or `-`";
            all.push(("username", "ERR_INVALID", rule));
        }
        None => {}
    }
    if faults.mail {
        all.push(("email", "ERR_INVALID", "is invalid"));
    }
    match faults.passphrase {
        Some(PassphraseError::Short) => {
            all.push((
                "password",
                "ERR_TOO_SHORT",
                "is too short (minimum is 8 characters)",
            ));
        }
        Some(PassphraseError::Long) => {
            all.push((
                "password",
                "ERR_TOO_LONG",
                "is too long (maximum is 512 characters)",
            ));
        }
        None => {}
    }
    if faults.reason {
        all.push((
            "reason",
            "ERR_BLANK",
            "can't be blank, and has 500 characters at most",
        ));
    }
    refusal(&all)
}

/// Mastodon's answer to values that cannot be used.
fn refusal(faults: &[(&str, &str, &str)]) -> Response {
    let mut details = serde_json::Map::new();
    let mut all = Vec::new();
    for (field, error, description) in faults {
        let fault = json!([{ "error": error, "description": description }]);
        details.insert((*field).to_owned(), fault);
        let mut name = (*field).to_owned();
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        all.push(format!("{name} {description}"));
    }
    let error = format!("Validation failed: {}", all.join(", "));
    let body = Json(json!({ "error": error, "details": details }));
    (StatusCode::UNPROCESSABLE_ENTITY, body).into_response()
}

/// The picture of who has none.
#[utoipa::path(
    get, path = "/pictures/missing.png", tag = "accounts", security(()),
    responses((status = 200, body = Vec<u8>, content_type = "image/png")),
)]
async fn missing_picture() -> Response {
    let headers = [
        (CONTENT_TYPE, "image/png"),
        (CACHE_CONTROL, "public, max-age=86400"),
    ];
    (headers, include_bytes!("missing.png").as_slice()).into_response()
}

const MISSING: &str = "/pictures/missing.png";
