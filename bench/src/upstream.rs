//! A server that has every post that it is asked for.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::get,
};
use driftline_core::answer::PageRequest;
use driftline_sim::{World, WorldConfig};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::{net::TcpListener, sync::oneshot};

use crate::{failure::Failure, pages};

/// What it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Mastodon's API before 4.3: a request for each post.
    Single,
    /// Mastodon's: 20 posts a request.
    Mastodon,
    /// X's version 2: 100 posts a request.
    X,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Single, Self::Mastodon, Self::X];

    /// The most posts of a request.
    pub(crate) const fn batch(self) -> usize {
        match self {
            Self::Single => 1,
            Self::Mastodon => 20,
            Self::X => 100,
        }
    }

    /// Its name on the command line.
    pub(crate) const fn api(self) -> &'static str {
        match self {
            Self::Single | Self::Mastodon => "mastodon",
            Self::X => "x",
        }
    }

    /// The posts of an answer, each with its ID.
    pub(crate) fn posts(self, answer: &str) -> Result<Vec<(u64, String)>, Failure> {
        #[derive(Deserialize)]
        struct Several<'a> {
            #[serde(borrow)]
            data: Vec<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Named<'a> {
            id: &'a str,
        }
        let posts: Vec<&RawValue> = match self {
            Self::Single => vec![serde_json::from_str(answer)?],
            Self::Mastodon => serde_json::from_str(answer)?,
            Self::X => serde_json::from_str::<Several<'_>>(answer)?.data,
        };
        let named = posts.into_iter().map(|post| {
            let named: Named<'_> = serde_json::from_str(post.get())?;
            Ok((named.id.parse()?, post.get().to_owned()))
        });
        named.collect()
    }
}

/// The server, on a thread of its own.
pub(crate) struct Upstream {
    kind: Kind,
    url: String,
    requests: Arc<AtomicU64>,
    _stop: oneshot::Sender<()>,
}

impl Upstream {
    pub(crate) fn start(kind: Kind) -> Result<Self, Failure> {
        let requests = Arc::new(AtomicU64::new(0));
        let shown = Arc::new(Shown {
            kind,
            requests: Arc::clone(&requests),
            status: Template::status()?,
        });
        let (stop, stopped) = oneshot::channel();
        let (address, started) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::spawn(move || {
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let _ = address.send(listener.local_addr()?);
                let serving = axum::serve(listener, router(shown));
                let until = async {
                    let _ = stopped.await;
                };
                serving.with_graceful_shutdown(until).await
            })
        });
        let address = started.recv().map_err(|_| Failure::new("no server"))?;
        Ok(Self {
            kind,
            url: format!("http://{address}"),
            requests,
            _stop: stop,
        })
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Those that were sent for posts.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Asks for posts, the way that the kind has for it.
    pub(crate) async fn ask(
        &self,
        client: &reqwest::Client,
        ids: &[u64],
    ) -> Result<String, Failure> {
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        let url = match self.kind {
            Kind::Single => format!("{}/api/v1/statuses/{}", self.url, ids.concat()),
            Kind::Mastodon => format!("{}/api/v1/statuses?id[]={}", self.url, ids.join("&id[]=")),
            Kind::X => format!("{}/2/tweets?ids={}", self.url, ids.join(",")),
        };
        let answer = client.get(url).send().await?.error_for_status()?;
        Ok(answer.text().await?)
    }
}

/// What the routes show.
struct Shown {
    kind: Kind,
    requests: Arc<AtomicU64>,
    status: Template,
}

/// A post's JSON around its ID.
struct Template(Vec<String>);

impl Template {
    /// A status of 2 to 3 kB.
    fn status() -> Result<Self, Failure> {
        let config = WorldConfig::punctual(40.0);
        let end_ms = config.start_ms + 60_000;
        let request = PageRequest {
            limit: 1,
            ..PageRequest::default()
        };
        let mut page = World::new(config, 1).page(end_ms, &request);
        let status = page.first_mut();
        let status = status.ok_or_else(|| Failure::new("the simulated world is empty"))?;
        let (id, json) = (status.id.to_string(), pages::padded(status));
        Ok(Self(json.split(&id).map(str::to_owned).collect()))
    }

    fn of(&self, id: &str) -> String {
        self.0.join(id)
    }
}

fn router(shown: Arc<Shown>) -> Router {
    Router::new()
        .route("/api/v1/statuses", get(several))
        .route("/api/v1/statuses/{id}", get(single))
        .route("/2/tweets", get(tweets))
        .with_state(shown)
}

async fn single(State(shown): State<Arc<Shown>>, Path(id): Path<String>) -> Response {
    shown.requests.fetch_add(1, Ordering::Relaxed);
    answer(shown.status.of(&id))
}

async fn several(State(shown): State<Arc<Shown>>, RawQuery(query): RawQuery) -> Response {
    if shown.kind == Kind::Single {
        return StatusCode::NOT_FOUND.into_response();
    }
    shown.requests.fetch_add(1, Ordering::Relaxed);
    let query = query.unwrap_or_default();
    let ids = query.split('&').filter_map(|pair| pair.split_once('='));
    let statuses: Vec<String> = ids.map(|(_, id)| shown.status.of(id)).collect();
    answer(format!("[{}]", statuses.join(",")))
}

async fn tweets(State(shown): State<Arc<Shown>>, RawQuery(query): RawQuery) -> Response {
    shown.requests.fetch_add(1, Ordering::Relaxed);
    let query = query.unwrap_or_default();
    let parameters: BTreeMap<&str, &str> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .collect();
    let ids = parameters
        .get("ids")
        .copied()
        .unwrap_or_default()
        .replace("%2C", ",");
    let data = ids.split(',').map(|id| {
        json!({
            "id": id, "text": TEXT, "edit_history_tweet_ids": [id], "author_id": "7",
            "conversation_id": id, "created_at": "2025-10-09T08:53:20.000Z", "lang": "en",
            "public_metrics": {
                "retweet_count": 1, "reply_count": 2, "like_count": 3, "quote_count": 0,
                "bookmark_count": 0, "impression_count": 99,
            },
        })
    });
    let users = json!([{ "id": "7", "name": "Ann", "username": "ann" }]);
    let body = json!({ "data": data.collect::<Vec<_>>(), "includes": { "users": users } });
    answer(body.to_string())
}

fn answer(body: String) -> Response {
    let mut headers = limits();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (headers, body).into_response()
}

/// So many requests that none waits.
fn limits() -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-ratelimit-limit", "100000000"),
        ("x-ratelimit-remaining", "99999999"),
        ("x-ratelimit-reset", "4102444800"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
}

const TEXT: &str =
    "The drift line lies where the water was at its highest, and what it brought lies there.";
