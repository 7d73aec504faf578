//! Mastodon's streams, as server-sent events and over WebSockets.

use std::time::Duration;

use driftline_core::{names::audience::Audience, post::Visibility, social::AccountState};
use driftline_db::testing::Fresh;
use driftline_server::testing::OPERATOR_TOKEN;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Message, client::IntoClientRequest as _},
};

use crate::{
    people::{OOB, Person, people_world},
    stream::Events,
    world::{TOKEN, World, number, show, status, with_token},
};

/// How long an event is waited for, whatever else comes: a quiet server pings.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub(crate) async fn open(
        world: &World,
        query: &str,
        protocol: Option<&str>,
    ) -> Result<Socket, u16> {
        let url = world.base.replace("http://", "ws://");
        let mut request = format!("{url}/api/v1/streaming{query}")
            .into_client_request()
            .unwrap();
        if let Some(protocol) = protocol {
            let headers = request.headers_mut();
            headers.insert("sec-websocket-protocol", protocol.parse().unwrap());
        }
        if world.is_operators && protocol.is_none() && !query.contains("access_token=") {
            let token = format!("Bearer {OPERATOR_TOKEN}").parse().unwrap();
            request.headers_mut().insert("authorization", token);
        }
        match connect_async(request).await {
            Ok((socket, _)) => Ok(Socket(socket)),
            Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => {
                Err(answer.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        let text = message.to_string();
        self.0.send(Message::Text(text.into())).await.unwrap();
    }

    /// `None` at its end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let frame = timeout(PATIENCE, self.0.next()).await;
            match frame.expect("a message in time")? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The event and its payload, which may be JSON.
    pub(crate) async fn told(&mut self) -> (Value, Value, Value) {
        let told = timeout(PATIENCE, self.next()).await;
        let told = told.expect("an event in time").expect("a message");
        let payload = told["payload"].as_str().unwrap();
        let status = serde_json::from_str(payload).ok().filter(Value::is_object);
        let parsed = status.unwrap_or_else(|| json!(payload));
        (told["stream"].clone(), told["event"].clone(), parsed)
    }
}

fn edited(id: u64) -> driftline_sim::Status {
    let mut edited = status(id);
    edited.content = "<p>Better</p>".to_owned();
    edited.edited_at_ms = Some(edited.created_at_ms + 5);
    edited
}

#[tokio::test]
async fn what_comes_into_timelines_is_told_over_a_web_socket() {
    let world = World::new().await;
    let mut home = world.feed("home").await;
    let mut away = world.feed("away").await;
    let mut public = Socket::open(&world, "?stream=public", None).await.unwrap();
    let mut list = Socket::open(&world, "", None).await.unwrap();
    let subscribe =
        json!({ "type": "subscribe", "stream": "list", "list": away.source.id.to_string() });
    list.send(&subscribe).await;
    // It is answered in order, so once this is refused the list is subscribed to.
    list.send(&json!({ "type": "subscribe", "stream": "weather" }))
        .await;
    assert_eq!(list.next().await.unwrap()["error"], "Unknown stream type");
    home.poll(&[status(1)]).await;
    let page = world.page("/api/v1/timelines/public").await;
    let told = public.told().await;
    assert_eq!((told.0, told.1), (json!(["public"]), json!("update")));
    assert_eq!(told.2, page[0]);
    // A post that another source has already is not told again in public.
    away.poll(&[status(1), status(2)]).await;
    let own = world.page(&away.path()).await;
    for status in own.iter().rev() {
        let told = list.told().await;
        assert_eq!(told.0, json!(["list", away.source.id.to_string()]));
        assert_eq!((told.1, &told.2), (json!("update"), status));
    }
    let told = public.told().await;
    assert_eq!((told.1, &told.2["id"]), (json!("update"), &own[0]["id"]));
    home.poll(&[edited(1)]).await;
    let told = public.told().await;
    assert_eq!(
        (told.1, &told.2["id"]),
        (json!("status.update"), &page[0]["id"])
    );
    assert_eq!(told.2["content"], "<p>Better</p>");
    home.delete(1).await;
    let told = public.told().await;
    assert_eq!((told.1, &told.2), (json!("delete"), &page[0]["id"]));
}

#[tokio::test]
async fn what_is_not_public_is_told_to_nobody() {
    let world = World::new().await;
    let mut home = world.feed("home").await;
    let mut public = Socket::open(&world, "?stream=public", None).await.unwrap();
    let private = |id| driftline_sim::Status {
        visibility: Visibility::Private,
        ..status(id)
    };
    home.poll(&[private(1)]).await;
    home.delete(1).await;
    home.poll(&[private(1), status(2)]).await;
    let told = public.told().await;
    assert_eq!(
        told.2["id"],
        world.page("/api/v1/timelines/public").await[0]["id"]
    );
}

#[tokio::test]
async fn the_same_is_told_as_server_sent_events() {
    let world = World::new().await;
    let mut home = world.feed("home").await;
    let list = format!("/api/v1/streaming/list?list={}", home.source.id);
    let mut list = Events::at(&world, &list, None).await;
    let mut public = Events::at(&world, "/api/v1/streaming/public", None).await;
    home.poll(&[status(1)]).await;
    let page = world.page(&home.path()).await;
    for stream in [&mut list, &mut public] {
        let told = stream.next().await.unwrap();
        assert_eq!((&*told.name, told.data), ("update", page[0].clone()));
    }
    let unknown = world.answer("/api/v1/streaming/list?list=99").await;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
    let health = world.answer("/api/v1/streaming/health").await;
    assert_eq!(health.text().await.unwrap(), "OK");
    let plain = world.answer("/api/v1/streaming").await;
    assert_eq!(plain.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn lists_need_the_operators_token_here_too() {
    let world = World::of_strangers().await;
    let mut home = world.feed("home").await;
    let list = format!("?stream=list&list={}", home.source.id);
    let refused = Socket::open(&world, &list, None).await;
    assert_eq!(refused.err(), Some(401));
    let wrong = format!("{list}&access_token=another");
    assert_eq!(Socket::open(&world, &wrong, None).await.err(), Some(401));
    let mut stranger = Socket::open(&world, "", None).await.unwrap();
    let id = home.source.id.to_string();
    stranger
        .send(&json!({ "type": "subscribe", "stream": "list", "list": id }))
        .await;
    assert_eq!(stranger.next().await.unwrap()["status"], 401);
    let mut in_query = Socket::open(&world, &format!("{list}&access_token={TOKEN}"), None)
        .await
        .unwrap();
    let mut in_protocol = Socket::open(&world, &list, Some(TOKEN)).await.unwrap();
    home.poll(&[status(1)]).await;
    for socket in [&mut in_query, &mut in_protocol] {
        assert_eq!(socket.told().await.1, json!("update"));
    }
}

#[tokio::test]
async fn a_web_socket_ends_with_the_server() {
    let mut feed = None;
    let world = World::on(Fresh::sqlite(), |app| feed = Some(app.feed.clone())).await;
    let mut socket = Socket::open(&world, "?stream=public", None).await.unwrap();
    feed.unwrap().end();
    assert_eq!(socket.next().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accounts_token_opens_public_streams_and_no_list_that_it_has_not() {
    let (world, _) = people_world(with_token).await;
    world.account("ann").await;
    let app = world.app("toot", crate::people::OOB, "read write").await;
    let reads = world.token(&app, "ann", "read").await;
    let writes = world.token(&app, "ann", "write").await;
    let public = "?stream=public";
    for (query, token, status) in [
        (public, &*reads, None),
        (public, &writes, Some(403)),
        (public, "unknown", Some(401)),
        ("?stream=list&list=1", &reads, Some(404)),
        ("?stream=list&list=1", "unknown", Some(401)),
    ] {
        let opened = Socket::open(&world, query, Some(token)).await;
        assert_eq!(opened.err(), status, "{query} as a protocol");
        let query = format!("{query}&access_token={token}");
        let opened = Socket::open(&world, &query, None).await;
        assert_eq!(opened.err(), status, "{query:.30}");
    }
}

#[tokio::test]
async fn a_home_timeline_and_its_notifications_are_told() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let bob = Person::new(&world, "bob").await;
    let mut feed = world.feed("public").await;
    let mut hidden = world.feed("hidden").await;
    show(&world, &hidden, Audience::Private).await;
    feed.poll(&[status(1), status(2)]).await;
    let followed = ann.look_up("drifter2@sim.example").await;
    ann.post(&format!("/api/v1/accounts/{followed}/follow"))
        .await;
    let query = format!("?stream=user&access_token={}", ann.token);
    let mut socket = Socket::open(&world, &query, None).await.unwrap();
    let mut events = Events::open_with(&world, "/api/v1/streaming/user", &ann.token).await;
    // Neither what others wrote, nor what is hidden, although its author is followed.
    hidden.poll(&[status(12)]).await;
    feed.poll(&[status(3), status(7)]).await;
    let (stream, event, told) = socket.told().await;
    assert_eq!((stream, event), (json!(["user"]), json!("update")));
    assert!(told["uri"].as_str().unwrap().ends_with("/7"), "{told}");
    let first = events.next().await.unwrap();
    assert_eq!(first.name, "update");
    assert_eq!(first.data["uri"], told["uri"]);
    bob.post(&format!("/api/v1/accounts/{}/follow", ann.id))
        .await;
    let (stream, event, told) = socket.told().await;
    assert_eq!((stream, event), (json!(["user"]), json!("notification")));
    assert_eq!(told["account"]["acct"], "bob");
    assert_eq!(events.next().await.unwrap().name, "notification");
    feed.poll(&[edited(7)]).await;
    assert_eq!(socket.told().await.1, "status.update");
    hidden.delete(12).await;
    feed.delete(7).await;
    assert_eq!(socket.told().await.1, "delete");
    // Nobody else's, and nothing without an account.
    for query in ["?stream=user", "?stream=user:notification"] {
        assert_eq!(Socket::open(&world, query, None).await.err(), Some(401));
    }
    // A token that reads posts alone is told no notifications.
    let app = world.app("Reader", OOB, "read:statuses").await;
    let narrow = world.token(&app, "ann", "read:statuses").await;
    let query = format!("?stream=user&access_token={narrow}");
    let mut narrow = Socket::open(&world, &query, None).await.unwrap();
    bob.post(&format!("/api/v1/accounts/{}/unfollow", ann.id))
        .await;
    bob.post(&format!("/api/v1/accounts/{}/follow", ann.id))
        .await;
    assert_eq!(socket.told().await.1, "notification");
    feed.poll(&[status(17)]).await;
    assert_eq!(narrow.told().await.1, "update");
    // Whoever is frozen is told nothing more.
    world.set_state(ann.id, AccountState::Frozen).await;
    while socket.next().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_told_to_its_owner_alone_and_as_it_is_at_that_time() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let ben = Person::new(&world, "ben").await;
    let mut feed = world.feed("public").await;
    feed.poll(&[status(1), status(2), status(3)]).await;
    let two = ann.follow("drifter2@sim.example").await;
    let three = ann.follow("drifter3@far.example").await;
    let list = ann
        .post_json("/api/v1/lists", &json!({ "title": "L" }))
        .await;
    let list = list["id"].as_str().unwrap().to_owned();
    let accounts = format!("/api/v1/lists/{list}/accounts");
    let in_list = |id: &str| json!({ "account_ids": [id] });
    ann.post_json(&accounts, &in_list(&two)).await;

    let query = |token: &str| format!("?stream=list&list={list}&access_token={token}");
    let mut socket = Socket::open(&world, &query(&ann.token), None)
        .await
        .unwrap();
    let path = format!("/api/v1/streaming/list?list={list}");
    let mut events = Events::open_with(&world, &path, &ann.token).await;
    // Nobody else's, in none of the ways to ask for it; as if it were not there.
    let refused = Socket::open(&world, &query(&ben.token), None).await;
    assert_eq!(refused.err(), Some(404));
    let answer = world.get_with(&path, &ben.token).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    let bens = format!("?access_token={}", ben.token);
    let mut bens = Socket::open(&world, &bens, None).await.unwrap();
    for id in [&*list, "77", &feed.source.id.to_string()] {
        bens.send(&json!({ "type": "subscribe", "stream": "list", "list": id }))
            .await;
        let refused = bens.next().await.unwrap();
        assert_eq!((&refused["status"]), &json!(404), "{id}");
    }
    let app = world.app("Reader", OOB, "read:statuses").await;
    let narrow = world.token(&app, "ann", "read:statuses").await;
    let refused = Socket::open(&world, &query(&narrow), None).await;
    assert_eq!(refused.err(), Some(403));

    feed.poll(&[status(6), status(7), status(8)]).await;
    let (stream, event, told) = socket.told().await;
    assert_eq!((stream, event), (json!(["list", list]), json!("update")));
    assert_eq!(number(&told), 7);
    assert_eq!(
        told,
        ann.page(&format!("/api/v1/timelines/list/{list}")).await[0]
    );
    assert_eq!(number(&events.next().await.unwrap().data), 7);
    // Who is added is told of from then on, and who is removed no more.
    ann.post_json(&accounts, &in_list(&three)).await;
    feed.poll(&[status(11), status(13)]).await;
    assert_eq!(number(&socket.told().await.2), 13);
    ann.ok(Method::DELETE, &accounts, &in_list(&two)).await;
    feed.poll(&[status(12), status(18)]).await;
    assert_eq!(number(&socket.told().await.2), 18);
    feed.poll(&[edited(18)]).await;
    assert_eq!(socket.told().await.1, "status.update");
    // Who is followed no more leaves the list, too.
    ann.post_json(&accounts, &in_list(&two)).await;
    let unfollow = format!("/api/v1/accounts/{three}/unfollow");
    ann.post(&unfollow).await;
    feed.poll(&[status(23), status(22)]).await;
    assert_eq!(number(&socket.told().await.2), 22);
    for expected in [13, 18] {
        assert_eq!(number(&events.next().await.unwrap().data), expected);
    }
    assert_eq!(events.next().await.unwrap().name, "status.update");
    assert_eq!(number(&events.next().await.unwrap().data), 22);

    // A list that is gone tells nothing, and the home timeline goes on in the same socket.
    ann.ok(
        Method::DELETE,
        &format!("/api/v1/lists/{list}"),
        &Value::Null,
    )
    .await;
    socket
        .send(&json!({ "type": "subscribe", "stream": "user" }))
        .await;
    socket
        .send(&json!({ "type": "subscribe", "stream": "weather" }))
        .await;
    assert_eq!(socket.next().await.unwrap()["status"], 400);
    feed.poll(&[status(27)]).await;
    let (stream, _, told) = socket.told().await;
    assert_eq!((stream, number(&told)), (json!(["user"]), 27));
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_say_what_the_accounts_filters_match_at_that_time() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let ben = Person::new(&world, "ben").await;
    let mut feed = world.feed("public").await;
    feed.poll(&[status(1), status(2)]).await;
    let two = ann.follow("drifter2@sim.example").await;
    let list = ann
        .post_json("/api/v1/lists", &json!({ "title": "L" }))
        .await;
    let list = list["id"].as_str().unwrap().to_owned();
    let accounts = format!("/api/v1/lists/{list}/accounts");
    ann.post_json(&accounts, &json!({ "account_ids": [two] }))
        .await;

    let all = [
        ("user".to_owned(), &ann),
        ("public".to_owned(), &ann),
        (format!("list&list={list}"), &ann),
        ("public".to_owned(), &ben),
    ];
    let mut sockets = Vec::new();
    for (stream, person) in &all {
        let query = format!("?stream={stream}&access_token={}", person.token);
        sockets.push(Socket::open(&world, &query, None).await.unwrap());
    }
    let mut events = Events::open_with(&world, "/api/v1/streaming/public", &ann.token).await;
    let mut stranger = Socket::open(&world, "?stream=public", None).await.unwrap();
    let mut titles = async |id: u64| {
        feed.poll(&[status(id)]).await;
        let mut titles = Vec::new();
        for ((stream, person), socket) in all.iter().zip(&mut sockets) {
            let told = socket.told().await.2;
            assert_eq!(number(&told), id, "{stream}");
            let page = person.page("/api/v1/timelines/public").await;
            assert_eq!(told["filtered"], page[0]["filtered"], "{stream}");
            let filtered = told["filtered"].as_array().unwrap();
            let title = filtered.first().map(|of| of["filter"]["title"].clone());
            titles.push(title.unwrap_or_default());
        }
        let told = events.next().await.unwrap().data;
        assert_eq!(told["filtered"][0]["filter"]["title"], titles[1]);
        let told = stranger.told().await.2;
        assert!(
            told.get("filtered").is_none_or(|of| *of == json!([])),
            "{told}"
        );
        titles
    };
    let (nothing, cats) = (Value::Null, json!("posts"));
    assert_eq!(titles(7).await, vec![nothing.clone(); 4]);
    let filter = json!({
        "title": "posts", "context": ["home"], "keywords_attributes": [{ "keyword": "post" }],
    });
    let filter = ann.post_json("/api/v2/filters", &filter).await;
    let matched = [&cats, &cats, &cats, &nothing].map(Value::clone);
    assert_eq!(titles(12).await, matched);
    let filter = format!("/api/v2/filters/{}", filter["id"].as_str().unwrap());
    ann.ok(Method::DELETE, &filter, &Value::Null).await;
    assert_eq!(titles(17).await, vec![nothing; 4]);
}
