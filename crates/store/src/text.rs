//! Texts in their stored form.

use serde::{Serialize, de::DeserializeOwned};

use crate::error::StoreError;

pub(crate) use driftline_core::text::without_nul;

/// A value as JSON. `what` names it in errors.
pub(crate) fn to_json(what: &'static str, value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::unreadable(what, &error))
}

/// Reads the result of [`to_json`].
pub(crate) fn from_json<T: DeserializeOwned>(
    what: &'static str,
    json: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(|error| StoreError::unreadable(what, &error))
}
