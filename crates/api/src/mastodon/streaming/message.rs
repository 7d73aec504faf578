use std::slice;

use driftline_core::feed::ChangeKind;
use driftline_mastodon::has_media;
use driftline_store::{
    LocalAccountId, LocalId, StoreError, Tx, instance,
    timeline::{self, Range, Stretch, Viewer},
    viewer::ReadableSources,
};

use super::channel::{Channel, Timeline};
use crate::{
    App,
    feed::FeedEvent,
    mastodon::{
        answer, home, list_timeline,
        local_references::{LocalReferences, Unmapped},
        status::Shown,
        timelines,
        view::View,
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
    if let Some(account) = viewer.account() {
        return to_account(app, account, channel, event).await;
    }
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

/// What a timeline of an account tells of a change: of a new post or an edit, if it shows the post at this entry,
/// as it shows it; of what is gone, if the account may read the source.
async fn to_account(
    app: &App,
    account: LocalAccountId,
    channel: Channel,
    event: &FeedEvent,
) -> Result<Option<Message>, ApiError> {
    let (id, source, now_ms) = (event.change.row.id, event.source, app.people.now_ms());
    let viewer = Viewer::Account(account);
    let name = match event.change.kind {
        ChangeKind::New => "update",
        ChangeKind::Edit => "status.update",
        ChangeKind::Delete | ChangeKind::Left => {
            let read = move |tx: &mut Tx<'_>| ReadableSources::load(tx, viewer);
            let readable = app.store.read(read).await.map_err(StoreError::from)?;
            return Ok(readable.of(source).map(|_| Message {
                event: "delete",
                payload: id.to_string(),
            }));
        }
    };
    let view = View::of(app, viewer);
    let shown = answer::read(app, move |tx| {
        if ReadableSources::load(tx, viewer)?.of(source).is_none() {
            return Ok((None, Unmapped::new()));
        }
        let posts = stretch(tx, account, channel, &only(id), now_ms)?.posts;
        let Some(post) = posts.first() else {
            return Ok((None, Unmapped::new()));
        };
        let Some(instance) = instance::by_id(tx, post.instance)? else {
            return Ok((None, Unmapped::new()));
        };
        let (body, unmapped) = view.status(tx, post, &instance)?;
        Ok((String::from_utf8(body).ok(), unmapped))
    });
    Ok(shown.await?.map(|json| Message {
        event: name,
        payload: one_line(&json),
    }))
}

/// A part of the timeline of an account's channel, as pages have it.
fn stretch(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    channel: Channel,
    range: &Range,
    now_ms: i64,
) -> Result<Stretch, StoreError> {
    let nothing = || Stretch {
        posts: Vec::new(),
        rest: None,
    };
    let only_media = channel.only_media;
    match channel.timeline {
        Timeline::Public | Timeline::Remote => {
            timelines::public_stretch(tx, range, Viewer::Account(account), only_media, now_ms)
        }
        Timeline::User => home::stretch(tx, account, range, only_media, now_ms),
        Timeline::List(list) => {
            let found = list_timeline::stretch(tx, account, list, range, only_media, now_ms)?;
            // It may be gone since the stream began.
            Ok(found.unwrap_or_else(nothing))
        }
        Timeline::Local | Timeline::Notifications => Ok(nothing()),
    }
}

/// An event is one line.
fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
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
        json: one_line(&json),
        is_in_public,
        is_in_operators,
        has_media: has_media(&post.raw),
    });
    Ok((status, unmapped))
}

/// Whether a viewer's public timeline shows a post at this ID.
fn is_in(tx: &mut Tx<'_>, id: LocalId, viewer: Viewer) -> Result<bool, StoreError> {
    Ok(!timeline::public(tx, &only(id), viewer)?.is_empty())
}

/// The part of a timeline that has this ID alone.
fn only(id: LocalId) -> Range {
    Range {
        since: id.raw().checked_sub(1).map(LocalId::new),
        max: id.raw().checked_add(1).map(LocalId::new),
        limit: 1,
        ..Range::default()
    }
}
