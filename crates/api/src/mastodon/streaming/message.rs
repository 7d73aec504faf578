use driftline_core::feed::ChangeKind;
use driftline_mastodon::has_media;
use driftline_store::{
    LocalId, SourceKey, StoreError, Tx, instance,
    social::list,
    timeline::{self, PostKey, Range, Stretch, Viewer},
    viewer::ReadableSources,
};
use tokio::sync::OnceCell;

use super::channel::{Channel, Timeline};
use crate::{
    auth::RequestContext,
    feed::FeedEvent,
    find::Search,
    mastodon::{
        timelines::{home, list_timeline, public},
        view::View,
    },
    transport::ApiResult,
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
        let is_end = matches!(self.kind, ChangeKind::Delete | ChangeKind::Left);
        let name = match self.kind {
            ChangeKind::New => "update",
            ChangeKind::Edit | ChangeKind::Delete | ChangeKind::Left => UPDATE,
        };
        let shown = self.at(tx, self.entry, name)?;
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
            match self.at(tx, place, UPDATE)? {
                // If another copy's content is shown, this one changes nothing.
                Some((message, content)) if is_end || content == self.post => {
                    messages.push(message);
                }
                None if is_end => messages.push(deleted(place)),
                Some(_) | None => {}
            }
        }
        // An edit may take a post out of a list with a predicate. The version before is not compared.
        if messages.is_empty()
            && self.kind == ChangeKind::Edit
            && let Some(search) = self.search(tx)?
            && search
                .selected(tx, self.post, viewer, self.now_ms)?
                .is_none()
        {
            let post = timeline::at_its_place(tx, self.post, viewer)?;
            messages.extend(post.map(|post| deleted(post.id)));
        }
        Ok(messages)
    }

    /// What the timeline shows at a place, with the copy whose content it is.
    fn at(
        &self,
        tx: &mut Tx<'_>,
        place: LocalId,
        event: &'static str,
    ) -> Result<Option<(Message, LocalId)>, StoreError> {
        let post = match self.search(tx)? {
            Some(search) => {
                let found = search.selected(tx, self.post, self.view.viewer, self.now_ms)?;
                found.filter(|post| post.id == place)
            }
            None => self.stretch(tx, &only(place))?.posts.pop(),
        };
        let Some(post) = post else {
            return Ok(None);
        };
        let Some(instance) = instance::by_id(tx, post.instance)? else {
            return Ok(None);
        };
        let body = self.view.status(tx, &post, &instance)?;
        let message = String::from_utf8(body).ok().map(|json| Message {
            event,
            payload: one_line(&json),
            has_media: has_media(&post.raw),
        });
        Ok(message.map(|message| (message, post.post_id)))
    }

    /// The search of a list with a predicate; `None` if the channel is something else.
    fn search(&self, tx: &mut Tx<'_>) -> Result<Option<Search>, StoreError> {
        let (Timeline::List(id), Some(account)) =
            (self.channel.timeline, self.view.viewer.account())
        else {
            return Ok(None);
        };
        let list = list::by_id(tx, account, id)?;
        let predicate = list.and_then(|list| list.settings.predicate);
        Ok(predicate.and_then(|predicate| {
            let search = Search::new(predicate).ok()?;
            Some(search.at(&self.view.address))
        }))
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
            Timeline::Public | Timeline::Remote => {
                public::stretch(tx, range, only_media, view)
            }
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
