//! Filters and their parts as rows.

use driftline_core::social::{FilterContext, FilterKeyword, FilterSettings};
use driftline_db::{Column, DbError, Row, ToValue, Tx};

use super::parsed;
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, from_sql, sql},
    posts::timeline::PostKey,
};

/// A filter with its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Its ID.
    pub id: LocalId,
    /// Its settings.
    pub settings: FilterSettings,
    /// Its keywords, by their IDs.
    pub keywords: Vec<Keyword>,
    /// The posts that it matches independent of their texts, by their IDs.
    pub posts: Vec<FilteredPost>,
}

/// A keyword of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// Its ID.
    pub id: LocalId,
    /// The text to find.
    pub rule: FilterKeyword,
}

/// A post of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilteredPost {
    /// The ID of this part of the filter.
    pub id: LocalId,
    /// The post. It may be gone, or hidden from the account.
    pub key: PostKey,
}

/// The contexts as one text.
pub(super) fn contexts_text(contexts: &[FilterContext]) -> String {
    let names: Vec<&str> = contexts.iter().map(|context| context.name()).collect();
    names.join(" ")
}

/// The filters of an account, or those with these IDs, in the order of their creation.
pub(super) fn load(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    only: Option<&[i64]>,
) -> Result<Vec<Filter>, StoreError> {
    let account = sql(account);
    let ids = Column::i64(only.unwrap_or_default().iter().copied());
    let params: [&dyn ToValue; 2] = [&account, &ids];
    let params = match only {
        Some(_) => &params[..],
        None => &params[..1],
    };
    let is_one = |column: &str| match only {
        Some(_) => format!("account_id = $1 and {column} {{in $2}}"),
        None => "account_id = $1".to_owned(),
    };
    let filters = tx.query_later(
        &format!(
            "select id, title, contexts, action, expires_at_ms from filter where {} order by id",
            is_one("id")
        ),
        params,
        |row| Ok(from_row(row)),
    )?;
    let keywords = tx.query_later(
        &format!(
            "select filter_id, id, keyword, whole_word from filter_keyword where {} order by id",
            is_one("filter_id")
        ),
        params,
        |row| Ok((from_sql(row.i64("filter_id")?)?, keyword_from_row(row)?)),
    )?;
    let posts = tx.query_later(
        &format!(
            "select filter_id, id, instance_id, post_id from filter_post where {} order by id",
            is_one("filter_id")
        ),
        params,
        |row| Ok((from_sql(row.i64("filter_id")?)?, post_from_row(row)?)),
    )?;
    let filters = tx.rows(filters)?;
    let mut filters: Vec<Filter> = filters.into_iter().collect::<Result<_, _>>()?;
    let of = |filters: &[Filter], id: LocalId| filters.binary_search_by_key(&id, |of| of.id).ok();
    for (filter, keyword) in tx.rows(keywords)? {
        if let Some(at) = of(&filters, filter) {
            filters[at].keywords.push(keyword);
        }
    }
    for (filter, post) in tx.rows(posts)? {
        if let Some(at) = of(&filters, filter) {
            filters[at].posts.push(post);
        }
    }
    Ok(filters)
}

pub(super) fn store(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: i64,
    settings: &FilterSettings,
) -> Result<(), DbError> {
    tx.execute_later(
        "insert into filter (account_id, id, title, contexts, action, expires_at_ms)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (account_id, id) do update
             set title = $3, contexts = $4, action = $5, expires_at_ms = $6",
        &[
            &sql(account),
            &id,
            &settings.title,
            &contexts_text(&settings.contexts),
            &settings.action.name(),
            &settings.expires_at_ms,
        ],
    )
}

pub(super) fn store_keyword(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    keyword: &Keyword,
) -> Result<(), DbError> {
    tx.execute_later(
        "update filter_keyword set keyword = $3, whole_word = $4
         where account_id = $1 and id = $2",
        &[
            &sql(account),
            &sql(keyword.id),
            &keyword.rule.keyword,
            &keyword.rule.whole_word,
        ],
    )
}

pub(super) fn add_posts(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    filter: i64,
    first_id: i64,
    posts: &[PostKey],
) -> Result<(), DbError> {
    tx.execute_many_later(
        "insert into filter_post (account_id, id, filter_id, instance_id, post_id)
         select $1, r.id, $2, r.instance_id, r.post_id from {rows as r(id, instance_id, post_id)}",
        &[&sql(account), &filter],
        &[
            Column::i64(first_id..first_id + posts.len() as i64),
            Column::i64(posts.iter().map(|post| sql(post.instance))),
            Column::i64(posts.iter().map(|post| sql(post.post))),
        ],
    )
}

/// Removes parts of filters, which are rows of `filter_keyword` or `filter_post`.
pub(super) fn remove_parts(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    table: &str,
    ids: &[i64],
) -> Result<(), DbError> {
    if ids.is_empty() {
        return Ok(());
    }
    tx.execute_later(
        &format!("delete from {table} where account_id = $1 and id {{in $2}}"),
        &[&sql(account), &Column::i64(ids.iter().copied())],
    )
}

/// Removes a filter with its parts.
pub(super) fn remove(tx: &mut Tx<'_>, account: LocalAccountId, id: i64) -> Result<(), DbError> {
    for delete in [
        "delete from filter_keyword where account_id = $1 and filter_id = $2",
        "delete from filter_post where account_id = $1 and filter_id = $2",
        "delete from filter where account_id = $1 and id = $2",
    ] {
        tx.execute_later(delete, &[&sql(account), &id])?;
    }
    Ok(())
}

fn from_row(row: &Row<'_>) -> Result<Filter, StoreError> {
    let contexts = row.text("contexts")?;
    let contexts = contexts
        .split_ascii_whitespace()
        .map(|context| parsed("a filter's context", context));
    Ok(Filter {
        id: from_sql(row.i64("id")?)?,
        settings: FilterSettings {
            title: row.text("title")?,
            contexts: contexts.collect::<Result<_, _>>()?,
            action: parsed("a filter's action", row.str("action")?)?,
            expires_at_ms: row.opt_i64("expires_at_ms")?,
        },
        keywords: Vec::new(),
        posts: Vec::new(),
    })
}

fn keyword_from_row(row: &Row<'_>) -> Result<Keyword, DbError> {
    Ok(Keyword {
        id: from_sql(row.i64("id")?)?,
        rule: FilterKeyword {
            keyword: row.text("keyword")?,
            whole_word: row.bool("whole_word")?,
        },
    })
}

fn post_from_row(row: &Row<'_>) -> Result<FilteredPost, DbError> {
    Ok(FilteredPost {
        id: from_sql(row.i64("id")?)?,
        key: PostKey {
            post: from_sql(row.i64("post_id")?)?,
            instance: from_sql(row.i64("instance_id")?)?,
        },
    })
}
