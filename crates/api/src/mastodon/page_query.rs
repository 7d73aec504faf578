use std::sync::Arc;

use axum::{
    Json,
    extract::FromRequestParts,
    http::{HeaderValue, header::LINK, request::Parts},
    response::{IntoResponse, Response},
};
use driftline_mastodon::Link;
use driftline_store::{LocalId, timeline::Range};
use serde::Serialize;
use url::form_urlencoded::{self, Serializer};
use utoipa::IntoParams;

use super::values::is_true_text;
use crate::{
    App,
    description::ids::StatusId,
    transport::{Address, ApiError, ApiResult},
};

/// Which part of a timeline.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct PageParams {
    /// Only what is older than that.
    #[param(value_type = Option<StatusId>)]
    max_id: Option<String>,
    /// Only what is newer than that; the newest of it.
    #[param(value_type = Option<StatusId>)]
    since_id: Option<String>,
    /// Only what is newer than that; the oldest of it.
    #[param(value_type = Option<StatusId>)]
    min_id: Option<String>,
    /// How many, at most 40; 20 without it.
    #[param(minimum = 1, maximum = 40)]
    limit: Option<u16>,
}

/// Which posts of a timeline. Searches by predicates have `has:media` instead.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct MediaParams {
    /// Only statuses with media of their own.
    only_media: Option<bool>,
}

/// Which of a list of accounts, or of what has an ID of its own.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct AccountPageParams {
    /// Only what is older than that: a value of the header `Link`.
    max_id: Option<String>,
    /// Only what is newer than that; the newest of it.
    since_id: Option<String>,
    /// Only what is newer than that; the oldest of it.
    min_id: Option<String>,
    /// How many, at most 80; 40 without it.
    #[param(minimum = 1, maximum = 80)]
    limit: Option<u16>,
}

/// Which of the posts that an account marked.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct MarkPageParams {
    /// Only what was marked before that: a value of the header `Link`.
    max_id: Option<String>,
    /// Only what was marked after that; the latest of it.
    since_id: Option<String>,
    /// Only what was marked after that; the earliest of it.
    min_id: Option<String>,
    /// How many, at most 40; 20 without it.
    #[param(minimum = 1, maximum = 40)]
    limit: Option<u16>,
}

/// Which of the public timeline.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct PublicParams {
    /// Only statuses that were written here.
    local: Option<bool>,
    /// Only statuses of other servers: all are.
    remote: Option<bool>,
}

/// The query of a request for a page of a timeline.
#[derive(Debug)]
pub(crate) struct PageQuery {
    /// The address of the page, without its query.
    url: String,
    /// Which part of the timeline.
    pub(crate) range: Range,
    /// Whether to list only posts that were written here.
    pub(crate) local: bool,
    /// Whether to list only posts with media.
    pub(crate) only_media: bool,
    /// Parameters that the links to neighbouring pages repeat.
    kept: Vec<(String, String)>,
}

impl PageQuery {
    /// Parses a query. The last of repeated parameters counts; an empty bound is ignored.
    fn parse(url: String, query: &str, limits: Limits) -> ApiResult<Self> {
        let mut parsed = Self {
            url,
            range: Range {
                limit: limits.default,
                ..Range::default()
            },
            local: false,
            only_media: false,
            kept: Vec::new(),
        };
        let range = &mut parsed.range;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "since_id" => range.since = bound("since_id", &value)?,
                "min_id" => range.min = bound("min_id", &value)?,
                "max_id" => range.max = bound("max_id", &value)?,
                _ => {
                    match &*name {
                        "limit" => range.limit = limit(&value, limits)?,
                        "local" => parsed.local = is_true_text(&value),
                        "only_media" => parsed.only_media = is_true_text(&value),
                        _ => {}
                    }
                    parsed.kept.push((name.into_owned(), value.into_owned()));
                }
            }
        }
        Ok(parsed)
    }

    /// Whether a parameter is true.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.text(name).is_some_and(is_true_text)
    }

    /// The value of a parameter that bounds no page; of one that comes twice, the last.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let mut kept = self.kept.iter().rev();
        kept.find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// All values of a parameter that may come several times, with `[]` after its name or without.
    pub(crate) fn texts<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        let kept = self.kept.iter();
        kept.filter(move |(known, _)| known.strip_suffix("[]").unwrap_or(known) == name)
            .map(|(_, value)| value.as_str())
    }

    /// Answers a list with the `Link` header of its page, from its newest to its oldest ID.
    pub(crate) fn answer(&self, list: &impl Serialize, ends: Option<Ends>) -> Response {
        self.with_link(Json(list).into_response(), ends)
    }

    /// Adds the `Link` header of the page, unless it is empty.
    pub(crate) fn with_link(&self, mut page: Response, ends: Option<Ends>) -> Response {
        if let Some(link) = ends.and_then(|ends| self.link(ends)) {
            page.headers_mut().insert(LINK, link);
        }
        page
    }

    fn link(&self, (newest, oldest): Ends) -> Option<HeaderValue> {
        let neighbour = |bound: &str, id: LocalId| {
            let mut query = Serializer::new(String::new());
            query.extend_pairs(&self.kept);
            query.append_pair(bound, &id.to_string());
            format!("{}?{}", self.url, query.finish())
        };
        let link = Link {
            next: neighbour("max_id", oldest),
            prev: neighbour("min_id", newest),
        };
        HeaderValue::try_from(link.to_string()).ok()
    }

    async fn extract(parts: &mut Parts, app: &Arc<App>, limits: Limits) -> ApiResult<Self> {
        let Ok(address) = Address::from_request_parts(parts, app).await;
        let query = parts.uri.query().unwrap_or_default();
        Self::parse(address.url(parts.uri.path()), query, limits)
    }
}

/// The newest and the oldest ID of a page.
pub(crate) type Ends = (LocalId, LocalId);

/// The ends of a page whose rows have these IDs; `None` if it is empty.
pub(crate) fn ends<T>(rows: &[T], id: impl Fn(&T) -> LocalId) -> Option<Ends> {
    let (newest, oldest) = rows.first().zip(rows.last())?;
    Some((id(newest), id(oldest)))
}

impl FromRequestParts<Arc<App>> for PageQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> ApiResult<Self> {
        Self::extract(parts, app, Limits::POSTS).await
    }
}

/// The query of a request for a page of accounts, or of notifications.
pub(crate) struct AccountPageQuery(pub(crate) PageQuery);

impl FromRequestParts<Arc<App>> for AccountPageQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> ApiResult<Self> {
        let page = PageQuery::extract(parts, app, Limits::ACCOUNTS).await;
        page.map(Self)
    }
}

pub(crate) fn bound(name: &str, value: &str) -> ApiResult<Option<LocalId>> {
    if value.is_empty() {
        return Ok(None);
    }
    match value.parse() {
        Ok(id) => Ok(Some(id)),
        Err(error) => Err(ApiError::BadParameter(format!("invalid {name}: {error}"))),
    }
}

/// How many a page may have.
#[derive(Clone, Copy, Debug)]
struct Limits {
    default: u16,
    max: u16,
}

impl Limits {
    /// Of posts.
    const POSTS: Self = Self {
        default: 20,
        max: 40,
    };
    /// Of accounts, and of notifications.
    const ACCOUNTS: Self = Self {
        default: 40,
        max: 80,
    };
}

/// Clamped to the maximum, as in Mastodon.
fn limit(value: &str, Limits { max, .. }: Limits) -> ApiResult<u16> {
    let is_number = !value.is_empty() && value.bytes().all(|digit| digit.is_ascii_digit());
    match value.trim_start_matches('0') {
        digits if is_number && !digits.is_empty() => {
            Ok(digits.parse().map_or(max, |limit: u16| limit.min(max)))
        }
        _ => Err(ApiError::BadParameter(format!(
            "limit must be between 1 and {max}"
        ))),
    }
}
