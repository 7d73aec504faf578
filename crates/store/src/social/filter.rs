//! Filters: the posts that a user does not want to see, or wants to be warned about. They are
//! objects of the user's library, with keywords and posts as parts: a change of a part changes the
//! filter. Must be written below the account's root.

use std::collections::{HashMap, HashSet};

use driftline_core::{
    social::{
        FilterError, FilterKeyword, FilterSettings, MAX_FILTERS, MAX_KEYWORDS_PER_FILTER,
        MAX_POSTS_PER_FILTER, TextError,
    },
    sync::{ObjectKey, ObjectKind},
};
use driftline_db::{Column, Tx};

use super::{filter_rows, local_account, object_keys};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, from_sql, sql},
    library::object::{self, AccountLibrary},
    local_ids,
    posts::timeline::PostKey,
};

pub use super::filter_rows::{Filter, FilteredPost, Keyword};

/// A change of a filter's keywords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeywordChange {
    /// Adds a keyword.
    Add(FilterKeyword),
    /// Replaces a keyword.
    Set(Keyword),
    /// Removes a keyword.
    Remove(LocalId),
}

/// The whole of a filter, as a device gives it.
#[derive(Clone, Debug)]
pub(crate) struct FilterContent {
    pub(crate) settings: FilterSettings,
    pub(crate) keywords: Vec<FilterKeyword>,
    /// Each post once.
    pub(crate) posts: Vec<PostKey>,
}

/// A change of a filter's posts.
#[derive(Debug, Default)]
struct PostChanges {
    added: Vec<PostKey>,
    /// The IDs of the parts.
    removed: Vec<i64>,
}

/// The reason why a filter cannot be created or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterRefused {
    /// A setting is invalid.
    #[error(transparent)]
    Settings(#[from] FilterError),
    /// A keyword is invalid.
    #[error(transparent)]
    Keyword(#[from] TextError),
    /// The account has too many filters.
    #[error("You have reached the maximum number of filters")]
    Many,
    /// The filter would have too many keywords.
    #[error("Keywords are too many (maximum is {MAX_KEYWORDS_PER_FILTER})")]
    ManyKeywords,
    /// The filter would have too many posts.
    #[error("Statuses are too many (maximum is {MAX_POSTS_PER_FILTER})")]
    ManyPosts,
    /// The account does not have this filter, or the filter this keyword.
    #[error("there is no such filter or keyword")]
    NotFound,
    /// The filter already has the post.
    #[error("Status has already been taken")]
    KnownPost,
}

/// Creates a filter.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist (any more).
pub fn create(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    settings: FilterSettings,
    keywords: &[FilterKeyword],
    now_ms: i64,
) -> Result<Result<Filter, FilterRefused>, StoreError> {
    let key = object_keys::random(ObjectKind::Filter)?;
    let content = FilterContent {
        settings,
        keywords: keywords.to_vec(),
        posts: Vec::new(),
    };
    create_with_key(tx, account, key, content, now_ms)
}

/// Creates a filter whose key is that of no filter of the account.
pub(crate) fn create_with_key(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    key: ObjectKey,
    content: FilterContent,
    now_ms: i64,
) -> Result<Result<Filter, FilterRefused>, StoreError> {
    let FilterContent {
        settings,
        keywords,
        posts,
    } = content;
    let settings = match settings.checked() {
        Ok(settings) => settings,
        Err(refused) => return Ok(Err(refused.into())),
    };
    if let Err(refused) = check_keywords(&keywords, keywords.len()) {
        return Ok(Err(refused));
    }
    if posts.len() > MAX_POSTS_PER_FILTER {
        return Ok(Err(FilterRefused::ManyPosts));
    }
    local_account::require(tx, account)?;
    if object::count_rows(tx, account, "filter")? >= MAX_FILTERS as i64 {
        return Ok(Err(FilterRefused::Many));
    }
    let id = AccountLibrary::load(tx, account)?.add(tx, ObjectKind::Filter, &[key], now_ms)?;
    filter_rows::store(tx, account, id, &settings)?;
    add_keywords(tx, account, id, &keywords, now_ms)?;
    add_posts(tx, account, id, &posts, now_ms)?;
    let id = from_sql(id)?;
    by_id(tx, account, id)?.ok_or(StoreError::NoAccount).map(Ok)
}

/// Changes a filter and its keywords. Unchanged parts take no USN.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn set(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: LocalId,
    settings: FilterSettings,
    changes: &[KeywordChange],
    now_ms: i64,
) -> Result<Result<Filter, FilterRefused>, StoreError> {
    let settings = match settings.checked() {
        Ok(settings) => settings,
        Err(refused) => return Ok(Err(refused.into())),
    };
    let Some(known) = by_id(tx, account, id)? else {
        return Ok(Err(FilterRefused::NotFound));
    };
    let posts = PostChanges::default();
    set_parts(tx, account, known, &settings, changes, &posts, now_ms)
}

/// Gives a filter other settings and parts, as one change. Parts that it has keep their IDs.
pub(crate) fn replace(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    known: Filter,
    content: FilterContent,
    now_ms: i64,
) -> Result<Result<Filter, FilterRefused>, StoreError> {
    let settings = match content.settings.checked() {
        Ok(settings) => settings,
        Err(refused) => return Ok(Err(refused.into())),
    };
    let changes = keyword_changes(&known.keywords, content.keywords);
    let wanted: HashSet<LocalId> = content.posts.iter().map(|key| key.post).collect();
    let stored: HashSet<LocalId> = known.posts.iter().map(|part| part.key.post).collect();
    let removed = known
        .posts
        .iter()
        .filter(|part| !wanted.contains(&part.key.post));
    let posts = PostChanges {
        removed: removed.map(|part| sql(part.id)).collect(),
        added: content
            .posts
            .into_iter()
            .filter(|key| !stored.contains(&key.post))
            .collect(),
    };
    set_parts(tx, account, known, &settings, &changes, &posts, now_ms)
}

/// The changes after which a filter has these keywords.
fn keyword_changes(known: &[Keyword], wanted: Vec<FilterKeyword>) -> Vec<KeywordChange> {
    let mut removed: Vec<&Keyword> = known.iter().collect();
    let mut changes = Vec::new();
    for rule in wanted {
        match removed.iter().position(|known| known.rule == rule) {
            Some(at) => {
                removed.remove(at);
            }
            None => changes.push(KeywordChange::Add(rule)),
        }
    }
    changes.extend(removed.iter().map(|known| KeywordChange::Remove(known.id)));
    changes
}

/// Changes a filter. The settings are checked.
fn set_parts(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    known: Filter,
    settings: &FilterSettings,
    changes: &[KeywordChange],
    posts: &PostChanges,
    now_ms: i64,
) -> Result<Result<Filter, FilterRefused>, StoreError> {
    let id = known.id;
    let mut keywords: HashMap<LocalId, &FilterKeyword> = known
        .keywords
        .iter()
        .map(|known| (known.id, &known.rule))
        .collect();
    let (mut added, mut replaced, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes {
        let found = match change {
            KeywordChange::Add(rule) => {
                added.push(rule.clone());
                true
            }
            KeywordChange::Set(keyword) => match keywords.get_mut(&keyword.id) {
                Some(rule) if **rule == keyword.rule => true,
                Some(rule) => {
                    *rule = &keyword.rule;
                    replaced.push(keyword);
                    true
                }
                None => false,
            },
            KeywordChange::Remove(keyword) => {
                removed.push(sql(*keyword));
                keywords.remove(keyword).is_some()
            }
        };
        if !found {
            return Ok(Err(FilterRefused::NotFound));
        }
    }
    let checked = added
        .iter()
        .chain(replaced.iter().map(|keyword| &keyword.rule));
    if let Err(refused) = check_keywords(checked, keywords.len() + added.len()) {
        return Ok(Err(refused));
    }
    if known.posts.len() + posts.added.len() > MAX_POSTS_PER_FILTER + posts.removed.len() {
        return Ok(Err(FilterRefused::ManyPosts));
    }
    let is_same_settings = known.settings == *settings;
    let is_same_keywords = added.is_empty() && replaced.is_empty() && removed.is_empty();
    let is_same_posts = posts.added.is_empty() && posts.removed.is_empty();
    if is_same_settings && is_same_keywords && is_same_posts {
        return Ok(Ok(known));
    }
    AccountLibrary::load(tx, account)?.change(tx, sql(id))?;
    if !is_same_settings {
        filter_rows::store(tx, account, sql(id), settings)?;
    }
    for keyword in replaced {
        filter_rows::store_keyword(tx, account, keyword)?;
    }
    filter_rows::remove_parts(tx, account, "filter_keyword", &removed)?;
    add_keywords(tx, account, sql(id), &added, now_ms)?;
    filter_rows::remove_parts(tx, account, "filter_post", &posts.removed)?;
    add_posts(tx, account, sql(id), &posts.added, now_ms)?;
    by_id(tx, account, id)?.ok_or(StoreError::NoAccount).map(Ok)
}

fn check_keywords<'k>(
    changed: impl IntoIterator<Item = &'k FilterKeyword>,
    count: usize,
) -> Result<(), FilterRefused> {
    for keyword in changed {
        keyword.check()?;
    }
    match count <= MAX_KEYWORDS_PER_FILTER {
        true => Ok(()),
        false => Err(FilterRefused::ManyKeywords),
    }
}

fn add_keywords(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    filter: i64,
    keywords: &[FilterKeyword],
    now_ms: i64,
) -> Result<(), StoreError> {
    if keywords.is_empty() {
        return Ok(());
    }
    let first = local_ids::take(tx, now_ms, keywords.len())?;
    Ok(tx.execute_many_later(
        "insert into filter_keyword (account_id, id, filter_id, keyword, whole_word)
         select $1, r.id, $2, r.keyword, r.whole_word from {rows as r(id, keyword, whole_word)}",
        &[&sql(account), &filter],
        &[
            Column::i64(first..first + keywords.len() as i64),
            Column::text(keywords.iter().map(|rule| rule.keyword.as_str())),
            Column::bool(keywords.iter().map(|rule| rule.whole_word)),
        ],
    )?)
}

fn add_posts(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    filter: i64,
    posts: &[PostKey],
    now_ms: i64,
) -> Result<(), StoreError> {
    if posts.is_empty() {
        return Ok(());
    }
    let first = local_ids::take(tx, now_ms, posts.len())?;
    Ok(filter_rows::add_posts(tx, account, filter, first, posts)?)
}

/// Removes a filter with its parts. Returns `false` if the account does not have it.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn remove(tx: &mut Tx<'_>, account: LocalAccountId, id: LocalId) -> Result<bool, StoreError> {
    if by_id(tx, account, id)?.is_none() {
        return Ok(false);
    }
    AccountLibrary::load(tx, account)?.remove(tx, &[sql(id)])?;
    filter_rows::remove(tx, account, sql(id))?;
    Ok(true)
}

/// Adds a post to a filter. Returns the new part.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn add_post(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: LocalId,
    key: PostKey,
    now_ms: i64,
) -> Result<Result<FilteredPost, FilterRefused>, StoreError> {
    let Some(known) = by_id(tx, account, id)? else {
        return Ok(Err(FilterRefused::NotFound));
    };
    if known.posts.iter().any(|known| known.key.post == key.post) {
        return Ok(Err(FilterRefused::KnownPost));
    }
    if known.posts.len() >= MAX_POSTS_PER_FILTER {
        return Ok(Err(FilterRefused::ManyPosts));
    }
    AccountLibrary::load(tx, account)?.change(tx, sql(id))?;
    let part = local_ids::take(tx, now_ms, 1)?;
    filter_rows::add_posts(tx, account, sql(id), part, &[key])?;
    let id = from_sql(part)?;
    Ok(Ok(FilteredPost { id, key }))
}

/// Removes a post from a filter, by the ID of the part. Returns `false` if the account does not
/// have it.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn remove_post(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    part: LocalId,
) -> Result<bool, StoreError> {
    let filter = tx.query_opt(
        "select filter_id from filter_post where account_id = $1 and id = $2",
        &[&sql(account), &sql(part)],
        |row| row.i64("filter_id"),
    )?;
    let Some(filter) = filter else {
        return Ok(false);
    };
    AccountLibrary::load(tx, account)?.change(tx, filter)?;
    filter_rows::remove_parts(tx, account, "filter_post", &[sql(part)])?;
    Ok(true)
}

/// The filters of an account, in the order of their creation.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn all(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<Filter>, StoreError> {
    filter_rows::load(tx, account, None)
}

/// A filter of an account.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_id(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: LocalId,
) -> Result<Option<Filter>, StoreError> {
    Ok(filter_rows::load(tx, account, Some(&[sql(id)]))?.pop())
}

/// The filters with these IDs, in the order of their creation.
pub(crate) fn by_ids(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[i64],
) -> Result<Vec<Filter>, StoreError> {
    filter_rows::load(tx, account, Some(ids))
}

/// The number of posts in the filters with these keys.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn count_posts(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    keys: &[&ObjectKey],
) -> Result<usize, StoreError> {
    let posts = tx.query_one(
        "select count(*) as posts from filter_post where account_id = $1 and filter_id in
             (select id from library_object where account_id = $1 and key {in $2} and not removed)",
        &[
            &sql(account),
            &Column::text(keys.iter().map(|key| key.as_str())),
        ],
        |row| row.i64("posts"),
    )?;
    Ok(usize::try_from(posts).unwrap_or(usize::MAX))
}
