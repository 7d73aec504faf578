//! The posts of bookmarks, as devices get them.

use std::collections::HashMap;

use driftline_core::sync::{ChangeResult, ObjectKey, ObjectKind, PushAnswer};
use driftline_store::{LocalAccountId, LocalId, StoreError, Tx, sync, timeline::TimelinePost};
use serde_json::Value;

use crate::mastodon::{page::Page, view::View};

/// The entity `Status` of each post, by [`TimelinePost::id`].
pub(super) fn write(
    tx: &mut Tx<'_>,
    posts: &[TimelinePost],
    view: &View,
) -> Result<HashMap<LocalId, Value>, StoreError> {
    let entities = Page::entities(tx, posts, view)?.into_iter();
    let statuses = entities.filter_map(|(id, entity)| {
        let status = serde_json::from_str(entity.get()).ok()?;
        Some((id, status))
    });
    Ok(statuses.collect())
}

/// The keys of the bookmarks in an answer to a push.
pub(super) fn keys(answer: &PushAnswer) -> Vec<ObjectKey> {
    let keys = answer.results.iter().filter_map(|result| match result {
        ChangeResult::Done { key, .. } | ChangeResult::Conflict { key, .. } => Some(key),
        ChangeResult::Refused { .. } => None,
    });
    let bookmarks = keys.filter(|key| key.kind() == Some(ObjectKind::Bookmark));
    bookmarks.cloned().collect()
}

/// Gives the bookmarks in an answer to a push their posts. Those that have changed since then stay as they are: the device
/// will get them with a pull.
pub(super) fn add(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    view: &View,
    answer: &mut PushAnswer,
) -> Result<(), StoreError> {
    let write = |tx: &mut Tx<'_>, posts: &[TimelinePost]| write(tx, posts, view);
    let objects = sync::current_objects(tx, account, &keys(answer), &write)?;
    for result in &mut answer.results {
        let (ChangeResult::Done { key, usn, value } | ChangeResult::Conflict { key, usn, value }) =
            result
        else {
            continue;
        };
        let mut objects = objects.iter();
        if let Some(object) = objects.find(|object| object.key == *key && object.usn == *usn) {
            *value = Some(object.value.json());
        }
    }
    Ok(())
}
