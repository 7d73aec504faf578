use driftline_core::{
    answer::{Failure, FailureKind},
    upstream_id::UpstreamId,
};
use driftline_mastodon::StatusError;
use serde_json::value::RawValue;

use crate::excerpt;

/// Why an item of an answer is no post.
#[derive(Debug)]
pub(crate) enum BadItem {
    /// It is not the JSON that was expected.
    Json(serde_json::Error),
    /// It has no usable ID; says what is there instead.
    Id(String),
}

impl BadItem {
    /// An ID that is not usable, JSON.
    pub(crate) fn id(found: Option<&str>) -> Self {
        Self::Id(found.map_or_else(
            || "missing or null".to_owned(),
            |json| excerpt::words(json.as_bytes()),
        ))
    }

    /// The failure that it means for the answer; `item` says which it is.
    pub(crate) fn failure(self, item: &str) -> Failure {
        match self {
            Self::Json(error) => Failure::new(
                FailureKind::BadJson,
                format!("{item} is not a post ({error})"),
            ),
            Self::Id(id) => Failure::new(
                FailureKind::BadId,
                format!("{item} has no usable ID (it is {id}); IDs are texts or whole numbers"),
            ),
        }
    }
}

impl From<serde_json::Error> for BadItem {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl From<StatusError> for BadItem {
    fn from(error: StatusError) -> Self {
        match error {
            StatusError::Json(error) => Self::Json(error),
            StatusError::Id { found } => Self::id(found.as_deref()),
        }
    }
}

/// An ID, a text or a whole number.
pub(crate) fn id(value: Option<&RawValue>) -> Result<UpstreamId, BadItem> {
    let id = value.and_then(driftline_mastodon::id);
    id.map(|id| UpstreamId::new(id.into_owned()))
        .ok_or_else(|| BadItem::id(value.map(RawValue::get)))
}
