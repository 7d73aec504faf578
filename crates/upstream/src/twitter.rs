//! The client of Twitter's API, version 1.1.
//!
//! Its `max_id` is inclusive; the client asks for the number before.

mod answer;
mod tweet_json;

use driftline_core::{
    answer::{Failure, FailureKind, LookUps, Page, PageRequest},
    upstream_id::UpstreamId,
};
use http::StatusCode;
use url::Url;

use crate::{
    Timeline,
    access::{Access, Answer},
    headers,
};

pub(crate) use self::answer::read_item;

pub(crate) async fn page(
    access: &Access,
    timeline: &Timeline,
    request: &PageRequest,
) -> Result<Page, Failure> {
    let Some(url) = page_url(access, timeline, request)? else {
        return Ok(Page {
            headers: headers::nothing_asked().headers,
            ..Page::default()
        });
    };
    let answer = access.fetch(url).await?;
    if answer.status != StatusCode::OK {
        return Err(status_failure(access, &answer));
    }
    let items = access.read(&answer, answer::page)?;
    Ok(access.page(items, answer.metadata))
}

/// Looks several different posts up.
pub(crate) async fn look_up_many(
    access: &Access,
    ids: Vec<UpstreamId>,
) -> Result<LookUps, Failure> {
    let answer = access.fetch(look_up_url(access, &ids)).await?;
    let findings = match answer.status {
        StatusCode::OK => access.read(&answer, |body| answer::findings(body, ids))?,
        StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => {
            answer::refused_findings(&answer.body, &ids)
                .ok_or_else(|| look_up_failure(access, &answer))?
        }
        _ => return Err(look_up_failure(access, &answer)),
    };
    Ok(LookUps {
        findings,
        headers: answer.metadata,
    })
}

/// The credential's user, in words; `None` if it is no user's.
pub(crate) async fn verified_user(access: &Access) -> Result<Option<String>, Failure> {
    let path = "/1.1/account/verify_credentials.json";
    let failure = |answer: &_| status_failure(access, answer);
    let user = access.user(path, answer::me, failure).await?;
    if user.is_none() {
        // The first tweet of all: whatever is said of it, the answer counts.
        look_up_many(access, vec!["20".into()]).await?;
    }
    Ok(user)
}

/// The failure that a status means, or the code next to it, which distinguishes a
/// throttle among other refusals.
fn status_failure(access: &Access, answer: &Answer) -> Failure {
    let failure = access.status_failure(answer);
    Failure {
        kind: answer::kind(&answer.body).unwrap_or(failure.kind),
        ..failure
    }
}

/// The same for a look-up: a 403 is about the credential only where its code says so.
fn look_up_failure(access: &Access, answer: &Answer) -> Failure {
    let failure = access.look_up_failure(answer);
    let kind = match answer::kind(&answer.body) {
        Some(FailureKind::Unauthorized) if answer::is_about_posts(&answer.body) => {
            FailureKind::Forbidden
        }
        kind => kind.unwrap_or(failure.kind),
    };
    Failure { kind, ..failure }
}

/// The address of a page; `None` for one below the least ID.
fn page_url(
    access: &Access,
    timeline: &Timeline,
    request: &PageRequest,
) -> Result<Option<Url>, Failure> {
    access.check_no_min_id(request)?;
    let (path, of) = match timeline {
        Timeline::Home => ("/1.1/statuses/home_timeline.json", None),
        Timeline::Mentions => ("/1.1/statuses/mentions_timeline.json", None),
        Timeline::List(id) => ("/1.1/lists/statuses.json", Some(("list_id", id))),
        Timeline::Account(id) => ("/1.1/statuses/user_timeline.json", Some(("user_id", id))),
        Timeline::Public | Timeline::Local | Timeline::Remote | Timeline::Tag(_) => {
            return Err(access.no_timeline(timeline));
        }
    };
    let count = request.limit.clamp(1, PAGE_LIMIT).to_string();
    let mut url = access.url_with(path, &[("count", &count)]);
    let mut query = url.query_pairs_mut();
    let since = request.since_id.as_ref().map(|id| ("since_id", id));
    for (name, id) in [of, since].into_iter().flatten() {
        access.check_number(id)?;
        query.append_pair(name, id.as_str());
    }
    if let Some(below) = &request.max_id {
        access.check_number(below)?;
        let Ok(below @ 2..) = below.as_str().parse::<u64>() else {
            return Ok(None);
        };
        query.append_pair("max_id", &(below - 1).to_string());
    }
    query.extend_pairs(FORM);
    drop(query);
    Ok(Some(url))
}

fn look_up_url(access: &Access, ids: &[UpstreamId]) -> Url {
    let ids: Vec<_> = ids.iter().map(UpstreamId::as_str).collect();
    let parameters = [("id", &*ids.join(",")), ("map", "true")];
    let mut url = access.url_with("/1.1/statuses/lookup.json", &parameters);
    url.query_pairs_mut().extend_pairs(FORM);
    url
}

pub(crate) const PAGE_LIMIT: u16 = 200;
/// Whole texts with what stands in them, retweets, and what is said of
/// pictures.
const FORM: [(&str, &str); 4] = [
    ("tweet_mode", "extended"),
    ("include_rts", "true"),
    ("include_entities", "true"),
    ("include_ext_alt_text", "true"),
];
