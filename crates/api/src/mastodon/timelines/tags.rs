//! Timelines of tags: the public posts with a tag that their viewer may read.

use std::sync::Arc;

use axum::Json;
use driftline_mastodon::{RawObject, has_media};
use driftline_store::{
    StoreError, Tx,
    timeline::{self, Range, Stretch, TimelinePost, Viewer},
    viewer::ReadableSources,
};
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::hidden_posts::HiddenPosts;
use crate::{
    auth::{MayRead, needs},
    mastodon::{
        entities::{Status, Tag},
        page::Page,
        page_query::{PageParams, PageQuery, PublicParams},
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
///
/// There is no index of tags: posts are read until the page is full.
#[utoipa::path(
    get, path = "/api/v1/timelines/tag/{tag}", tag = "timelines", params(("tag" = String, Path), TagParams, PublicParams, PageParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem)),
)]
pub(crate) async fn timeline(
    reader: MayRead<needs::ReadStatuses>,
    PathText(tag): PathText,
    query: PageQuery,
) -> ApiResult {
    let (viewer, now_ms) = (reader.viewer, reader.now_ms());
    let asked = Arc::new(Tags::parse(&tag, &query)?);
    if query.local {
        return Ok(Page::empty().answer(&query));
    }
    let read =
        move |tx: &mut Tx<'_>, range: &Range| stretch(tx, range, viewer, &asked, now_ms).map(Some);
    let page = Page::picked(&reader, query.range, read).await?;
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

fn stretch(
    tx: &mut Tx<'_>,
    range: &Range,
    viewer: Viewer,
    asked: &Tags,
    now_ms: i64,
) -> Result<Stretch, StoreError> {
    let hidden = HiddenPosts::ask(tx, viewer, now_ms)?;
    let readable = ReadableSources::load(tx, viewer)?;
    let hidden = hidden.read(tx)?;
    let picks = |post: &TimelinePost| asked.takes(post) && !hidden.has(post);
    timeline::public_picked(tx, range, &readable, Some(&picks))
}

/// The tags that are asked for, in lower case.
#[derive(Debug)]
struct Tags {
    /// One of these at least.
    any: Vec<String>,
    /// And each of these.
    all: Vec<String>,
    /// And none of these.
    none: Vec<String>,
    only_media: bool,
}

impl Tags {
    fn parse(tag: &str, query: &PageQuery) -> ApiResult<Self> {
        let lower = |tag: &str| tag.trim_start_matches('#').to_lowercase();
        let named = |name| query.texts(name).map(lower).collect::<Vec<String>>();
        let (mut any, all, none) = (named("any"), named("all"), named("none"));
        any.push(lower(tag));
        match any.len() + all.len() + none.len() <= MAX_TAGS {
            true => Ok(Self {
                any,
                all,
                none,
                only_media: query.only_media,
            }),
            false => Err(ApiError::BadParameter(format!(
                "at most {MAX_TAGS} tags can be asked for at once"
            ))),
        }
    }

    fn takes(&self, post: &TimelinePost) -> bool {
        // Boosts have none of their own; most posts have none at all.
        if !post.raw.contains("\"tags\"") || self.only_media && !has_media(&post.raw) {
            return false;
        }
        let status = RawObject::parse(&post.raw).unwrap_or_default();
        let tags = status.objects("tags");
        let names = tags.filter_map(|tag| Some(tag.text("name")?.to_lowercase()));
        let names: Vec<String> = names.collect();
        self.any.iter().any(|tag| names.contains(tag))
            && self.all.iter().all(|tag| names.contains(tag))
            && !self.none.iter().any(|tag| names.contains(tag))
    }
}

const MAX_TAGS: usize = 12;
