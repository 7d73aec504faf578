//! The posts that notifications are about.

use std::collections::HashMap;

use driftline_store::{
    LocalId, StoreError, Tx,
    social::notification::Notification,
    timeline::{self, PostKey, TimelinePost, Viewer},
};
use serde_json::value::RawValue;

use crate::mastodon::{page::Page, view::View};

/// The posts of some notifications that their account may see now.
pub(crate) struct NotifiedPosts(HashMap<LocalId, TimelinePost>);

impl NotifiedPosts {
    pub(crate) fn load(
        tx: &mut Tx<'_>,
        found: &[Notification],
        viewer: Viewer,
    ) -> Result<Self, StoreError> {
        let keys: Vec<PostKey> = found.iter().filter_map(|found| found.post).collect();
        match keys.is_empty() {
            true => Ok(Self(HashMap::new())),
            false => timeline::by_post_ids(tx, &keys, viewer).map(Self),
        }
    }

    /// Whether a notification is shown: one about a post is left out once the account may not see the post any more.
    pub(crate) fn shows(&self, notification: &Notification) -> bool {
        let key = notification.post;
        key.is_none_or(|key| self.0.contains_key(&key.post))
    }

    /// The local ID of a notification's post, and its entity `Status` among those of [`Self::entities`].
    pub(crate) fn status<'e>(
        &self,
        notification: &Notification,
        entities: &'e HashMap<LocalId, Box<RawValue>>,
    ) -> Option<(LocalId, &'e RawValue)> {
        let post = self.0.get(&notification.post?.post)?;
        Some((post.id, entities.get(&post.id)?))
    }

    /// The entity `Status` of each post, by its local ID.
    pub(crate) fn entities(
        &self,
        tx: &mut Tx<'_>,
        view: &View,
    ) -> Result<HashMap<LocalId, Box<RawValue>>, StoreError> {
        if self.0.is_empty() {
            return Ok(HashMap::new());
        }
        let posts: Vec<TimelinePost> = self.0.values().cloned().collect();
        Page::entities(tx, &posts, view)
    }
}
