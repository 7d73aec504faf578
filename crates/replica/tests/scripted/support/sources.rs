//! Libraries of sources: their entries, answers and subscriptions.

use driftline_replica::{ReplicaError, ReplicaPost, Subscription, TimelineQuery};
use serde_json::{Value, json};

use super::{Answer, Device, Request, Server, random};

pub const HOME: &str = "source:3";
pub const NEWS: &str = "source:4";

pub fn uri(name: &str) -> String {
    format!("https://a.example/{name}")
}

/// An entry whose text is the post's name.
pub fn post(name: &str, place: u64) -> Value {
    let account = json!({"id": "7", "acct": "ann@a.example", "display_name": "Hanako"});
    let status = json!({
        "id": place.to_string(), "uri": uri(name), "content": format!("<p>{name}</p>"),
        "created_at": "2026-01-01T00:00:00.000Z", "visibility": "public", "account": account,
    });
    let value = json!({"place": place.to_string(), "status": status});
    json!({"key": format!("post:{}", uri(name)), "usn": "0", "value": value})
}

/// The end of a post.
pub fn gone(name: &str) -> Value {
    json!({"key": format!("post:{}", uri(name)), "usn": "0"})
}

/// The counts of a post that the server takes to be on the device.
pub fn counted(name: &str, place: u64) -> Value {
    let account = json!({"id": "7", "acct": "ann@a.example", "display_name": "Hanako at sea"});
    let value =
        json!({"place": place.to_string(), "update": {"favourites_count": 5}, "account": account});
    json!({"key": format!("post:{}", uri(name)), "usn": "0", "value": value})
}

/// The posts with these numbers, each at the place of its number.
pub fn posts(numbers: impl IntoIterator<Item = u64>) -> Vec<Value> {
    let numbers = numbers.into_iter();
    numbers.map(|n| post(&format!("p{n}"), n)).collect()
}

pub fn part(library: &str, state: &str, cursor: &str, more: bool, objects: &[Value]) -> Value {
    json!({"library": library, "state": state, "cursor": cursor, "more": more, "objects": objects})
}

/// The first answer about the account's library.
pub fn own() -> Value {
    part("account", "full", "c9", false, &[])
}

/// Answers a subscription; the server has these sources.
pub fn then_libraries(server: &Server, sources: &[(&str, &str)]) {
    server.then_news(json!([]));
    let own = json!({"library": "account"});
    let sources = sources
        .iter()
        .map(|(library, source)| json!({"library": library, "source": source}));
    let libraries: Vec<Value> = std::iter::once(own).chain(sources).collect();
    server.then(Answer::Json(200, json!(libraries)));
}

pub(crate) async fn subscribe(
    device: &Device,
    server: &Server,
    names: &[&str],
) -> Result<Vec<Subscription>, ReplicaError> {
    subscribe_with(device, server, names, None).await
}

pub(crate) async fn subscribe_with(
    device: &Device,
    server: &Server,
    names: &[&str],
    filter: Option<&str>,
) -> Result<Vec<Subscription>, ReplicaError> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let replica = device.open().await;
    let client = device.client(server);
    let subscribed = replica
        .subscribe(&client, &names, filter, &mut random)
        .await;
    replica.close().await;
    subscribed
}

/// A device that subscribes to these sources and has these posts of each, at the cursor `s9`.
pub async fn synced(server: &Server, sources: &[(&str, &str, Vec<Value>)]) -> Device {
    let device = Device::made(server).await;
    let names: Vec<(&str, &str)> = sources.iter().map(|of| (of.0, of.1)).collect();
    then_libraries(server, &names);
    let names: Vec<&str> = names.iter().map(|(_, source)| *source).collect();
    let subscribed = subscribe(&device, server, &names).await.unwrap();
    assert_eq!(subscribed.len(), sources.len());
    let parts = sources
        .iter()
        .map(|(library, _, posts)| part(library, "full", "s9", false, posts));
    let news: Vec<Value> = std::iter::once(own()).chain(parts).collect();
    server.then_news(json!(news));
    server.then_news(json!([]));
    device.sync(server).await.unwrap();
    assert_eq!(server.answers_left(), 0);
    server.requests();
    device
}

/// The libraries and cursors of a request.
pub fn libraries(request: &Request) -> Vec<(String, Value)> {
    let request = request.json();
    let libraries = request["libraries"].as_array().unwrap().iter();
    libraries
        .map(|of| {
            let library = of["library"].as_str().unwrap();
            (library.to_owned(), of["cursor"].clone())
        })
        .collect()
}

pub fn at(library: &str, cursor: &str) -> (String, Value) {
    (library.to_owned(), json!(cursor))
}

pub(crate) async fn timeline(
    device: &Device,
    query: TimelineQuery,
) -> Result<Vec<ReplicaPost>, ReplicaError> {
    let replica = device.open().await;
    let posts = replica.timeline(query).await;
    replica.close().await;
    posts
}

/// The names of the posts that a query finds.
pub async fn names(device: &Device, query: TimelineQuery) -> Vec<String> {
    let posts = timeline(device, query).await.unwrap().into_iter();
    posts
        .map(|post| post.uri.unwrap().replace(&uri(""), ""))
        .collect()
}

pub fn all() -> TimelineQuery {
    TimelineQuery {
        limit: 1_000,
        ..TimelineQuery::default()
    }
}

pub fn matching(text: &str) -> TimelineQuery {
    TimelineQuery {
        matching: Some(text.to_owned()),
        ..all()
    }
}
