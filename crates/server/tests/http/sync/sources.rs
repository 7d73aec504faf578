//! Libraries of sources, as devices read them: hidden posts, filters, digests.

use driftline_core::{
    names::audience::Audience,
    post::{Post, Visibility},
    predicate::{NameContext, Predicate},
    sync::LibraryDigest,
};
use driftline_sim::Status;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{DIGEST, PULL, hidden, news, pull_of, readable_source};
use crate::{
    people::{Person, people_world},
    world::{show, status},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_a_source_is_told_nothing_of_hidden_posts() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut lengths = Vec::new();
    for (name, is_mixed, first) in [("plain", false, 0), ("mixed", true, 1_000)] {
        let mut feed = world.feed(name).await;
        show(&world, &feed, Audience::Members).await;
        let libraries = ann.page("/api/driftline/v1/sync/libraries").await;
        let found = libraries.iter().find(|library| library["source"] == name);
        let library = found.unwrap()["library"].as_str().unwrap().to_owned();
        let range = |from: u64, to: u64| -> Vec<Status> {
            let all = first + from..first + to;
            match is_mixed {
                // Each post that is shown has three hidden ones before it.
                true => all
                    .flat_map(|n| {
                        [
                            hidden(4 * n),
                            hidden(4 * n + 1),
                            hidden(4 * n + 2),
                            status(4 * n + 3),
                        ]
                    })
                    .collect(),
                false => all.map(|n| status(4 * n + 3)).collect(),
            }
        };
        feed.poll(&range(1, 6)).await;
        let mut request = pull_of(&library, None);
        request["max_entries"] = json!(2);
        let (mut chunks, mut counts) = (Vec::new(), Vec::new());
        let cursor = loop {
            let answer = ann.post_json(PULL, &request).await;
            let news = &answer["news"][0];
            assert_eq!(news["state"], "full");
            assert!(
                news["objects"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|one| one["usn"] == "0")
            );
            chunks.push(news["objects"].as_array().unwrap().len());
            counts.push(news["count"].as_u64());
            request["libraries"][0]["cursor"] = news["cursor"].clone();
            if news["more"] == false {
                break news["cursor"].clone();
            }
        };
        // The number of posts that are shown comes with the first of several chunks.
        assert_eq!(counts[0], Some(5));
        assert!(counts.len() > 1 && counts[1..].iter().all(Option::is_none));
        feed.poll(&range(6, 8)).await;
        feed.delete(4 * (first + 2) + 3).await;
        if is_mixed {
            feed.delete(4 * (first + 2)).await;
        }
        let changes = news(&ann, &library, Some(&cursor)).await;
        let statuses = changes["objects"].as_array().unwrap();
        assert!(
            statuses
                .iter()
                .all(|one| one["value"]["status"]["content"].is_string())
        );
        lengths.push((
            chunks,
            statuses.len(),
            changes["gone"].as_array().unwrap().len(),
            cursor.as_str().unwrap().len(),
        ));
        let (status, _) = ann
            .send(Method::POST, PULL, &pull_of("source:99", None))
            .await;
        assert_eq!(status, StatusCode::OK);
    }
    assert_eq!(lengths[0], lengths[1]);
    assert_eq!((lengths[0].1, lengths[0].2), (2, 1));
    world.close().await;
}

/// A filter as devices send it.
fn filter(text: &str) -> Value {
    let names = NameContext {
        origin: "https://sim.example",
        viewer: None,
    };
    json!(Predicate::parse(text, &names).unwrap())
}

/// A post whose author has another name.
fn renamed(n: u64, name: &str) -> Post {
    let mut renamed = status(n).to_post();
    let mut account: Value = serde_json::from_str(&renamed.author.raw).unwrap();
    account["display_name"] = json!(name);
    renamed.author.display_name = name.to_owned();
    renamed.author.raw = account.to_string();
    renamed
}

/// The source gives names a USN after this time.
const HOUR_MS: i64 = 3_600_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_moves_up_during_a_full_sync_comes_whole() {
    let (world, ann, mut feed, library) = readable_source().await;
    feed.poll(&[status(1), status(2), status(3)]).await;
    let mut request = pull_of(&library, None);
    request["max_entries"] = json!(1);
    let mut part = ann.post_json(PULL, &request).await["news"][0].take();
    assert_eq!(
        (&part["state"], &part["more"]),
        (&json!("full"), &json!(true))
    );
    let others = || [2, 3].map(|n| status(n).to_post());
    feed.now_ms += HOUR_MS;
    feed.poll_posts([renamed(1, "At sea")].into_iter().chain(others()).collect())
        .await;
    let mut statuses = Vec::new();
    loop {
        let objects = part["objects"].as_array().unwrap().iter();
        statuses.extend(objects.map(|one| one["value"]["status"].clone()));
        if part["state"] == "changes" && part["more"] == false {
            break;
        }
        request["libraries"][0]["cursor"] = part["cursor"].clone();
        part = ann.post_json(PULL, &request).await["news"][0].take();
    }
    let contents: Vec<&Value> = statuses.iter().map(|status| &status["content"]).collect();
    assert_eq!(
        contents,
        ["<p>Post 3</p>", "<p>Post 2</p>", "<p>Post 1</p>"]
    );
    assert_eq!(statuses[2]["account"]["display_name"], "At sea");
    // From now on the device has it.
    feed.now_ms += HOUR_MS;
    feed.poll_posts([renamed(1, "Ashore")].into_iter().chain(others()).collect())
        .await;
    let changes = news(&ann, &library, Some(&part["cursor"])).await;
    let value = &changes["objects"][0]["value"];
    assert_eq!(value["account"]["display_name"], "Ashore");
    assert!(value["update"].is_object() && value["status"].is_null());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_comes_without_its_content_to_a_device_that_has_it() {
    let (world, ann, mut feed, library) = readable_source().await;
    feed.poll(&[status(1), status(2)]).await;
    let whole = news(&ann, &library, None).await;
    assert_eq!(whole["more"], false);
    // Another name of the author is no edit.
    feed.now_ms += HOUR_MS;
    let renamed = renamed(1, "At sea");
    feed.poll_posts(vec![renamed, status(2).to_post()]).await;
    let changes = news(&ann, &library, Some(&whole["cursor"])).await;
    let objects = changes["objects"].as_array().unwrap();
    assert_eq!(objects.len(), 1, "{changes}");
    let value = &objects[0]["value"];
    assert!(value["place"].is_string() && value["status"].is_null());
    assert_eq!(value["account"]["display_name"], "At sea");
    assert_eq!(value["update"]["favourites_count"], 3);
    assert!(value["update"]["content"].is_null());
    // The stored post has the earlier name.
    let again = news(&ann, &library, None).await;
    let objects = again["objects"].as_array().unwrap().iter();
    let names = objects.map(|one| &one["value"]["status"]["account"]["display_name"]);
    assert_eq!(
        names.filter(|name| **name == "At sea").count(),
        1,
        "{again}"
    );
    let mut edited = status(1);
    edited.content = "<p>Edited</p>".to_owned();
    feed.poll(&[edited, status(2)]).await;
    let changes = news(&ann, &library, Some(&changes["cursor"])).await;
    let value = &changes["objects"][0]["value"];
    assert_eq!(value["status"]["content"], "<p>Edited</p>");
    assert!(value["update"].is_null());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_selects_posts_of_a_source_that_the_account_may_see() {
    let (world, ann, mut feed, library) = readable_source().await;
    feed.poll(&[status(1), status(2), hidden(3)]).await;
    let pull = |text: &str, cursor: Option<&Value>| {
        let mut request = pull_of(&library, cursor);
        request["libraries"][0]["filter"] = filter(text);
        request
    };
    let either = "\"post 1\" OR \"post 3\"";
    let answer = ann.post_json(PULL, &pull(either, None)).await;
    let found = &answer["news"][0];
    assert_eq!(
        (&found["state"], &found["more"]),
        (&json!("full"), &json!(false))
    );
    let contents = |news: &Value| -> Vec<String> {
        let objects = news["objects"].as_array().unwrap().iter();
        objects
            .map(|one| {
                one["value"]["status"]["content"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(contents(found), ["<p>Post 1</p>"]);
    let cursor = &found["cursor"];
    feed.poll(&[status(4)]).await;
    let next = ann.post_json(PULL, &pull(either, Some(cursor))).await;
    let next = &next["news"];
    assert!(
        next.get(0).is_none_or(|news| news["objects"] == json!([])),
        "{next}"
    );
    // A cursor of another filter, or of none, begins again.
    for request in [
        pull("\"post 2\"", Some(cursor)),
        pull_of(&library, Some(cursor)),
    ] {
        let answer = ann.post_json(PULL, &request).await;
        let begun = &answer["news"][0];
        assert_eq!(
            (&begun["state"], &begun["first"]),
            (&json!("full"), &json!(true))
        );
    }
    let send = async |request: Value| ann.send(Method::POST, PULL, &request).await;
    let (status, refusal) = send(pull("cat favourites:>3", None)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refusal["error"]
            .as_str()
            .unwrap()
            .contains("`favourites:>3`"),
        "{refusal}"
    );
    let mut own = pull("cat", None);
    own["libraries"][0]["library"] = json!("account");
    assert_eq!(send(own).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    let mut broken = pull("cat", None);
    broken["libraries"][0]["filter"] = json!({"tree": {"or": []}});
    assert_eq!(send(broken).await.0, StatusCode::BAD_REQUEST);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_digest_of_a_source_is_of_what_the_account_may_see() {
    let (world, ann, mut feed, library) = readable_source().await;
    let other = world.feed("other").await;
    show(&world, &other, Audience::Private).await;
    feed.poll(&[status(1), hidden(2), status(3), hidden(4)])
        .await;
    let whole = news(&ann, &library, None).await;
    let objects = whole["objects"].as_array().unwrap();
    let mut expected = LibraryDigest::default();
    for object in objects {
        let place = object["value"]["place"].as_str().unwrap().parse().unwrap();
        let key = object["key"].as_str().unwrap();
        expected.add_entry(key, place, None, Visibility::Public);
    }
    let request = json!({"library": library});
    let digest = ann.post_json(DIGEST, &request).await;
    let found = (&digest["count"], &digest["digest"], &digest["more"]);
    assert_eq!(found, (&json!(2), &json!(expected.text()), &json!(false)));
    // The post of a filter alone; an unknown cursor, and one of a pull; another library.
    let filtered = json!({"library": library, "filter": filter("\"post 3\"")});
    assert_eq!(ann.post_json(DIGEST, &filtered).await["count"], 1);
    for cursor in [json!("1.1.0f.1"), whole["cursor"].clone()] {
        let request = json!({"library": library, "cursor": cursor});
        let (status, _) = ann.send(Method::POST, DIGEST, &request).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let hidden = json!({"library": format!("source:{}", other.source.id)});
    let (status, _) = ann.send(Method::POST, DIGEST, &hidden).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    world.close().await;
}
