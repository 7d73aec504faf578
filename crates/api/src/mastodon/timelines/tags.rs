//! Timelines of tags: the public posts with a tag that their viewer may read.

use axum::Json;
use driftline_core::{
    post::Visibility,
    predicate::{Attachment, Condition, Connective, Tag as TagName, Term, Tree},
};
use driftline_store::timeline::Range;
use serde_json::{Value, json};
use utoipa::IntoParams;

use crate::{
    auth::{MayRead, RequestContext, needs},
    find::{Search, bad_query},
    mastodon::{
        entities::{Status, Tag},
        page::Page,
        page_query::{MediaParams, PageParams, PageQuery, PublicParams},
    },
    transport::{Address, ApiError, ApiResult, JsonResult, PathText, Problem},
};

/// Which tags of a timeline of tags.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
struct TagParams {
    /// Or one of these.
    #[param(rename = "any[]")]
    any: Option<Vec<String>>,
    /// And each of these.
    #[param(rename = "all[]")]
    all: Option<Vec<String>>,
    /// And none of these.
    #[param(rename = "none[]")]
    none: Option<Vec<String>>,
}

/// The public posts with a tag.
#[utoipa::path(
    get, path = "/api/v1/timelines/tag/{tag}", tag = "timelines", params(("tag" = String, Path), TagParams, PublicParams, PageParams, MediaParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem)),
)]
pub(crate) async fn timeline(
    reader: MayRead<needs::ReadStatuses>,
    PathText(tag): PathText,
    query: PageQuery,
) -> ApiResult {
    let search = search_for_tags(&tag, &query, &reader.address)?;
    if query.local {
        return Ok(Page::empty().answer(&query));
    }
    let posts = search.posts(&reader, query.range).await?;
    let page = Page::of_posts(&reader, posts).await?;
    Ok(page.answer(&query))
}

/// A tag. It has no history, since its posts are not counted.
#[utoipa::path(
    get, path = "/api/v1/tags/{name}", tag = "timelines", params(("name" = String, Path)),
    security((), ("account" = ["read:follows"])),
    responses((status = 200, body = Tag), (status = 404, body = Problem)),
)]
pub(crate) async fn one(
    reader: MayRead<needs::ReadFollows>,
    PathText(name): PathText,
) -> JsonResult<Value> {
    match is_name(&name) {
        true => Ok(Json(entity(&name, &reader.address))),
        false => Err(ApiError::NotFound),
    }
}

/// The entity `Tag`.
pub(crate) fn entity(name: &str, address: &Address) -> Value {
    let url = address.url(&format!("/tags/{name}"));
    json!({ "name": name, "url": url, "history": [], "following": false, "featuring": false })
}

/// Whether a tag can be named so.
pub(crate) fn is_name(name: &str) -> bool {
    let is_part = |part: char| part.is_alphanumeric() || part == '_';
    !name.is_empty() && name.chars().all(is_part)
}

/// True if the caller may read a post with a tag.
///
/// # Errors
/// [`ApiError`] if the store fails.
pub(crate) async fn has_posts(context: &RequestContext, name: &str) -> ApiResult<bool> {
    let Some(tree) = tag_tree(name) else {
        return Ok(false);
    };
    let search = Search::for_tree(tree, &context.address).map_err(|error| bad_query(&error))?;
    let newest = Range {
        limit: 1,
        ..Range::default()
    };
    Ok(!search.posts(context, newest).await?.is_empty())
}

/// A search for the public posts with a tag, or another of `any`, with all of `all` and none of
/// `none`.
fn search_for_tags(tag: &str, query: &PageQuery, address: &Address) -> ApiResult<Search> {
    let named = |name| -> Vec<Tree> { query.texts(name).filter_map(tag_tree).collect() };
    let (any, all, none) = (named("any"), named("all"), named("none"));
    if 1 + any.len() + all.len() + none.len() > MAX_TAGS {
        return Err(ApiError::BadParameter(format!(
            "at most {MAX_TAGS} tags can be asked for at once"
        )));
    }
    let one_of = Connective::Or.join_all(tag_tree(tag).into_iter().chain(any));
    let one_of =
        one_of.ok_or_else(|| ApiError::BadParameter("the name of a tag is empty".to_owned()))?;
    let public = Condition::Visibility(Visibility::Public);
    let media = query
        .only_media
        .then_some(Condition::Has(Attachment::Media));
    let conditions = [public].into_iter().chain(media);
    let conditions = conditions.map(|condition| Tree::atom(Term::Condition(condition)));
    let rest = conditions
        .chain(all)
        .chain(none.into_iter().map(Tree::negated));
    let tree = rest.fold(one_of, |tree, part| Connective::And.join(tree, part));
    Search::for_tree(tree, address).map_err(|error| bad_query(&error))
}

/// A tree that selects the posts with a tag; `None` for an empty name.
pub(crate) fn tag_tree(name: &str) -> Option<Tree> {
    let tag = TagName::new(name)?;
    Some(Tree::atom(Term::Condition(Condition::Tag(tag))))
}

const MAX_TAGS: usize = 12;
