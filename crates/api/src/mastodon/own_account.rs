//! An account of this server for itself, and signing up by an app.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::{
        HeaderMap, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse as _, Response},
    routing::{get, patch, post},
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

use super::{
    account_entities::{MISSING, local_entity},
    accounts::is_true,
};
use crate::{
    App,
    auth::{CallerKind, LoggedIn, WithToken, needs},
    oauth::{self, MAX_BODY_BYTES},
    pages::Language,
    sign_up::{self, Faults, NameFault, SignUpRequest},
    transport::{Address, ApiError, ClientAddress, Params},
};

/// The routes.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/accounts", post(create))
        .route(MISSING, get(missing_picture))
        .route(
            "/api/v1/accounts/verify_credentials",
            get(verify_credentials),
        )
        .route(
            "/api/v1/accounts/update_credentials",
            patch(update_credentials),
        )
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// `GET /api/v1/accounts/verify_credentials`: the entity `CredentialAccount`.
async fn verify_credentials(
    caller: LoggedIn<needs::ReadAccounts>,
    State(app): State<Arc<App>>,
    address: Address,
) -> Result<Json<Value>, ApiError> {
    own_account(&app, caller.account.id, &address).await
}

/// The entity `CredentialAccount`.
pub(super) async fn own_account(
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
#[derive(Deserialize)]
struct Update {
    display_name: Option<String>,
    note: Option<String>,
    locked: Option<Value>,
    bot: Option<Value>,
    discoverable: Option<Value>,
    #[serde(flatten)]
    others: serde_json::Map<String, Value>,
}

/// `PATCH /api/v1/accounts/update_credentials`: the entity `CredentialAccount`.
async fn update_credentials(
    caller: LoggedIn<needs::WriteAccounts>,
    State(app): State<Arc<App>>,
    address: Address,
    Params(update): Params<Update>,
) -> Result<Json<Value>, ApiError> {
    let id = caller.account.id;
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
#[derive(Deserialize)]
struct NewAccount {
    username: String,
    email: String,
    password: SecretString,
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

/// `POST /api/v1/accounts`: the entity `Token`. The token works once the address is confirmed and, where
/// that is needed, the account approved. If the address is known, it never will.
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
async fn missing_picture() -> Response {
    let headers = [
        (CONTENT_TYPE, "image/png"),
        (CACHE_CONTROL, "public, max-age=86400"),
    ];
    (headers, include_bytes!("missing.png").as_slice()).into_response()
}
