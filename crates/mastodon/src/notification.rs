use std::borrow::Cow;

use driftline_core::upstream_id::UpstreamId;
use serde_json::value::RawValue;

use crate::{
    raw_object::RawObject,
    read_status::{StatusError, required_id},
};

/// Mastodon's `Notification`, with the members that mentions need.
#[derive(Debug, Clone)]
pub struct Notification<'j> {
    /// Its own ID, which determines its position in a timeline of notifications.
    pub id: UpstreamId,
    /// Its kind (`mention`, `favourite`, `follow`…), if the server names one.
    pub kind: Option<Cow<'j, str>>,
    /// The post that it concerns, JSON.
    pub status: Option<&'j RawValue>,
}

impl<'j> Notification<'j> {
    /// Reads a notification.
    ///
    /// # Errors
    /// [`StatusError`] if the JSON is not an object, or has no usable ID.
    pub fn read(json: &'j RawValue) -> Result<Self, StatusError> {
        let notification = RawObject::parse(json.get())?;
        Ok(Self {
            id: required_id(notification.get("id"))?,
            kind: notification.text("type"),
            status: notification.get("status"),
        })
    }
}
