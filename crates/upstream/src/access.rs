//! Access to one server: what the clients of every API do alike.

use std::fmt;

use driftline_core::{
    answer::{AnswerHeaders, Failure, FailureKind, Page, PageRequest},
    api::Api,
    upstream_id::UpstreamId,
};
use driftline_mastodon::StatusError;
use driftline_net::{FetchError, Http, Opened, Options, location};
use http::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap},
};
use url::Url;

use crate::{
    Address, Timeline,
    credential::{Credential, TokenError},
    excerpt, failure, headers,
    items::Items,
    segment,
    tweet::is_id,
};

/// A server and what it is shown. No failure that comes from here repeats a
/// secret, whatever the server sends back.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    api: Api,
    http: Http,
    address: Address,
    credential: Credential,
}

/// An answer of any status, its body read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) metadata: AnswerHeaders,
    /// Where it came from, for messages.
    pub(crate) location: String,
}

impl From<driftline_net::Answer> for Answer {
    fn from(answer: driftline_net::Answer) -> Self {
        Self {
            status: answer.status,
            metadata: headers::metadata(&answer),
            headers: answer.headers,
            body: answer.body,
            location: answer.location,
        }
    }
}

impl Access {
    /// Access to the server at `address`.
    pub(crate) fn new(
        api: Api,
        http: Http,
        address: Address,
        credential: Credential,
    ) -> Result<Self, TokenError> {
        credential.check(api, &address, &http)?;
        Ok(Self {
            api,
            http,
            address,
            credential,
        })
    }

    pub(crate) const fn api(&self) -> Api {
        self.api
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn credential(&self) -> &Credential {
        &self.credential
    }

    /// The address of a path of the server, which may have a query.
    pub(crate) fn url(&self, path_and_query: &str) -> Url {
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

    /// The address of a path of the server with these parameters.
    pub(crate) fn url_with(&self, path: &str, parameters: &[(&str, &str)]) -> Url {
        let mut url = self.url(path);
        url.query_pairs_mut().extend_pairs(parameters);
        url
    }

    /// Gets an address of the server.
    pub(crate) async fn fetch(&self, url: Url) -> Result<Answer, Failure> {
        let location = location(&url);
        let authorization = |url: &Url| self.credential.authorization(url);
        let fetched = self.http.fetch(url, authorization).await;
        let outcome = fetched
            .map(Answer::from)
            .map_err(|error| self.fetch_failure(&error));
        match &outcome {
            Ok(answer) => tracing::debug!(
                %location,
                status = answer.status.as_u16(),
                bytes = answer.metadata.body_bytes,
                round_trip_ms = answer.metadata.round_trip_ms,
                "upstream answered"
            ),
            Err(failure) => tracing::debug!(%location, kind = %failure.kind, "upstream failed"),
        }
        outcome
    }

    /// How upstreams are asked.
    pub(crate) fn options(&self) -> &Options {
        self.http.options()
    }

    /// Opens a stream of the server, or of the one that it names for streams.
    pub(crate) async fn open(
        &self,
        url: Url,
        headers: HeaderMap,
        expected: StatusCode,
    ) -> Result<Opened, Failure> {
        let authorization = |url: &Url| self.credential.authorization(url);
        let opened = self.http.open(url, headers, expected, authorization);
        opened.await.map_err(|error| self.fetch_failure(&error))
    }

    /// The failure of a request without a whole answer.
    pub(crate) fn fetch_failure(&self, error: &FetchError) -> Failure {
        self.without_secrets(failure::of_fetching(error))
    }

    /// Gets an address of the server; any status but 200 is a failure.
    pub(crate) async fn fetch_ok(&self, url: Url) -> Result<Answer, Failure> {
        let answer = self.fetch(url).await?;
        if answer.status != StatusCode::OK {
            return Err(self.status_failure(&answer));
        }
        Ok(answer)
    }

    /// Reads the body of an answer.
    pub(crate) fn read<'a, T>(
        &self,
        answer: &'a Answer,
        read: impl FnOnce(&'a [u8]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        read(&answer.body).map_err(|failure| self.body_failure(answer, failure))
    }

    /// The page of these items.
    pub(crate) fn page(&self, items: Items, headers: AnswerHeaders) -> Page {
        let mut unreadable = items.unreadable;
        for item in &mut unreadable {
            item.reason = self.hide_secrets(std::mem::take(&mut item.reason));
        }
        Page {
            listed: items.listed,
            passed: items.passed,
            unreadable,
            headers,
        }
    }

    /// Why an item cannot be read.
    pub(crate) fn reason(&self, error: &StatusError) -> String {
        self.hide_secrets(excerpt::words(error.to_string().as_bytes()))
    }

    /// The user of X or Twitter whose credential it is, in words; `None` if it is no user's.
    pub(crate) async fn user(
        &self,
        path: &str,
        read: impl Fn(&[u8]) -> Result<(UpstreamId, String), Failure>,
        failure: impl Fn(&Answer) -> Failure,
    ) -> Result<Option<String>, Failure> {
        if self.credential.is_none() {
            return Ok(None);
        }
        let answer = self.fetch(self.url(path)).await?;
        match answer.status {
            StatusCode::OK => {
                let (id, name) = self.read(&answer, read)?;
                let [id, name] = [id.as_str(), &name].map(|text| self.shown(&answer, text));
                Ok(Some(format!("the user @{name} ({id})")))
            }
            // Their word for a token that is no user's.
            StatusCode::FORBIDDEN if self.credential.is_bearer() => Ok(None),
            _ => Err(failure(&answer)),
        }
    }

    /// The failure that an answer's status means.
    pub(crate) fn status_failure(&self, answer: &Answer) -> Failure {
        let failure = failure::of_status(&answer.location, answer.status, self.quotable(answer));
        let asked_ms = headers::retry_after_ms(&answer.headers, answer.metadata.received_at_ms);
        let is_capped = failure.kind == FailureKind::Capped;
        self.without_secrets(Failure {
            throttle: answer.metadata.throttle,
            retry_after_ms: asked_ms.max(is_capped.then_some(CAPPED_MS)),
            ..failure
        })
    }

    /// The failure that the status of an answer to a look-up means. A 403 may be about one of the
    /// posts alone, so it is distinguished from a 401, which is about the credential.
    pub(crate) fn look_up_failure(&self, answer: &Answer) -> Failure {
        let failure = self.status_failure(answer);
        if answer.status == StatusCode::FORBIDDEN && failure.kind != FailureKind::Capped {
            return Failure {
                kind: FailureKind::Forbidden,
                ..failure
            };
        }
        failure
    }

    /// The failure of an answer whose body cannot be used; `failure` says
    /// why, without the address.
    pub(crate) fn body_failure(&self, answer: &Answer, failure: Failure) -> Failure {
        let Failure { kind, message, .. } = not_even_declared(&answer.headers, failure);
        let message = if self.quotable(answer).len() == answer.body.len() {
            message
        } else {
            "the answer cannot be used, and is not quoted because it holds the token".to_owned()
        };
        self.without_secrets(Failure {
            kind,
            message: format!("{}: {message}", answer.location),
            throttle: answer.metadata.throttle,
            retry_after_ms: None,
        })
    }

    /// The failure of a request that is not sent.
    pub(crate) fn failure(&self, kind: FailureKind, why: impl fmt::Display) -> Failure {
        self.without_secrets(Failure::new(kind, format!("{}: {why}", self.address)))
    }

    /// Checks an ID that X and Twitter are asked for; they refuse the whole batch because of one
    /// that they cannot have made.
    pub(crate) fn check_number(&self, id: &UpstreamId) -> Result<(), Failure> {
        if is_id(id) {
            return Ok(());
        }
        let id = id.as_str();
        let why = format!("invalid ID {id:?}: expected a number of at most 19 digits");
        Err(self.failure(FailureKind::BadId, why))
    }

    /// The failure of a request for a timeline that X or Twitter has not.
    pub(crate) fn no_timeline(&self, timeline: &Timeline) -> Failure {
        let why = format!(
            "{} has no timeline {timeline}; it has home, mentions, list:ID and account:ID",
            self.name()
        );
        self.failure(FailureKind::NotFound, why)
    }

    /// Checks that X or Twitter is not asked for a page by its lower bound.
    pub(crate) fn check_no_min_id(&self, request: &PageRequest) -> Result<(), Failure> {
        if request.min_id.is_none() {
            return Ok(());
        }
        let why = format!(
            "{} has no min_id; ask for pages by since or below",
            self.name()
        );
        Err(self.failure(FailureKind::Refused, why))
    }

    fn name(&self) -> &'static str {
        if self.api == Api::X { "X" } else { "Twitter" }
    }

    /// The IDs of a look-up, each once.
    ///
    /// # Errors
    /// A [`Failure`] if they are more than `limit`.
    pub(crate) fn distinct(
        &self,
        ids: &[UpstreamId],
        limit: usize,
    ) -> Result<Vec<UpstreamId>, Failure> {
        let mut seen = std::collections::HashSet::with_capacity(ids.len());
        let distinct: Vec<_> = ids.iter().filter(|id| seen.insert(*id)).cloned().collect();
        if distinct.len() > limit {
            let why = format!(
                "{} posts were to be looked up in one request, and {limit} is the most; ask for fewer at once",
                distinct.len()
            );
            return Err(self.failure(FailureKind::Refused, why));
        }
        Ok(distinct)
    }

    /// A name out of an answer, fit for a line of words.
    pub(crate) fn shown(&self, answer: &Answer, name: &str) -> String {
        if self.quotable(answer).len() == answer.body.len() {
            excerpt::words(name.as_bytes())
        } else {
            "[token]".to_owned()
        }
    }

    /// What of an answer's body may be quoted: nothing, if it repeats a
    /// secret, because a shortened quotation could hold most of it.
    fn quotable<'a>(&self, answer: &'a Answer) -> &'a [u8] {
        let repeats = |secret: String| {
            answer
                .body
                .windows(secret.len())
                .any(|part| part.eq_ignore_ascii_case(secret.as_bytes()))
        };
        if self.spellings().any(repeats) {
            &[]
        } else {
            &answer.body
        }
    }

    /// The failure without what no message may repeat.
    pub(crate) fn without_secrets(&self, failure: Failure) -> Failure {
        let message = self.hide_secrets(failure.message);
        Failure { message, ..failure }
    }

    fn hide_secrets(&self, message: String) -> String {
        self.spellings()
            .fold(message, |message, secret| without(&message, &secret))
    }

    /// Every secret as written, and as escaped in an address or in the
    /// header of a signed request.
    fn spellings(&self) -> impl Iterator<Item = String> {
        self.credential.secrets().flat_map(|secret| {
            let encoded = Some(segment::encoded(secret)).filter(|encoded| encoded != secret);
            std::iter::once(secret.to_owned()).chain(encoded)
        })
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

/// Bad JSON that was never declared to be JSON is some other kind of text.
fn not_even_declared(headers: &HeaderMap, failure: Failure) -> Failure {
    let Some(declared) = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()) else {
        return failure;
    };
    if failure.kind != FailureKind::BadJson || declared.contains("json") {
        return failure;
    }
    let declared = excerpt::words(declared.as_bytes());
    Failure {
        kind: FailureKind::NotJson,
        message: format!("the answer is of type {declared}: {}", failure.message),
        ..failure
    }
}

/// How long a source waits after its monthly quota is used up, ms: plans are
/// changed, and months end, without a word.
const CAPPED_MS: i64 = 900_000;
