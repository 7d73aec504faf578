//! Lists of X, which know no bounds, read with bounds all the same.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::server::{Reply, Server, answer};
use driftline_core::{
    answer::{Failure, FailureKind, PageRequest},
    api::Api,
};
use driftline_upstream::{Timeline, Upstream};
use serde_json::json;

/// A list of posts 1 to `newest`, of which X shows those above `depth`.
/// Tokens are good while they hold this life's number.
struct List {
    newest: AtomicU64,
    life: AtomicU64,
    depth: u64,
}

impl List {
    async fn start(newest: u64, depth: u64) -> (Arc<Self>, Server) {
        let list = Arc::new(Self {
            newest: AtomicU64::new(newest),
            life: AtomicU64::new(1),
            depth,
        });
        let served = Arc::clone(&list);
        let server = Server::start(move |request| Reply::Bytes(served.answer(request))).await;
        (list, server)
    }

    fn answer(&self, request: &str) -> Vec<u8> {
        let target = request.split(' ').nth(1).unwrap_or_default();
        assert!(target.starts_with("/2/lists/7/tweets?"), "{target}");
        assert!(!target.contains("since_id") && !target.contains("until_id"));
        let parameter = |name: &str| {
            let (_, value) = target.split_once(&format!("{name}="))?;
            value.split('&').next().map(str::to_owned)
        };
        let limit: u64 = parameter("max_results")
            .expect("a limit")
            .parse()
            .expect("a number");
        assert!((1..=100).contains(&limit));
        let life = self.life.load(Ordering::Relaxed);
        let below = match parameter("pagination_token") {
            None => self.newest.load(Ordering::Relaxed) + 1,
            Some(token) => match token.strip_prefix(&format!("life{life}-")) {
                Some(below) => below.parse().expect("a number"),
                None => {
                    let body = r#"{"title":"Invalid Request","detail":"One or more parameters to your request was invalid."}"#;
                    return answer("400 Bad Request", &[], body);
                }
            },
        };
        let end = below.saturating_sub(limit).max(self.depth + 1);
        let data: Vec<_> = (end..below)
            .rev()
            .map(|id| json!({"id": id.to_string()}))
            .collect();
        let mut meta = json!({"result_count": data.len()});
        if end > self.depth + 1 {
            meta["next_token"] = json!(format!("life{life}-{end}"));
        }
        let body = if data.is_empty() {
            json!({ "meta": meta })
        } else {
            json!({ "data": data, "meta": meta })
        };
        answer("200 OK", &[], body.to_string())
    }
}

async fn page(upstream: &Upstream, request: PageRequest) -> Result<Vec<u64>, Failure> {
    let list = Timeline::List("7".into());
    let page = upstream.page(&list, &request).await?;
    let ids = page.listed.iter();
    Ok(ids
        .map(|l| l.position.as_str().parse().expect("a number"))
        .collect())
}

fn since(id: u64, limit: u16) -> PageRequest {
    PageRequest {
        since_id: Some(id.to_string().as_str().into()),
        limit,
        ..PageRequest::default()
    }
}

fn below(id: u64, limit: u16) -> PageRequest {
    PageRequest {
        max_id: Some(id.to_string().as_str().into()),
        limit,
        ..PageRequest::default()
    }
}

fn newest(limit: u16) -> PageRequest {
    PageRequest {
        limit,
        ..PageRequest::default()
    }
}

fn down(from: u64, to: u64) -> Vec<u64> {
    (to..=from).rev().collect()
}

#[tokio::test]
async fn a_page_is_cut_at_since() {
    let (_, server) = List::start(500, 0).await;
    let upstream = server.upstream(Api::X, "");
    assert_eq!(page(&upstream, since(490, 40)).await, Ok(down(500, 491)));
    assert_eq!(page(&upstream, since(500, 40)).await, Ok(vec![]));
    // More than a page is new: the newest page, and a gap below it.
    assert_eq!(page(&upstream, since(100, 40)).await, Ok(down(500, 461)));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_walk_down_takes_one_request_a_page() {
    let (_, server) = List::start(250, 0).await;
    let upstream = server.upstream(Api::X, "");
    assert_eq!(page(&upstream, newest(40)).await, Ok(down(250, 211)));
    for top in [210, 170, 130, 90, 50] {
        let end = top - 39;
        assert_eq!(
            page(&upstream, below(top + 1, 40)).await,
            Ok(down(top, end))
        );
    }
    assert_eq!(page(&upstream, below(11, 40)).await, Ok(down(10, 1)));
    assert_eq!(server.requests().len(), 7);
    // The end of the list is no page of its own: it is asked for from above.
    assert_eq!(page(&upstream, below(1, 40)).await, Ok(vec![]));
    let bounded = PageRequest {
        since_id: Some("195".into()),
        ..below(211, 40)
    };
    assert_eq!(page(&upstream, bounded).await, Ok(down(210, 196)));
}

#[tokio::test]
async fn after_a_restart_it_walks_down_from_the_top() {
    let (list, server) = List::start(1000, 0).await;
    let upstream = server.upstream(Api::X, "");
    assert_eq!(page(&upstream, below(651, 40)).await, Ok(down(650, 611)));
    assert_eq!(server.requests().len(), 4, "pages of 100 down to 601");
    // It goes on from what it passed, whatever is new at the top.
    list.newest.store(1400, Ordering::Relaxed);
    assert_eq!(page(&upstream, below(611, 40)).await, Ok(down(610, 601)));
    assert_eq!(page(&upstream, below(601, 40)).await, Ok(down(600, 561)));
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn where_the_depth_ends_the_page_is_empty() {
    let (_, server) = List::start(1000, 800).await;
    let upstream = server.upstream(Api::X, "");
    assert_eq!(page(&upstream, below(801, 40)).await, Ok(vec![]));
    assert_eq!(page(&upstream, below(500, 40)).await, Ok(vec![]));
    assert_eq!(page(&upstream, below(803, 40)).await, Ok(vec![802, 801]));
}

#[tokio::test]
async fn a_bound_too_deep_for_one_walk_is_reached_by_the_next() {
    let (_, server) = List::start(5000, 0).await;
    let upstream = server.upstream(Api::X, "");
    let failure = page(&upstream, below(1001, 40))
        .await
        .expect_err("too deep");
    assert_eq!(failure.kind, FailureKind::TimedOut);
    assert_eq!(server.requests().len(), 32);
    assert_eq!(page(&upstream, below(1001, 40)).await, Ok(down(1000, 961)));
    assert_eq!(server.requests().len(), 41);
}

#[tokio::test]
async fn a_token_that_is_no_longer_known_is_forgotten() {
    let (list, server) = List::start(250, 0).await;
    let upstream = server.upstream(Api::X, "");
    assert_eq!(page(&upstream, newest(40)).await, Ok(down(250, 211)));
    list.life.store(2, Ordering::Relaxed);
    assert_eq!(page(&upstream, below(211, 40)).await, Ok(down(210, 171)));
    assert_eq!(server.requests().len(), 3, "refused, then from the top");
    assert_eq!(page(&upstream, below(151, 40)).await, Ok(down(150, 111)));
    assert_eq!(server.requests().len(), 4);
    assert_eq!(page(&upstream, below(211, 40)).await, Ok(down(210, 171)));
    assert_eq!(
        server.requests().len(),
        5,
        "the old token is not tried again"
    );
}
