//! Feeds of saved timelines, for feed readers: Atom (RFC 4287) and JSON Feed 1.1, each at a secret
//! address.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{
        HeaderMap, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
    },
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use driftline_core::social::AccountAction;
use driftline_store::{
    LocalAccountId, LocalId, StoreError, Tx,
    social::{
        list::{self, FeedReaders, List},
        list_entry::ListKey,
        local_account,
    },
    timeline::{Range, Viewer},
};
use maud::{PreEscaped, html};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::{
        LoggedIn, RequestContext, needs,
        opaque_secret::{OpaqueSecret, SecretKind},
    },
    description::ids::ListId,
    find::{SavedTimeline, SearchBudget},
    mastodon::{answer::done, page::Page, values::is_true, view::View},
    transport::{Address, ApiError, ApiResult, JsonResult, Params, PathId, PathText, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(open, close))
        .routes(routes!(feed))
}

/// The posts of a new feed.
#[derive(Deserialize, ToSchema)]
struct NewFeed {
    /// True for all posts of the timeline; otherwise the feed has only posts that everybody may read.
    #[schema(value_type = Option<bool>)]
    all: Option<Value>,
}

/// The addresses of a feed. They are shown once.
#[derive(Serialize, ToSchema)]
struct FeedAddresses {
    /// The address of the Atom feed.
    atom: String,
    /// The address of the JSON feed.
    json: String,
}

/// Makes the feed of a saved timeline at a new address. An earlier address ends.
#[utoipa::path(
    post, path = "/api/driftline/v1/lists/{id}/feed", tag = "lists", params(("id" = ListId, Path)),
    request_body(content((NewFeed), (NewFeed = "application/x-www-form-urlencoded"), (NewFeed = "multipart/form-data"))),
    security(("account" = ["write:lists"])),
    responses((status = 200, body = FeedAddresses), (status = 403, body = Problem, description = "`all` needs the scopes `read:lists` and `read:statuses`, too"), (status = 404, body = Problem), (status = 422, body = Problem, description = "The list has no predicate, or the token belongs to no account")),
)]
async fn open(
    caller: LoggedIn<needs::WriteLists>,
    PathId(id): PathId,
    Params(new): Params<NewFeed>,
) -> JsonResult<FeedAddresses> {
    let readers = match is_true(new.all.as_ref()) {
        true => {
            // The address reads for its bearer what the account may read.
            caller.check::<needs::ReadLists>()?;
            caller.check::<needs::ReadStatuses>()?;
            FeedReaders::Owner
        }
        false => FeedReaders::World,
    };
    let id = LocalId::new(id);
    let found = caller.read(move |tx, account| list::by_id(tx, account, id));
    let found = found.await?.ok_or(ApiError::NotFound)?;
    if !found.has_predicate() {
        return Err(ApiError::Unprocessable(
            "only a list with a predicate has a feed".to_owned(),
        ));
    }
    let account = caller.viewer.account();
    let secret = OpaqueSecret::generate(SecretKind::ListFeed, account)?;
    let hash = secret.hash();
    let set =
        caller.write(move |tx, account| list::set_feed(tx, account, id, Some((hash, readers))));
    if !set.await? {
        return Err(ApiError::NotFound);
    }
    let address = |form| {
        let path = format!("/feeds/{form}?key={}", secret.expose());
        caller.address.url(&path)
    };
    Ok(Json(FeedAddresses {
        atom: address("atom"),
        json: address("json"),
    }))
}

/// Ends the feed of a saved timeline.
#[utoipa::path(
    delete, path = "/api/driftline/v1/lists/{id}/feed", tag = "lists", params(("id" = ListId, Path)),
    security(("account" = ["write:lists"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn close(caller: LoggedIn<needs::WriteLists>, PathId(id): PathId) -> JsonResult<Value> {
    let closed =
        caller.write(move |tx, account| list::set_feed(tx, account, LocalId::new(id), None));
    done(closed.await?)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct FeedKey {
    /// The secret part of the address.
    key: String,
}

/// The newest posts of a saved timeline, as `atom` or `json`.
#[utoipa::path(
    get, path = "/feeds/{form}", tag = "lists", params(("form" = String, Path), FeedKey),
    security(()),
    responses((status = 200, body = String), (status = 304, description = "Nothing has changed"), (status = 404, body = Problem)),
)]
async fn feed(
    State(app): State<Arc<App>>,
    address: Address,
    PathText(form): PathText,
    headers: HeaderMap,
    Params(FeedKey { key }): Params<FeedKey>,
) -> ApiResult {
    let form = match &*form {
        "atom" => FeedForm::Atom,
        "json" => FeedForm::Json,
        _ => return Err(ApiError::NotFound),
    };
    let secret = OpaqueSecret::parse(SecretKind::ListFeed, &key).ok_or(ApiError::NotFound)?;
    let account = secret.account.ok_or(ApiError::NotFound)?;
    let hash = secret.hash();
    let find = move |tx: &mut Tx<'_>| {
        let owner = local_account::by_id(tx, account)?;
        let may_read = owner.is_some_and(|of| of.state.allows(AccountAction::UseTokens));
        match may_read {
            true => list::by_feed(tx, account, &hash),
            false => Ok::<_, StoreError>(None),
        }
    };
    let (list, readers) = app.store.read(find).await?.ok_or(ApiError::NotFound)?;
    let viewer = match readers {
        FeedReaders::World => Viewer::Anonymous,
        FeedReaders::Owner => Viewer::Account(account),
    };
    let context = RequestContext {
        app,
        viewer,
        address,
    };
    let posts = newest(&context, account, &list).await?;
    let body = match form {
        FeedForm::Atom => atom(&context.address, &list, &posts),
        FeedForm::Json => json_feed(&list, &posts),
    };
    Ok(answer(form, &body, &headers))
}

#[derive(Clone, Copy)]
enum FeedForm {
    Atom,
    Json,
}

/// The newest posts of a list, as entities `Status`. Boosts are given as the posts that they boost.
async fn newest(
    context: &RequestContext,
    owner: LocalAccountId,
    list: &List,
) -> ApiResult<Vec<Value>> {
    let predicate = list.settings.predicate.clone().ok_or(ApiError::NotFound)?;
    let key = ListKey {
        account: owner,
        list: list.id,
    };
    let timeline = SavedTimeline::new(key, predicate, &context.address);
    let search = timeline.map_err(ApiError::invalid)?.into_search();
    let range = Range {
        limit: POSTS,
        ..Range::default()
    };
    let posts = search.read_part(context, range, BUDGET).await?.posts;
    let view = View::new(context);
    context
        .read(move |tx| {
            let mut entities = Page::entities(tx, &posts, &view)?;
            let written = posts.iter().filter_map(|post| entities.remove(&post.id));
            let read = written.filter_map(|raw| serde_json::from_str(raw.get()).ok());
            let posts = read.map(|mut status: Value| match status["reblog"].take() {
                Value::Null => status,
                boosted => boosted,
            });
            Ok(posts.collect())
        })
        .await
}

fn answer(form: FeedForm, body: &str, headers: &HeaderMap) -> Response {
    let etag = format!("\"{}\"", BASE64.encode(digest(&SHA256, body.as_bytes())));
    let known = headers.get_all(IF_NONE_MATCH).into_iter();
    let mut known = known.filter_map(|value| value.to_str().ok());
    let is_known = known.any(|tags| {
        let mut tags = tags.split(',').map(str::trim);
        // A compressing proxy makes it weak.
        tags.any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
    });
    let kind = match form {
        FeedForm::Atom => "application/atom+xml; charset=utf-8",
        FeedForm::Json => "application/feed+json; charset=utf-8",
    };
    let headers = [
        (ETAG, &*etag),
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "private, max-age=60"),
    ];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, headers, Body::empty()).into_response(),
        false => (headers, body.to_owned()).into_response(),
    }
}

fn atom(address: &Address, list: &List, posts: &[Value]) -> String {
    let id = address.url(&format!("/api/v1/lists/{}", list.id));
    let newest = posts.iter().map(updated).max().unwrap_or(EPOCH);
    let feed = html! {
        feed xmlns="http://www.w3.org/2005/Atom" {
            id { (id) }
            title { (without_control(&list.settings.title)) }
            updated { (without_control(newest)) }
            @for post in posts {
                entry {
                    id { (without_control(text(post, "uri"))) }
                    title { (title(post)) }
                    @if let Some(link) = link(post) { link rel="alternate" href=(link) {} }
                    published { (without_control(text(post, "created_at"))) }
                    updated { (without_control(updated(post))) }
                    author {
                        name { (author_name(post)) }
                        @if let Some(link) = link(&post["account"]) { uri { (link) } }
                    }
                    @for tag in tags(post) { category term=(without_control(tag)) {} }
                    content type="html" { (without_control(text(post, "content"))) }
                }
            }
        }
    };
    let declaration = PreEscaped("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    html! { (declaration) (feed) }.into_string()
}

fn json_feed(list: &List, posts: &[Value]) -> String {
    let items = posts.iter().map(|post| {
        json!({
            "id": text(post, "uri"),
            "url": link(post),
            "content_html": text(post, "content"),
            "summary": post["spoiler_text"].as_str().filter(|warning| !warning.is_empty()),
            "date_published": text(post, "created_at"),
            "date_modified": updated(post),
            "authors": [{ "name": author_name(post), "url": link(&post["account"]) }],
            "language": post["language"],
            "tags": tags(post).collect::<Vec<_>>(),
        })
    });
    let feed = json!({
        "version": "https://jsonfeed.org/version/1.1",
        "title": list.settings.title,
        "items": items.collect::<Vec<_>>(),
    });
    feed.to_string()
}

fn text<'p>(object: &'p Value, name: &str) -> &'p str {
    object[name].as_str().unwrap_or_default()
}

fn updated(post: &Value) -> &str {
    post["edited_at"]
        .as_str()
        .unwrap_or_else(|| text(post, "created_at"))
}

/// The address of a post or an account, if a browser may open it.
fn link(object: &Value) -> Option<String> {
    let addresses = [&object["url"], &object["uri"]];
    let mut addresses = addresses.into_iter().filter_map(Value::as_str);
    let is_web = |address: &&str| address.starts_with("https://") || address.starts_with("http://");
    addresses.find(is_web).map(without_control)
}

fn author_name(post: &Value) -> String {
    let (account, acct) = (&post["account"], text(&post["account"], "acct"));
    match text(account, "display_name") {
        "" => without_control(acct),
        name => without_control(&format!("{name} (@{acct})")),
    }
}

/// The warning, or else the beginning of the text.
fn title(post: &Value) -> String {
    let warning = text(post, "spoiler_text");
    let plain = driftline_mastodon::plain_text(text(post, "content"));
    let whole = if warning.is_empty() { &plain } else { warning };
    let line = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    let beginning: String = line.chars().take(TITLE_CHARS).collect();
    match beginning.len() < line.len() {
        true => without_control(&format!("{beginning}…")),
        false => without_control(&beginning),
    }
}

fn tags(post: &Value) -> impl Iterator<Item = &str> {
    let tags = post["tags"].as_array().into_iter().flatten();
    tags.filter_map(|tag| tag["name"].as_str())
}

/// XML 1.0 has no control characters but tab, line feed and carriage return, and no U+FFFE and U+FFFF.
fn without_control(text: &str) -> String {
    let is_xml = |of: &char| {
        matches!(of, '\t' | '\n' | '\r')
            || !of.is_control() && !matches!(of, '\u{fffe}' | '\u{ffff}')
    };
    text.chars().filter(is_xml).collect()
}

/// The number of posts of a feed.
const POSTS: u16 = 40;
/// A predicate that few posts match, and that the index does not know, has fewer posts in its feed.
const BUDGET: SearchBudget = SearchBudget {
    parts: 10,
    ..SearchBudget::REQUEST
};
const TITLE_CHARS: usize = 80;
const EPOCH: &str = "1970-01-01T00:00:00Z";
