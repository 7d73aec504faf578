//! Libraries over HTTP, as devices pull and push them.

mod copies;
mod events;
mod long_reads;
mod sources;

use driftline_core::{names::audience::Audience, post::Visibility};
use driftline_sim::Status;
use driftline_store::{StoreError, Tx, social::local_account};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    people::{Person, people_world},
    world::{Feed, World, id, show, status, uri},
};

const PULL: &str = "/api/driftline/v1/sync";
const DIGEST: &str = "/api/driftline/v1/sync/digest";
const PUSH: &str = "/api/driftline/v1/sync/push";
const DEVICE: &str = "0123456789abcdef0123456789abcdef";

fn pull_of(library: &str, cursor: Option<&Value>) -> Value {
    json!({"libraries": [{"library": library, "cursor": cursor}]})
}

fn push_of(sequence: u64, previous: &str, changes: &[Value]) -> Value {
    json!({"device": DEVICE, "sequence": sequence.to_string(), "previous": previous, "changes": changes})
}

fn change(key: &str, base: u64, value: &Value) -> Value {
    json!({"key": key, "base": base.to_string(), "value": value})
}

/// All that a library has after a cursor, in one part of news.
async fn news(person: &Person, library: &str, cursor: Option<&Value>) -> Value {
    let answer = person.post_json(PULL, &pull_of(library, cursor)).await;
    answer["news"].get(0).cloned().unwrap_or_default()
}

/// A server with a source that Ann may read, and the source's library.
async fn readable_source() -> (World, Person, Feed, String) {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let feed = world.feed("feed").await;
    show(&world, &feed, Audience::Members).await;
    let library = format!("source:{}", feed.source.id);
    (world, ann, feed, library)
}

fn keys(list: &Value) -> Vec<&str> {
    let keys = list.as_array().unwrap().iter();
    keys.map(|object| object["key"].as_str().unwrap()).collect()
}

fn hidden(n: u64) -> Status {
    Status {
        visibility: Visibility::Private,
        ..status(n)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_chunk_of_a_full_sync_says_how_many_objects_come() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let note = |n: u64| format!("note:https://social.example/{n}");
    let text = json!({"text": "to read"});
    let added: Vec<Value> = (1..=4).map(|n| change(&note(n), 0, &text)).collect();
    ann.post_json(PUSH, &push_of(1, "", &added)).await;
    let mut removal = push_of(1, "", &[change(&note(1), 1, &Value::Null)]);
    removal["device"] = json!("f".repeat(32));
    ann.post_json(PUSH, &removal).await;

    let mut request = pull_of("account", None);
    request["max_entries"] = json!(2);
    let first = ann.post_json(PULL, &request).await["news"][0].clone();
    assert_eq!((&first["more"], &first["count"]), (&json!(true), &json!(3)));
    request["libraries"][0]["cursor"] = first["cursor"].clone();
    let last = ann.post_json(PULL, &request).await["news"][0].clone();
    assert_eq!(last["more"], json!(false));
    let whole = news(&ann, "account", None).await;
    for without in [last, whole] {
        assert!(without.get("count").is_none(), "{without}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_apps_do_reaches_devices_and_the_reverse() {
    let (world, _) = people_world(|_| {}).await;
    let mut feed = world.feed("feed").await;
    feed.poll(&[status(1), status(2)]).await;
    let (ann, ben) = (
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    );
    let all = ann.page("/api/v1/timelines/public").await;
    let (second, first) = (&all[0], &all[1]);
    let empty = news(&ann, "account", None).await;
    assert_eq!(empty["state"], "full");
    assert_eq!(
        (&empty["objects"], &empty["more"]),
        (&json!([]), &json!(false))
    );

    ann.post(&format!("/api/v1/statuses/{}/bookmark", id(first)))
        .await;
    let came = news(&ann, "account", Some(&empty["cursor"])).await;
    let key = format!("bookmark:{}", uri(first));
    assert_eq!(came["state"], "changes");
    assert_eq!(keys(&came["objects"]), [&key]);
    let object = &came["objects"][0];
    assert_eq!(object["usn"], "1");
    assert_eq!(object["value"]["post"], id(first).to_string());
    let nothing = ann
        .post_json(PULL, &pull_of("account", Some(&came["cursor"])))
        .await;
    assert_eq!(nothing["news"], json!([]));

    let other = format!("bookmark:{}", uri(second));
    let note = format!("note:{}", uri(first));
    let changes = [
        change(&other, 0, &json!({})),
        change(&note, 0, &json!({"text": "read again"})),
        change(&key, 1, &Value::Null),
        change(
            "marker:home",
            0,
            &json!({"last_read": id(first).to_string()}),
        ),
    ];
    let body = push_of(1, "", &changes);
    let pushed = ann.post_json(PUSH, &body).await;
    assert_eq!(pushed["before"], came["cursor"]);
    let usns: Vec<(&Value, &Value)> = pushed["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| (&result["status"], &result["usn"]))
        .collect();
    let done = json!("done");
    let expected = ["2", "3", "4", "5"].map(|usn| (done.clone(), json!(usn)));
    assert_eq!(
        usns,
        expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>()
    );
    let marked = ann.page("/api/v1/bookmarks").await;
    assert_eq!(marked.iter().map(id).collect::<Vec<_>>(), [id(second)]);
    let markers = ann.get("/api/v1/markers?timeline[]=home").await;
    assert_eq!(markers["home"]["last_read_id"], id(first).to_string());
    // The answer was lost.
    assert_eq!(ann.post_json(PUSH, &body).await, pushed);
    assert_eq!(
        news(&ann, "account", Some(&pushed["after"])).await,
        Value::Null
    );

    let deleted = news(&ann, "account", Some(&came["cursor"])).await;
    assert_eq!(keys(&deleted["gone"]), [key.as_str()]);
    let whole = news(&ann, "account", None).await;
    assert_eq!(
        keys(&whole["objects"]),
        ["marker:home", &note, &other],
        "the newest first"
    );
    // Nothing of it is another account's, and its device names are its own.
    assert_eq!(news(&ben, "account", None).await["objects"], json!([]));
    let same_device = push_of(1, "", &[change(&note, 3, &Value::Null)]);
    let lying = ben.post_json(PUSH, &same_device).await;
    assert_eq!(
        lying["results"][0],
        json!({"status": "done", "key": note, "usn": "0"})
    );
    assert_eq!(news(&ann, "account", None).await, whole);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_is_compared_and_a_cloned_device_is_refused() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let note = "note:https://a.example/1";
    let text = |text: &str| json!({"text": text});
    let first = push_of(1, "", &[change(note, 0, &text("one"))]);
    ann.post_json(PUSH, &first).await;
    // Another device has not seen it.
    let mut other = push_of(1, "", &[change(note, 0, &text("two"))]);
    other["device"] = json!("f".repeat(32));
    let answer = ann.post_json(PUSH, &other).await;
    let expected = json!({"status": "conflict", "key": note, "usn": "1", "value": text("one")});
    assert_eq!(answer["results"], json!([expected]));
    assert_eq!(answer["before"], answer["after"]);
    // The device's own copy of an earlier time, or a clone, goes on otherwise.
    for forked in [
        push_of(1, "", &[change(note, 1, &text("three"))]),
        push_of(2, &"0".repeat(64), &[change(note, 1, &text("three"))]),
        push_of(3, "", &[]),
    ] {
        let (status, body) = ann.send(Method::POST, PUSH, &forked).await;
        assert_eq!(
            (status, &body["error"]),
            (StatusCode::CONFLICT, &json!("device"))
        );
    }
    let whole = news(&ann, "account", None).await;
    assert_eq!(whole["objects"][0]["value"], text("one"));
    for (body, expected) in [
        (json!({"device": "1"}), StatusCode::BAD_REQUEST),
        (
            json!({"device": "G".repeat(32), "sequence": "1", "changes": []}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            json!({"device": DEVICE, "sequence": "0", "changes": []}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            push_of(9, "", &vec![change(note, 1, &Value::Null); 101]),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (
            json!({"device": DEVICE, "sequence": "1", "changes": [change("marker:x", 0, &json!({}))]}),
            StatusCode::BAD_REQUEST,
        ),
    ] {
        let (status, answer) = ann.send(Method::POST, PUSH, &body).await;
        assert_eq!(status, expected, "{answer}");
    }
    for (body, expected) in [
        (
            json!({"libraries": [{"library": "account"}, {"library": "account"}]}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            json!({"libraries": [], "max_entries": 0}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            json!({"libraries": [], "max_bytes": 1}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            json!({"libraries": vec![json!({"library": "account"}); 201]}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (json!({}), StatusCode::BAD_REQUEST),
    ] {
        let (status, answer) = ann.send(Method::POST, PULL, &body).await;
        assert_eq!(status, expected, "{answer}");
    }
    let unknown = json!("1.2");
    let diverged = news(&ann, "account", Some(&unknown)).await;
    assert_eq!(diverged["state"], "diverged", "no cursor of this server");
    world.close().await;
}

/// Its token has stayed, and a copy of its last push may be on the way.
#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_lost_its_store_deletes_nothing() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let [note, other] = [1, 2].map(|n| format!("note:https://a.example/{n}"));
    let text = |text: &str| json!({"text": text});
    let changes = [
        change(&note, 0, &text("one")),
        change(&other, 0, &text("two")),
    ];
    let last = push_of(1, "", &changes);
    let answer = ann.post_json(PUSH, &last).await;
    let whole = news(&ann, "account", None).await;
    assert_eq!(keys(&whole["objects"]), [&other, &note]);

    let changes = [
        change(&note, 1, &text("three")),
        change(&other, 2, &Value::Null),
    ];
    let mut first = push_of(1, "", &changes);
    first["device"] = json!("f".repeat(32));
    first["cursor"] = whole["cursor"].clone();
    // Members of a later version are left out.
    first["later"] = json!([1]);
    first["changes"][0]["value"]["color"] = json!("red");
    let pushed = ann.post_json(PUSH, &first).await;
    let done = json!({"status": "done", "key": note, "usn": "3", "value": text("three")});
    assert_eq!(pushed["results"][0], done);
    assert_eq!(pushed["results"][1]["usn"], "4");
    let after = news(&ann, "account", None).await;
    assert_eq!(keys(&after["objects"]), [&note]);
    assert_eq!(after["objects"][0]["value"], text("three"));
    assert_eq!(ann.post_json(PUSH, &last).await, answer);
    assert_eq!(news(&ann, "account", None).await, after);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_changes_filters_with_a_bounded_number_of_posts() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    for title in ["cats", "dogs"] {
        let filter = json!({"title": title, "context": ["home"]});
        ann.post_json("/api/v2/filters", &filter).await;
    }
    let owner = i64::try_from(ann.id).unwrap();
    let fill = move |tx: &mut Tx<'_>| {
        for number in 1..=2_001_i64 {
            tx.execute_later(
                "insert into filter_post (account_id, id, filter_id, instance_id, post_id)
                 select $1, $2, min(id), 1, $2 from filter where account_id = $1",
                &[&owner, &number],
            )?;
        }
        Ok::<_, StoreError>(())
    };
    let root = local_account::root(ann.id);
    world.store.write(root, fill).await.unwrap();
    let all = news(&ann, "account", None).await;
    let [second, first] = keys(&all["objects"])[..] else {
        panic!("{all}");
    };
    let changes = [
        change(first, 1, &Value::Null),
        change(second, 2, &Value::Null),
    ];
    let (status, answer) = ann
        .send(Method::POST, PUSH, &push_of(1, "", &changes))
        .await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{answer}");
    let pushed = ann.post_json(PUSH, &push_of(1, "", &changes[..1])).await;
    assert_eq!(pushed["results"][0]["status"], json!("done"));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relations_reach_devices_and_the_reverse() {
    let (world, _) = people_world(|_| {}).await;
    let mut feed = world.feed("feed").await;
    feed.poll(&[status(2)]).await;
    let ann = Person::new(&world, "ann").await;
    let ben = Person::new(&world, "ben").await;
    let author = ann.follow("drifter2@sim.example").await;
    let path = format!("/api/v1/accounts/{author}/note");
    let comment = |text: &str| json!({ "comment": text });
    let noted = ann.post_json(&path, &comment("from school")).await;
    assert_eq!(noted["note"], "from school");
    let (refused, _) = ann
        .send(Method::POST, &path, &comment(&"a".repeat(2_001)))
        .await;
    assert_eq!(refused, StatusCode::UNPROCESSABLE_ENTITY);
    let all = news(&ann, "account", None).await;
    let note = json!({"text": "from school", "account": author});
    let follow = json!({"reblogs": true, "notify": false, "account": author});
    let expected = json!([
        {"key": "account-note:drifter2@sim.example", "usn": "2", "value": note},
        {"key": "follow:drifter2@sim.example", "usn": "1", "value": follow},
    ]);
    assert_eq!(all["objects"], expected);

    let changes = [
        change("follow:ann@local", 0, &json!({})),
        change(
            "follow:drifter2@sim.example",
            0,
            &json!({"notify": true, "reblogs": false}),
        ),
        change("follow:drifter3@sim.example", 0, &json!({})),
        change("block:nobody@local", 0, &json!({})),
    ];
    let pushed = ben.post_json(PUSH, &push_of(1, "", &changes)).await;
    let results = pushed["results"].as_array().unwrap();
    let statuses: Vec<&Value> = results.iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, ["done", "done", "refused", "refused"]);
    assert_eq!(results[2]["reason"], results[3]["reason"]);
    let path = format!("/api/v1/accounts/relationships?id[]={author}");
    let relationships = ben.page(&path).await;
    let relationship = &relationships[0];
    let member = |name: &str| relationship[name].as_bool();
    assert_eq!(
        ["following", "notifying", "showing_reblogs"].map(member),
        [Some(true), Some(true), Some(false)]
    );
    assert_eq!(relationship["note"], "");
    let notified = ann.page("/api/v1/notifications").await;
    assert_eq!(notified[0]["type"], "follow");
    // Who follows Ann is not in her library.
    let nothing = news(&ann, "account", Some(&all["cursor"])).await;
    assert_eq!(nothing, Value::Null);
    let ended = [change("follow:ann@local", 1, &Value::Null)];
    let mut other = push_of(1, "", &ended);
    other["device"] = json!("f".repeat(32));
    let answer = ben.post_json(PUSH, &other).await;
    assert_eq!(answer["results"][0]["status"], "done");
    assert_eq!(ann.page("/api/v1/notifications").await, Vec::<Value>::new());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_post_is_refused_as_one_that_does_not_exist() {
    let (world, _) = people_world(|_| {}).await;
    let mut feed = world.feed("feed").await;
    feed.poll(&[status(1), hidden(2)]).await;
    let ann = Person::new(&world, "ann").await;
    let shown = ann.page("/api/v1/timelines/public").await;
    let hidden = uri(&shown[0]).replace("/1", "/2");
    assert_ne!(hidden, uri(&shown[0]));
    let keys = [
        format!("bookmark:{hidden}"),
        "bookmark:https://nowhere.example/9".to_owned(),
    ];
    let changes = keys.map(|key| change(&key, 0, &json!({})));
    let answer = ann.post_json(PUSH, &push_of(1, "", &changes)).await;
    let results = &answer["results"];
    assert_eq!(results[0]["status"], "refused");
    assert_eq!(results[0]["reason"], results[1]["reason"]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_change_filters_and_the_profile_as_apps_do() {
    let (world, _) = people_world(|_| {}).await;
    let mut feed = world.feed("feed").await;
    feed.poll(&[status(1), hidden(2)]).await;
    let ann = Person::new(&world, "ann").await;
    let public = "/api/v1/timelines/public";
    let shown = ann.page(public).await.remove(0);
    assert_eq!(shown["filtered"], json!([]));
    // Each push is one of another device.
    let push = async |device: &str, changes: &[Value]| {
        let mut body = push_of(1, "", changes);
        body["device"] = json!(device.repeat(32));
        let mut answer = ann.post_json(PUSH, &body).await;
        answer["results"][0].take()
    };

    let key = format!("filter:{:032x}", 1);
    let filter = |posts: &[String]| {
        json!({
            "title": "pets", "contexts": ["home"], "action": "hide", "expires_at": null,
            "keywords": [], "posts": posts,
        })
    };
    let hidden = uri(&shown).replace("/1", "/2");
    let unknown = "https://nowhere.example/9".to_owned();
    let posts = [uri(&shown).to_owned(), hidden, unknown];
    let made = push("1", &[change(&key, 0, &filter(&posts))]).await;
    let stored = filter(&posts[..1]);
    let expected = json!({"status": "done", "key": key, "usn": "1", "value": stored});
    assert_eq!(made, expected, "without what ann does not see");
    let filtered = ann.page(public).await[0]["filtered"].take();
    assert_eq!(
        filtered[0]["status_matches"],
        json!([id(&shown).to_string()])
    );
    let many: Vec<String> = (0..101)
        .map(|n| format!("https://nowhere.example/{n}"))
        .collect();
    let refused = push("2", &[change(&key, 1, &filter(&many))]).await;
    assert_eq!(refused["status"], "refused");
    let removed = push("3", &[change(&key, 1, &Value::Null)]).await;
    assert_eq!(removed["usn"], "2");
    assert_eq!(ann.page(public).await[0]["filtered"], json!([]));

    let own = "/api/v1/accounts/update_credentials";
    let update = json!({"display_name": "Ann", "note": "Hello"});
    for _ in 0..2 {
        ann.ok(Method::PATCH, own, &update).await;
    }
    let whole = news(&ann, "account", None).await;
    let mut value = json!({
        "display_name": "Ann", "note": "Hello", "fields": [], "locked": false, "bot": false,
        "discoverable": false,
    });
    let expected = json!([{"key": "profile:self", "usn": "3", "value": value}]);
    assert_eq!(whole["objects"], expected);
    value["locked"] = json!(true);
    let changed = push("4", &[change("profile:self", 3, &value)]).await;
    assert_eq!(changed["usn"], "4");
    let account = ann.get("/api/v1/accounts/verify_credentials").await;
    assert_eq!(
        (&account["locked"], &account["display_name"]),
        (&json!(true), &json!("Ann"))
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_libraries_without_news_are_a_small_answer() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut libraries = Vec::new();
    for n in 0..39 {
        let mut feed = world.feed(&format!("feed{n}")).await;
        show(&world, &feed, Audience::Members).await;
        feed.poll(&[status(n + 1)]).await;
    }
    for known in ann.page("/api/driftline/v1/sync/libraries").await {
        let library = known["library"].as_str().unwrap();
        let news = news(&ann, library, None).await;
        libraries.push(json!({"library": library, "cursor": news["cursor"]}));
    }
    assert_eq!(libraries.len(), 40);
    let answer = ann.post_json(PULL, &json!({"libraries": libraries})).await;
    assert_eq!(answer["news"], json!([]));
    assert!(answer.to_string().len() < 300, "{answer}");
    world.close().await;
}
