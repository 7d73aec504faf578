use std::slice;

use driftline_core::feed::ChangeKind;
use driftline_mastodon::has_media;
use driftline_store::{
    LocalId, StoreError, Tx, instance,
    timeline::{self, Range, Viewer},
};

use super::channel::Channel;
use crate::{
    App,
    feed::FeedEvent,
    mastodon::{
        answer,
        local_references::{LocalReferences, Unmapped},
        status::Shown,
    },
    transport::ApiError,
};

/// A message of a stream.
#[derive(Debug)]
pub(super) struct Message {
    /// Mastodon's name of what happened.
    pub(super) event: &'static str,
    /// A status, or a deleted one's ID.
    pub(super) payload: String,
}

/// A status as it is told.
#[derive(Debug)]
pub(crate) struct StatusJson {
    json: String,
    /// Whether the world's public timeline shows it at this ID.
    pub(super) is_in_public: bool,
    /// Whether the operator's public timeline does.
    pub(super) is_in_operators: bool,
    pub(super) has_media: bool,
}

/// What a channel tells a viewer of a change, if anything.
pub(super) async fn message(
    app: &App,
    viewer: Viewer,
    channel: Channel,
    event: &FeedEvent,
) -> Result<Option<Message>, ApiError> {
    if !channel.may_tell(viewer, event) {
        return Ok(None);
    }
    let id = event.change.row.id;
    let name = match event.change.kind {
        ChangeKind::New => "update",
        ChangeKind::Edit => "status.update",
        ChangeKind::Delete | ChangeKind::Left => {
            let payload = id.to_string();
            return Ok(Some(Message {
                event: "delete",
                payload,
            }));
        }
    };
    let status = event.status.get_or_try_init(async || status(app, id).await);
    let status = status.await?.as_ref();
    Ok(status
        .filter(|status| channel.tells(viewer, status))
        .map(|status| Message {
            event: name,
            payload: status.json.clone(),
        }))
}

/// The status of an entry; `None` if it may not be shown, or no more.
async fn status(app: &App, id: LocalId) -> Result<Option<StatusJson>, ApiError> {
    answer::read(app, move |tx| written(tx, id)).await
}

fn written(tx: &mut Tx<'_>, id: LocalId) -> Result<(Option<StatusJson>, Unmapped), StoreError> {
    let Some(post) = timeline::status(tx, id, Viewer::Operator)? else {
        return Ok((None, Vec::new()));
    };
    let is_in_public = is_in(tx, id, Viewer::Anonymous)?;
    let is_in_operators = is_in_public || is_in(tx, id, Viewer::Operator)?;
    let Some(instance) = instance::by_id(tx, post.instance)? else {
        return Ok((None, Vec::new()));
    };
    let shown = Shown::status(&post, &instance);
    let (local, unmapped) = LocalReferences::find(tx, slice::from_ref(&shown), Viewer::Anonymous)?;
    let mut body = Vec::new();
    shown.write(&mut body, &local, None);
    let status = String::from_utf8(body).ok().map(|json| StatusJson {
        // An event is one line.
        json: json.replace(['\n', '\r'], " "),
        is_in_public,
        is_in_operators,
        has_media: has_media(&post.raw),
    });
    Ok((status, unmapped))
}

/// Whether a viewer's public timeline shows a post at this ID.
fn is_in(tx: &mut Tx<'_>, id: LocalId, viewer: Viewer) -> Result<bool, StoreError> {
    let only_this = Range {
        since: id.raw().checked_sub(1).map(LocalId::new),
        max: id.raw().checked_add(1).map(LocalId::new),
        limit: 1,
        ..Range::default()
    };
    Ok(!timeline::public(tx, &only_this, viewer)?.is_empty())
}
