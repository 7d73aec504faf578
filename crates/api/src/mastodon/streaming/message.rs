use driftline_core::feed::ChangeKind;
use driftline_mastodon::has_media;
use driftline_store::{
    LocalId, SourceKey, StoreError, Tx, instance,
    social::{
        list,
        list_entry::{self, ListEntry, ListKey},
    },
    timeline::{self, PostKey, Range, Stretch, TimelinePost, Viewer},
    viewer::ReadableSources,
};
use tokio::sync::OnceCell;

use super::channel::{Channel, Timeline};
use crate::{
    auth::RequestContext,
    feed::FeedEvent,
    find::SavedTimeline,
    mastodon::{
        timelines::{home, list_timeline, public},
        view::View,
    },
    transport::{Address, ApiResult},
};

/// A message of a stream.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Mastodon's name of what happened.
    pub(super) event: &'static str,
    /// A status, or a deleted one's ID.
    pub(super) payload: String,
    /// Whether it is a status with media.
    pub(super) has_media: bool,
}

/// The messages of a change for those who have no account, written once for all of them.
#[derive(Debug, Default)]
pub(crate) struct SharedMessages {
    world: OnceCell<Vec<Message>>,
    operators: OnceCell<Vec<Message>>,
    source: OnceCell<Vec<Message>>,
}

/// The messages of a change in a channel.
pub(super) async fn messages(
    context: &RequestContext,
    channel: Channel,
    event: &FeedEvent,
) -> ApiResult<Vec<Message>> {
    let viewer = context.viewer;
    // Nothing is sent of what is in a source for others, and nothing is read for it.
    if !event.is_for(viewer) || !channel.may_show(viewer, event) {
        return Ok(Vec::new());
    }
    if viewer.account().is_some() {
        return read_messages(context, channel, event).await;
    }
    let shared = match channel.timeline {
        Timeline::List(_) => &event.shared.source,
        _ if viewer == Viewer::Operator => &event.shared.operators,
        _ => &event.shared.world,
    };
    let all = Channel {
        only_media: false,
        ..channel
    };
    let messages = shared.get_or_try_init(|| read_messages(context, all, event));
    let messages = messages.await?.iter();
    let is_shown =
        |message: &&Message| !channel.only_media || message.has_media || message.event == DELETE;
    Ok(messages.filter(is_shown).cloned().collect())
}

async fn read_messages(
    context: &RequestContext,
    channel: Channel,
    event: &FeedEvent,
) -> ApiResult<Vec<Message>> {
    let change = ChannelChange {
        view: View::new(context),
        channel,
        entry: event.change.row.id,
        source: SourceKey {
            id: event.source,
            instance: event.instance,
        },
        post: event.change.row.post_id,
        kind: event.change.kind,
        now_ms: context.now_ms(),
    };
    context.read(move |tx| change.messages(tx)).await
}

/// A change, as a channel shows it to its viewer.
#[derive(Clone)]
struct ChannelChange {
    view: View,
    channel: Channel,
    entry: LocalId,
    source: SourceKey,
    post: LocalId,
    kind: ChangeKind,
    now_ms: i64,
}

impl ChannelChange {
    /// Of a new post, or an edit, if the timeline shows the post at this entry; of what else changes of a post that it
    /// shows at a copy's place; of what is gone. Nothing of what is in a source that its viewer may not read.
    fn messages(&self, tx: &mut Tx<'_>) -> Result<Vec<Message>, StoreError> {
        let mut messages = Vec::new();
        let viewer = self.view.viewer;
        if ReadableSources::load(tx, viewer)?
            .of(self.source.id)
            .is_none()
        {
            return Ok(messages);
        }
        let saved = self.saved_timeline(tx)?;
        if let (Some(saved), ChangeKind::Edit) = (&saved, self.kind) {
            return self.edit_messages(tx, saved);
        }
        let is_end = matches!(self.kind, ChangeKind::Delete | ChangeKind::Left);
        let name = match self.kind {
            ChangeKind::New => "update",
            ChangeKind::Edit | ChangeKind::Delete | ChangeKind::Left => UPDATE,
        };
        let shown = self.at(tx, saved.as_ref(), self.entry, name)?;
        if let Some((message, _)) = shown {
            messages.push(message);
            return Ok(messages);
        }
        if is_end {
            messages.push(deleted(self.entry));
        }
        if self.is_of_source() {
            return Ok(messages);
        }
        let key = PostKey {
            post: self.post,
            instance: self.source.instance,
        };
        for place in timeline::places_of_copies(tx, key, viewer)? {
            match self.at(tx, saved.as_ref(), place, UPDATE)? {
                // If another copy's content is shown, this one changes nothing.
                Some((message, content)) if is_end || content == self.post => {
                    messages.push(message);
                }
                None if is_end => messages.push(deleted(place)),
                Some(_) | None => {}
            }
        }
        if let (true, Some(list)) = (is_end, self.list()) {
            let entries = list_entry::of_post(tx, list, self.post)?;
            messages.extend(entries.map(deleted));
        }
        Ok(messages)
    }

    /// The messages of an edit in a list with a predicate: the post, if it was and is in the list; its
    /// end, if it was. A post that the edit brings into the list comes with its entry, as a new one. An
    /// edit of a copy that the viewer is not shown changes nothing.
    fn edit_messages(
        &self,
        tx: &mut Tx<'_>,
        saved: &SavedTimeline,
    ) -> Result<Vec<Message>, StoreError> {
        let shown = timeline::at_its_place(tx, self.post, self.view.viewer)?;
        let Some(shown) = shown.filter(|post| post.post_id == self.post) else {
            return Ok(Vec::new());
        };
        if !saved.selected_before_edit(tx, &shown, self.now_ms)? {
            return Ok(Vec::new());
        }
        Ok(match saved.post(tx, self.post, self.now_ms)? {
            Some(post) => self.message(tx, &post, UPDATE)?.into_iter().collect(),
            None => vec![deleted(saved.at_its_place(tx, shown)?.id)],
        })
    }

    /// What the timeline shows at a place, with the copy whose content it is.
    fn at(
        &self,
        tx: &mut Tx<'_>,
        saved: Option<&SavedTimeline>,
        place: LocalId,
        event: &'static str,
    ) -> Result<Option<(Message, LocalId)>, StoreError> {
        let post = match saved {
            Some(saved) => {
                let found = saved.post(tx, self.post, self.now_ms)?;
                found.filter(|post| post.id == place)
            }
            None => self.stretch(tx, &only(place))?.posts.pop(),
        };
        let Some(post) = post else {
            return Ok(None);
        };
        let message = self.message(tx, &post, event)?;
        Ok(message.map(|message| (message, post.post_id)))
    }

    fn message(
        &self,
        tx: &mut Tx<'_>,
        post: &TimelinePost,
        event: &'static str,
    ) -> Result<Option<Message>, StoreError> {
        status_message(tx, &self.view, post, event)
    }

    /// The channel's list; `None` if it is something else.
    fn list(&self) -> Option<ListKey> {
        match (self.channel.timeline, self.view.viewer.account()) {
            (Timeline::List(list), Some(account)) => Some(ListKey { account, list }),
            _ => None,
        }
    }

    /// The timeline of a list with a predicate; `None` if the channel is something else.
    fn saved_timeline(&self, tx: &mut Tx<'_>) -> Result<Option<SavedTimeline>, StoreError> {
        match self.list() {
            Some(list) => saved_timeline(tx, list, &self.view.address),
            None => Ok(None),
        }
    }

    /// Whether the channel is a source's own timeline.
    fn is_of_source(&self) -> bool {
        self.view.viewer.account().is_none() && matches!(self.channel.timeline, Timeline::List(_))
    }

    /// A part of the channel's timeline, as pages have it.
    fn stretch(&self, tx: &mut Tx<'_>, range: &Range) -> Result<Stretch, StoreError> {
        let (view, only_media) = (&self.view, self.channel.only_media);
        let whole = |posts| Stretch { posts, rest: None };
        let viewer = view.viewer;
        let Some(account) = viewer.account() else {
            return Ok(whole(match self.channel.timeline {
                Timeline::Public | Timeline::Remote => timeline::public(tx, range, viewer)?,
                Timeline::List(_) => timeline::source(tx, self.source, range, viewer)?,
                _ => Vec::new(),
            }));
        };
        match self.channel.timeline {
            Timeline::Public | Timeline::Remote => public::stretch(tx, range, only_media, view),
            Timeline::User => home::stretch(tx, account, range, only_media, view),
            Timeline::List(list) => {
                let found = list_timeline::stretch(tx, account, list, range, only_media, view)?;
                // It may be gone since the stream began.
                Ok(found.unwrap_or_else(|| whole(Vec::new())))
            }
            Timeline::Local | Timeline::Notifications => Ok(whole(Vec::new())),
        }
    }
}

/// The messages of entries of a list with a predicate, in their order.
pub(super) fn entered_messages(
    tx: &mut Tx<'_>,
    view: &View,
    list: ListKey,
    entries: &[ListEntry],
    now_ms: i64,
) -> Result<Vec<Message>, StoreError> {
    let mut messages = Vec::new();
    if !entries.is_empty()
        && let Some(saved) = saved_timeline(tx, list, &view.address)?
    {
        for post in &saved.entered(tx, entries, now_ms)? {
            messages.extend(status_message(tx, view, post, "update")?);
        }
    }
    Ok(messages)
}

/// The timeline of a list with a predicate; `None` if the list has none, or is gone.
///
/// # Errors
/// [`StoreError::Unreadable`] if the predicate cannot be read. It ends the stream. A client that reconnects gets
/// the reason.
fn saved_timeline(
    tx: &mut Tx<'_>,
    list: ListKey,
    address: &Address,
) -> Result<Option<SavedTimeline>, StoreError> {
    let Some(known) = list::by_id(tx, list.account, list.list)? else {
        return Ok(None);
    };
    if let Some(reason) = known.unreadable {
        return Err(StoreError::Unreadable {
            what: "a list's predicate",
            reason,
        });
    }
    let predicate = known.settings.predicate;
    Ok(predicate.and_then(|predicate| SavedTimeline::new(list, predicate, address).ok()))
}

fn status_message(
    tx: &mut Tx<'_>,
    view: &View,
    post: &TimelinePost,
    event: &'static str,
) -> Result<Option<Message>, StoreError> {
    let Some(instance) = instance::by_id(tx, post.instance)? else {
        return Ok(None);
    };
    let body = view.status(tx, post, &instance)?;
    Ok(String::from_utf8(body).ok().map(|json| Message {
        event,
        payload: one_line(&json),
        has_media: has_media(&post.raw),
    }))
}

fn deleted(id: LocalId) -> Message {
    Message {
        event: DELETE,
        payload: id.to_string(),
        has_media: false,
    }
}

/// An event is one line.
pub(super) fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
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

const UPDATE: &str = "status.update";
const DELETE: &str = "delete";
