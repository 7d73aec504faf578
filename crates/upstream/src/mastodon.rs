//! The client of the Mastodon API.

use driftline_core::{
    answer::{
        AnswerHeaders, Failure, FailureKind, Finding, LookUp, LookUps, Page, PageRequest, Thread,
    },
    edit_history::EarlierVersion,
    post::{Author, Post},
    upstream_id::UpstreamId,
};
use driftline_mastodon::RawObject;
use http::StatusCode;
use serde::de::IgnoredAny;
use url::Url;

use crate::{
    AccountHandle, Timeline,
    access::{Access, Answer},
    body, parse, segment,
};

pub(crate) async fn page(
    access: &Access,
    timeline: &Timeline,
    request: &PageRequest,
) -> Result<Page, Failure> {
    let asked = request.limit;
    let mut request = request.clone();
    request.limit = request.limit.clamp(1, PAGE_LIMIT);
    let mut answer = loop {
        let answer = access.fetch_ok(page_url(access, timeline, &request)).await;
        match answer {
            // A post that makes a page too large must not cost those above it: a shorter page lists
            // them without it.
            Err(failure) if failure.kind == FailureKind::TooLarge && request.limit > 1 => {
                request.limit /= 2;
            }
            answer => break answer?,
        }
    };
    answer.metadata.limit = Some(request.limit).filter(|limit| *limit < asked);
    let items = access.read(&answer, |body| parse::page(body, timeline))?;
    Ok(access.page(items, answer.metadata))
}

pub(crate) async fn look_up(
    access: &Access,
    id: &UpstreamId,
) -> Result<(LookUp, AnswerHeaders), Failure> {
    check(access, id)?;
    let path = format!("/api/v1/statuses/{}", segment::encoded(id.as_str()));
    let answer = access.fetch(access.url(&path)).await?;
    match answer.status {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND | StatusCode::GONE => return Ok((LookUp::Gone, answer.metadata)),
        _ => return Err(access.look_up_failure(&answer)),
    }
    let another = || Failure::new(FailureKind::BadId, "the answer is another post");
    let post = access.read(&answer, |body| {
        let post = parse::post(body)?;
        (post.id == id.stable()).then_some(post).ok_or_else(another)
    })?;
    Ok((LookUp::Found(Box::new(post)), answer.metadata))
}

/// The thread of a post; `None` if the server does not have the post, or has no threads.
pub(crate) async fn thread(access: &Access, id: &UpstreamId) -> Result<Option<Thread>, Failure> {
    check(access, id)?;
    let path = format!("/api/v1/statuses/{}/context", segment::encoded(id.as_str()));
    let read = |body: &[u8]| parse::thread(body).map(Some);
    let (thread, headers) = find(access, access.url(&path), &[404, 405, 410, 501], read).await?;
    Ok(thread.map(|thread| Thread { headers, ..thread }))
}

/// The earlier versions of a post; none if the server does not show the post, or has no histories.
pub(crate) async fn history(
    access: &Access,
    id: &UpstreamId,
) -> Result<(Vec<EarlierVersion>, AnswerHeaders), Failure> {
    check(access, id)?;
    let path = format!("/api/v1/statuses/{}/history", segment::encoded(id.as_str()));
    let absent = &[400, 404, 405, 410, 422, 501];
    find(access, access.url(&path), absent, parse::history).await
}

/// The posts that the server finds by an address.
pub(crate) async fn search(
    access: &Access,
    address: &str,
) -> Result<(Vec<Post>, AnswerHeaders), Failure> {
    let url = search_url(access, address, "statuses");
    find(access, url, NOT_SEARCHED, parse::found).await
}

/// The accounts that the server finds by a name with its host.
pub(crate) async fn search_accounts(
    access: &Access,
    handle: &AccountHandle,
) -> Result<(Vec<Author>, AnswerHeaders), Failure> {
    let url = search_url(access, &format!("@{handle}"), "accounts");
    find(access, url, NOT_SEARCHED, parse::found_accounts).await
}

fn search_url(access: &Access, text: &str, kind: &str) -> Url {
    let parameters = [("q", text), ("resolve", "true"), ("type", kind)];
    access.url_with("/api/v2/search", &parameters)
}

/// The server's own account of that name; `None` if it has none, or no such look-up.
pub(crate) async fn look_up_account(
    access: &Access,
    name: &str,
) -> Result<(Option<Author>, AnswerHeaders), Failure> {
    let url = access.url_with("/api/v1/accounts/lookup", &[("acct", name)]);
    let read = |body: &[u8]| parse::account(body).map(Some);
    find(access, url, &[400, 404, 405, 410, 422, 501], read).await
}

/// Reads what may not be there: nothing if the answer has one of the statuses `absent`.
async fn find<T: Default>(
    access: &Access,
    url: Url,
    absent: &[u16],
    read: impl FnOnce(&[u8]) -> Result<T, Failure>,
) -> Result<(T, AnswerHeaders), Failure> {
    let answer = access.fetch(url).await?;
    let found = match answer.status.as_u16() {
        200 => access.read(&answer, read)?,
        status if absent.contains(&status) => T::default(),
        _ => return Err(access.look_up_failure(&answer)),
    };
    Ok((found, answer.metadata))
}

/// The statuses of a search that finds nothing, or that the server does not have.
const NOT_SEARCHED: &[u16] = &[404, 405, 410, 422, 501];

/// Looks several different posts up. One ID alone is asked for by its own address,
/// which every server has and which says more of a post that is gone;
/// more need a server with [`has_batch_look_up`].
pub(crate) async fn look_up_many(
    access: &Access,
    ids: Vec<UpstreamId>,
) -> Result<LookUps, Failure> {
    if let [id] = &ids[..] {
        let (found, headers) = look_up(access, id).await?;
        let finding = match found {
            LookUp::Found(post) => Finding::Found(post),
            LookUp::Gone => Finding::Gone,
            LookUp::Hidden => Finding::Hidden,
        };
        let findings = vec![(id.clone(), finding)];
        return Ok(LookUps { findings, headers });
    }
    ids.iter().try_for_each(|id| check(access, id))?;
    let answer = access.fetch(batch_url(access, &ids)).await?;
    if answer.status != StatusCode::OK {
        return Err(access.look_up_failure(&answer));
    }
    // Posts of a batch stand as those of a timeline do.
    let read = |body| parse::page(body, &Timeline::Home)?.posts();
    Ok(LookUps {
        findings: parse::findings(ids, access.read(&answer, read)?),
        headers: answer.metadata,
    })
}

/// Whether the server looks several posts up at once, as Mastodon does
/// since 4.3: asks it for one post's ID. `None` if the answer is an empty
/// list, which a server gives that knows the question and not the post, or
/// that knows neither.
///
/// # Errors
/// A [`Failure`] of whatever teaches nothing: throttles, servers that
/// fail, connections that break, tokens that are refused.
pub(crate) async fn has_batch_look_up(
    access: &Access,
    id: &UpstreamId,
) -> Result<Option<bool>, Failure> {
    check(access, id)?;
    let url = batch_url(access, std::slice::from_ref(id));
    let answer = access.fetch(url).await?;
    match answer.status.as_u16() {
        200 => {}
        400 | 404 | 405 | 410 | 422 | 501 => return Ok(Some(false)),
        _ => return Err(access.look_up_failure(&answer)),
    }
    let body = answer.body.trim_ascii();
    match serde_json::from_slice::<Vec<IgnoredAny>>(body) {
        // A server that does not know the question may answer an empty list to any.
        Ok(list) => Ok((!list.is_empty()).then_some(true)),
        // A list that was cut off is no other thing than a list.
        Err(error) if body.starts_with(b"[") => {
            Err(access.body_failure(&answer, body::unreadable(body, &error)))
        }
        Err(_) => Ok(Some(false)),
    }
}

/// The ID of the account of that name; `None` if the server knows none. A server without the look-up
/// answers as one without the account, so then it is asked for accounts like it.
///
/// # Errors
/// A [`Failure`] if the server refuses the token or does not answer.
pub(crate) async fn account_id(
    access: &Access,
    handle: &AccountHandle,
) -> Result<Option<UpstreamId>, Failure> {
    let name = handle.to_string();
    let url = access.url_with("/api/v1/accounts/lookup", &[("acct", &name)]);
    let answer = access.fetch(url).await?;
    match answer.status.as_u16() {
        200 => {
            let id = access.read(&answer, |body| required_account_id(&body::object(body)?))?;
            return Ok(Some(id));
        }
        400 | 404 | 405 | 410 | 422 | 501 => {}
        _ => return Err(access.status_failure(&answer)),
    }
    let parameters = [("q", &*name), ("limit", SEARCHED), ("resolve", "false")];
    let url = access.url_with("/api/v1/accounts/search", &parameters);
    let answer = access.fetch(url).await?;
    match answer.status.as_u16() {
        200 => {}
        // Mastodon shows accounts like it to log-ins alone; it has the look-up.
        400..=499 if answer.status != StatusCode::TOO_MANY_REQUESTS => return Ok(None),
        _ => return Err(access.status_failure(&answer)),
    }
    access.read(&answer, |body| {
        let accounts: Vec<RawObject<'_>> =
            serde_json::from_slice(body).map_err(|error| body::unreadable(body, &error))?;
        let found = accounts.iter().find(|account| {
            let acct = account.some_text("acct");
            acct.is_some_and(|acct| handle.is(&acct))
        });
        found.map(required_account_id).transpose()
    })
}

fn required_account_id(account: &RawObject<'_>) -> Result<UpstreamId, Failure> {
    let id = account
        .text_id("id")
        .filter(|id| segment::is_usable(id.as_str()));
    id.ok_or_else(|| Failure::new(FailureKind::BadId, "the account has no ID"))
}

/// The most accounts like a name.
const SEARCHED: &str = "40";

/// Whose token it is, in words: an account's, an application's, or none.
///
/// # Errors
/// A [`Failure`] if the server refuses the token or does not answer.
pub(crate) async fn verify(access: &Access) -> Result<String, Failure> {
    if access.credential().is_none() {
        let answer = access.fetch_ok(access.url("/api/v1/instance")).await?;
        return match object_of(access, &answer)?.some_text("title") {
            Some(title) => Ok(format!(
                "no credential; the server is “{}”",
                access.shown(&answer, &title)
            )),
            None => Ok("no credential; the server answers".to_owned()),
        };
    }
    let url = access.url("/api/v1/accounts/verify_credentials");
    let answer = access.fetch(url).await?;
    match answer.status.as_u16() {
        200 => {
            let account = object_of(access, &answer)?;
            let acct = account.some_text("acct").unwrap_or_default();
            return Ok(format!("the account @{}", access.shown(&answer, &acct)));
        }
        // A token of an application, or of an account without the scope
        // to read its own profile.
        401 | 403 | 422 => {}
        _ => return Err(access.status_failure(&answer)),
    }
    let url = access.url("/api/v1/apps/verify_credentials");
    let answer = access.fetch_ok(url).await?;
    let application = object_of(access, &answer)?;
    let name = application.some_text("name").unwrap_or_default();
    Ok(format!(
        "the application “{}”, not an account, or an account whose token may not read its profile",
        access.shown(&answer, &name)
    ))
}

fn check(access: &Access, id: &UpstreamId) -> Result<(), Failure> {
    let id = id.as_str();
    if segment::is_usable(id) {
        return Ok(());
    }
    let why = format!("the ID {id:?} names no post");
    Err(access.failure(FailureKind::BadId, why))
}

fn page_url(access: &Access, timeline: &Timeline, request: &PageRequest) -> Url {
    let mut url = access.url(&timeline.path_and_query());
    let bounds = match &request.min_id {
        Some(id) => [Some(("min_id", id)), None],
        None => [
            request.since_id.as_ref().map(|id| ("since_id", id)),
            request.max_id.as_ref().map(|id| ("max_id", id)),
        ],
    };
    let mut query = url.query_pairs_mut();
    query.append_pair("limit", &request.limit.to_string());
    for (name, id) in bounds.into_iter().flatten() {
        query.append_pair(name, id.as_str());
    }
    drop(query);
    url
}

fn batch_url(access: &Access, ids: &[UpstreamId]) -> Url {
    let parameters: Vec<_> = ids.iter().map(|id| ("id[]", id.as_str())).collect();
    access.url_with("/api/v1/statuses", &parameters)
}

fn object_of<'a>(access: &Access, answer: &'a Answer) -> Result<RawObject<'a>, Failure> {
    access.read(answer, body::object)
}

/// The most posts of one batch look-up; servers refuse more.
pub(crate) const LOOK_UP_LIMIT: usize = 20;
pub(crate) const PAGE_LIMIT: u16 = 40;
