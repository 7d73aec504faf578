use std::collections::BTreeSet;

use driftline_core::sync::{
    FilterValue, LOCAL_HOST, ObjectKind, POST_ID_PREFIX, PushChange, UNNAMED_HOST,
};
use driftline_store::{
    AccountId, LocalId, StoreError, Tx, Viewer, find,
    social::list_entry,
    sync::{MAX_NEW_FILTER_POSTS, Resolved, filter_post_names},
    timeline::{self, PostKey},
};

use crate::{
    mastodon::accounts::find::{named, related},
    transport::Address,
};

/// Finds the posts and accounts that changes name, as far as the viewer may see them.
pub(super) fn resolve(
    tx: &mut Tx<'_>,
    changes: &[PushChange],
    viewer: Viewer,
    address: &Address,
) -> Result<Resolved, StoreError> {
    let domain = address.domain();
    let mut resolved = Resolved::default();
    let mut new_filter_posts = 0;
    let mut bookmarked = Vec::new();
    for change in changes {
        match change.key.kind() {
            // Also of deletions: a follow or block of an account of this server ends only while both are locked.
            Some(
                ObjectKind::Follow | ObjectKind::Block | ObjectKind::Mute | ObjectKind::AccountNote,
            ) => {
                let acct = change.key.name();
                let Some(id) = account(tx, acct, domain)? else {
                    continue;
                };
                if let Some(other) = related(tx, id, viewer, address)? {
                    resolved.related.insert(change.key.clone(), other);
                }
            }
            _ if change.value.is_none() => {}
            Some(kind @ (ObjectKind::Bookmark | ObjectKind::Favourite)) => {
                let name = change.key.name();
                if let Some(post) = post(tx, name, viewer)? {
                    resolved.posts.insert(name.to_owned(), post);
                    if kind == ObjectKind::Bookmark {
                        bookmarked.push(post);
                    }
                }
            }
            Some(ObjectKind::Filter) => {
                let count = filter_posts(tx, change, viewer, new_filter_posts, &mut resolved)?;
                new_filter_posts += count;
            }
            Some(ObjectKind::ListMember) => {
                let Some((_, acct)) = change.key.list_and_acct() else {
                    continue;
                };
                if let Some(id) = account(tx, acct, domain)? {
                    resolved.accounts.insert(acct.to_owned(), id);
                }
            }
            _ => {}
        }
    }
    resolved.shown = timeline::shown_versions(tx, &bookmarked, viewer)?;
    Ok(resolved)
}

/// Finds the posts that a filter does not have yet. Returns their number. `before` is the number of those of other filters.
fn filter_posts(
    tx: &mut Tx<'_>,
    change: &PushChange,
    viewer: Viewer,
    before: usize,
    resolved: &mut Resolved,
) -> Result<usize, StoreError> {
    let value = change
        .value
        .clone()
        .map(serde_json::from_value::<FilterValue>);
    let (Some(Ok(value)), Some(account)) = (value, viewer.account()) else {
        return Ok(0);
    };
    let known = filter_post_names(tx, account, &change.key)?;
    let new: BTreeSet<String> = value
        .posts
        .into_iter()
        .filter(|name| !known.contains(name))
        .collect();
    if before + new.len() > MAX_NEW_FILTER_POSTS {
        resolved.filters_over_limit.insert(change.key.clone());
        return Ok(0);
    }
    let count = new.len();
    for name in new {
        if let Some(post) = post(tx, &name, viewer)? {
            resolved.posts.insert(name, post);
        }
    }
    Ok(count)
}

/// The post with a name as keys have it.
fn post(tx: &mut Tx<'_>, name: &str, viewer: Viewer) -> Result<Option<PostKey>, StoreError> {
    let id = match name.strip_prefix(POST_ID_PREFIX) {
        Some(id) => id.parse().ok().map(LocalId::new),
        None => find::shown_post(tx, name, viewer)?,
    };
    let Some(id) = id else { return Ok(None) };
    let post = list_entry::status(tx, id, viewer)?;
    Ok(post.map(|post| post.key()))
}

/// The account of an `acct` as keys have it.
fn account(tx: &mut Tx<'_>, acct: &str, domain: &str) -> Result<Option<AccountId>, StoreError> {
    match acct.split_once('@') {
        Some((name, LOCAL_HOST)) => named(tx, name, domain),
        Some((id, UNNAMED_HOST)) => Ok(id.parse().ok().map(AccountId::new)),
        _ => named(tx, acct, domain),
    }
}
