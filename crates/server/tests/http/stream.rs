//! Server-sent events: whoever goes on at its last ID misses nothing and gets nothing twice.

use std::time::Duration;

use driftline_db::testing::Fresh;
use reqwest::{
    RequestBuilder, Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use serde_json::Value;
use tokio::time::timeout;

use crate::world::{World, status};

/// A client of server-sent events.
pub(crate) struct Events {
    response: Response,
    text: String,
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Events {
    async fn of(world: &World, query: &str, last: Option<&str>) -> Events {
        Events::at(world, &format!("/api/v1/stream/posts{query}"), last).await
    }

    pub(crate) async fn at(world: &World, path: &str, last: Option<&str>) -> Events {
        let mut request = world.client.get(format!("{}{path}", world.base));
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        Events::from(request).await
    }

    /// With a token.
    pub(crate) async fn open_with(world: &World, path: &str, token: &str) -> Events {
        let request = world.client.get(format!("{}{path}", world.base));
        Events::from(request.bearer_auth(token)).await
    }

    async fn from(request: RequestBuilder) -> Events {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
        assert_eq!(response.headers().get(CONTENT_ENCODING), None);
        let text = String::new();
        Events { response, text }
    }

    /// The next event; comments are none.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let lines = event.lines();
                    let mut values = lines.filter_map(|line| line.strip_prefix(name));
                    values.next().unwrap_or_default().to_owned()
                };
                let event = Event {
                    id: field("id: "),
                    name: field("event: "),
                    data: serde_json::from_str(&field("data: ")).unwrap_or_default(),
                };
                self.text = rest.to_owned();
                return Some(event);
            }
            let chunk = timeout(Duration::from_secs(90), self.response.chunk());
            let chunk = chunk.await.expect("an event in time").ok()??;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The names and the posts of the next events, and the last ID.
    async fn told(&mut self, count: usize) -> (Vec<(String, String)>, String) {
        let (mut told, mut last) = (Vec::new(), String::new());
        while told.len() < count {
            let event = self.next().await.expect("an event");
            last = event.id;
            if event.name != "position" {
                let post = event.data["post"]["upstream_id"].as_str().unwrap();
                assert_eq!(event.data["event"], *event.name);
                told.push((event.name, post.to_owned()));
            }
        }
        (told, last)
    }
}

fn new(ids: impl IntoIterator<Item = u64>) -> Vec<(String, String)> {
    let ids = ids.into_iter();
    ids.map(|id| ("new".to_owned(), id.to_string())).collect()
}

#[tokio::test]
async fn posts_are_told_as_they_are_stored() {
    let world = World::new().await;
    let mut home = world.feed("home").await;
    let mut away = world.feed("away").await;
    let mut all = Events::of(&world, "?events=new,edit,delete", None).await;
    let mut one = Events::of(&world, "?source=away", None).await;
    assert_eq!(all.next().await.unwrap().name, "position");
    home.poll(&[status(1), status(2)]).await;
    away.poll(&[status(7)]).await;
    assert_eq!(one.told(1).await.0, new([7]));
    let mut told = all.told(3).await.0;
    told.sort();
    assert_eq!(told, new([1, 2, 7]));
    let mut edited = status(2);
    edited.content = "<p>Better</p>".to_owned();
    edited.edited_at_ms = Some(edited.created_at_ms + 5);
    home.poll(&[status(1), edited]).await;
    home.delete(1).await;
    let event = all.next().await.unwrap();
    assert_eq!(event.name, "edit");
    assert_eq!(event.data["post"]["status"]["content"], "<p>Better</p>");
    assert_eq!(event.data["source"], "home");
    let event = all.next().await.unwrap();
    assert_eq!(
        (&*event.name, &event.data["post"]["status"]),
        ("delete", &Value::Null)
    );
}

#[tokio::test]
async fn a_client_that_comes_back_misses_nothing() {
    let world = World::new().await;
    let mut home = world.feed("home").await;
    home.poll(&[status(1)]).await;
    let mut events = Events::of(&world, "", None).await;
    // It has an ID before anything was told.
    let first = events.next().await.unwrap();
    assert_eq!(first.data["position"], *first.id);
    drop(events);
    home.poll(&(1..=3).map(status).collect::<Vec<_>>()).await;
    let mut events = Events::of(&world, "", Some(&first.id)).await;
    let (told, last) = events.told(2).await;
    assert_eq!(told, new([2, 3]));
    drop(events);
    // A source that is added meanwhile loses nothing either.
    let mut later = world.feed("later").await;
    later.poll(&[status(50)]).await;
    home.poll(&(3..=250).map(status).collect::<Vec<_>>()).await;
    let mut events = Events::of(&world, "", Some(&last)).await;
    let (mut told, last) = events.told(248).await;
    told.sort_by_key(|(_, id)| id.parse::<u64>().unwrap());
    let mut expected: Vec<u64> = (4..=250).chain([50]).collect();
    expected.sort_unstable();
    assert_eq!(told, new(expected));
    let mut again = Events::of(&world, "?since=start", Some(&last)).await;
    home.poll(&[status(251)]).await;
    assert_eq!(again.told(1).await.0, new([251]));
}

#[tokio::test]
async fn a_client_that_reads_slowly_misses_nothing() {
    let world = World::new().await;
    let mut home = world.feed("home").await;
    let mut events = Events::of(&world, "", None).await;
    // More batches than are kept for those who are behind; nobody gets to read meanwhile, since each
    // poll blocks the one thread of this test.
    let polls = async {
        for id in 1..=300 {
            home.poll(&[status(id), status(id + 1)]).await;
        }
    };
    tokio::task::unconstrained(polls).await;
    assert_eq!(events.told(301).await.0, new(1..=301));
}

#[tokio::test]
async fn streams_end_with_the_server() {
    let mut feed = None;
    let world = World::on(Fresh::sqlite(), |app| feed = Some(app.feed.clone())).await;
    let mut events = Events::of(&world, "", None).await;
    assert!(events.next().await.is_some());
    feed.unwrap().end();
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn what_cannot_be_followed_is_refused() {
    let world = World::new().await;
    let home = world.feed("home").await;
    for (query, word) in [
        ("?source=nobody", "nobody"),
        ("?events=old", "old"),
        ("?since=yesterday", "yesterday"),
        (&*format!("?since={}:99", home.source.id), "ahead"),
        ("?history=maybe", "history"),
    ] {
        let answer = world.answer(&format!("/api/v1/stream/posts{query}")).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{query}");
        let text = answer.text().await.unwrap();
        assert!(text.contains(word), "{query}: {text}");
    }
}
