//! The only HTTP client.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use reqwest::{
    Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION},
};
use url::Url;

use crate::{
    Answer, FetchError, FetchErrorKind, OpenAnswer, Opened, Options, RedirectError, answer, guard,
    location::location,
    redirect::{self, Reach},
    trusted_server::TrustedServer,
};

/// The `Authorization` header for one address, if it needs one, or the reason why it cannot be
/// made. It is made again for each redirect, because a signature is valid for one address.
pub type Authorization = Result<Option<HeaderValue>, Box<dyn Error + Send + Sync>>;

/// A client with its policy and its connections. Clones share both, so one client serves the whole
/// process.
#[derive(Debug, Clone)]
pub struct Http {
    clients: Clients,
    /// The only server that may be in a private network if others may not, with the clients that
    /// reach it.
    trusted: Option<(TrustedServer, Clients)>,
    /// Made with the first trusted server, for all of them.
    private: Arc<Mutex<Option<Clients>>>,
    /// Made for the first request that must not reach private networks, if others may.
    guarded: Arc<Mutex<Option<Clients>>>,
    options: Arc<Options>,
}

/// Connections under one policy.
#[derive(Debug, Clone)]
struct Clients {
    requests: reqwest::Client,
    /// The client for streams. Each stream has its own connection, which may be upgraded.
    streams: reqwest::Client,
}

impl Http {
    /// Builds the client. TLS is verified against the platform's certificates. Proxies of the
    /// environment are not used, because a proxy would connect to unchecked addresses.
    ///
    /// # Errors
    /// [`HttpError`] if the platform has no usable certificates, or the user agent is not valid in
    /// a header.
    pub fn new(options: Options) -> Result<Self, HttpError> {
        // The process may have installed a provider already, which is then used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            clients: Clients::new(&options, options.allow_private)?,
            trusted: None,
            private: Arc::default(),
            guarded: Arc::default(),
            options: Arc::new(options),
        })
    }

    /// The same client, which may also reach this server in a private network and send tokens there
    /// over plain `http`. The exception covers this host and port only.
    ///
    /// # Errors
    /// The same as those of [`Http::new`].
    pub fn trusting(&self, server: &Url) -> Result<Self, HttpError> {
        if self.options.allow_private {
            return Ok(self.clone());
        }
        let mut private = self.private.lock().unwrap_or_else(PoisonError::into_inner);
        let clients = match &*private {
            Some(clients) => clients.clone(),
            None => private.insert(Clients::new(&self.options, true)?).clone(),
        };
        Ok(Self {
            trusted: Some((TrustedServer::from_url(server), clients)),
            ..self.clone()
        })
    }

    /// The same client without these permissions: it reaches no private network and sends no token
    /// over plain `http`.
    ///
    /// # Errors
    /// The same as those of [`Http::new`].
    pub fn guarded(&self) -> Result<Self, HttpError> {
        if !self.options.allow_private {
            return Ok(Self {
                trusted: None,
                ..self.clone()
            });
        }
        let mut guarded = self.guarded.lock().unwrap_or_else(PoisonError::into_inner);
        let clients = match &*guarded {
            Some(clients) => clients.clone(),
            None => guarded.insert(Clients::new(&self.options, false)?).clone(),
        };
        Ok(Self {
            clients,
            trusted: None,
            options: Arc::new(Options {
                allow_private: false,
                ..(*self.options).clone()
            }),
            ..self.clone()
        })
    }

    /// True if this address may be in a private network, and may receive tokens over plain `http`.
    pub fn allows_private(&self, url: &Url) -> bool {
        self.options.allow_private || self.clients_of(url).1
    }

    /// The clients for an address, and true if it belongs to the trusted server.
    fn clients_of(&self, url: &Url) -> (&Clients, bool) {
        match &self.trusted {
            Some((server, clients)) if server.has(url) => (clients, true),
            _ => (&self.clients, false),
        }
    }

    /// The policy.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Fetches an address and follows redirects within the same server. Returns answers of any
    /// status.
    ///
    /// # Errors
    /// [`FetchError`] if no complete answer arrives within the limits.
    pub async fn fetch(
        &self,
        url: Url,
        authorization: impl Fn(&Url) -> Authorization,
    ) -> Result<Answer, FetchError> {
        let total = self.options.total_timeout;
        let location = location(&url);
        match tokio::time::timeout(total, self.follow(url, &authorization)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(FetchError::at(location, FetchErrorKind::Incomplete(total))),
        }
    }

    async fn follow(
        &self,
        mut url: Url,
        authorization: &impl Fn(&Url) -> Authorization,
    ) -> Result<Answer, FetchError> {
        let none = HeaderMap::new();
        for _ in 0..=redirect::MAX_REDIRECTS {
            let sent = self.send(Use::Request, &url, authorization, &none).await?;
            let Some(target) = redirect_of(&sent.response) else {
                return self.read(sent).await;
            };
            url = redirect::target(&url, target, Reach::SameServer)
                .map_err(|why| FetchError::new(&url, why))?;
        }
        Err(FetchError::new(&url, RedirectError::TooMany))
    }

    /// Opens a stream and follows redirects within the same server. An answer with the expected
    /// status stays open; any other is read. The head of each answer must arrive within
    /// `read_timeout`.
    ///
    /// # Errors
    /// [`FetchError`] if no answer arrives within the limits.
    pub async fn open(
        &self,
        url: Url,
        headers: HeaderMap,
        expected: StatusCode,
        authorization: impl Fn(&Url) -> Authorization,
    ) -> Result<Opened, FetchError> {
        let asked = (headers, expected);
        self.open_within(Reach::SameServer, url, asked, authorization)
            .await
    }

    /// Opens a public resource, such as an attachment. No request carries a token, so redirects to
    /// other servers are followed. Each address is checked like the first.
    ///
    /// # Errors
    /// The same as those of [`Http::open`].
    pub async fn open_public(
        &self,
        url: Url,
        headers: HeaderMap,
        expected: StatusCode,
    ) -> Result<Opened, FetchError> {
        let asked = (headers, expected);
        self.open_within(Reach::AnyServer, url, asked, |_| Ok(None))
            .await
    }

    async fn open_within(
        &self,
        reach: Reach,
        mut url: Url,
        (headers, expected): (HeaderMap, StatusCode),
        authorization: impl Fn(&Url) -> Authorization,
    ) -> Result<Opened, FetchError> {
        let location = location(&url);
        for _ in 0..=redirect::MAX_REDIRECTS {
            let sent = self.send(Use::Stream, &url, &authorization, &headers);
            let Ok(sent) = tokio::time::timeout(self.options.read_timeout, sent).await else {
                return Err(FetchError::new(&url, FetchErrorKind::NoStreamInTime));
            };
            let sent = sent?;
            if sent.response.status() == expected {
                let response = sent.response;
                return Ok(Opened::Stream(OpenAnswer { response, location }));
            }
            let Some(target) = redirect_of(&sent.response) else {
                return self.refused(sent).await.map(Opened::Refused);
            };
            url =
                redirect::target(&url, target, reach).map_err(|why| FetchError::new(&url, why))?;
        }
        Err(FetchError::new(&url, RedirectError::TooMany))
    }

    /// Reads an answer that is not a stream. A body with the status 200 may never end, so it is not
    /// read.
    async fn refused(&self, sent: Sent) -> Result<Answer, FetchError> {
        if sent.response.status() == StatusCode::OK {
            return Ok(sent.into_answer().0);
        }
        let url = sent.response.url().clone();
        match tokio::time::timeout(self.options.read_timeout, self.read(sent)).await {
            Ok(answer) => answer,
            Err(_) => Err(FetchError::new(&url, FetchErrorKind::NoStreamInTime)),
        }
    }

    async fn send(
        &self,
        purpose: Use,
        url: &Url,
        authorization: &impl Fn(&Url) -> Authorization,
        headers: &HeaderMap,
    ) -> Result<Sent, FetchError> {
        let failed = |kind| FetchError::new(url, kind);
        // A redirect is checked again, because it may leave the trusted server.
        guard::check_literal(url, self.allows_private(url))
            .map_err(|error| failed(error.into()))?;
        let authorization =
            authorization(url).map_err(|error| failed(FetchErrorKind::Authorization(error)))?;
        let clients = self.clients_of(url).0;
        let client = match purpose {
            Use::Request => &clients.requests,
            Use::Stream => &clients.streams,
        };
        let mut request = client.get(url.clone()).headers(headers.clone());
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let sent_at_ms = now_ms();
        let sent = Instant::now();
        let response = request
            .send()
            .await
            .map_err(|error| failed(FetchErrorKind::of_sending(url, &error)))?;
        Ok(Sent {
            response,
            sent_at_ms,
            sent,
            round_trip_ms: i64::try_from(sent.elapsed().as_millis()).unwrap_or(i64::MAX),
        })
    }

    async fn read(&self, sent: Sent) -> Result<Answer, FetchError> {
        let begun = sent.sent;
        let (mut answer, mut response) = sent.into_answer();
        if answer.status == StatusCode::OK {
            let announced = answer::announced(&answer.headers);
            let cap = self.options.max_body_bytes;
            match answer::body(&mut response, announced, cap).await {
                Ok(body) => answer.body = body,
                Err(kind) => {
                    let headers = Some(Box::new(answer.headers));
                    let error = FetchError::at(answer.location, kind);
                    return Err(FetchError { headers, ..error });
                }
            }
        } else {
            // This body only adds words to a message, so an error here is ignored.
            answer.body = answer::body(&mut response, None, MAX_ERROR_BODY_BYTES)
                .await
                .unwrap_or_default();
        }
        // Both times come from one clock, even if it was set meanwhile.
        let took_ms = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        answer.received_at_ms = answer.sent_at_ms.saturating_add(took_ms);
        Ok(answer)
    }
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy)]
enum Use {
    Request,
    Stream,
}

impl Clients {
    fn new(options: &Options, allow_private: bool) -> Result<Self, HttpError> {
        let builder = || Self::builder(options, allow_private);
        let requests = builder().read_timeout(options.read_timeout).build();
        let streams = builder().http1_only().pool_max_idle_per_host(0).build();
        Ok(Self {
            requests: requests.map_err(HttpError)?,
            streams: streams.map_err(HttpError)?,
        })
    }

    fn builder(options: &Options, allow_private: bool) -> reqwest::ClientBuilder {
        reqwest::Client::builder()
            .user_agent(&options.user_agent)
            .default_headers(HeaderMap::from_iter([(
                ACCEPT,
                HeaderValue::from_static("application/json"),
            )]))
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(guard::GuardedResolver { allow_private }))
            .connect_timeout(options.connect_timeout)
            .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
            .http1_ignore_invalid_headers_in_responses(true)
            .gzip(true)
            .brotli(true)
            .zstd(false)
            .referer(false)
            .no_proxy()
    }
}

/// A sent request, and the head of its answer.
struct Sent {
    response: Response,
    sent_at_ms: i64,
    /// The time of sending by the monotonic clock.
    sent: Instant,
    round_trip_ms: i64,
}

impl Sent {
    /// The answer so far, and the response that provides its body.
    fn into_answer(mut self) -> (Answer, Response) {
        let answer = Answer {
            status: self.response.status(),
            headers: std::mem::take(self.response.headers_mut()),
            body: Vec::new(),
            location: location(self.response.url()),
            sent_at_ms: self.sent_at_ms,
            received_at_ms: self.sent_at_ms,
            round_trip_ms: self.round_trip_ms,
        };
        (answer, self.response)
    }
}

/// An error in building a client.
#[derive(Debug, thiserror::Error)]
#[error(
    "the HTTP client cannot be built; check that the system's certificates are installed (for example the package ca-certificates) and that the user agent is plain text"
)]
pub struct HttpError(#[source] reqwest::Error);

/// The target of an answer's redirect, if it is one.
fn redirect_of(response: &Response) -> Option<&HeaderValue> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    is_redirect.then(|| response.headers().get(LOCATION))?
}

/// The local wall clock, Unix ms.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

const MAX_IDLE_PER_HOST: usize = 2;
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
