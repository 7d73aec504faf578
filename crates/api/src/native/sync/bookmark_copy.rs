//! The posts of bookmarks and favourites, as devices get them.

use std::{collections::HashMap, sync::Arc};

use driftline_core::sync::{ChangeResult, ObjectKey, ObjectKind, PushAnswer};
use driftline_store::{
    LocalAccountId, LocalId, StoreError, Tx,
    sync::{self, ShownPosts},
    timeline::TimelinePost,
    viewer::LazyReadableSources,
};
use serde_json::Value;

use crate::mastodon::{page::Page, view::View};

/// The entity `Status` of each bookmarked post, by [`TimelinePost::id`].
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

/// The keys of the bookmarks and favourites in an answer to a push.
pub(super) fn keys(answer: &PushAnswer) -> Vec<ObjectKey> {
    let keys = answer.results.iter().filter_map(|result| match result {
        ChangeResult::Done { key, .. } | ChangeResult::Conflict { key, .. } => Some(key),
        ChangeResult::Refused { .. } => None,
    });
    let marks = keys.filter(|key| {
        matches!(
            key.kind(),
            Some(ObjectKind::Bookmark | ObjectKind::Favourite)
        )
    });
    marks.cloned().collect()
}

/// Gives the bookmarks and favourites in an answer to a push their posts. Those that have changed since then stay as they
/// are: the device will get them with a pull.
pub(super) fn add(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    view: &View,
    answer: &mut PushAnswer,
) -> Result<(), StoreError> {
    let sources = Arc::new(LazyReadableSources::new(view.viewer));
    let view = view.in_transaction(&sources);
    let write = |tx: &mut Tx<'_>, posts: &[TimelinePost]| write(tx, posts, &view);
    let shown = ShownPosts {
        sources: &sources,
        write: &write,
    };
    let objects = sync::current_objects(tx, account, &keys(answer), shown)?;
    for result in &mut answer.results {
        let (ChangeResult::Done { key, usn, value } | ChangeResult::Conflict { key, usn, value }) =
            result
        else {
            continue;
        };
        let mut objects = objects.iter();
        let object = objects.find(|object| object.key == *key && object.usn == *usn);
        if let Some(Ok(json)) = object.map(|object| object.value.read()) {
            *value = Some(json);
        }
    }
    Ok(())
}
