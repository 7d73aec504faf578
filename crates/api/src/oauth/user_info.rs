//! `/oauth/userinfo`: who somebody is, for apps that only log people in.

use axum::Json;
use driftline_store::social::local_account;
use serde_json::{Value, json};

use crate::{
    auth::{LoggedIn, needs},
    transport::{ApiError, JsonResult},
};

/// Whom the token acts for.
#[utoipa::path(
    get, path = "/oauth/userinfo", tag = "oauth", security(("account" = ["profile"])),
    responses((status = 200, body = Object)),
)]
pub(super) async fn user_info(caller: LoggedIn<needs::Profile>) -> JsonResult<Value> {
    let address = &caller.address;
    let found = caller.read(local_account::by_id).await?;
    let account = found.ok_or(ApiError::Unauthorized { presented: true })?;
    let url = address.url(&format!("/@{}", account.name));
    let shown = account.nickname.or_name(&account.name);
    Ok(Json(json!({
        "iss": address.url("/"),
        "sub": url,
        "name": shown,
        "preferred_username": account.name.as_str(),
        "profile": url,
    })))
}
