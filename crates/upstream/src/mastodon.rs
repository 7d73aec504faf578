//! The client of the Mastodon API.

use driftline_core::{
    answer::{Abilities, AnswerFacts, Failure, FailureKind, LookUp, Page, PageRequest},
    upstream_id::UpstreamId,
};
use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::{Address, Http, Timeline, facts, failure, http::Answer, parse, segment};

/// A server that speaks the Mastodon API, read with one token or none.
#[derive(Debug, Clone)]
pub struct Mastodon {
    http: Http,
    address: Address,
    token: Option<SecretString>,
}

impl Mastodon {
    /// A client of the server at `address`; it shares `http`'s connections.
    ///
    /// # Errors
    /// [`TokenError`] if the token cannot be sent, or would travel unencrypted
    /// while `http` allows no private networks.
    pub fn new(
        http: Http,
        address: Address,
        token: Option<SecretString>,
    ) -> Result<Self, TokenError> {
        if let Some(token) = &token {
            let text = token.expose_secret();
            if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
                return Err(TokenError::NotAToken);
            }
            if !address.is_encrypted() && !http.options().allow_private {
                return Err(TokenError::Unencrypted(address));
            }
        }
        Ok(Self {
            http,
            address,
            token,
        })
    }

    /// The server's address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What the server's timeline can do.
    pub const fn abilities(&self, _: &Timeline) -> Abilities {
        Abilities {
            page_limit: PAGE_LIMIT,
            just_above: true,
        }
    }

    /// Reads one page of a timeline.
    ///
    /// # Errors
    /// A [`Failure`] for anything but a complete list of posts with usable IDs.
    pub async fn page(&self, timeline: &Timeline, request: &PageRequest) -> Result<Page, Failure> {
        let answer = self.fetch(self.page_url(timeline, request)).await?;
        if answer.status != StatusCode::OK {
            return Err(self.status_failure(&answer));
        }
        match parse::page(&answer.body, timeline) {
            Ok(items) => Ok(Page {
                listed: items.listed,
                passed: items.passed,
                facts: answer.facts,
            }),
            Err(failure) => Err(self.parse_failure(&answer, failure)),
        }
    }

    /// Looks one post up.
    ///
    /// # Errors
    /// A [`Failure`] for anything but the post asked for or the word that it
    /// is gone.
    pub async fn look_up(&self, id: &UpstreamId) -> Result<(LookUp, AnswerFacts), Failure> {
        if !segment::is_usable(id.as_str()) {
            return Err(Failure::new(
                FailureKind::BadId,
                format!("{}: the ID {:?} names no post", self.address, id.as_str()),
            ));
        }
        let path = format!("/api/v1/statuses/{}", segment::encoded(id.as_str()));
        let answer = self.fetch(self.url(&path)).await?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Ok((LookUp::Gone, answer.facts)),
            _ => return Err(self.status_failure(&answer)),
        }
        match parse::post(&answer.body) {
            Ok(post) if post.id == *id => Ok((LookUp::Found(Box::new(post)), answer.facts)),
            Ok(_) => Err(self.parse_failure(
                &answer,
                Failure::new(FailureKind::BadId, "the answer is another post"),
            )),
            Err(failure) => Err(self.parse_failure(&answer, failure)),
        }
    }

    fn url(&self, path_and_query: &str) -> Url {
        let mut url = self.address.url().clone();
        match path_and_query.split_once('?') {
            Some((path, query)) => {
                url.set_path(path);
                url.set_query(Some(query));
            }
            None => url.set_path(path_and_query),
        }
        url
    }

    fn page_url(&self, timeline: &Timeline, request: &PageRequest) -> Url {
        let mut url = self.url(&timeline.path_and_query());
        let bounds = match &request.just_above {
            Some(id) => [Some(("min_id", id)), None],
            None => [
                request.since.as_ref().map(|id| ("since_id", id)),
                request.below.as_ref().map(|id| ("max_id", id)),
            ],
        };
        let mut query = url.query_pairs_mut();
        let limit = request.limit.clamp(1, PAGE_LIMIT);
        query.append_pair("limit", &limit.to_string());
        for (name, id) in bounds.into_iter().flatten() {
            query.append_pair(name, id.as_str());
        }
        drop(query);
        url
    }

    async fn fetch(&self, url: Url) -> Result<Answer, Failure> {
        let place = failure::place(&url);
        let authorization = self
            .authorization()
            .map_err(|error| Failure::new(FailureKind::Unauthorized, error.to_string()))?;
        let outcome = self.http.fetch(url, authorization.as_ref()).await;
        match &outcome {
            Ok(answer) => tracing::debug!(
                %place,
                status = answer.status.as_u16(),
                bytes = answer.facts.body_bytes,
                round_trip_ms = answer.facts.round_trip_ms,
                "upstream answered"
            ),
            Err(failure) => tracing::debug!(%place, kind = %failure.kind, "upstream failed"),
        }
        outcome.map_err(|failure| self.without_token(failure))
    }

    fn authorization(&self) -> Result<Option<HeaderValue>, TokenError> {
        let Some(token) = &self.token else {
            return Ok(None);
        };
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
            .map_err(|_| TokenError::NotAToken)?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    fn status_failure(&self, answer: &Answer) -> Failure {
        let failure = failure::of_status(&answer.place, answer.status, self.quotable(answer));
        self.without_token(Failure {
            throttle: answer.facts.throttle,
            retry_after_ms: facts::retry_after_ms(&answer.headers, answer.facts.received_at_ms),
            ..failure
        })
    }

    fn parse_failure(&self, answer: &Answer, failure: Failure) -> Failure {
        let Failure { kind, message, .. } = not_even_declared(&answer.headers, failure);
        let message = if self.quotable(answer).len() == answer.body.len() {
            message
        } else {
            "the answer cannot be used, and is not quoted because it holds the token".to_owned()
        };
        self.without_token(Failure {
            kind,
            message: format!("{}: {message}", answer.place),
            throttle: answer.facts.throttle,
            retry_after_ms: None,
        })
    }

    /// What of an answer's body may be quoted: nothing, if it repeats the
    /// token, because a shortened quotation could hold most of it.
    fn quotable<'a>(&self, answer: &'a Answer) -> &'a [u8] {
        let repeats = |token: &SecretString| {
            let token = token.expose_secret().as_bytes();
            answer
                .body
                .windows(token.len())
                .any(|part| part.eq_ignore_ascii_case(token))
        };
        if self.token.as_ref().is_some_and(repeats) {
            &[]
        } else {
            &answer.body
        }
    }

    fn without_token(&self, failure: Failure) -> Failure {
        let Some(token) = &self.token else {
            return failure;
        };
        Failure {
            message: without(&failure.message, token.expose_secret()),
            ..failure
        }
    }
}

/// The text without a secret; a host name repeats it in lower case.
fn without(text: &str, secret: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut kept = String::with_capacity(text.len());
    let mut end = 0;
    for (start, found) in lower.match_indices(&secret.to_ascii_lowercase()) {
        kept.push_str(&text[end..start]);
        kept.push_str("[token]");
        end = start + found.len();
    }
    kept.push_str(&text[end..]);
    kept
}

/// A token that is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is empty or holds spaces, line breaks or other characters that no
    /// token holds.
    #[error(
        "this is not a token: tokens are printable ASCII without spaces; check that it was copied whole and without a line break"
    )]
    NotAToken,
    /// It would be sent unencrypted.
    #[error(
        "a token would travel unencrypted to {0}; use https://, or, on a network that you trust, allow it with --allow-private or upstream.allow_private = true"
    )]
    Unencrypted(Address),
}

/// Bad JSON that was never declared to be JSON is some other kind of text.
fn not_even_declared(headers: &HeaderMap, failure: Failure) -> Failure {
    let Some(declared) = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()) else {
        return failure;
    };
    if failure.kind != FailureKind::BadJson || declared.contains("json") {
        return failure;
    }
    let declared = crate::excerpt::words(declared.as_bytes());
    Failure {
        kind: FailureKind::NotJson,
        message: format!("the answer is of type {declared}: {}", failure.message),
        ..failure
    }
}

const PAGE_LIMIT: u16 = 40;
