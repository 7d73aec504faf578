//! Filters as devices give them.

use std::collections::HashSet;

use driftline_core::sync::{FilterValue, ObjectKey};
use driftline_db::Tx;

use super::apply::{Applied, ChangeContext, applied};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, from_sql},
    library::object::{self, KnownObject},
    posts::timeline::PostKey,
    social::{
        filter::{self, Filter, FilterContent},
        object_keys,
    },
};

/// The names of a filter's posts in its value; empty if the account has no such filter.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database fails.
pub fn filter_post_names(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    key: &ObjectKey,
) -> Result<HashSet<String>, StoreError> {
    let living = object::find(tx, account, key)?.filter(|object| !object.is_removed);
    let known = stored(tx, account, living.as_ref())?;
    let names = object_keys::post_names(tx, account, &posts(known.as_ref()))?;
    Ok(names.into_values().collect())
}

/// Gives a filter another value, or adds it. The reason if it is refused.
///
/// Posts without a name stay: the device does not know them. Posts that the account cannot see are left out, since the filter
/// would match nothing by them.
pub(super) fn put(
    tx: &mut Tx<'_>,
    context: &ChangeContext<'_>,
    key: &ObjectKey,
    value: &FilterValue,
    living: Option<&KnownObject>,
) -> Result<Applied, StoreError> {
    let (account, resolved, now_ms) = (context.account, context.resolved, context.now_ms);
    if resolved.filters_over_limit.contains(key) {
        return Ok(Err(format!(
            "a push adds at most {MAX_NEW_FILTER_POSTS} posts to filters"
        )));
    }
    let known = stored(tx, account, living)?;
    let mut posts = posts(known.as_ref());
    let names = object_keys::post_names(tx, account, &posts)?;
    let wanted: HashSet<&str> = value.posts.iter().map(String::as_str).collect();
    posts.retain(|post| {
        let name = names.get(&post.post);
        name.is_none_or(|name| wanted.contains(name.as_str()))
    });
    let mut kept: HashSet<LocalId> = posts.iter().map(|post| post.post).collect();
    let found = value
        .posts
        .iter()
        .filter_map(|name| resolved.posts.get(name));
    posts.extend(found.copied().filter(|post| kept.insert(post.post)));
    let content = FilterContent {
        settings: value.settings.clone(),
        keywords: value.keywords.clone(),
        posts,
    };
    Ok(applied(match known {
        Some(known) => filter::replace(tx, account, known, content, now_ms)?,
        None => filter::create_with_key(tx, account, key.clone(), content, now_ms)?,
    }))
}

fn stored(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    living: Option<&KnownObject>,
) -> Result<Option<Filter>, StoreError> {
    match living {
        Some(living) => filter::by_id(tx, account, from_sql(living.id)?),
        None => Ok(None),
    }
}

fn posts(filter: Option<&Filter>) -> Vec<PostKey> {
    let posts = filter.into_iter().flat_map(|filter| &filter.posts);
    posts.map(|part| part.key).collect()
}

/// The largest number of posts that a push adds to filters, since each is looked up.
pub const MAX_NEW_FILTER_POSTS: usize = 100;
