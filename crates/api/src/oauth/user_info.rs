//! `/oauth/userinfo`: who somebody is, for apps that only log people in.

use std::sync::Arc;

use axum::{Json, extract::State};
use driftline_store::social::local_account;
use serde_json::{Value, json};

use crate::{
    App,
    auth::{LoggedIn, needs},
    transport::{Address, ApiError},
};

/// Whom the token acts for.
#[utoipa::path(
    get, path = "/oauth/userinfo", tag = "oauth", security(("account" = ["profile"])),
    responses((status = 200, body = Object)),
)]
pub(super) async fn user_info(
    caller: LoggedIn<needs::Profile>,
    State(app): State<Arc<App>>,
    address: Address,
) -> Result<Json<Value>, ApiError> {
    let id = caller.account.id;
    let found = app
        .store
        .read(move |tx| local_account::by_id(tx, id))
        .await?;
    let account = found.ok_or(ApiError::Unauthorized { presented: true })?;
    let url = address.of(&format!("/@{}", account.name));
    let nickname = account.nickname.as_str();
    let shown = if nickname.is_empty() {
        account.name.as_str()
    } else {
        nickname
    };
    Ok(Json(json!({
        "iss": address.of("/"),
        "sub": url,
        "name": shown,
        "preferred_username": account.name.as_str(),
        "profile": url,
    })))
}
