//! A server that has every post that it is asked for.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    extract::{Path, RawQuery},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::get,
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::runtime::Runtime;

use crate::{failure::Failure, http, pages};

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

    /// The target of a request for posts.
    pub(crate) fn target(self, ids: &[u64]) -> String {
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        match self {
            Self::Single => format!("/api/v1/statuses/{}", ids.concat()),
            Self::Mastodon => format!("/api/v1/statuses?id[]={}", ids.join("&id[]=")),
            Self::X => format!("/2/tweets?ids={}", ids.join(",")),
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
    pub(crate) fn posts(self, answer: &[u8]) -> Result<Vec<(u64, String)>, Failure> {
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
            Self::Single => vec![serde_json::from_slice(answer)?],
            Self::Mastodon => serde_json::from_slice(answer)?,
            Self::X => serde_json::from_slice::<Several<'_>>(answer)?.data,
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
    pub(crate) address: SocketAddr,
    requests: Arc<AtomicU64>,
    _runtime: Runtime,
}

impl Upstream {
    pub(crate) fn start(kind: Kind) -> Result<Self, Failure> {
        let requests = Arc::new(AtomicU64::new(0));
        let status = template()?;
        let count = Arc::clone(&requests);
        // A post's JSON is cut where its ID was.
        let answer = move |ids: &[&str], [open, close]: [&str; 2]| {
            count.fetch_add(1, Ordering::Relaxed);
            let statuses: Vec<String> = ids.iter().map(|id| status.join(id)).collect();
            json_of(format!("{open}{}{close}", statuses.join(",")))
        };
        let (single, count) = (answer.clone(), Arc::clone(&requests));
        let several = async move |RawQuery(query): RawQuery| {
            let query = query.unwrap_or_default();
            let ids: Vec<&str> = query.split(['&', '=']).skip(1).step_by(2).collect();
            match kind {
                Kind::Single => StatusCode::NOT_FOUND.into_response(),
                _ => answer(&ids, ["[", "]"]),
            }
        };
        let tweets = async move |RawQuery(query): RawQuery| {
            count.fetch_add(1, Ordering::Relaxed);
            json_of(tweets(&query.unwrap_or_default()))
        };
        let routes = Router::new()
            .route("/api/v1/statuses", get(several))
            .route(
                "/api/v1/statuses/{id}",
                get(async move |Path(id): Path<String>| single(&[&id], ["", ""])),
            )
            .route("/2/tweets", get(tweets));
        let runtime = http::one_thread()?;
        Ok(Self {
            address: http::serve(&runtime, routes)?,
            requests,
            _runtime: runtime,
        })
    }

    /// The number of requests for posts.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

/// A status of 2 to 3 kB, cut where its ID was.
fn template() -> Result<Arc<[String]>, Failure> {
    let pages = pages::forward(1)?;
    let posts = pages.first().map(|page| Kind::Mastodon.posts(&page.body));
    let post = posts
        .transpose()?
        .and_then(|posts| posts.into_iter().next());
    let (id, json) = post.ok_or_else(|| Failure::new("the simulated world is empty"))?;
    Ok(json.split(&id.to_string()).map(str::to_owned).collect())
}

/// The tweets that a query names.
fn tweets(query: &str) -> String {
    let mut parameters = query.split('&');
    let ids = parameters.find_map(|pair| pair.strip_prefix("ids="));
    let ids = ids.unwrap_or_default().replace("%2C", ",");
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
    json!({ "data": data.collect::<Vec<_>>(), "includes": { "users": users } }).to_string()
}

/// An answer that allows so many requests that none waits.
fn json_of(body: String) -> Response {
    let headers = [
        (CONTENT_TYPE.as_str(), "application/json"),
        ("x-ratelimit-limit", "100000000"),
        ("x-ratelimit-remaining", "99999999"),
        ("x-ratelimit-reset", "4102444800"),
    ];
    (headers, body).into_response()
}

const TEXT: &str =
    "The drift line lies where the water was at its highest, and what it brought lies there.";
