//! Streams by which devices wait for changes.

use std::time::Duration;

use driftline_store::{
    Tx,
    social::{local_account, note},
};

use super::PULL;
use crate::{
    people::{Person, people_world},
    world::START_MS,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_stream_of_an_account_ends_even_while_there_is_news() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let wait = async || {
        let events = format!("{}{PULL}/events", world.base);
        let request = world.client.get(events).bearer_auth(&ann.token);
        request.send().await.unwrap()
    };
    let mut oldest = wait().await;
    let mut later = Vec::new();
    for _ in 0..200 {
        later.push(wait().await);
    }
    let account = ann.id;
    let steady_news = async {
        for number in 0..u64::MAX {
            let text = number.to_string();
            let set = move |tx: &mut Tx<'_>| {
                note::set(tx, account, "https://a.example/1", &text, START_MS)
            };
            let set = world.store.write(local_account::root(account), set).await;
            set.unwrap().unwrap();
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
