//! The IDs of accounts that a query names.

use std::collections::HashSet;

use axum::{extract::FromRequestParts, http::request::Parts};
use driftline_store::AccountId;
use url::form_urlencoded;
use utoipa::IntoParams;

use crate::{description::ids::AccountId as AccountIdText, transport::ApiError};

/// Which accounts.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct IdsParams {
    /// At most 200; also as `id`.
    #[param(rename = "id[]", value_type = Vec<AccountIdText>)]
    id: Vec<String>,
}

/// The IDs that a query names by `id[]` or `id`, each once.
pub(crate) struct IdsQuery(pub(crate) Vec<AccountId>);

impl<S: Send + Sync> FromRequestParts<S> for IdsQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let mut seen = HashSet::new();
        let mut ids = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let is_id = matches!(&*name, "id" | "id[]") || name.starts_with("id[");
            if is_id
                && let Ok(id) = value.parse()
                && seen.insert(id)
            {
                ids.push(id);
            }
        }
        match ids.len() <= MAX_IDS {
            true => Ok(Self(ids)),
            false => Err(ApiError::BadParameter(format!(
                "at most {MAX_IDS} IDs can be asked for at once"
            ))),
        }
    }
}

const MAX_IDS: usize = 200;
