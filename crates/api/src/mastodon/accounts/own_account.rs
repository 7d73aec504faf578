//! An account of this server for itself, and signing up by an app.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json,
    extract::{DefaultBodyLimit, State},
    http::{
        HeaderMap, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse as _, Response},
};
use driftline_core::social::{
    Direction, Nickname, PassphraseError, Profile, ProfileField, Relation, Role,
};
use driftline_store::{
    LocalAccountId, StoreError, Tx,
    social::{
        local_account::{self, LocalAccount},
        profile,
        relation::{self, FollowCounts},
    },
};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    account_entities::local_entity,
    profiles::{self, is_true},
};
use crate::{
    App,
    auth::{CallerKind, LoggedIn, WithToken, needs},
    mastodon::entities::CredentialAccount,
    oauth::{self, MAX_BODY_BYTES, TokenJson},
    pages::Language,
    sign_up::{self, Faults, NameFault, SignUpRequest},
    transport::{Address, ApiError, ClientAddress, Params, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(profiles::several, create))
        .routes(routes!(missing_picture))
        .routes(routes!(verify_credentials))
        .routes(routes!(update_credentials))
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
    own_account(&app, caller.account.id, &address).await
}

/// The entity `CredentialAccount`.
pub(crate) async fn own_account(
    app: &App,
    id: LocalAccountId,
    address: &Address,
) -> Result<Json<Value>, ApiError> {
    let read = move |tx: &mut Tx<'_>| {
        let Some(account) = local_account::by_id(tx, id)? else {
            return Ok(None);
        };
        let counts = relation::follow_counts(tx, &[id])?.remove(&id);
        let (incoming, asks) = (Direction::Incoming, Relation::RequestingFollow);
        let requests = relation::count(tx, id, incoming, asks)?;
        let counts = (counts.unwrap_or_default(), requests);
        Ok::<_, StoreError>(Some((account, profile::load(tx, id)?, counts)))
    };
    let found = app.store.read(read).await?;
    let (account, profile, counts) = found.ok_or(ApiError::Unauthorized { presented: true })?;
    Ok(Json(credential_account(
        &account, &profile, counts, address,
    )))
}

/// What an account changes of itself. What is left out stays.
#[derive(Deserialize, ToSchema)]
struct Update {
    display_name: Option<String>,
    note: Option<String>,
    #[schema(value_type = Option<bool>)]
    locked: Option<Value>,
    #[schema(value_type = Option<bool>)]
    bot: Option<Value>,
    #[schema(value_type = Option<bool>)]
    discoverable: Option<Value>,
    /// `fields_attributes`: rows of the profile, by their numbers.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    others: serde_json::Map<String, Value>,
}

/// Changes the caller's own account.
#[utoipa::path(
    patch, path = "/api/v1/accounts/update_credentials", tag = "accounts",
    request_body(content((Update), (Update = "application/x-www-form-urlencoded"), (Update = "multipart/form-data"))),
    security(("account" = ["write:accounts"])),
    responses((status = 200, body = CredentialAccount), (status = 422, body = Problem)),
)]
async fn update_credentials(
    caller: LoggedIn<needs::WriteAccounts>,
    State(app): State<Arc<App>>,
    address: Address,
    Params(update): Params<Update>,
) -> Result<Json<Value>, ApiError> {
    let id = caller.account.id;
    let is_given = |value: &Value| !value.is_null() && value != "";
    if let Some(picture) = ["avatar", "header"]
        .into_iter()
        .find(|name| update.others.get(*name).is_some_and(is_given))
    {
        return Err(ApiError::Unprocessable(format!(
            "This server keeps no pictures of accounts: leave {picture} out"
        )));
    }
    let nickname = update
        .display_name
        .as_deref()
        .map(Nickname::new)
        .transpose();
    let nickname = nickname.map_err(|error| ApiError::Unprocessable(error.to_string()))?;
    let fields = profile_fields(&update.others);
    let write = move |tx: &mut Tx<'_>| {
        let mut changed = profile::load(tx, id)?;
        if let Some(note) = &update.note {
            changed.bio.clone_from(note);
        }
        if let Some(fields) = &fields {
            changed.fields.clone_from(fields);
        }
        let flags = [
            (&mut changed.locked, &update.locked),
            (&mut changed.bot, &update.bot),
            (&mut changed.discoverable, &update.discoverable),
        ];
        for (flag, value) in flags {
            *flag = value.as_ref().map_or(*flag, |value| is_true(Some(value)));
        }
        let is_set = profile::set(tx, id, &changed)?;
        if let Some(nickname) = &nickname
            && is_set.is_ok()
        {
            local_account::set_nickname(tx, id, nickname)?;
        }
        Ok::<_, StoreError>(is_set)
    };
    let written = app.store.write(local_account::root(id), write).await?;
    written.map_err(|error| ApiError::Unprocessable(error.to_string()))?;
    own_account(&app, id, &address).await
}

/// The rows of a profile, which forms name `fields_attributes[0][name]` and JSON nests; `None` if none is
/// named.
fn profile_fields(params: &serde_json::Map<String, Value>) -> Option<Vec<ProfileField>> {
    let mut rows: BTreeMap<String, ProfileField> = BTreeMap::new();
    let mut set = |row: &str, part: &str, text: &str| {
        let row = rows.entry(row.to_owned()).or_default();
        match part {
            "name" => row.name = text.to_owned(),
            "value" => row.value = text.to_owned(),
            _ => {}
        }
    };
    for (name, value) in params {
        if let Some(rest) = name.strip_prefix("fields_attributes[") {
            let named = rest
                .strip_suffix(']')
                .and_then(|rest| rest.split_once("]["));
            if let (Some((row, part)), Some(text)) = (named, value.as_str()) {
                set(row, part, text);
            }
        }
    }
    let nested = params.get("fields_attributes");
    let nested: Vec<(String, &Value)> = match nested {
        Some(Value::Array(rows)) => {
            let rows = rows.iter().enumerate();
            rows.map(|(row, value)| (format!("{row:04}"), value))
                .collect()
        }
        Some(Value::Object(rows)) => rows
            .iter()
            .map(|(row, value)| (row.clone(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (row, value) in &nested {
        for part in ["name", "value"] {
            set(row, part, value[part].as_str().unwrap_or_default());
        }
    }
    let is_named = |field: &ProfileField| !field.name.is_empty() || !field.value.is_empty();
    let asked = !rows.is_empty() || params.contains_key("fields_attributes");
    asked.then(|| rows.into_values().filter(is_named).collect())
}

fn credential_account(
    account: &LocalAccount,
    profile: &Profile,
    (counts, requests): (FollowCounts, i64),
    address: &Address,
) -> Value {
    let mut entity = local_entity(account, profile, counts, address);
    let as_written = profile.fields.iter().map(
        |field| json!({ "name": field.name, "value": field.value, "verified_at": Value::Null }),
    );
    entity["source"] = json!({
        "privacy": "public",
        "sensitive": false,
        "language": Value::Null,
        "note": profile.bio,
        "fields": as_written.collect::<Vec<_>>(),
        "follow_requests_count": requests,
        "hide_collections": false,
        "discoverable": profile.discoverable,
        "indexable": false,
    });
    entity["role"] = role(account.role);
    entity
}

fn role(role: Role) -> Value {
    let (id, name) = match role {
        Role::Admin => ("3", "Admin"),
        Role::Moderator => ("1", "Moderator"),
        Role::Member => ("-99", ""),
    };
    json!({ "id": id, "name": name, "color": "", "permissions": "0", "highlighted": false })
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
    request_body(content((NewAccount), (NewAccount = "application/x-www-form-urlencoded"), (NewAccount = "multipart/form-data"))),
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
        continue_to: None,
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
