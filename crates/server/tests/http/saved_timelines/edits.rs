//! Posts that edits bring into saved timelines.

use driftline_api::transport::Address;
use driftline_server::bells::Bells;
use driftline_store::{Root, StoreError, edited_post};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{path_of, quakes, save};
use crate::{
    people::{Person, people_world},
    search::{read, written},
    streaming::Socket,
    world::numbers,
};

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
