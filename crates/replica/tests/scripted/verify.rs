//! Comparisons of a replica with its server, and a server that answers from a script.

use driftline_core::{post::Visibility, sync::LibraryDigest};
use driftline_replica::{ReplicaError, SyncContext, Verified};
use serde_json::{Value, json};

use crate::support::{
    ACCOUNT, Answer, Device, SERVER, Server, random,
    sources::{HOME, NEWS, at, libraries, part, posts, synced},
};

/// Answers a request for a part of a digest, which is of these posts.
fn then_digest(server: &Server, cursor: &str, more: bool, posts: &[Value]) {
    let mut digest = LibraryDigest::default();
    for post in posts {
        let place = post["value"]["place"].as_str().unwrap().parse().unwrap();
        let key = post["key"].as_str().unwrap();
        digest.add_entry(key, place, None, Visibility::Public);
    }
    let part = json!({
        "server": SERVER, "account": ACCOUNT, "cursor": cursor, "more": more,
        "count": digest.count(), "digest": digest.text(),
    });
    server.then(Answer::Json(200, part));
}

/// Answers the comparison of the account's library, which is empty.
fn then_own(server: &Server) {
    let digest = json!({
        "server": SERVER, "account": ACCOUNT, "cursor": "c9", "count": 0, "digest": "0".repeat(16),
    });
    server.then(Answer::Json(200, digest));
}

/// The cursors of the requests for parts of digests since the last call.
fn cursors(server: &Server) -> Vec<Value> {
    let requests = server.requests().into_iter().skip(1);
    requests.map(|of| of.json()["cursor"].clone()).collect()
}

async fn verify(device: &Device, server: &Server) -> Result<Verified, ReplicaError> {
    let replica = device.open().await;
    let client = device.client(server);
    let mut random = random;
    let mut context = SyncContext::new(0, &mut random);
    let verified = replica.verify(&client, &mut context).await;
    if let Ok(verified) = &verified {
        replica.begin_again(verified).await.unwrap();
    }
    replica.close().await;
    verified
}

#[tokio::test]
async fn sources_are_verified_by_the_sum_of_their_parts() {
    let server = Server::start();
    let device = synced(&server, &[(HOME, "home", posts(1..=3))]).await;
    then_own(&server);
    then_digest(&server, "d2", true, &posts([3]));
    then_digest(&server, "d1", false, &posts([2, 1]));
    let verified = verify(&device, &server).await.unwrap();
    assert!(verified.is_equal, "{verified:?}");
    assert_eq!(cursors(&server), [Value::Null, json!("d2")]);

    // What came meanwhile is fetched before it counts as a difference.
    then_own(&server);
    then_digest(&server, "d1", false, &posts([4, 3, 2, 1]));
    server.then_news(json!([part(HOME, "changes", "s10", false, &posts([4]))]));
    then_digest(&server, "d1", false, &posts([4, 3, 2, 1]));
    assert!(verify(&device, &server).await.unwrap().is_equal);

    then_own(&server);
    for _ in 0..2 {
        then_digest(&server, "d1", false, &posts([5, 4, 3, 2, 1]));
        server.then_news(json!([]));
    }
    let verified = verify(&device, &server).await.unwrap();
    let [own, home] = verified.libraries.try_into().unwrap();
    assert!(own.is_equal && !home.is_equal);
    assert_eq!((home.here, home.there), (4, 5));
    // The next one fetches all of it.
    server.requests();
    server.then_news(json!([part(HOME, "full", "t9", false, &posts(1..=5))]));
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    let first = &server.requests()[0];
    assert_eq!(
        libraries(first),
        [at("account", "c9"), (HOME.to_owned(), Value::Null)]
    );
    assert_eq!(server.answers_left(), 0);
}

/// A device with three posts of one source and one of another.
async fn of_two_sources(server: &Server) -> Device {
    let sources = [(HOME, "home", posts(1..=3)), (NEWS, "news", posts([70]))];
    synced(server, &sources).await
}

#[tokio::test]
async fn news_of_other_libraries_leaves_a_difference_as_it_is() {
    let server = Server::start();
    let device = of_two_sources(&server).await;
    then_own(&server);
    for (cursor, place) in [("s10", 71), ("s11", 72)] {
        then_digest(&server, "d1", false, &posts(1..=4));
        server.then_news(json!([part(
            NEWS,
            "changes",
            cursor,
            false,
            &posts([place])
        )]));
    }
    then_digest(&server, "d1", false, &posts(70..=72));
    let verified = verify(&device, &server).await.unwrap();
    assert!(!verified.is_equal);
    let [_, home, news] = verified.libraries.try_into().unwrap();
    assert!(!home.is_equal && !home.is_moving, "{home:?}");
    assert!(news.is_equal, "{news:?}");
    assert_eq!(server.answers_left(), 0);
}

#[tokio::test]
async fn a_library_that_changes_at_each_try_is_reported_as_such_and_not_repaired() {
    let server = Server::start();
    let device = of_two_sources(&server).await;
    then_own(&server);
    for place in 4..=8 {
        then_digest(&server, "d1", false, &posts(1..=9));
        let cursor = format!("s1{place}");
        server.then_news(json!([part(
            HOME,
            "changes",
            &cursor,
            false,
            &posts([place])
        )]));
    }
    then_digest(&server, "d1", false, &posts([70]));
    let verified = verify(&device, &server).await.unwrap();
    assert!(!verified.is_equal);
    let [_, home, news] = verified.libraries.try_into().unwrap();
    assert!(!home.is_equal && home.is_moving, "{home:?}");
    assert!(news.is_equal && !news.is_moving, "{news:?}");
    server.requests();
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    let [request] = server.requests().try_into().unwrap();
    let expected = [at("account", "c9"), at(HOME, "s18"), at(NEWS, "s9")];
    assert_eq!(libraries(&request), expected);
}

#[tokio::test]
async fn a_digest_whose_cursor_the_server_does_not_know_is_begun_again() {
    let server = Server::start();
    let device = synced(&server, &[(HOME, "home", posts(1..=3))]).await;
    let unknown = || Answer::Json(422, json!({"error": "the cursor is none of a digest"}));
    then_own(&server);
    then_digest(&server, "d2", true, &posts([3]));
    server.then(unknown());
    then_digest(&server, "d1", false, &posts(1..=3));
    let verified = verify(&device, &server).await.unwrap();
    assert!(verified.is_equal, "{verified:?}");
    assert_eq!(cursors(&server), [Value::Null, json!("d2"), Value::Null]);

    then_own(&server);
    for _ in 0..4 {
        then_digest(&server, "d2", true, &posts([3]));
        server.then(unknown());
    }
    let error = verify(&device, &server).await.unwrap_err();
    let is_expected = matches!(error, ReplicaError::Rejected { status: 422, .. });
    assert!(is_expected, "{error}");
    assert_eq!(server.answers_left(), 0);
}

#[tokio::test]
async fn a_source_that_ends_meanwhile_is_left_out() {
    let server = Server::start();
    let device = of_two_sources(&server).await;
    let missing = || Answer::Json(404, json!({"error": "Record not found"}));
    then_own(&server);
    server.then(missing());
    server.then_news(json!([{"library": HOME, "state": "gone"}]));
    then_digest(&server, "d1", false, &posts([70]));
    let verified = verify(&device, &server).await.unwrap();
    assert!(verified.is_equal);
    let compared = verified.libraries.iter().map(|of| of.library.as_str());
    assert_eq!(compared.collect::<Vec<_>>(), ["account", NEWS]);

    // One that the account may still read.
    then_own(&server);
    server.then(missing());
    server.then_news(json!([]));
    let error = verify(&device, &server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::NoSync { .. }), "{error}");
    assert_eq!(server.answers_left(), 0);
}
