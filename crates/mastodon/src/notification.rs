use std::borrow::Cow;

use driftline_core::upstream_id::UpstreamId;
use serde_json::value::RawValue;

use crate::{
    raw_object::RawObject,
    read_status::{StatusError, required_id},
};

/// Mastodon's `Notification`, as far as mentions need it.
#[derive(Debug, Clone)]
pub struct Notification<'j> {
    /// Its own ID, which orders a timeline of notifications.
    pub id: UpstreamId,
    /// Its kind (`mention`, `favourite`, `follow`…), if the server says one.
    pub kind: Option<Cow<'j, str>>,
    /// The post that it is about, JSON.
    pub status: Option<&'j RawValue>,
}

impl<'j> Notification<'j> {
    /// Reads a notification.
    ///
    /// # Errors
    /// It is not an object, or it has no usable ID.
    pub fn read(json: &'j RawValue) -> Result<Self, StatusError> {
        let notification = RawObject::parse(json.get())?;
        Ok(Self {
            id: required_id(notification.get("id"))?,
            kind: notification.text("type"),
            status: notification.get("status"),
        })
    }
}
