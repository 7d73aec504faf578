//! Lists whose posts a predicate selects.

use driftline_api::transport::Address;
use driftline_core::{names::audience::Audience, social::AccountState};
use driftline_server::bells::Bells;
use driftline_store::{Root, StoreError, edited_post};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    people::{OOB, Person, people_world},
    search::{read, written},
    streaming::Socket,
    world::{World, numbers, show},
};

async fn save(person: &Person, predicate: &str) -> Value {
    let body = json!({ "title": "Quakes", "predicate": predicate });
    person.post_json("/api/v1/lists", &body).await
}

fn path_of(list: &Value, route: &str) -> String {
    route.replace("ID", list["id"].as_str().unwrap())
}

async fn json_feed(world: &World, path: &str) -> Value {
    let answer = world.answer(path).await;
    let kind = answer.headers()["content-type"].to_str().unwrap();
    assert_eq!(kind, "application/feed+json; charset=utf-8");
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

fn quakes(numbers: impl IntoIterator<Item = u64>) -> Vec<driftline_core::post::Post> {
    let posts = numbers.into_iter().map(|n| match n % 2 {
        0 => written(n, "<p>犬です</p>"),
        _ => written(n, "<p>地震です</p>"),
    });
    posts.map(|status| read(&status)).collect()
}

#[tokio::test]
async fn a_saved_predicate_is_a_list_with_its_posts() {
    let (world, _) = people_world(|_| {}).await;
    let [ann, ben] = [
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    ];
    let mut feed = world.feed("public").await;
    feed.poll_posts(quakes(1..=6)).await;
    let list = save(&ann, "地震 -from:me").await;
    assert_eq!(list["title"], "Quakes");
    let host = world.base.strip_prefix("http://").unwrap();
    assert_eq!(list["predicate"], format!("地震 -author:ann@{host}"));
    assert_eq!(ann.get("/api/v1/lists").await, json!([list]));
    let timeline = path_of(&list, "/api/v1/timelines/list/ID");
    assert_eq!(numbers(&ann.page(&timeline).await), [5, 3, 1]);
    let first = ann.page(&format!("{timeline}?limit=1")).await;
    let older = format!(
        "{timeline}?limit=1&max_id={}",
        first[0]["id"].as_str().unwrap()
    );
    assert_eq!(numbers(&ann.page(&older).await), [3]);
    feed.poll_posts(quakes([7, 8])).await;
    let newer = format!("{timeline}?min_id={}", first[0]["id"].as_str().unwrap());
    assert_eq!(numbers(&ann.page(&newer).await), [7]);
    assert_eq!(
        numbers(&ann.page(&format!("{timeline}?only_media=true")).await),
        [0; 0]
    );

    // Another account has no such list.
    let (status, _) = ben.send(Method::GET, &timeline, &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);

    // It has no accounts, and none are added.
    let accounts = path_of(&list, "/api/v1/lists/ID/accounts");
    assert_eq!(ann.get(&accounts).await, json!([]));
    let author = ann.follow("ann@sim.example").await;
    let body = json!({ "account_ids": [author] });
    let (status, answer) = ann.send(Method::POST, &accounts, &body).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");

    // A new title and a new predicate keep its ID.
    let path = path_of(&list, "/api/v1/lists/ID");
    let renamed = ann.ok(Method::PUT, &path, &json!({ "title": "犬" })).await;
    assert_eq!(
        (&renamed["id"], &renamed["title"]),
        (&list["id"], &json!("犬"))
    );
    assert_eq!(renamed["predicate"], list["predicate"]);
    let changed = ann
        .ok(Method::PUT, &path, &json!({ "predicate": "犬" }))
        .await;
    assert_eq!(changed["predicate"], "犬");
    assert_eq!(numbers(&ann.page(&timeline).await), [8, 6, 4, 2]);
    ann.ok(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(ann.get("/api/v1/lists").await, json!([]));
}

#[tokio::test]
async fn a_predicate_that_cannot_be_kept_is_refused_with_its_reason() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let plain = ann
        .post_json("/api/v1/lists", &json!({ "title": "L" }))
        .await;
    assert_eq!(plain.get("predicate"), None);
    let plain = path_of(&plain, "/api/v1/lists/ID");
    for (method, path, predicate, reason) in [
        (Method::POST, "/api/v1/lists", "cat (dog", "column 5"),
        (
            Method::POST,
            "/api/v1/lists",
            "favourites:>3",
            "saved timeline",
        ),
        (
            Method::POST,
            "/api/v1/lists",
            "is:followed",
            "saved timeline",
        ),
        (Method::PUT, &plain, "cat", "accounts"),
    ] {
        let body = json!({ "title": "L", "predicate": predicate });
        let (status, answer) = ann.send(method, path, &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(reason), "{predicate}: {error}");
    }
}

/// Each list has the posts that its owner may read, at the owner's places.
#[tokio::test]
async fn a_predicate_of_a_newer_version_pauses_its_list_alone() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    let [list, other] = [save(&ann, "地震").await, save(&ann, "犬").await];
    let [path, timeline, accounts, feed_path] = [
        "/api/v1/lists/ID",
        "/api/v1/timelines/list/ID",
        "/api/v1/lists/ID/accounts",
        "/api/driftline/v1/lists/ID/feed",
    ]
    .map(|route| path_of(&list, route));
    ann.ok(Method::PUT, &path, &json!({ "notify": true })).await;
    let addresses = ann.post(&feed_path).await;
    let address = addresses["json"].as_str().unwrap();
    let address = address.strip_prefix(&world.base).unwrap();
    let written = world.store.write(Root::none(), |tx| {
        let json = r#"{"folding":9,"tree":{"near":[]}}"#;
        tx.execute(
            "update list set predicate = $1 where predicate like '%地震%'",
            &[&json],
        )?;
        Ok::<_, StoreError>(())
    });
    written.await.unwrap();

    let lists = ann.get("/api/v1/lists").await;
    assert_eq!(lists[1], other);
    assert_eq!(lists[0].get("predicate"), None);
    let reason = lists[0]["predicate_error"].as_str().unwrap();
    assert!(reason.contains("near") || reason.contains('9'), "{reason}");
    let (status, answer) = ann.send(Method::GET, &timeline, &Value::Null).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        answer["error"].as_str().unwrap().contains(reason),
        "{answer}"
    );
    // Notifications and the feed pause.
    feed.poll_posts(quakes([1])).await;
    Bells::new(world.store.clone(), Address::local())
        .ring_all()
        .await
        .unwrap();
    assert!(ann.page("/api/v1/notifications").await.is_empty());
    assert_eq!(world.answer(address).await.status(), StatusCode::NOT_FOUND);
    // Another title keeps the predicate, and accounts are refused as before.
    let renamed = json!({ "title": "Later" });
    let renamed = ann.ok(Method::PUT, &path, &renamed).await;
    assert_eq!(renamed["predicate_error"], reason);
    assert_eq!(renamed["notify"], true);
    assert_eq!(ann.get("/api/v1/lists").await[0], renamed);
    let author = ann.follow("ann@sim.example").await;
    let body = json!({ "account_ids": [author] });
    let (status, _) = ann.send(Method::POST, &accounts, &body).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    // Another predicate takes its place.
    let replaced = json!({ "predicate": "地震" });
    let replaced = ann.ok(Method::PUT, &path, &replaced).await;
    assert_eq!(replaced["predicate"], "地震");
    assert_eq!(replaced.get("predicate_error"), None);
    assert_eq!(numbers(&ann.page(&timeline).await), [1]);
}

#[tokio::test]
async fn a_saved_timeline_shows_what_its_owner_may_read() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.new_feed("hidden").await;
    feed.poll_posts(quakes([1, 3])).await;
    show(&world, &feed, Audience::Private).await;
    let list = save(&ann, "地震").await;
    let timeline = path_of(&list, "/api/v1/timelines/list/ID");
    assert_eq!(numbers(&ann.page(&timeline).await), [0; 0]);
    show(&world, &feed, Audience::Members).await;
    assert_eq!(numbers(&ann.page(&timeline).await), [3, 1]);
}

/// A stream of such a list has its new posts, and the deletion of a post that an edit takes out of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_follows_a_saved_timeline() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    feed.poll_posts(quakes([1])).await;
    let list = save(&ann, "地震").await;
    let query = path_of(
        &list,
        &format!("?stream=list&list=ID&access_token={}", ann.token),
    );
    let mut socket = Socket::open(&world, &query, None).await.unwrap();
    feed.poll_posts(quakes([2, 3])).await;
    let (_, event, shown) = socket.told().await;
    assert_eq!(
        (event, &shown["id"]),
        (
            json!("update"),
            &ann.page(&path_of(&list, "/api/v1/timelines/list/ID")).await[0]["id"]
        )
    );
    let edited = |html: &str, at: &str| {
        let mut status = written(3, html);
        status["edited_at"] = json!(at);
        vec![read(&status)]
    };
    feed.poll_posts(edited("<p>地震でした</p>", "2026-02-03T05:00:00.000Z"))
        .await;
    assert_eq!(socket.told().await.1, "status.update");
    feed.poll_posts(edited("<p>犬でした</p>", "2026-02-03T06:00:00.000Z"))
        .await;
    let (_, event, gone) = socket.told().await;
    assert_eq!((event, gone), (json!("delete"), shown["id"].clone()));
    feed.poll_posts(quakes([4, 5])).await;
    assert_eq!(
        socket.told().await.2["id"],
        ann.page(&path_of(&list, "/api/v1/timelines/list/ID")).await[0]["id"]
    );
}

/// A stream that shows nothing because its list has an unreadable predicate is refused with the reason, and one that
/// was open before ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_a_list_with_an_unreadable_predicate_is_refused() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    let list = save(&ann, "地震").await;
    let token = format!("?access_token={}", ann.token);
    let query = format!("{token}{}", path_of(&list, "&stream=list&list=ID"));
    let mut open = Socket::open(&world, &query, None).await.unwrap();
    let written = world.store.write(Root::none(), |tx| {
        let json = r#"{"folding":9,"tree":{"near":[]}}"#;
        tx.execute("update list set predicate = $1", &[&json])?;
        Ok::<_, StoreError>(())
    });
    written.await.unwrap();
    feed.poll_posts(quakes([1])).await;
    assert_eq!(open.next().await, None);

    assert_eq!(Socket::open(&world, &query, None).await.err(), Some(422));
    let route = path_of(&list, "/api/v1/streaming/list?list=ID");
    let (status, answer) = ann.send(Method::GET, &route, &Value::Null).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let reason = answer["error"].as_str().unwrap();
    assert!(reason.contains("cannot be read"), "{reason}");
    // A socket keeps its other streams. It answers in order, so the first one has begun by then.
    let mut socket = Socket::open(&world, &token, None).await.unwrap();
    for stream in ["public", "list"] {
        let subscribe = json!({ "type": "subscribe", "stream": stream, "list": list["id"] });
        socket.send(&subscribe).await;
    }
    let refused = json!({ "error": reason, "status": 422 });
    assert_eq!(socket.next().await, Some(refused));
    feed.poll_posts(quakes([2])).await;
    assert_eq!(socket.told().await.1, "update");
}

/// A post that an edit brings into a list stands above the posts that were there, at an ID of its own, by which it
/// is found. It leaves and returns with later edits.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_brings_a_post_into_a_saved_timeline() {
    const NOTIFICATIONS: &str = "/api/v1/notifications";
    let (world, _) = people_world(|_| {}).await;
    let [ann, ben] = [
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    ];
    let mut feed = world.feed("public").await;
    feed.poll_posts(quakes(1..=4)).await;
    let list = save(&ann, "地震").await;
    let path = path_of(&list, "/api/v1/lists/ID");
    ann.ok(Method::PUT, &path, &json!({ "notify": true })).await;
    let timeline = path_of(&list, "/api/v1/timelines/list/ID");
    let newest = ann.page(&timeline).await[0]["id"].clone();
    let query = path_of(
        &list,
        &format!("?stream=list&list=ID&access_token={}", ann.token),
    );
    let mut socket = Socket::open(&world, &query, None).await.unwrap();
    let mut bells = Bells::new(world.store.clone(), Address::local());
    let edited = |html: &str, hour: u8| {
        let mut status = written(2, html);
        status["edited_at"] = json!(format!("2026-02-03T{hour:02}:00:00.000Z"));
        vec![read(&status)]
    };
    feed.poll_posts(edited("<p>地震になりました</p>", 5)).await;
    bells.ring_all().await.unwrap();
    let page = ann.page(&timeline).await;
    assert_eq!(numbers(&page), [2, 3, 1]);
    let entry = page[0]["id"].as_str().unwrap();
    let newer = format!("{timeline}?min_id={}", newest.as_str().unwrap());
    assert_eq!(numbers(&ann.page(&newer).await), [2]);
    let older = format!("{timeline}?limit=1&max_id={entry}");
    assert_eq!(numbers(&ann.page(&older).await), [3]);
    let (_, event, shown) = socket.told().await;
    assert_eq!((event, &shown["id"]), (json!("update"), &json!(entry)));
    let found = ann.page(NOTIFICATIONS).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["status"]["uri"], "https://sim.example/2");

    // The ID is the list owner's.
    let route = format!("/api/v1/statuses/{entry}");
    assert_eq!(ann.get(&route).await["id"], entry);
    let (status, _) = ben.send(Method::GET, &route, &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    ann.post(&format!("{route}/favourite")).await;
    assert_eq!(ann.page(&timeline).await[0]["favourited"], true);

    // Another edit leaves it there; one that ends the match takes it out.
    feed.poll_posts(edited("<p>地震でした</p>", 6)).await;
    let (_, event, shown) = socket.told().await;
    assert_eq!(
        (event, &shown["id"]),
        (json!("status.update"), &json!(entry))
    );
    bells.ring_all().await.unwrap();
    assert_eq!(ann.page(&timeline).await[0]["id"], entry);
    feed.poll_posts(edited("<p>犬でした</p>", 7)).await;
    assert_eq!(socket.told().await.1, "delete");
    assert_eq!(numbers(&ann.page(&timeline).await), [3, 1]);

    // Within an hour it returns to the same place, and notifies nobody again.
    feed.poll_posts(edited("<p>また地震</p>", 8)).await;
    bells.ring_all().await.unwrap();
    assert_eq!(ann.page(&timeline).await[0]["id"], entry);
    assert_eq!(ann.page(NOTIFICATIONS).await.len(), 1);

    // Another predicate begins a new timeline.
    let change = json!({ "predicate": "地震 OR 犬" });
    ann.ok(Method::PUT, &path, &change).await;
    assert_eq!(numbers(&ann.page(&timeline).await), [4, 3, 2, 1]);
    let (status, _) = ann.send(Method::GET, &route, &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

/// A list that cannot be compared with edited posts keeps them for the others for some turns only. Later it takes part
/// again.
#[tokio::test]
async fn a_list_that_fails_holds_up_no_other() {
    let (world, _) = people_world(|_| {}).await;
    let [ann, ben] = [
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    ];
    let mut feed = world.feed("public").await;
    feed.poll_posts(quakes(1..=6)).await;
    let [failing, other] = [save(&ann, "地震").await, save(&ben, "地震").await]
        .map(|list| path_of(&list, "/api/v1/timelines/list/ID"));
    let edited = |number: u64, hour: u8| {
        let mut status = written(number, "<p>地震になりました</p>");
        status["edited_at"] = json!(format!("2026-02-03T{hour:02}:00:00.000Z"));
        vec![read(&status)]
    };
    let set_state = async |state: &'static str| {
        let set = world.store.write(Root::none(), move |tx| {
            let statement = "update local_account set state = $1 where name = 'ann'";
            tx.execute(statement, &[&state])?;
            Ok::<_, StoreError>(())
        });
        set.await.unwrap();
    };
    let waiting = async || {
        let waiting = world.store.read(|tx| edited_post::edited(tx, 10));
        waiting.await.unwrap().len()
    };
    let mut bells = Bells::new(world.store.clone(), Address::local());
    set_state("of a newer version").await;
    feed.poll_posts(edited(2, 5)).await;
    for _ in 0..2 {
        assert!(bells.ring_all().await.is_err());
        assert_eq!(waiting().await, 1);
        assert_eq!(numbers(&ben.page(&other).await), [2, 5, 3, 1]);
    }
    bells.ring_all().await.unwrap();
    assert_eq!(waiting().await, 0);
    assert_eq!(numbers(&ben.page(&other).await), [2, 5, 3, 1]);

    set_state("active").await;
    feed.poll_posts(edited(4, 6)).await;
    bells.ring_all().await.unwrap();
    assert_eq!(waiting().await, 0);
    assert_eq!(numbers(&ben.page(&other).await), [4, 2, 5, 3, 1]);
    // Its own place is all that the list knows of the post that it was not compared with.
    assert_eq!(numbers(&ann.page(&failing).await), [4, 5, 3, 2, 1]);
}

#[tokio::test]
async fn a_saved_timeline_has_feeds_at_a_secret_address() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    feed.poll_posts(vec![
        read(&written(1, "<p>地震 &lt;1&gt; \u{b}</p>")),
        read(&written(2, "<p>犬</p>")),
    ])
    .await;
    let mut hidden = world.new_feed("hidden").await;
    hidden
        .poll_posts(vec![read(&written(3, "<p>地震</p>"))])
        .await;
    show(&world, &hidden, Audience::Members).await;
    let list = save(&ann, "地震").await;
    let route = path_of(&list, "/api/driftline/v1/lists/ID/feed");
    let addresses = ann.post(&route).await;
    let path = |addresses: &Value, form: &str| {
        let address = addresses[form].as_str().unwrap();
        address.strip_prefix(&world.base).unwrap().to_owned()
    };
    let answer = world.answer(&path(&addresses, "atom")).await;
    let etag = answer.headers()["etag"].to_str().unwrap().to_owned();
    assert!(
        answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("application/atom+xml")
    );
    let atom = answer.text().await.unwrap();
    assert!(
        atom.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns="),
        "{atom}"
    );
    assert_eq!(atom.matches("<entry>").count(), 1, "{atom}");
    assert!(atom.contains("<id>https://sim.example/1</id>"), "{atom}");
    assert!(atom.contains("<title>地震 &lt;1&gt;</title>"), "{atom}");
    assert!(
        atom.contains("&lt;p&gt;地震 &amp;lt;1&amp;gt; &lt;/p&gt;"),
        "{atom}"
    );
    let again = world
        .client
        .get(format!("{}{}", world.base, path(&addresses, "atom")));
    let again = again
        .header("if-none-match", format!("\"x\", W/{etag}"))
        .send()
        .await
        .unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    let json = json_feed(&world, &path(&addresses, "json")).await;
    assert_eq!(json["version"], "https://jsonfeed.org/version/1.1");
    assert_eq!(json["items"].as_array().unwrap().len(), 1);
    assert_eq!(json["items"][0]["tags"], json!(["Quake"]));

    // A new address ends the old one. With `all`, it has what the owner may read.
    let all = ann.post_json(&route, &json!({ "all": true })).await;
    let old = world.answer(&path(&addresses, "json")).await;
    assert_eq!(old.status(), StatusCode::NOT_FOUND);
    let json = json_feed(&world, &path(&all, "json")).await;
    let ids: Vec<&str> = json["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    // The first page of a source is history, and stands below.
    assert_eq!(ids, ["https://sim.example/1", "https://sim.example/3"]);

    assert_eq!(
        ann.get(&path_of(&list, "/api/v1/lists/ID")).await["feed"],
        "owner"
    );
    let app = world.app("Writer", OOB, "write").await;
    let writer = world.token(&app, "ann", "write").await;
    for (body, status) in [("", StatusCode::OK), ("all=true", StatusCode::FORBIDDEN)] {
        let request = world
            .client
            .post(format!("{}{route}", world.base))
            .bearer_auth(&writer);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        assert_eq!(
            request.body(body).send().await.unwrap().status(),
            status,
            "{body}"
        );
    }
    let all = ann.post_json(&route, &json!({ "all": true })).await;

    // It ends while the account is frozen, with another predicate, and when it is closed.
    for (state, status) in [
        (AccountState::Frozen, StatusCode::NOT_FOUND),
        (AccountState::Active, StatusCode::OK),
    ] {
        world.set_state(ann.id, state).await;
        assert_eq!(world.answer(&path(&all, "json")).await.status(), status);
    }
    let change = json!({ "predicate": "犬" });
    ann.ok(Method::PUT, &path_of(&list, "/api/v1/lists/ID"), &change)
        .await;
    let ended = world.answer(&path(&all, "json")).await;
    assert_eq!(ended.status(), StatusCode::NOT_FOUND);
    let all = ann.post(&route).await;
    assert_eq!(
        world.answer(&path(&all, "json")).await.status(),
        StatusCode::OK
    );
    ann.ok(Method::DELETE, &route, &Value::Null).await;
    assert_eq!(
        world.answer(&path(&all, "atom")).await.status(),
        StatusCode::NOT_FOUND
    );
    let plain = ann
        .post_json("/api/v1/lists", &json!({ "title": "L" }))
        .await;
    let (status, _) = ann
        .send(
            Method::POST,
            &path_of(&plain, "/api/driftline/v1/lists/ID/feed"),
            &Value::Null,
        )
        .await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_list_notifies_of_new_posts_that_its_owner_may_read() {
    const ALL: &str = "/api/v1/notifications";
    let (world, _) = people_world(|_| {}).await;
    let [ann, ben] = [
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    ];
    let mut feed = world.feed("public").await;
    let mut hidden = world.feed("hidden").await;
    feed.poll_posts(quakes([1])).await;
    let list = save(&ann, "地震").await;
    assert_eq!(list["notify"], false);
    let path = path_of(&list, "/api/v1/lists/ID");
    let ring = async || {
        Bells::new(world.store.clone(), Address::local())
            .ring_all()
            .await
            .unwrap();
    };
    feed.poll_posts(quakes([3])).await;
    ring().await;
    assert!(ann.page(ALL).await.is_empty());
    let changed = ann.ok(Method::PUT, &path, &json!({ "notify": true })).await;
    assert_eq!(changed["notify"], true);
    show(&world, &hidden, Audience::Private).await;
    feed.poll_posts(quakes([5, 6, 7])).await;
    hidden.poll_posts(quakes([9])).await;
    ring().await;
    ring().await;
    let found = ann.page(ALL).await;
    let shown: Vec<&Value> = found.iter().map(|one| &one["status"]["uri"]).collect();
    assert_eq!(shown, ["https://sim.example/7", "https://sim.example/5"]);
    assert!(found.iter().all(|one| one["type"] == "status"));
    assert!(ben.page(ALL).await.is_empty());
    // A post that all may read from now on was there before.
    show(&world, &hidden, Audience::Public).await;
    ring().await;
    assert_eq!(ann.page(ALL).await.len(), 2);
    // The list goes on from its last post, and ends.
    feed.poll_posts(quakes([11])).await;
    ring().await;
    assert_eq!(ann.page(ALL).await.len(), 3);
    ann.ok(Method::PUT, &path, &json!({ "notify": false }))
        .await;
    feed.poll_posts(quakes([13])).await;
    ring().await;
    assert_eq!(ann.page(ALL).await.len(), 3);
    let plain = json!({ "title": "L", "notify": true });
    let (status, _) = ann.send(Method::POST, "/api/v1/lists", &plain).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}

/// A list with another predicate notifies of later posts only, also after a restart of the server.
#[tokio::test]
async fn a_list_with_another_predicate_notifies_of_later_posts() {
    const ALL: &str = "/api/v1/notifications";
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    // The list begins at a time of the test's clock.
    feed.poll_posts(quakes([1])).await;
    let body = json!({ "title": "Quakes", "predicate": "地震", "notify": true });
    let list = ann.post_json("/api/v1/lists", &body).await;
    let mut bells = Bells::new(world.store.clone(), Address::local());
    feed.poll_posts(quakes([2])).await;
    bells.ring_all().await.unwrap();
    let path = path_of(&list, "/api/v1/lists/ID");
    let changed = json!({ "predicate": "犬" });
    ann.ok(Method::PUT, &path, &changed).await;
    let mut restarted = Bells::new(world.store.clone(), Address::local());
    for bells in [&mut bells, &mut restarted] {
        bells.ring_all().await.unwrap();
        assert!(ann.page(ALL).await.is_empty());
    }
    feed.poll_posts(quakes([3, 4])).await;
    for bells in [&mut bells, &mut restarted] {
        bells.ring_all().await.unwrap();
        let found = ann.page(ALL).await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["status"]["uri"], "https://sim.example/4");
    }
}

/// One of several processes notifies of each post.
#[tokio::test]
async fn two_processes_notify_of_each_post_once() {
    const ALL: &str = "/api/v1/notifications";
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    feed.poll_posts(quakes([1])).await;
    let body = json!({ "title": "Quakes", "predicate": "地震", "notify": true });
    ann.post_json("/api/v1/lists", &body).await;
    let bells = || Bells::new(world.store.clone(), Address::local());
    let [mut first, mut second] = [bells(), bells()];
    feed.poll_posts(quakes([2])).await;
    first.ring_all().await.unwrap();
    second.ring_all().await.unwrap();
    assert!(ann.page(ALL).await.is_empty());
    feed.poll_posts(quakes([3])).await;
    second.ring_all().await.unwrap();
    first.ring_all().await.unwrap();
    assert_eq!(ann.page(ALL).await.len(), 1);
    feed.poll_posts(quakes([4, 5, 7])).await;
    first.ring_all().await.unwrap();
    second.ring_all().await.unwrap();
    assert_eq!(ann.page(ALL).await.len(), 3);
}

/// A list without matches is not written at each turn. The process knows how far it was compared, also after turns
/// without new posts.
#[tokio::test]
async fn a_list_without_matches_is_written_rarely() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    let mut hidden = world.feed("hidden").await;
    show(&world, &hidden, Audience::Private).await;
    // The list begins at a time of the test's clock.
    feed.poll_posts(quakes([1])).await;
    let body = json!({ "title": "Quakes", "predicate": "地震", "notify": true });
    ann.post_json("/api/v1/lists", &body).await;
    let notified = async || {
        let read = world.store.read(|tx| {
            let query = "select notified_id from list";
            Ok::<_, StoreError>(tx.query_one(query, &[], |row| row.i64("notified_id"))?)
        });
        read.await.unwrap()
    };
    let before = notified().await;
    let mut bells = Bells::new(world.store.clone(), Address::local());
    feed.poll_posts(quakes([2])).await;
    hidden.poll_posts(quakes([9])).await;
    for _ in 0..3 {
        bells.ring_all().await.unwrap();
    }
    assert_eq!(notified().await, before);
    show(&world, &hidden, Audience::Public).await;
    bells.ring_all().await.unwrap();
    assert!(ann.page("/api/v1/notifications").await.is_empty());
    feed.poll_posts(quakes([11])).await;
    bells.ring_all().await.unwrap();
    assert_eq!(ann.page("/api/v1/notifications").await.len(), 1);
    assert!(notified().await > before);
}

/// A list notifies of all its posts, also of more than one page of them at once.
#[tokio::test]
async fn a_list_notifies_of_many_posts_at_once() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    let body = json!({ "title": "Quakes", "predicate": "地震", "notify": true });
    ann.post_json("/api/v1/lists", &body).await;
    let mut bells = Bells::new(world.store.clone(), Address::local());
    for first in [1, 61, 121] {
        feed.poll_posts(quakes(first..first + 60)).await;
    }
    bells.ring_all().await.unwrap();
    let found = ann.page("/api/v1/notifications?limit=80").await;
    assert_eq!(found.len(), 80);
    let last = found[79]["id"].as_str().unwrap();
    let older = format!("/api/v1/notifications?limit=80&max_id={last}");
    assert_eq!(ann.page(&older).await.len(), 10);
}

/// Lists that have to be searched whatever is new are few.
#[tokio::test]
async fn few_lists_without_a_word_notify() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let new = |predicate: &str| json!({ "title": "L", "predicate": predicate, "notify": true });
    for predicate in ["has:media", "-cat", "cat OR lang:ja", "{}", "is:reply"] {
        ann.post_json("/api/v1/lists", &new(predicate)).await;
    }
    let (status, answer) = ann
        .send(Method::POST, "/api/v1/lists", &new("-has:media"))
        .await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("at most 5 lists"),
        "{answer}"
    );
    for predicate in [
        "cat",
        "cat lang:ja",
        "from:ann@b.example",
        "#cat -has:media",
    ] {
        ann.post_json("/api/v1/lists", &new(predicate)).await;
    }
}
