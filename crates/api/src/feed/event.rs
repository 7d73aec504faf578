use std::sync::{Arc, OnceLock};

use driftline_core::{
    feed::ChangeKind,
    names::audience::{Audience, Reader},
};
use driftline_store::{
    InstanceId, Owner, SourceId, Viewer,
    change_feed::{Change, FeedSource},
    export::ExportPost,
    timeline::TimelinePost,
};
use serde::Serialize;

use super::PostRecord;
use crate::mastodon::streaming::message::SharedMessages;

/// A change of a source's post.
#[derive(Debug)]
pub struct FeedEvent {
    /// The source.
    pub source: SourceId,
    /// The source's instance.
    pub instance: InstanceId,
    /// The source's name.
    pub source_name: Arc<str>,
    /// Whether the world may read the source.
    pub is_public: bool,
    /// Who may read the source.
    pub(super) readers: SourceReaders,
    /// What changed.
    pub change: Change,
    json: OnceLock<String>,
    /// What Mastodon's streams tell of it, the same to all who have no account.
    pub(crate) shared: SharedMessages,
}

/// Who may read a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceReaders {
    owner: Owner,
    audience: Audience,
}

impl SourceReaders {
    pub(super) fn new(source: &FeedSource) -> Self {
        Self {
            owner: source.owner,
            audience: source.audience,
        }
    }

    /// Whether a viewer may read the source at all.
    pub(super) fn admit(self, viewer: Viewer) -> bool {
        self.audience.shows(viewer.reader(self.owner)).is_some()
    }

    /// True if a viewer sees a post in it. Others see none in what an account published that its server only claims
    /// to know.
    pub(super) fn show(self, viewer: Viewer, post: &ExportPost) -> bool {
        let reader = viewer.reader(self.owner);
        let is_published = self.audience == Audience::Public && self.owner != Owner::Operator;
        let is_hidden = is_published && post.claimed && reader != Reader::Owner;
        let shown = self.audience.shows(reader);
        shown.is_some_and(|shown| !is_hidden && post.visibility.narrowness() <= shown.narrowness())
    }
}

/// The JSON of an event.
#[derive(Serialize)]
struct EventJson<'a> {
    event: ChangeKind,
    history: bool,
    source: &'a str,
    post: PostRecord,
}

impl FeedEvent {
    pub(super) fn new(source: &FeedSource, source_name: Arc<str>, change: Change) -> Self {
        Self {
            source: source.key.id,
            instance: source.key.instance,
            source_name,
            is_public: source.audience == Audience::Public,
            readers: SourceReaders::new(source),
            change,
            json: OnceLock::new(),
            shared: SharedMessages::default(),
        }
    }

    /// Whether its source shows a viewer the post, as it is now.
    pub(crate) fn is_for(&self, viewer: Viewer) -> bool {
        self.readers.show(viewer, &self.change.row.post)
    }

    /// Returns the source's own copy of the post as it is now, under the ID by which the store knows
    /// the post. `None` if the post is deleted, or if the source lists it no more, except in the event
    /// that reports this.
    pub(crate) fn own_copy(&self) -> Option<TimelinePost> {
        let row = &self.change.row;
        let has_left = row.left_at_ms.is_some() && self.change.kind != ChangeKind::Left;
        let post = &row.post;
        if has_left || post.deleted_at_ms.is_some() {
            return None;
        }
        Some(TimelinePost {
            id: row.post_id,
            post_id: row.post_id,
            public_id: row.post_id,
            instance: self.instance,
            upstream_id: post.upstream_id.clone(),
            uri: post.uri.clone(),
            url: post.url.clone(),
            account: post.account,
            created_at_ms: post.created_at_ms,
            edited_at_ms: post.edited_at_ms,
            visibility: post.visibility,
            boost_of: post.boost_of.clone(),
            raw: post.raw.clone()?,
            copies: Vec::new(),
        })
    }

    /// One line of JSON: `event`, `history`, `source` and `post`, a [`PostRecord`]. It is written once,
    /// however many follow the feed.
    pub fn json(&self) -> &str {
        self.json.get_or_init(|| {
            let json = EventJson {
                event: self.change.kind,
                history: self.change.is_history,
                source: &self.source_name,
                post: self.change.row.clone().into(),
            };
            // Its keys are texts and its numbers finite, so nothing can fail.
            serde_json::to_string(&json).unwrap_or_default()
        })
    }
}
