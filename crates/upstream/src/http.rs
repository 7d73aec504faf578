//! The one HTTP client and its policy.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use driftline_core::answer::{AnswerHeaders, Failure, FailureKind};
use reqwest::{
    Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderValue, LOCATION},
};
use url::Url;

use crate::{Credential, failure, guard, headers, redirect};

/// How upstreams are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether addresses of private networks may be connected to, and tokens
    /// may travel over plain `http`.
    pub allow_private: bool,
    /// The most that resolving, connecting and the TLS handshake may take.
    pub connect_timeout: Duration,
    /// The most that may pass without a byte arriving.
    pub read_timeout: Duration,
    /// The most that a request may take, with redirects and its whole body.
    pub total_timeout: Duration,
    /// The most that may pass on a stream without a byte arriving; servers
    /// send heartbeats every 15 to 30 s.
    pub silence_timeout: Duration,
    /// The largest body that is read, in bytes after decompression.
    pub max_body_bytes: usize,
    /// The `User-Agent` header.
    pub user_agent: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allow_private: false,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_secs(60),
            silence_timeout: Duration::from_secs(90),
            max_body_bytes: 8 * 1024 * 1024,
            user_agent: concat!(
                "Driftline/",
                env!("CARGO_PKG_VERSION"),
                " (+",
                env!("CARGO_PKG_REPOSITORY"),
                ")"
            )
            .to_owned(),
        }
    }
}

/// A client with its policy and its connections. Clones share both: build one
/// and give it to every source.
#[derive(Debug, Clone)]
pub struct Http {
    client: reqwest::Client,
    /// For streams: each has a connection of its own, which may be upgraded.
    streams: reqwest::Client,
    options: Arc<Options>,
}

impl Http {
    /// Builds the client. TLS is verified against the platform's certificates;
    /// proxies of the environment are not used, because a proxy would connect
    /// to addresses that were not checked.
    ///
    /// # Errors
    /// [`HttpError`] if the platform has no usable certificates or the user
    /// agent is not a header's text.
    pub fn new(options: Options) -> Result<Self, HttpError> {
        // The process may have chosen a provider already: that one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || Self::builder(&options);
        let client = builder().read_timeout(options.read_timeout).build();
        let streams = builder().http1_only().pool_max_idle_per_host(0).build();
        Ok(Self {
            client: client.map_err(HttpError)?,
            streams: streams.map_err(HttpError)?,
            options: Arc::new(options),
        })
    }

    fn builder(options: &Options) -> reqwest::ClientBuilder {
        reqwest::Client::builder()
            .user_agent(&options.user_agent)
            .default_headers(HeaderMap::from_iter([(
                ACCEPT,
                HeaderValue::from_static("application/json"),
            )]))
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(guard::GuardedResolver {
                allow_private: options.allow_private,
            }))
            .connect_timeout(options.connect_timeout)
            .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
            .http1_ignore_invalid_headers_in_responses(true)
            .gzip(true)
            .brotli(true)
            .referer(false)
            .no_proxy()
    }

    /// The policy.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Gets an address, following redirects of the same server.
    pub(crate) async fn fetch(&self, url: Url, credential: &Credential) -> Result<Answer, Failure> {
        let total = self.options.total_timeout;
        let location = failure::location(&url);
        match tokio::time::timeout(total, self.follow(url, credential)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::new(
                FailureKind::TimedOut,
                format!(
                    "{location}: the answer was not complete after {} s; it is tried again later",
                    total.as_secs_f64()
                ),
            )),
        }
    }

    async fn follow(&self, mut url: Url, credential: &Credential) -> Result<Answer, Failure> {
        let none = HeaderMap::new();
        for _ in 0..=redirect::MAX_REDIRECTS {
            let (response, metadata) = self.send(&self.client, &url, credential, &none).await?;
            let Some(location) = location(&response) else {
                return self.read(response, metadata).await;
            };
            url = redirect::target(&url, location).map_err(|why| refused_redirect(&url, &why))?;
        }
        Err(too_many_redirects(&url))
    }

    /// Opens a stream, following redirects of the same server: an answer of
    /// the expected status stays open, any other is read. The time limits are
    /// those of a request's head.
    pub(crate) async fn open(
        &self,
        mut url: Url,
        credential: &Credential,
        headers: HeaderMap,
        expected: StatusCode,
    ) -> Result<Opened, Failure> {
        for _ in 0..=redirect::MAX_REDIRECTS {
            let sent = self.send(&self.streams, &url, credential, &headers);
            let Ok(sent) = tokio::time::timeout(self.options.read_timeout, sent).await else {
                return Err(no_stream_in_time(&url));
            };
            let (response, metadata) = sent?;
            if response.status() == expected {
                return Ok(Opened::Stream(response));
            }
            let Some(location) = location(&response) else {
                return self.refused(response, metadata).await.map(Opened::Refused);
            };
            url = redirect::target(&url, location).map_err(|why| refused_redirect(&url, &why))?;
        }
        Err(too_many_redirects(&url))
    }

    /// An answer that is no stream. A body with the status 200 may never end:
    /// it is not read.
    async fn refused(
        &self,
        response: Response,
        metadata: AnswerHeaders,
    ) -> Result<Answer, Failure> {
        if response.status() == StatusCode::OK {
            return Ok(Answer {
                status: response.status(),
                headers: response.headers().clone(),
                body: Vec::new(),
                location: failure::location(response.url()),
                metadata,
            });
        }
        let url = response.url().clone();
        let read = self.read(response, metadata);
        match tokio::time::timeout(self.options.read_timeout, read).await {
            Ok(answer) => answer,
            Err(_) => Err(no_stream_in_time(&url)),
        }
    }

    async fn send(
        &self,
        client: &reqwest::Client,
        url: &Url,
        credential: &Credential,
        headers: &HeaderMap,
    ) -> Result<(Response, AnswerHeaders), Failure> {
        guard::check_literal(url, self.options.allow_private).map_err(|error| {
            let location = failure::location(url);
            Failure::new(FailureKind::PrivateAddress, format!("{location}: {error}"))
        })?;
        // A signature holds for one address: each redirect is signed again.
        let authorization = credential
            .authorization(url)
            .map_err(|error| Failure::new(FailureKind::Unauthorized, error.to_string()))?;
        let mut request = client.get(url.clone()).headers(headers.clone());
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let sent_at_ms = headers::now_ms();
        let sent = Instant::now();
        let response = request
            .send()
            .await
            .map_err(|error| failure::of_sending(url, &error))?;
        let metadata = AnswerHeaders {
            sent_at_ms,
            received_at_ms: sent_at_ms,
            round_trip_ms: i64::try_from(sent.elapsed().as_millis()).unwrap_or(i64::MAX),
            date_ms: headers::date_ms(response.headers()),
            throttle: headers::throttle(response.headers()),
            body_bytes: 0,
        };
        Ok((response, metadata))
    }

    async fn read(
        &self,
        mut response: Response,
        mut metadata: AnswerHeaders,
    ) -> Result<Answer, Failure> {
        let status = response.status();
        let location = failure::location(response.url());
        let headers = std::mem::take(response.headers_mut());
        let body = if status == StatusCode::OK {
            let cap = self.options.max_body_bytes;
            let body = match body(&mut response, announced(&headers), cap).await {
                Ok(body) => Ok(body),
                Err(Broken::TooLarge) => Err(failure::too_large(&location, cap)),
                Err(Broken::Reading(error)) => Err(failure::of_reading(&location, &error)),
            };
            body.map_err(|failure| Failure {
                throttle: metadata.throttle,
                ..failure
            })?
        } else {
            // Only words for a message come from this body: without it there
            // are fewer words.
            body(&mut response, None, MAX_ERROR_BODY_BYTES)
                .await
                .unwrap_or_default()
        };
        metadata.received_at_ms = headers::now_ms();
        metadata.body_bytes = body.len() as u64;
        Ok(Answer {
            status,
            headers,
            body,
            metadata,
            location,
        })
    }
}

/// A client that could not be built.
#[derive(Debug, thiserror::Error)]
#[error(
    "the HTTP client cannot be built; check that the system's certificates are installed (for example the package ca-certificates) and that the user agent is plain text"
)]
pub struct HttpError(#[source] reqwest::Error);

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

/// An answer to a request for a stream.
#[derive(Debug)]
pub(crate) enum Opened {
    /// Of the status that was expected; its body is still to come.
    Stream(Response),
    /// Of any other.
    Refused(Answer),
}

enum Broken {
    TooLarge,
    Reading(reqwest::Error),
}

/// Reads a body chunk by chunk after decompression, so that no more than the
/// cap and one chunk is ever held.
async fn body(
    response: &mut Response,
    announced: Option<usize>,
    cap: usize,
) -> Result<Vec<u8>, Broken> {
    if announced.is_some_and(|bytes| bytes > cap) {
        return Err(Broken::TooLarge);
    }
    let mut body = Vec::with_capacity(announced.unwrap_or(0));
    while let Some(chunk) = response.chunk().await.map_err(Broken::Reading)? {
        if chunk.len() > cap - body.len() {
            return Err(Broken::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The announced size; a compressed body announces none, because reqwest
/// takes the header away.
fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Where an answer redirects to, if it does.
fn location(response: &Response) -> Option<&HeaderValue> {
    let headers = response.headers();
    is_redirect(response.status()).then(|| headers.get(LOCATION))?
}

fn refused_redirect(url: &Url, why: &dyn std::fmt::Display) -> Failure {
    let location = failure::location(url);
    Failure::new(FailureKind::Redirected, format!("{location}: {why}"))
}

fn too_many_redirects(url: &Url) -> Failure {
    let most = redirect::MAX_REDIRECTS;
    refused_redirect(url, &format_args!("more than {most} redirects"))
}

fn no_stream_in_time(url: &Url) -> Failure {
    Failure::new(
        FailureKind::TimedOut,
        format!(
            "{}: no stream in time; it is tried again later",
            failure::location(url)
        ),
    )
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

const MAX_IDLE_PER_HOST: usize = 2;
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
