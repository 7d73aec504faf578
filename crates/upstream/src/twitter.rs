//! The client of Twitter's API, version 1.1.

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
    tweet::listed,
};

/// Twitter's API, version 1.1, or a server that speaks it.
///
/// Its `max_id` is inclusive; the client asks for the number before.
#[derive(Debug, Clone)]
pub(crate) struct Twitter {
    access: Access,
}

impl Twitter {
    pub(crate) const fn new(access: Access) -> Self {
        Self { access }
    }

    pub(crate) const fn access(&self) -> &Access {
        &self.access
    }

    pub(crate) async fn page(
        &self,
        timeline: &Timeline,
        request: &PageRequest,
    ) -> Result<Page, Failure> {
        let Some(url) = self.page_url(timeline, request)? else {
            return Ok(Page {
                headers: headers::nothing_asked().headers,
                ..Page::default()
            });
        };
        let answer = self.access.fetch(url).await?;
        if answer.status != StatusCode::OK {
            return Err(self.status_failure(&answer));
        }
        Ok(Page {
            listed: listed(self.access.read(&answer, answer::page)?),
            passed: Vec::new(),
            headers: answer.metadata,
        })
    }

    /// Looks several different posts up.
    pub(crate) async fn look_up_many(&self, ids: Vec<UpstreamId>) -> Result<LookUps, Failure> {
        let answer = self.access.fetch(self.look_up_url(&ids)).await?;
        let findings = match answer.status {
            StatusCode::OK => self
                .access
                .read(&answer, |body| answer::findings(body, ids))?,
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => {
                answer::refused_findings(&answer.body, &ids)
                    .ok_or_else(|| self.look_up_failure(&answer))?
            }
            _ => return Err(self.look_up_failure(&answer)),
        };
        Ok(LookUps {
            findings,
            headers: answer.metadata,
        })
    }

    /// The credential's user, in words; `None` if it is no user's.
    pub(crate) async fn verified_user(&self) -> Result<Option<String>, Failure> {
        let path = "/1.1/account/verify_credentials.json";
        let failure = |answer: &_| self.status_failure(answer);
        let user = self.access.user(path, answer::me, failure).await?;
        if user.is_none() {
            // The first tweet of all: whatever is said of it, the answer counts.
            self.look_up_many(vec!["20".into()]).await?;
        }
        Ok(user)
    }

    /// The failure that a status means, or the code next to it, which distinguishes a
    /// throttle among other refusals.
    fn status_failure(&self, answer: &Answer) -> Failure {
        let failure = self.access.status_failure(answer);
        Failure {
            kind: answer::kind(&answer.body).unwrap_or(failure.kind),
            ..failure
        }
    }

    /// The same for a look-up: a 403 is about the credential only where its code says so.
    fn look_up_failure(&self, answer: &Answer) -> Failure {
        let failure = self.access.look_up_failure(answer);
        let kind = match answer::kind(&answer.body) {
            Some(FailureKind::Unauthorized) if answer::is_about_posts(&answer.body) => {
                FailureKind::Forbidden
            }
            kind => kind.unwrap_or(failure.kind),
        };
        Failure { kind, ..failure }
    }

    /// The address of a page; `None` for one below the least ID.
    fn page_url(&self, timeline: &Timeline, request: &PageRequest) -> Result<Option<Url>, Failure> {
        if request.min_id.is_some() {
            let why = "Twitter has no min_id; ask for pages by since or below";
            return Err(self.access.failure(FailureKind::Refused, why));
        }
        let (path, of) = match timeline {
            Timeline::Home => ("/1.1/statuses/home_timeline.json", None),
            Timeline::Mentions => ("/1.1/statuses/mentions_timeline.json", None),
            Timeline::List(id) => ("/1.1/lists/statuses.json", Some(("list_id", id))),
            Timeline::Account(id) => ("/1.1/statuses/user_timeline.json", Some(("user_id", id))),
            Timeline::Public | Timeline::Local | Timeline::Remote | Timeline::Tag(_) => {
                return Err(self.access.no_timeline(timeline));
            }
        };
        let count = request.limit.clamp(1, PAGE_LIMIT).to_string();
        let mut url = self.access.url_with(path, &[("count", &count)]);
        let mut query = url.query_pairs_mut();
        let since = request.since_id.as_ref().map(|id| ("since_id", id));
        for (name, id) in [of, since].into_iter().flatten() {
            self.access.check_number(id)?;
            query.append_pair(name, id.as_str());
        }
        if let Some(below) = &request.max_id {
            self.access.check_number(below)?;
            match below
                .as_str()
                .parse::<u64>()
                .ok()
                .and_then(|number| number.checked_sub(1))
            {
                Some(newest @ 1..) => query.append_pair("max_id", &newest.to_string()),
                _ => return Ok(None),
            };
        }
        query.extend_pairs(FORM);
        drop(query);
        Ok(Some(url))
    }

    fn look_up_url(&self, ids: &[UpstreamId]) -> Url {
        let ids: Vec<_> = ids.iter().map(UpstreamId::as_str).collect();
        let parameters = [("id", &*ids.join(",")), ("map", "true")];
        let mut url = self
            .access
            .url_with("/1.1/statuses/lookup.json", &parameters);
        url.query_pairs_mut().extend_pairs(FORM);
        url
    }
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
