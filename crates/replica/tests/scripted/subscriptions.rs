//! Subscriptions to sources, and a server that answers from a script.

use std::sync::Arc;

use driftline_replica::{
    Direction, ReplicaError, Subscription, SyncContext, SyncProgress, TimelineQuery,
};
use serde_json::{Value, json};

use crate::support::{
    Answer, Device, NOW_MS, ONCE, Request, Server, random,
    sources::{
        HOME, NEWS, all, at, counted, gone, libraries, matching, names, own, part, post, posts,
        subscribe, subscribe_with, synced, then_libraries, timeline, uri,
    },
};

async fn subscriptions(device: &Device) -> Vec<Subscription> {
    let replica = device.open().await;
    let status = replica.status().await.unwrap();
    replica.close().await;
    status.subscriptions
}

#[tokio::test]
async fn an_interrupted_full_sync_is_readable_and_goes_on_at_its_cursor() {
    let server = Server::start();
    let device = Device::made(&server).await;
    then_libraries(&server, &[(HOME, "home")]);
    subscribe(&device, &server, &["home"]).await.unwrap();
    server.requests();
    let newest = part(HOME, "full", "s8", true, &posts([9, 8]));
    server.then_news(json!([own(), newest]));
    server.then(Answer::Lost);
    device.lose_answer(&server).await;
    assert_eq!(names(&device, all()).await, ["p9", "p8"]);
    let [home] = subscriptions(&device).await.try_into().unwrap();
    assert_eq!((home.entries, home.is_complete), (2, false));
    let [first, second] = server.requests().try_into().unwrap();
    let expected = [("account", Value::Null), (HOME, Value::Null)];
    let expected = expected.map(|(library, cursor)| (library.to_owned(), cursor));
    assert_eq!(libraries(&first), expected);
    assert_eq!(libraries(&second), [at("account", "c9"), at(HOME, "s8")]);

    let oldest = part(HOME, "full", "s9", false, &posts([7]));
    server.then_news(json!([oldest]));
    // The changes since the full sync began.
    let mut since = part(HOME, "changes", "s11", false, &posts([10]));
    since["gone"] = json!([gone("p8")]);
    server.then_news(json!([since]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pulled, report.work.removed), (2, 1));
    assert_eq!(names(&device, all()).await, ["p10", "p9", "p7"]);
    let [first, second] = server.requests().try_into().unwrap();
    assert_eq!(libraries(&first), [at("account", "c9"), at(HOME, "s8")]);
    assert_eq!(libraries(&second), [at(HOME, "s9")]);
    let [home] = subscriptions(&device).await.try_into().unwrap();
    assert_eq!((home.entries, home.is_complete), (3, true));
}

#[tokio::test]
async fn an_update_changes_the_stored_post() {
    let server = Server::start();
    let device = synced(&server, &[(HOME, "home", posts([1, 2]))]).await;
    server.then_news(json!([part(
        HOME,
        "changes",
        "s10",
        false,
        &[counted("p1", 1)]
    )]));
    device.sync(&server).await.unwrap();
    let [_, first] = timeline(&device, all()).await.unwrap().try_into().unwrap();
    let status: Value = serde_json::from_str(first.status.get()).unwrap();
    assert_eq!(status["favourites_count"], 5);
    assert_eq!(status["account"]["display_name"], "Hanako at sea");
    assert_eq!(
        (&status["content"], &*first.place),
        (&json!("<p>p1</p>"), "1")
    );

    // Damage: the post is not here, or is at another place.
    for (cursor, unknown) in [("s11", counted("p9", 9)), ("s12", counted("p1", 3))] {
        server.requests();
        server.then_news(json!([part(HOME, "changes", cursor, false, &[unknown])]));
        device.sync(&server).await.unwrap();
        assert_eq!(names(&device, all()).await, ["p2", "p1"]);
        let [home] = subscriptions(&device).await.try_into().unwrap();
        assert!(!home.is_complete);
        server.requests();
        let whole = part(HOME, "full", cursor, false, &posts([1, 2]));
        server.then_news(json!([whole]));
        server.then_news(json!([]));
        device.sync(&server).await.unwrap();
        let [first, _] = server.requests().try_into().unwrap();
        let again = (HOME.to_owned(), Value::Null);
        assert!(
            libraries(&first).contains(&again),
            "{:?}",
            libraries(&first)
        );
        assert!(subscriptions(&device).await[0].is_complete);
    }
}

#[tokio::test]
async fn a_full_sync_ends_with_a_sweep_and_the_brake_counts_entries() {
    let server = Server::start();
    let other = posts([70]);
    let sources = [(HOME, "home", posts(1..=50)), (NEWS, "news", other)];
    let device = synced(&server, &sources).await;
    // The server begins another full sync: 20 posts do not come.
    server.then_news(json!([part(HOME, "full", "t8", true, &posts(36..=50))]));
    server.then(Answer::Lost);
    device.lose_answer(&server).await;
    assert_eq!(names(&device, all()).await.len(), 51);
    server.then_news(json!([part(HOME, "full", "t9", false, &posts(21..=35))]));
    server.then_news(json!([]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(report.work.removed, 20);
    let left = names(&device, all()).await;
    assert_eq!((left.len(), left[0].as_str()), (31, "p70"));

    for is_agreed in [false, true] {
        server.then_news(json!([part(HOME, "full", "u9", false, &posts(46..=50))]));
        if is_agreed {
            server.then_news(json!([]));
        }
        let outcome = device.sync_with(&server, ONCE, is_agreed).await;
        let left = names(&device, all()).await.len();
        match is_agreed {
            false => {
                let error = outcome.unwrap_err();
                let numbers = match &error {
                    ReplicaError::ManyRemoved { removed, all, .. } => (*removed, *all),
                    other => panic!("{other}"),
                };
                assert_eq!((numbers, left), ((25, 30), 31));
                assert!(error.to_string().contains("the source home"), "{error}");
            }
            true => assert_eq!((outcome.unwrap().work.removed, left), (25, 6)),
        }
    }
    assert_eq!(server.answers_left(), 0);
}

#[tokio::test]
async fn a_source_that_is_gone_is_removed_and_not_requested_again() {
    let server = Server::start();
    let sources = [(HOME, "home", posts(1..=50)), (NEWS, "news", posts([70]))];
    let device = synced(&server, &sources).await;
    server.then_news(json!([{"library": HOME, "state": "gone"}]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(report.work.removed, 50);
    assert_eq!(names(&device, all()).await, ["p70"]);
    let states = subscriptions(&device).await.into_iter();
    let states: Vec<(String, usize, bool)> = states
        .map(|of| (of.source, of.entries, of.is_gone))
        .collect();
    let expected = [("home", 0, true), ("news", 1, false)];
    assert_eq!(states, expected.map(|of| (of.0.to_owned(), of.1, of.2)));
    server.requests();
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    let [request] = server.requests().try_into().unwrap();
    assert_eq!(libraries(&request), [at("account", "c9"), at(NEWS, "s9")]);

    // Another source has the name, and is another library.
    then_libraries(&server, &[("source:5", "home"), (NEWS, "news")]);
    subscribe(&device, &server, &["home"]).await.unwrap();
    let libraries = subscriptions(&device).await.into_iter();
    let libraries: Vec<String> = libraries.map(|of| of.library).collect();
    assert_eq!(libraries, ["source:5", NEWS]);
}

#[tokio::test]
async fn forty_libraries_without_news_are_one_request() {
    let server = Server::start();
    let ids: Vec<String> = (100..140).map(|id| format!("source:{id}")).collect();
    let sources: Vec<(&str, &str, Vec<Value>)> = ids
        .iter()
        .map(|id| (id.as_str(), id.as_str(), Vec::new()))
        .collect();
    let device = synced(&server, &sources).await;
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    let [request] = server.requests().try_into().unwrap();
    let own = at("account", "c9");
    let others = ids.iter().map(|id| at(id, "s9"));
    let expected: Vec<(String, Value)> = std::iter::once(own).chain(others).collect();
    assert_eq!(libraries(&request), expected);
}

#[tokio::test]
async fn another_filter_begins_a_full_sync_that_removes_the_rest_without_asking() {
    let server = Server::start();
    let device = synced(&server, &[(HOME, "home", posts(1..=50))]).await;
    then_libraries(&server, &[(HOME, "home")]);
    let subscribed = subscribe_with(&device, &server, &["home"], Some("p1 OR p2")).await;
    let [home] = subscribed.unwrap().try_into().unwrap();
    assert_eq!(home.filter.as_deref(), Some("p1 OR p2"));
    assert_eq!((home.entries, home.is_complete), (50, false));
    server.requests();
    server.then_news(json!([part(HOME, "full", "f8", true, &posts([2]))]));
    server.then_news(json!([part(HOME, "full", "f9", false, &posts([1]))]));
    let mut since = part(HOME, "changes", "f10", false, &[]);
    since["gone"] = json!([gone("p2")]);
    server.then_news(json!([since]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(report.work.removed, 49);
    assert_eq!(names(&device, all()).await, ["p1"]);
    let requests = server.requests();
    let sent = |request: &Request| {
        let request = request.json();
        let libraries = request["libraries"].as_array().unwrap();
        let home = libraries.iter().find(|of| of["library"] == HOME).unwrap();
        (home["cursor"].clone(), home["filter"]["tree"].clone())
    };
    let [first, second, third] = requests
        .iter()
        .map(sent)
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    assert_eq!(
        (&first.0, &second.0, &third.0),
        (&Value::Null, &json!("f8"), &json!("f9"))
    );
    assert!(
        first.1["or"].is_array() && first.1 == second.1 && first.1 == third.1,
        "{first:?}"
    );

    // Later removals are asked about again, and the same filter changes nothing.
    then_libraries(&server, &[(HOME, "home")]);
    let subscribed = subscribe_with(&device, &server, &["home"], Some("p1 OR p2")).await;
    assert!(subscribed.unwrap()[0].is_complete);
    server.then_news(json!([part(HOME, "changes", "f11", false, &posts(1..=50))]));
    device.sync(&server).await.unwrap();
    let mut end = part(HOME, "changes", "f12", false, &[]);
    end["gone"] = (1..=30).map(|n| gone(&format!("p{n}"))).collect();
    server.then_news(json!([end]));
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::ManyRemoved { .. }), "{error}");
}

#[tokio::test]
async fn a_filter_has_only_terms_of_the_post_itself() {
    let server = Server::start();
    let device = Device::made(&server).await;
    for term in ["favourites:>3", "is:followed", "mentions:ann"] {
        let filter = format!("cat {term}");
        let refused = subscribe_with(&device, &server, &["home"], Some(&filter)).await;
        let error = refused.unwrap_err();
        assert!(matches!(error, ReplicaError::Query(_)), "{error}");
        assert!(
            error.to_string().contains(term.split(':').next().unwrap()),
            "{error}"
        );
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_stream_tells_of_the_libraries_that_are_named() {
    let server = Server::start();
    let device = Device::made(&server).await;
    let client = device.client(&server);
    let event = "event: news\ndata: {}\n\n:\n\n";
    server.then(Answer::Events(event));
    let mut news = client.news([HOME, NEWS]).await.unwrap();
    assert!(news.next().await);
    assert!(!news.next().await, "the stream has ended");
    let [request] = server.requests().try_into().unwrap();
    let expected = "/api/driftline/v1/sync/events?library=source%3A3&library=source%3A4";
    assert_eq!(request.path, expected);
    assert!(request.authorization.starts_with("Bearer ") && news.names_all());
    let many: Vec<String> = (0..201).map(|id| format!("source:{id}")).collect();
    server.then(Answer::Events(event));
    let news = client.news(many.iter().map(String::as_str)).await.unwrap();
    assert!(!news.names_all());
    let [request] = server.requests().try_into().unwrap();
    assert_eq!(request.path.matches("library=").count(), 200);
    server.then(Answer::Json(404, json!({"error": "Record not found"})));
    let refused = client.news([]).await;
    assert!(matches!(refused, Err(ReplicaError::NoSync { .. })));
}

#[tokio::test]
async fn a_cursor_that_does_not_advance_is_an_error() {
    let server = Server::start();
    let device = synced(&server, &[(HOME, "home", posts([1]))]).await;
    server.then_news(json!([part(HOME, "changes", "s9", true, &posts([2]))]));
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Malformed { .. }), "{error}");
    assert_eq!(names(&device, all()).await, ["p1"]);
}

#[tokio::test]
async fn an_unknown_name_is_refused_with_the_known_ones() {
    let server = Server::start();
    let device = synced(&server, &[(HOME, "home", posts([1]))]).await;
    then_libraries(&server, &[(HOME, "home"), (NEWS, "news")]);
    let error = subscribe(&device, &server, &["news", "new"]).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("home, news"), "{error}");
    assert_eq!(subscriptions(&device).await.len(), 1);
    let of_other = TimelineQuery {
        source: Some("news".to_owned()),
        ..all()
    };
    let error = timeline(&device, of_other).await.unwrap_err();
    assert!(matches!(error, ReplicaError::NotSubscribed { .. }));
    // Libraries of another server have the same names.
    let other = json!({"server": "5c01", "account": "113", "news": []});
    server.then(Answer::Json(200, other));
    let error = subscribe(&device, &server, &["home"]).await.unwrap_err();
    assert!(matches!(error, ReplicaError::OtherServer { .. }), "{error}");

    let replica = device.open().await;
    let error = replica.unsubscribe("news").await.unwrap_err();
    assert!(error.to_string().contains("but to home"), "{error}");
    assert!(replica.unsubscribe("home").await.unwrap().is_empty());
    replica.close().await;
    assert!(names(&device, all()).await.is_empty());
}

#[tokio::test]
async fn a_subscription_that_is_made_again_during_a_sync_begins_again() {
    let server = Server::start();
    let device = Arc::new(synced(&server, &[(HOME, "home", posts([1]))]).await);
    server.then_news(json!([part(HOME, "changes", "s10", true, &posts([2]))]));
    let subscribing = Arc::clone(&device);
    server.meanwhile(async move || {
        // The other server is busy with the sync.
        let server = Server::start();
        let replica = subscribing.open().await;
        assert!(replica.unsubscribe("home").await.unwrap().is_empty());
        replica.close().await;
        then_libraries(&server, &[(HOME, "home")]);
        subscribe(&subscribing, &server, &["home"]).await.unwrap();
    });
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pulled, report.work.requests), (0, 1));
    assert!(names(&device, all()).await.is_empty());
    server.requests();

    server.then_news(json!([part(HOME, "full", "s11", false, &posts([1, 2]))]));
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    let [first, _] = server.requests().try_into().unwrap();
    let expected = [at("account", "c9"), (HOME.to_owned(), Value::Null)];
    assert_eq!(libraries(&first), expected);
    assert_eq!(names(&device, all()).await, ["p2", "p1"]);
}

#[tokio::test]
async fn an_answer_that_was_requested_before_a_subscription_ended_is_dropped() {
    let server = Server::start();
    let device = Arc::new(synced(&server, &[(HOME, "home", posts([1]))]).await);
    server.then_news(json!([part(HOME, "changes", "s10", true, &posts([2]))]));
    let unsubscribing = Arc::clone(&device);
    server.meanwhile(async move || {
        let replica = unsubscribing.open().await;
        assert!(replica.unsubscribe("home").await.unwrap().is_empty());
        replica.close().await;
    });
    server.then_news(json!([part(HOME, "changes", "s11", false, &posts([3]))]));
    let pulled = device.sync_only(&server, Direction::Pull).await;
    let work = pulled.unwrap().work;
    assert_eq!((work.pulled, work.requests), (0, 2));
    assert_eq!(server.answers_left(), 0);
    assert!(names(&device, all()).await.is_empty());
}

#[tokio::test]
async fn the_number_of_objects_that_are_to_come_outlives_an_interruption() {
    let server = Server::start();
    let device = Device::made(&server).await;
    then_libraries(&server, &[(HOME, "home"), (NEWS, "news")]);
    let names = ["home", "news"];
    subscribe(&device, &server, &names).await.unwrap();
    let first = |library: &str, numbers: [u64; 2], count: u64| {
        let mut part = part(library, "full", "s8", true, &posts(numbers));
        part["first"] = json!(true);
        part["count"] = json!(count);
        part
    };
    server.then_news(json!([
        own(),
        first(HOME, [9, 8], 5),
        first(NEWS, [7, 6], 3)
    ]));
    server.then(Answer::Lost);
    assert_eq!(left_after_each_answer(&device, &server).await, [Some(4)]);

    let home = part(HOME, "full", "s7", true, &posts([5, 4]));
    server.then_news(json!([home, part(NEWS, "full", "s9", false, &posts([3]))]));
    server.then_news(json!([part(HOME, "full", "s9", false, &posts([2]))]));
    server.then_news(json!([]));
    let left = left_after_each_answer(&device, &server).await;
    assert_eq!(left, [Some(1), Some(0), Some(0)]);
    assert_eq!(server.answers_left(), 0);
}

/// Pulls, and returns the number of objects that were still to come after each answer.
async fn left_after_each_answer(device: &Device, server: &Server) -> Vec<Option<u64>> {
    let replica = device.open().await;
    let (mut random, mut left) = (random, Vec::new());
    let mut progress = |work: &SyncProgress| {
        // The index follows the answers.
        if work.indexed == 0 {
            left.push(work.objects_left);
        }
    };
    let mut context = SyncContext {
        progress: Some(&mut progress),
        ..SyncContext::new(NOW_MS, &mut random)
    };
    let client = device.client(server);
    // The last answer may be lost.
    let _ = replica.sync(&client, &mut context, Direction::Pull).await;
    replica.close().await;
    left
}

#[tokio::test]
async fn ids_of_different_servers_are_not_taken_for_one_post() {
    let server = Server::start();
    let with_id = |place: u64, text: &str| {
        let account = json!({"id": "7", "acct": "ann@a.example"});
        let status = json!({
            "id": place.to_string(), "uri": null, "content": format!("<p>{text}</p>"),
            "created_at": "2026-01-01T00:00:00.000Z", "visibility": "public", "account": account,
        });
        let value = json!({"place": place.to_string(), "status": status});
        json!({"key": "post:upstream:12", "usn": "0", "value": value})
    };
    let sources = [
        (HOME, "home", vec![with_id(9, "cat")]),
        (NEWS, "news", vec![with_id(8, "dog")]),
    ];
    let device = synced(&server, &sources).await;
    let below = TimelineQuery {
        below: Some(9),
        ..all()
    };
    for (query, expected) in [(all(), "cat dog"), (below, "dog")] {
        let posts = timeline(&device, query).await.unwrap();
        let texts: Vec<&str> = posts.iter().map(|post| post.text.as_str()).collect();
        assert_eq!(texts.join(" "), expected);
    }
}

#[tokio::test]
async fn posts_are_read_once_with_their_marks_and_found() {
    let server = Server::start();
    let home = vec![post("cat", 9), post("dog", 6), post("bird", 5)];
    let news = vec![post("fish", 8), post("dog", 7), post("cat", 4)];
    let sources = [(HOME, "home", home), (NEWS, "news", news)];
    let device = synced(&server, &sources).await;
    assert_eq!(names(&device, all()).await, ["cat", "fish", "dog", "bird"]);
    let page = |below: i64, limit: usize| TimelineQuery {
        below: Some(below),
        limit,
        ..all()
    };
    assert_eq!(names(&device, page(9, 2)).await, ["fish", "dog"]);
    // The other places of the dog and the cat are below.
    assert_eq!(names(&device, page(7, 2)).await, ["bird"]);
    let of_news = TimelineQuery {
        source: Some("news".to_owned()),
        ..all()
    };
    assert_eq!(names(&device, of_news).await, ["fish", "dog", "cat"]);

    device
        .edit(&format!("bookmark:{}", uri("dog")), Some(json!({})))
        .await;
    let note = Some(json!({"text": "to read"}));
    device.edit(&format!("note:{}", uri("fish")), note).await;
    let posts = timeline(&device, all()).await.unwrap();
    let marks: Vec<(bool, Option<&str>)> = posts
        .iter()
        .map(|post| (post.bookmarked, post.note.as_deref()))
        .collect();
    let plain = (false, None);
    assert_eq!(
        marks,
        [plain, (false, Some("to read")), (true, None), plain]
    );
    assert_eq!(
        (posts[2].place.as_str(), posts[2].source.as_str()),
        ("7", "news")
    );
    assert_eq!(posts[0].author, "ann@a.example");
    assert_eq!(posts[0].text, "cat");

    for (text, expected) in [
        ("cat OR fish", "cat fish"),
        ("from:ann@a.example -dog", "cat fish bird"),
        ("hanako bird", "bird"),
        ("after:2026-01-01", ""),
        ("during:2026-01-01 =dog", "dog"),
    ] {
        let found = names(&device, matching(text)).await;
        assert_eq!(found.join(" "), expected, "{text}");
    }
    for refused in ["cat (dog", "favourites:>1", "is:followed", "source:home"] {
        let error = timeline(&device, matching(refused)).await.unwrap_err();
        assert!(
            matches!(error, ReplicaError::Query(_)),
            "{refused}: {error}"
        );
    }
}

#[tokio::test]
async fn bookmarked_posts_are_found_without_their_source() {
    let server = Server::start();
    let device = synced(&server, &[(HOME, "home", posts(1..=2))]).await;
    let bookmark = |name: &str, usn: u64, value: Value| {
        let key = format!("bookmark:{}", uri(name));
        json!({"key": key, "usn": usn.to_string(), "value": value})
    };
    let copy = |name: &str| {
        let status = post(name, 50)["value"]["status"].clone();
        json!({"post": "50", "added": "51", "status": status})
    };
    let bookmarks = [
        bookmark("p1", 11, copy("p1")),
        bookmark("elsewhere", 12, copy("elsewhere")),
        bookmark("hidden", 13, json!({"added": "52"})),
    ];
    server.then_news(json!([part(
        "account", "changes", "c13", false, &bookmarks
    )]));
    device.sync(&server).await.unwrap();
    let all_posts = || matching("from:ann@a.example");
    assert_eq!(names(&device, all()).await, ["p2", "p1"]);
    assert_eq!(names(&device, all_posts()).await, ["p2", "p1", "elsewhere"]);
    assert_eq!(names(&device, matching("elsewhere")).await, ["elsewhere"]);
    let two = TimelineQuery {
        limit: 2,
        ..all_posts()
    };
    assert_eq!(names(&device, two).await, ["p2", "p1"]);
    let one = TimelineQuery {
        limit: 1,
        ..matching("elsewhere")
    };
    assert_eq!(names(&device, one).await, ["elsewhere"]);
    let found = timeline(&device, matching("elsewhere")).await.unwrap();
    let found = (found[0].bookmarked, found[0].source.as_str());
    assert_eq!(found, (true, ""));
    let replica = device.open().await;
    let objects = replica.objects(Some("bookmark")).await.unwrap();
    replica.close().await;
    let texts: Vec<Option<&str>> = objects
        .iter()
        .map(|object| Some(object.copy.as_ref()?.text.as_str()))
        .collect();
    assert_eq!(texts, [Some("elsewhere"), None, Some("p1")]);

    // The account may not see it any more.
    let lost = [bookmark("elsewhere", 14, json!({"added": "51"}))];
    server.then_news(json!([part("account", "changes", "c14", false, &lost)]));
    device.sync(&server).await.unwrap();
    assert_eq!(names(&device, all_posts()).await, ["p2", "p1"]);
    assert_eq!(device.objects().await.len(), 3);
}
