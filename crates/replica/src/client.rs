use std::{error::Error, time::Duration};

use driftline_core::sync::{DigestAnswer, LibraryRequest, PushAnswer, SyncAnswer, SyncRequest};
use reqwest::{
    Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use serde::{Deserialize, de::DeserializeOwned};
use url::form_urlencoded::Serializer;

use crate::{
    NewsStream, ReplicaError,
    backoff::{Backoff, Random},
    chunk_size::ChunkSize,
    server_url::ServerUrl,
    token::Token,
};

/// A client of one server, with a token of an account.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    server: ServerUrl,
    token: Token,
    retries: Retries,
}

/// The repetition of requests that had no answer, or that the server was too busy for.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    /// The largest number of times that a request is sent.
    pub max_tries: u32,
    /// The waits between them.
    pub backoff: Backoff,
}

impl Retries {
    /// The repetition for single commands: each request is sent at most 4 times.
    pub const fn few() -> Self {
        Self {
            max_tries: 4,
            backoff: Backoff::new(),
        }
    }

    /// Each request is sent once.
    pub const fn none() -> Self {
        Self {
            max_tries: 1,
            ..Self::few()
        }
    }
}

impl Client {
    /// Makes the client. It follows no redirect and uses no proxy, since the token is sent to the server alone.
    ///
    /// # Errors
    /// [`ReplicaError::File`] if the system has no usable certificates.
    pub fn new(server: &ServerUrl, token: Token, retries: Retries) -> Result<Self, ReplicaError> {
        // The process may have installed a provider already, which is then used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .user_agent(concat!("Driftline-replica/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .timeout(TOTAL_TIMEOUT)
            .referer(false)
            .no_proxy()
            .build()
            .map_err(|error| {
                let cause = cause(&error);
                ReplicaError::File(format!("the HTTP client cannot be made: {cause}"))
            })?;
        Ok(Self {
            http,
            server: server.clone(),
            token,
            retries,
        })
    }

    /// The server.
    pub fn server(&self) -> &ServerUrl {
        &self.server
    }

    /// Opens a stream that tells of changes of the account's library and of these sources' libraries, the first time at once.
    /// Only the first 200 of them are named. The request is sent once.
    ///
    /// # Errors
    /// [`ReplicaError`] if the server does not answer or refuses, as it does if the account may not read one of the libraries.
    pub async fn news<'a>(
        &self,
        libraries: impl IntoIterator<Item = &'a str>,
    ) -> Result<NewsStream, ReplicaError> {
        let (query, names_all) = {
            let mut libraries = libraries.into_iter();
            let named = libraries.by_ref().take(MAX_NAMED);
            let mut pairs = Serializer::new(String::new());
            pairs.extend_pairs(named.map(|library| ("library", library)));
            (pairs.finish(), libraries.next().is_none())
        };
        let url = format!("{}{EVENTS}?{query}", self.server);
        let request = self.http.get(url).bearer_auth(self.token.expose());
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        match response.status() {
            StatusCode::OK => Ok(NewsStream::new(response, names_all)),
            status => Err(self.refusal(status, &[], retry_after_s(&response))),
        }
    }

    /// The token.
    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Pulls the next chunk of libraries. After a lost answer the next try asks for a smaller one.
    ///
    /// # Errors
    /// [`ReplicaError`] if no good answer arrives after the largest number of tries.
    pub(crate) async fn pull_chunk(
        &self,
        libraries: Vec<LibraryRequest>,
        size: &mut ChunkSize,
        random: &mut Random<'_>,
    ) -> Result<SyncAnswer, ReplicaError> {
        let mut request = SyncRequest {
            libraries,
            max_entries: Some(MAX_ENTRIES),
            max_bytes: None,
        };
        let mut backoff = self.retries.backoff;
        loop {
            request.max_bytes = Some(size.max_bytes());
            let body = serde_json::to_string(&request).map_err(ReplicaError::damaged)?;
            match self.exchange_once(PULL, Some(&body)).await {
                Ok(answer) => {
                    size.arrive();
                    return Ok(answer);
                }
                Err(error) => {
                    if let ReplicaError::Unreachable { is_lost: true, .. } = error {
                        size.lose();
                    }
                    self.wait_after(error, &mut backoff, random).await?;
                }
            }
        }
    }

    /// Asks for the libraries that the account may read.
    ///
    /// # Errors
    /// The same as those of [`Client::pull_chunk`].
    pub(crate) async fn libraries(
        &self,
        random: &mut Random<'_>,
    ) -> Result<Vec<LibraryName>, ReplicaError> {
        self.exchange(LIBRARIES, None, random).await
    }

    /// Sends the body of a push.
    ///
    /// # Errors
    /// The same as those of [`Client::pull_chunk`]; [`ReplicaError::Device`] if the server has another record of the device.
    pub(crate) async fn push(
        &self,
        body: &str,
        random: &mut Random<'_>,
    ) -> Result<PushAnswer, ReplicaError> {
        self.exchange(PUSH, Some(body), random).await
    }

    /// Asks for a digest.
    ///
    /// # Errors
    /// The same as those of [`Client::pull_chunk`].
    pub(crate) async fn digest(
        &self,
        request: &LibraryRequest,
        random: &mut Random<'_>,
    ) -> Result<DigestAnswer, ReplicaError> {
        let body = serde_json::to_string(request).map_err(ReplicaError::damaged)?;
        self.exchange(DIGEST, Some(&body), random).await
    }

    /// Sends a body, or gets what is there without one, with the client's tries.
    async fn exchange<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&str>,
        random: &mut Random<'_>,
    ) -> Result<T, ReplicaError> {
        let mut backoff = self.retries.backoff;
        loop {
            match self.exchange_once(path, body).await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.wait_after(error, &mut backoff, random).await?,
            }
        }
    }

    /// Waits for the next try of a request.
    ///
    /// # Errors
    /// The error, if another try cannot help or this was the last one.
    async fn wait_after(
        &self,
        error: ReplicaError,
        backoff: &mut Backoff,
        random: &mut Random<'_>,
    ) -> Result<(), ReplicaError> {
        if !error.may_pass() {
            return Err(error);
        }
        let asked = error.asked_wait();
        let wait = backoff.fail(random).max(asked);
        if backoff.failures() >= self.retries.max_tries || asked > MAX_ASKED_WAIT {
            return Err(error);
        }
        tracing::warn!("{error}; trying again in {:.1} s", wait.as_secs_f64());
        tokio::time::sleep(wait).await;
        Ok(())
    }

    async fn exchange_once<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&str>,
    ) -> Result<T, ReplicaError> {
        let url = format!("{}{path}", self.server);
        let request = match body {
            Some(body) => self
                .http
                .post(url)
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_owned()),
            None => self.http.get(url),
        };
        let request = request.bearer_auth(self.token.expose());
        let unreachable = |error: reqwest::Error| self.unreachable(&error);
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let retry_after_s = retry_after_s(&response);
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if chunk.len() > MAX_ANSWER_BYTES - answer.len() {
                return Err(self.malformed(&format!("it has more than {MAX_ANSWER_BYTES} bytes")));
            }
            answer.extend_from_slice(&chunk);
        }
        if status == StatusCode::OK {
            return serde_json::from_slice(&answer)
                .map_err(|error| self.malformed(&error.to_string()));
        }
        Err(self.refusal(status, &answer, retry_after_s))
    }

    fn unreachable(&self, error: &reqwest::Error) -> ReplicaError {
        ReplicaError::Unreachable {
            server: self.server.to_string(),
            cause: self.token.without(&cause(error)),
            is_lost: !error.is_connect(),
        }
    }

    fn malformed(&self, cause: &str) -> ReplicaError {
        ReplicaError::Malformed {
            server: self.server.to_string(),
            cause: self.token.without(cause),
        }
    }

    /// The error of an answer with another status than 200.
    fn refusal(
        &self,
        status: StatusCode,
        answer: &[u8],
        retry_after_s: Option<u64>,
    ) -> ReplicaError {
        let (server, status) = (self.server.to_string(), status.as_u16());
        let said = serde_json::from_slice::<ErrorAnswer>(answer).unwrap_or_default();
        let text = match said.error.as_str() {
            "" => String::new(),
            error => format!(": {}", beginning(&self.token.without(error))),
        };
        match status {
            401 | 403 => ReplicaError::Unauthorized { server, status },
            409 if said.error == "device" => ReplicaError::Device(server),
            422 if said.error == ACCOUNT_NEEDED => ReplicaError::NoAccount(server),
            404 | 405 | 300..=399 => ReplicaError::NoSync { server, status },
            408 | 429 | 500.. => ReplicaError::Busy {
                server,
                status,
                text,
                retry_after_s,
            },
            _ => ReplicaError::Rejected {
                server,
                status,
                text,
            },
        }
    }
}

/// A library that the account may read.
#[derive(Debug, Deserialize)]
pub(crate) struct LibraryName {
    /// Its name in requests.
    pub(crate) library: String,
    /// The name of the source; `None` for the account's own library.
    pub(crate) source: Option<String>,
}

/// The body of an answer that is an error.
#[derive(Default, Deserialize)]
struct ErrorAnswer {
    #[serde(default)]
    error: String,
}

/// The wait that an answer asks for, if it is in seconds.
fn retry_after_s(response: &Response) -> Option<u64> {
    let header = response.headers().get(RETRY_AFTER)?;
    header.to_str().ok()?.parse().ok()
}

/// The text of the first cause of an error. Those above repeat it with the address.
fn cause(error: &reqwest::Error) -> String {
    let mut first: &dyn Error = error;
    while let Some(source) = first.source() {
        first = source;
    }
    match error.is_timeout() {
        true => "no answer in time".to_owned(),
        false => beginning(&first.to_string()),
    }
}

/// The beginning of a text of the server, on one line.
fn beginning(text: &str) -> String {
    let visible = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    visible.take(MAX_TEXT_CHARS).collect()
}

const PULL: &str = "/api/driftline/v1/sync";
const DIGEST: &str = "/api/driftline/v1/sync/digest";
const LIBRARIES: &str = "/api/driftline/v1/sync/libraries";
const PUSH: &str = "/api/driftline/v1/sync/push";
/// The error of Mastodon's API for a token that an app got for itself.
const ACCOUNT_NEEDED: &str = "This method requires an authenticated user";
/// The largest number of objects and tombstones in a chunk, which is the protocol's bound.
pub(crate) const MAX_ENTRIES: u32 = 1_000;
const EVENTS: &str = "/api/driftline/v1/sync/events";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest chunk arrives in time over 5 kB/s. Over slower connections it counts as lost, and smaller ones follow.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(900);
/// A command does not wait longer than this because a server asks for it.
const MAX_ASKED_WAIT: Duration = Duration::from_secs(60);
/// An object that is larger than a chunk comes alone.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
const MAX_TEXT_CHARS: usize = 200;
/// The number of libraries that a request names.
const MAX_NAMED: usize = 200;
