//! Notifications of posts of those whom accounts follow with `notify`.

use std::time::Duration;

use driftline_api::transport::Address;
use driftline_core::names::audience::Audience;
use driftline_server::bells::{self, Bells};
use driftline_sim::Status;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    people::{Person, people_world},
    streaming::Socket,
    world::{id, post_of, show, status, uri},
};

const ALL: &str = "/api/v1/notifications";

async fn follow(person: &Person, acct: &str) -> u64 {
    let other = person.look_up(acct).await;
    let path = format!("/api/v1/accounts/{other}/follow?notify=true");
    assert_eq!(person.post(&path).await["notifying"], true);
    other
}

/// The last parts of the URIs of the posts of notifications.
fn posts(notifications: &[Value]) -> Vec<&str> {
    let uris = notifications.iter().map(|one| uri(&one["status"]));
    uris.map(|uri| uri.rsplit('/').next().unwrap()).collect()
}

#[tokio::test]
async fn each_post_of_an_author_rings_where_it_may_be_read() {
    let (world, _) = people_world(|_| {}).await;
    let (ann, bob) = (
        Person::new(&world, "ann").await,
        Person::new(&world, "bob").await,
    );
    let mut public = world.feed("public").await;
    let mut hidden = world.feed("hidden").await;
    public.poll(&[status(2)]).await;
    for person in [&ann, &bob] {
        follow(person, "drifter2@sim.example").await;
    }
    Bells::new(world.store.clone(), Address::local())
        .ring_all()
        .await
        .unwrap();
    assert!(ann.page(ALL).await.is_empty());
    // A post, a boost, a reply to somebody else, and one to the author.
    let boost = Status {
        boost_of: Some(Box::new(status(2))),
        ..status(12)
    };
    let reply = |number: u64, to: u64| {
        let mut json: Value = serde_json::from_str(&status(number).to_json()).unwrap();
        json["in_reply_to_id"] = json!("2");
        json["in_reply_to_account_id"] = json!(to.to_string());
        post_of(number, &json)
    };
    let page = vec![
        status(7).to_post(),
        boost.to_post(),
        reply(17, 901),
        reply(22, 902),
    ];
    public.poll_posts(page).await;
    show(&world, &hidden, Audience::Private).await;
    hidden.poll(&[status(27)]).await;
    for _ in 0..2 {
        Bells::new(world.store.clone(), Address::local())
            .ring_all()
            .await
            .unwrap();
    }
    let told = ann.page(ALL).await;
    assert_eq!(posts(&told), ["22", "7"]);
    assert_eq!(posts(&bob.page(ALL).await), ["22", "7"]);
    let first = &told[1];
    assert_eq!(first["type"], "status");
    assert_eq!(first["account"]["acct"], "drifter2@sim.example");
    let path = format!("/api/v1/statuses/{}", id(&first["status"]));
    assert_eq!(ann.get(&path).await, first["status"]);
    let one = format!("{ALL}/{}", id(first));
    assert_eq!(ann.get(&one).await, *first);
    // In groups, and by kinds.
    let grouped = ann.get("/api/v2/notifications").await;
    let groups = grouped["notification_groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert_eq!(groups[1]["status_id"], first["status"]["id"]);
    let statuses = grouped["statuses"].as_array().unwrap();
    assert!(statuses.len() == 2 && statuses.contains(&first["status"]));
    for (query, count) in [("types[]=status", 2), ("exclude_types[]=status", 0)] {
        let found = ann.page(&format!("{ALL}?{query}")).await;
        assert_eq!(found.len(), count, "{query}");
    }
    // A post that may not be seen any more is left out.
    public.delete(7).await;
    assert_eq!(posts(&ann.page(ALL).await), ["22"]);
    let (status, _) = ann.send(Method::GET, &one, &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let count = format!("{ALL}/unread_count");
    assert_eq!(ann.get(&count).await, json!({ "count": 1 }));
    show(&world, &public, Audience::Private).await;
    assert!(ann.page(ALL).await.is_empty());
    let grouped = ann.get("/api/v2/notifications").await;
    assert_eq!(
        (&grouped["notification_groups"], &grouped["statuses"]),
        (&json!([]), &json!([]))
    );
    world.close().await;
}

#[tokio::test]
async fn a_turn_of_the_job_rings_in_streams_and_leaves_hidden_sources_out() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let bob = Person::new(&world, "bob").await;
    let mut feed = world.feed("public").await;
    let mut private = world.feed("private").await;
    show(&world, &private, Audience::Private).await;
    feed.poll(&[status(2)]).await;
    for person in [&ann, &bob] {
        follow(person, "drifter2@sim.example").await;
    }
    let query = format!("?stream=user:notification&access_token={}", ann.token);
    let mut socket = Socket::open(&world, &query, None).await.unwrap();
    private.poll(&[status(7)]).await;
    feed.poll(&[status(12)]).await;
    let (stop, stopped) = watch::channel(false);
    let ringing = tokio::spawn(bells::keep_ringing(
        world.store.clone(),
        Address::local(),
        stopped,
    ));
    let told = tokio::time::timeout(Duration::from_secs(60), socket.told()).await;
    let (stream, event, told) = told.unwrap();
    assert_eq!(
        (stream, event),
        (json!(["user:notification"]), json!("notification"))
    );
    assert_eq!(posts(&[told]), ["12"]);
    stop.send_replace(true);
    ringing.await.unwrap();
    assert_eq!(posts(&bob.page(ALL).await), ["12"]);
    world.close().await;
}
