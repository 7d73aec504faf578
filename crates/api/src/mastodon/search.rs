//! Search of accounts by their names, of posts by predicates, of posts and profiles by their addresses, and of
//! tags by their names.

use std::sync::Arc;

use axum::Json;
use driftline_core::names::acct::acct_at;
use driftline_store::{
    AccountId, StoreError, Tx, find, instance,
    timeline::{self, Range, TimelinePost, Viewer},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    accounts::{account_entities::Entities, find as find_accounts},
    answer,
    entities::Search as SearchEntity,
    page::Page,
    page_query::bound,
    timelines::tags,
    values::{is_true, number},
    view::View,
};
use crate::{
    App,
    auth::{MayRead, RequestContext, needs},
    description::ids::StatusId,
    find::{Search, bad_query},
    transport::{ApiError, ApiResult, JsonResult, Params},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(search))
}

/// What is searched.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Query {
    q: String,
    /// `accounts`, `statuses` or `hashtags`; all without it.
    #[serde(rename = "type")]
    kind: Option<String>,
    #[param(value_type = Option<u32>)]
    limit: Option<Value>,
    #[param(value_type = Option<u32>)]
    offset: Option<Value>,
    /// Only statuses older than that.
    #[param(value_type = Option<StatusId>)]
    max_id: Option<String>,
    /// Only statuses newer than that; the oldest of them.
    #[param(value_type = Option<StatusId>)]
    min_id: Option<String>,
    /// Only statuses by this account.
    account_id: Option<String>,
    /// Only accounts whom the account follows.
    #[param(value_type = Option<bool>)]
    following: Option<Value>,
    /// Whether the post or the account of an address, or the account of a name with its host, of which the caller does
    /// not know is asked of a server. Without a token it is not.
    #[param(value_type = Option<bool>)]
    resolve: Option<Value>,
}

/// The entity `Search`.
#[derive(Default, Serialize)]
struct Found {
    accounts: Entities,
    statuses: Entities,
    hashtags: Vec<Value>,
}

/// Accounts whose names begin with a text, posts that match it as a predicate, the post or the account of an
/// address, the tag of a name.
///
/// With `offset`, posts may be lost or repeated while others come: `max_id` loses and repeats none.
#[utoipa::path(
    get, path = "/api/v2/search", tag = "search", params(Query),
    security((), ("account" = ["read:search"])),
    responses((status = 200, body = SearchEntity)),
)]
async fn search(
    reader: MayRead<needs::ReadSearch>,
    Params(query): Params<Query>,
) -> JsonResult<Found> {
    let viewer = reader.viewer;
    let text = query.q.trim();
    if viewer == Viewer::Anonymous && number(query.offset.as_ref(), 0, 1)? > 0 {
        return Err(ApiError::TokenNeeded);
    }
    let limit = number(query.limit.as_ref(), 20, 40)?;
    let offset = number(query.offset.as_ref(), 0, 10_000)?;
    let is_asked = is_true(query.resolve.as_ref()) && offset == 0;
    let is_of = |kind: &str| query.kind.as_deref().is_none_or(|asked| asked == kind);
    let mut found = Found::default();
    let is_address = text.starts_with("https://") || text.starts_with("http://");
    if is_address {
        let is_profile = acct_at(text).is_some();
        if is_of("accounts") && offset == 0 && is_profile {
            found.accounts = find_accounts::at(&reader, text, is_asked).await?;
        }
        if is_of("statuses") && offset == 0 && !is_profile {
            found.statuses = post_at(&reader, text).await?;
            // By what the viewer sees alone: whether others have the post changes nothing.
            if is_asked && viewer != Viewer::Anonymous && found.statuses.is_empty() {
                // What came of it is in the store, or is not known now.
                let _ = reader
                    .app
                    .mirror
                    .fetch_post_at(viewer, text.to_owned())
                    .await;
                found.statuses = post_at(&reader, text).await?;
            }
        }
        return Ok(Json(found));
    }
    if is_of("accounts") && !text.starts_with('#') {
        let only_followed = is_true(query.following.as_ref());
        if is_asked {
            find_accounts::resolve(&reader, text).await?;
        }
        let all = find_accounts::found(&reader, text.to_owned(), only_followed);
        found.accounts = all.await?.into_iter().skip(offset).take(limit).collect();
    }
    if is_of("statuses") && !text.is_empty() {
        let range = Range {
            max: query
                .max_id
                .as_deref()
                .map(|id| bound("max_id", id))
                .transpose()?
                .flatten(),
            min: query
                .min_id
                .as_deref()
                .map(|id| bound("min_id", id))
                .transpose()?
                .flatten(),
            limit: u16::try_from(offset + limit)
                .unwrap_or(u16::MAX)
                .min(MAX_STATUSES),
            ..Range::default()
        };
        // Upward there is nothing that an offset could count from.
        let offset = if range.min.is_some() { 0 } else { offset };
        let posts = match statuses(&reader, text, query.account_id.as_deref(), range).await {
            // Accounts and tags are found all the same, unless statuses alone are asked for.
            Err(_) if query.kind.is_none() => Vec::new(),
            posts => posts?,
        };
        let posts: Vec<TimelinePost> = posts.into_iter().skip(offset).take(limit).collect();
        let view = View::new(&reader);
        let written = reader.read(move |tx| {
            let mut entities = Page::entities(tx, &posts, &view)?;
            let in_order = posts.iter().filter_map(|post| entities.remove(&post.id));
            Ok::<_, StoreError>(in_order.collect())
        });
        found.statuses = written.await?;
    }
    let tag = text.strip_prefix('#').unwrap_or(text);
    if is_of("hashtags") && offset == 0 && tags::is_name(tag) {
        let has_posts = match tags::has_posts(&reader, tag).await {
            Err(_) if query.kind.is_none() => false,
            has_posts => has_posts?,
        };
        if has_posts {
            found.hashtags = vec![tags::entity(tag, &reader.address)];
        }
    }
    Ok(Json(found))
}

/// The posts that a text finds, of the account with an ID if one is given. A text that is not a
/// predicate is searched for as it is, since apps send whatever people type.
async fn statuses(
    reader: &RequestContext,
    text: &str,
    account: Option<&str>,
    range: Range,
) -> ApiResult<Vec<TimelinePost>> {
    let search = Search::parse(text, reader).await;
    let mut search = search
        .or_else(|_| Search::for_text(text, &reader.address))
        .map_err(|error| bad_query(&error))?;
    if let Some(id) = account {
        let id: AccountId = id
            .parse()
            .map_err(|_| ApiError::BadParameter("invalid account_id".to_owned()))?;
        let Some(of_author) = search.by_author(reader, id).await? else {
            return Ok(Vec::new());
        };
        search = of_author;
    }
    search.posts(reader, range).await
}

/// The post of an address, if the viewer may see it.
async fn post_at(context: &RequestContext, text: &str) -> ApiResult<Entities> {
    let (view, text) = (View::new(context), text.to_owned());
    context.read(move |tx| written(tx, &view, &text)).await
}

fn written(tx: &mut Tx<'_>, view: &View, text: &str) -> Result<Entities, StoreError> {
    let mut seen = None;
    for id in find::posts_at(tx, text)? {
        seen = timeline::at_its_place(tx, id, view.viewer)?;
        if seen.is_some() {
            break;
        }
    }
    let Some(post) = seen else {
        return Ok(Entities::new());
    };
    let Some(instance) = instance::by_id(tx, post.instance)? else {
        return Ok(Entities::new());
    };
    let body = view.status(tx, &post, &instance)?;
    Ok(answer::raw(body).into_iter().collect())
}

/// Results beyond that many are reached by `max_id`.
const MAX_STATUSES: u16 = 1_000;
