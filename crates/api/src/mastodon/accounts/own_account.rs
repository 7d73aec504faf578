//! An account of this server for itself, and signing up by an app.

use std::sync::Arc;

use axum::{
    Json,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use driftline_core::social::{
    Direction, Nickname, PassphraseError, Profile, ProfileField, Relation, Role,
};
use driftline_store::{
    StoreError,
    social::{
        local_account::{self, LocalAccount},
        profile, relation,
    },
};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{account_entities::local_entity, by_id};
use crate::{
    App,
    auth::{CallerKind, LoggedIn, WithToken, needs},
    mastodon::{
        answer::picture,
        entities::{CredentialAccount, Preferences},
        values::{boolean, rows},
    },
    oauth::{
        MAX_BODY_BYTES,
        token::{self, TokenJson},
    },
    pages::language::Language,
    sign_up::{self, Faults, NameFault, SignUpRequest},
    transport::{ApiError, ApiResult, ClientAddress, JsonResult, Params, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(by_id::several, create))
        .routes(routes!(missing_picture))
        .routes(routes!(verify_credentials))
        .routes(routes!(update_credentials))
        .routes(routes!(preferences))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// The caller's own account.
#[utoipa::path(
    get, path = "/api/v1/accounts/verify_credentials", tag = "accounts",
    security(("account" = ["read:accounts"])),
    responses((status = 200, body = CredentialAccount)),
)]
async fn verify_credentials(caller: LoggedIn<needs::ReadAccounts>) -> JsonResult<Value> {
    own_account(&caller).await
}

/// The entity `CredentialAccount`.
async fn own_account<S>(caller: &LoggedIn<S>) -> JsonResult<Value> {
    let address = caller.address.clone();
    let read = caller.read(move |tx, id| {
        let Some(account) = local_account::by_id(tx, id)? else {
            return Ok(None);
        };
        let counts = relation::follow_counts(tx, &[id])?.remove(&id);
        let (incoming, asks) = (Direction::Incoming, Relation::RequestingFollow);
        let requests = relation::count(tx, id, incoming, asks)?;
        let (profile, counts) = (profile::load(tx, id)?, counts.unwrap_or_default());
        let entity = local_entity(&account, &profile, counts, &address);
        Ok(Some(credential_account(
            entity, &account, &profile, requests,
        )))
    });
    let found = read.await?;
    Ok(Json(
        found.ok_or(ApiError::Unauthorized { presented: true })?,
    ))
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
    others: Map<String, Value>,
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
    Params(update): Params<Update>,
) -> JsonResult<Value> {
    let is_given = |value: &Value| !value.is_null() && value != "";
    if let Some(picture) = ["avatar", "header"]
        .into_iter()
        .find(|name| update.others.get(*name).is_some_and(is_given))
    {
        return Err(ApiError::Unprocessable(format!(
            "This server keeps no pictures of accounts: leave {picture} out"
        )));
    }
    let unprocessable = |error: &dyn ToString| ApiError::Unprocessable(error.to_string());
    let nickname = update.display_name.as_deref().map(Nickname::new);
    let nickname = nickname
        .transpose()
        .map_err(|error| unprocessable(&error))?;
    let fields = profile_fields(&update.others);
    let now_ms = caller.now_ms();
    let write = caller.write(move |tx, id| {
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
            *flag = boolean(value.as_ref()).unwrap_or(*flag);
        }
        let nickname = match &nickname {
            Some(nickname) => nickname.clone(),
            None => {
                let known = local_account::by_id(tx, id)?;
                known.ok_or(StoreError::NoAccount)?.nickname
            }
        };
        profile::set(tx, id, &nickname, &changed, now_ms)
    });
    write.await?.map_err(|error| unprocessable(&error))?;
    own_account(&caller).await
}

/// The rows of a profile; `None` if none are named.
fn profile_fields(params: &Map<String, Value>) -> Option<Vec<ProfileField>> {
    let rows = rows(params, FIELDS);
    let is_named = !rows.is_empty() || params.contains_key(FIELDS);
    let fields = rows.iter().map(|row| {
        let part = |name| row.get(name).and_then(Value::as_str).unwrap_or_default();
        ProfileField {
            name: part("name").to_owned(),
            value: part("value").to_owned(),
        }
    });
    let fields = fields.filter(|field| !field.name.is_empty() || !field.value.is_empty());
    is_named.then(|| fields.collect())
}

fn credential_account(
    mut entity: Value,
    account: &LocalAccount,
    profile: &Profile,
    requests: i64,
) -> Value {
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
) -> ApiResult {
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
        let fault = ("agreement", "ERR_ACCEPTED", "must be accepted");
        return Ok(refusal(&[fault]));
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
            let given = token::give(&app, Some(account), client, caller.scopes).await?;
            Ok(given.answer())
        }
        Err(faults) => Ok(refused(&faults)),
    }
}

fn refused(faults: &Faults) -> Response {
    let name = faults.name.map(|fault| match fault {
        NameFault::Taken => ("username", "ERR_TAKEN", "has already been taken"),
        NameFault::Invalid => {
            let rule = "must be 1 to 64 letters, digits, `.`, `_`, `~` or `-`";
            ("username", "ERR_INVALID", rule)
        }
    });
    let mail = ("email", "ERR_INVALID", "is invalid");
    let passphrase = faults.passphrase.map(|fault| {
        let (error, rule) = match fault {
            PassphraseError::Short => ("ERR_TOO_SHORT", "is too short (minimum is 8 characters)"),
            PassphraseError::Long => ("ERR_TOO_LONG", "is too long (maximum is 512 characters)"),
        };
        ("password", error, rule)
    });
    let rule = "can't be blank, and has 500 characters at most";
    let reason = ("reason", "ERR_BLANK", rule);
    let all = [
        name,
        faults.mail.then_some(mail),
        passphrase,
        faults.reason.then_some(reason),
    ];
    refusal(&all.into_iter().flatten().collect::<Vec<_>>())
}

/// Mastodon's answer to values that cannot be used.
fn refusal(faults: &[(&str, &str, &str)]) -> Response {
    let mut details = Map::new();
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

/// The account's preferences.
///
/// They are Mastodon's defaults: nobody can change them here yet.
#[utoipa::path(
    get, path = "/api/v1/preferences", tag = "accounts",
    security(("account" = ["read:accounts"])),
    responses((status = 200, body = Preferences)),
)]
async fn preferences(_: LoggedIn<needs::ReadAccounts>) -> Json<Value> {
    Json(json!({
        "posting:default:visibility": "public",
        "posting:default:sensitive": false,
        "posting:default:language": Value::Null,
        "posting:default:quote_policy": "public",
        "reading:expand:media": "default",
        "reading:expand:spoilers": false,
        "reading:autoplay:gifs": false,
    }))
}

/// The picture of who has none.
#[utoipa::path(
    get, path = "/pictures/missing.png", tag = "accounts", security(()),
    responses((status = 200, body = Vec<u8>, content_type = "image/png")),
)]
async fn missing_picture() -> Response {
    picture(include_bytes!("missing.png"))
}

const FIELDS: &str = "fields_attributes";
