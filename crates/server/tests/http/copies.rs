//! Copies of a post that several instances show: apps see one post.

use driftline_core::names::audience::Audience;
use driftline_sim::{SimAuthor, Status};
use driftline_store::{LocalAccountId, Owner, local_ids, source, testing::new_source};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    people::{Person, people_world},
    streaming::Socket,
    world::{Feed, World, status, with_token},
};

/// A source of another instance than [`World::feed`]'s.
async fn other_feed(world: &World, name: &str, owner: Owner, audience: Audience) -> Feed {
    let mut new = new_source(name);
    new.origin = "https://other.example".to_owned();
    (new.owner, new.audience) = (owner, audience);
    let add = world
        .store
        .write(local_ids::root(), move |tx| source::add(tx, &new, 1));
    let mut feed = world.feed_of(add.await.unwrap().unwrap());
    feed.poll(&[]).await;
    feed
}

/// The post `first` under the ID that another instance gave it.
fn copy(first: u64, id: u64, content: &str) -> Status {
    Status {
        id: id.to_string().as_str().into(),
        first_id: Some(first.to_string().as_str().into()),
        content: content.to_owned(),
        author: SimAuthor {
            host: Some("sim.example".to_owned()),
            ..crate::world::author(first % 5)
        },
        ..status(id)
    }
}

fn ids(page: &[Value]) -> Vec<&str> {
    page.iter()
        .map(|post| post["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_mark_of_one_copy_is_of_all() {
    let (world, _mail) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut other = other_feed(&world, "other", Owner::Operator, Audience::Public).await;
    other.poll(&[copy(2, 72, "other's")]).await;
    let page = ann.page("/api/v1/timelines/public").await;
    let id = ids(&page)[0].to_owned();
    let path = format!("/api/v1/statuses/{id}");
    let marked = ann.post(&format!("{path}/bookmark")).await;
    assert_eq!(marked["bookmarked"], true);
    // Its author's own instance shows it, too, by an ID of its own.
    let mut own = world.feed("own").await;
    own.poll(&[copy(2, 2, "own")]).await;
    let own_id = world.page(&own.path()).await[0]["id"].clone();
    assert_ne!(own_id, json!(id));
    let page = ann.page("/api/v1/timelines/public").await;
    assert_eq!(ids(&page), [id.as_str()]);
    assert_eq!(
        (&page[0]["content"], &page[0]["bookmarked"]),
        (&json!("own"), &json!(true))
    );
    let own_path = format!("/api/v1/statuses/{}", own_id.as_str().unwrap());
    assert_eq!(ann.get(&own_path).await["bookmarked"], true);
    ann.post(&format!("{own_path}/bookmark")).await;
    let kept = ann.page("/api/v1/bookmarks").await;
    assert_eq!(ids(&kept), [id.as_str()]);
    ann.post(&format!("{own_path}/unbookmark")).await;
    assert_eq!(ann.get(&path).await["bookmarked"], false);
    assert_eq!(ann.page("/api/v1/bookmarks").await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_filter_that_names_one_copy_finds_the_post() {
    let (world, _mail) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut other = other_feed(&world, "other", Owner::Operator, Audience::Public).await;
    other.poll(&[copy(2, 72, "other's")]).await;
    let id = ann.page("/api/v1/timelines/public").await[0]["id"].clone();
    let filter = json!({ "title": "no more", "context": ["public"] });
    let filter = ann.post_json("/api/v2/filters", &filter).await;
    let path = format!(
        "/api/v2/filters/{}/statuses",
        filter["id"].as_str().unwrap()
    );
    ann.post_json(&path, &json!({ "status_id": id })).await;
    let mut own = world.feed("own").await;
    own.poll(&[copy(2, 2, "own")]).await;
    let page = ann.page("/api/v1/timelines/public").await;
    assert_eq!(page[0]["filtered"][0]["status_matches"], json!([id]));
}

#[tokio::test]
async fn streams_tell_of_copies_as_of_one_post() {
    let (world, _mail) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut other = other_feed(&world, "other", Owner::Operator, Audience::Public).await;
    let mut own = world.feed("own").await;
    let query = format!("?stream=public&access_token={}", ann.token);
    let mut anns = Socket::open(&world, &query, None).await.unwrap();
    let mut anyones = Socket::open(&world, "?stream=public", None).await.unwrap();
    let mut told = async || {
        let (_, event, payload) = anyones.told().await;
        let (_, anns_event, anns_payload) = anns.told().await;
        assert_eq!(event, anns_event);
        let shown = |payload: &Value| match payload {
            Value::Object(status) => (status["id"].clone(), status["content"].clone()),
            id => (id.clone(), Value::Null),
        };
        assert_eq!(shown(&payload), shown(&anns_payload));
        let (id, content) = shown(&payload);
        (event, id, content)
    };
    other.poll(&[copy(2, 72, "other's")]).await;
    let (event, place, content) = told().await;
    assert_eq!((event, content), (json!("update"), json!("other's")));
    // The author's own copy is better, at the same place.
    own.poll(&[copy(2, 2, "own")]).await;
    assert_eq!(
        told().await,
        (json!("status.update"), place.clone(), json!("own"))
    );
    let edited = Status {
        edited_at_ms: Some(driftline_store::testing::START_MS),
        ..copy(2, 2, "edited")
    };
    own.poll(&[edited]).await;
    assert_eq!(
        told().await,
        (json!("status.update"), place.clone(), json!("edited"))
    );
    // While one copy is there, the post is.
    other.delete(72).await;
    assert_eq!(
        told().await,
        (json!("status.update"), place.clone(), json!("edited"))
    );
    own.now_ms += 10_000;
    own.delete(2).await;
    let own_id = told().await;
    assert_eq!(own_id.0, "delete");
    assert_eq!(told().await, (json!("delete"), place, Value::Null));
}

#[tokio::test]
async fn strangers_are_not_told_what_a_hidden_copy_says() {
    // With an operator's token, so that those without one are strangers.
    let (world, _mail) = people_world(with_token).await;
    let ann = Person::new(&world, "ann").await;
    // The operator reads the author's own copy with a token.
    let mut hidden = world.feed("hidden").await;
    let key = hidden.source;
    let hide = world.store.write(source::root(key), move |tx| {
        source::set_audience(tx, key, Audience::Private)
    });
    hide.await.unwrap();
    hidden.poll(&[copy(2, 2, "a secret")]).await;
    let mut other = other_feed(&world, "other", Owner::Operator, Audience::Public).await;
    let query = format!("?stream=public&access_token={}", ann.token);
    let mut anns = Socket::open(&world, &query, None).await.unwrap();
    let mut anyones = Socket::open(&world, "?stream=public", None).await.unwrap();
    other.poll(&[copy(2, 72, "other's")]).await;
    for socket in [&mut anns, &mut anyones] {
        let (_, event, status) = socket.told().await;
        assert_eq!(
            (event, &status["content"]),
            (json!("update"), &json!("other's"))
        );
    }
    let path = "/api/v1/timelines/public";
    let seen = ann.ok(Method::GET, path, &Value::Null).await;
    assert_eq!(seen[0]["content"], "other's");
}

#[tokio::test]
async fn streams_of_an_account_tell_what_only_its_own_sources_have() {
    let (world, _mail) = people_world(|_| {}).await;
    let (ann, bob) = (
        Person::new(&world, "ann").await,
        Person::new(&world, "bob").await,
    );
    let me = ann.get("/api/v1/accounts/verify_credentials").await;
    let id = me["id"].as_str().unwrap().parse().unwrap();
    let owner = Owner::Account(LocalAccountId::new(id));
    let mut own = other_feed(&world, "ann/own", owner, Audience::Private).await;
    let mut shown = world.feed("shown").await;
    let query = |of: &Person| format!("?stream=public&access_token={}", of.token);
    let mut anns = Socket::open(&world, &query(&ann), None).await.unwrap();
    let mut bobs = Socket::open(&world, &query(&bob), None).await.unwrap();
    own.poll(&[copy(2, 72, "hers")]).await;
    shown.poll(&[status(3)]).await;
    let (_, event, post) = anns.told().await;
    assert_eq!((event, &post["content"]), (json!("update"), &json!("hers")));
    // To others only what came later is told.
    for socket in [&mut anns, &mut bobs] {
        let (_, event, post) = socket.told().await;
        assert_eq!(event, json!("update"));
        assert_ne!(post["content"], "hers");
    }
}
