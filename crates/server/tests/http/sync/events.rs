//! Streams by which devices wait for changes.

use std::time::Duration;

use driftline_api::auth::AUTH_LIFETIME_MS;
use driftline_core::{names::audience::Audience, social::AccountState};
use driftline_store::{
    LocalAccountId, Tx,
    social::{local_account, note},
};
use reqwest::{Response, StatusCode};
use serde_json::json;

use super::{PULL, PUSH, change, news, push_of, readable_source};
use crate::{
    people::{Person, pass, people_world},
    test_clock,
    tokens::log_in,
    world::{START_MS, World, show, status},
};

/// The stream of a device, or what it gets instead.
async fn wait(world: &World, token: &str, query: &str) -> Response {
    world
        .get_with(&format!("{PULL}/events{query}"), token)
        .await
}

async fn assert_news(events: &mut Response) {
    let event = events.chunk().await.unwrap().unwrap();
    assert_eq!(&event[..], b"event: news\ndata: {}\n\n");
}

/// Waits for the end of a stream, before which nothing comes but comments.
async fn assert_end(events: &mut Response) {
    let end = async {
        while let Some(part) = events.chunk().await.unwrap() {
            assert_eq!(&part[..], b":\n\n");
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), end).await;
    assert_eq!(ended, Ok(()));
}

/// Changes the library of an account.
async fn set_note(world: &World, account: LocalAccountId, text: &str) {
    let text = text.to_owned();
    let set = move |tx: &mut Tx<'_>| note::set(tx, account, "https://a.example/1", &text, START_MS);
    let set = world.store.write(local_account::root(account), set).await;
    set.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_waits_is_told_of_changes() {
    let (world, _) = people_world(|_| {}).await;
    let (ann, ben) = (
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    );
    let mut events = wait(&world, &ann.token, "").await;
    assert_news(&mut events).await;
    let note = |text: &str| {
        let note = change("note:https://a.example/1", 0, &json!({"text": text}));
        push_of(1, "", &[note])
    };
    // Another account's changes are none of its own.
    ben.post_json(PUSH, &note("ben's")).await;
    ann.post_json(PUSH, &note("ann's")).await;
    assert_news(&mut events).await;
    let whole = news(&ann, "account", None).await;
    assert_eq!(whole["objects"][0]["value"]["text"], "ann's");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_waits_is_told_of_the_sources_that_it_names() {
    let (world, ann, mut feed, library) = readable_source().await;
    let other = world.feed("other").await;
    show(&world, &other, Audience::Private).await;
    // What the account may not read is as what is not there.
    for unknown in [other.source.id.to_string(), "999".to_owned()] {
        let query = format!("?library={library}&library=source:{unknown}");
        let answer = wait(&world, &ann.token, &query).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    }
    let many: String = (0..201).map(|n| format!("library=source:{n}&")).collect();
    let answer = wait(&world, &ann.token, &format!("?{many}")).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let query = format!("?library={library}&library=account");
    let mut events = wait(&world, &ann.token, &query).await;
    assert_news(&mut events).await;
    feed.poll(&[status(1)]).await;
    assert_news(&mut events).await;
    let whole = news(&ann, &library, None).await;
    assert_eq!(whole["objects"].as_array().unwrap().len(), 1);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_stream_of_an_account_ends_even_while_there_is_news() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut oldest = wait(&world, &ann.token, "").await;
    let mut later = Vec::new();
    for _ in 0..200 {
        later.push(wait(&world, &ann.token, "").await);
    }
    let steady_news = async {
        for number in 0..u64::MAX {
            set_note(&world, ann.id, &number.to_string()).await;
        }
    };
    let end = async { while oldest.chunk().await.unwrap().is_some() {} };
    let ended = async {
        tokio::select! {
            () = end => true,
            () = steady_news => false,
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
    assert_eq!(ended, Ok(true));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_nothing_more_once_its_token_has_ended() {
    let (clock, now_ms) = test_clock!();
    let (world, _) = people_world(|app| app.people.use_clock(clock)).await;
    let ann = Person::new(&world, "ann").await;
    let native = log_in(&world, "ann").await;
    let mut of_app = wait(&world, &ann.token, "").await;
    let mut of_device = wait(&world, &native, "").await;
    assert_news(&mut of_app).await;
    assert_news(&mut of_device).await;
    let log_out = format!("{}/api/driftline/v1/log-out", world.base);
    let log_out = world.client.post(log_out).bearer_auth(&ann.token).send();
    assert_eq!(log_out.await.unwrap().status(), StatusCode::NO_CONTENT);
    set_note(&world, ann.id, "first").await;
    assert_end(&mut of_app).await;
    assert_news(&mut of_device).await;
    pass(now_ms, AUTH_LIFETIME_MS);
    set_note(&world, ann.id, "second").await;
    assert_end(&mut of_device).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_news_ends_once_its_account_is_frozen() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut events = wait(&world, &ann.token, "").await;
    assert_news(&mut events).await;
    // As another process freezes it.
    world.set_state(ann.id, AccountState::Frozen).await;
    assert_end(&mut events).await;
    world.close().await;
}
