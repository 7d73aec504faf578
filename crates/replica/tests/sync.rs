//! A replica and a server that answers from a script: lost answers, interrupted pulls, refusals.
#![allow(clippy::unwrap_used)]

mod support;

use std::{fs, os::unix::fs::PermissionsExt as _};

use driftline_core::sync::{ConflictReason, DeviceIdentity, ObjectKey, StoredPush};
use driftline_replica::{Replica, ReplicaError, Resolution, Retries};
use serde_json::{Value, json};
use support::{
    ACCOUNT, Answer, Device, InitOutcome, QUICK, SERVER, Server, TOKEN,
    notes::{OTHER, POST, chunk, note, object, status, stored, synced, texts},
};

/// A device that has synced two notes.
async fn with_two_notes(server: &Server) -> Device {
    let notes = json!([object(POST, 3, "a"), object(OTHER, 4, "b")]);
    synced(server, notes).await
}

/// Syncs a device, which gets no answer to one of its requests.
async fn lose_answer(device: &Device, server: &Server) {
    let error = device.sync(server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn an_interrupted_full_sync_goes_on_at_its_cursor() {
    let server = Server::start();
    let device = Device::made(&server).await;
    let newest = json!([object(OTHER, 9, "b")]);
    server.then_news(chunk("full", "c5", true, newest, json!([])));
    server.then(Answer::Lost);
    lose_answer(&device, &server).await;
    let cursors = server.requests();
    let cursors: Vec<Value> = cursors.iter().map(support::Request::cursor).collect();
    assert_eq!(cursors, [Value::Null, json!("c5")]);
    assert_eq!(texts(&device.objects().await), [(OTHER, "b")]);
    assert!(!status(&device).await.is_complete);

    let oldest = json!([object(POST, 3, "a")]);
    server.then_news(chunk("full", "c9", false, oldest, json!([])));
    server.then_news(json!([]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pulled, report.work.removed), (1, 0));
    let cursors = server.requests();
    let cursors: Vec<Value> = cursors.iter().map(support::Request::cursor).collect();
    assert_eq!(cursors, [json!("c5"), json!("c9")]);
    assert_eq!(texts(&device.objects().await), [(POST, "a"), (OTHER, "b")]);
    let status = status(&device).await;
    assert!(status.is_complete);
    assert_eq!(status.synced_at_ms, Some(support::NOW_MS));
}

/// The sizes that the requests since the last call have asked for.
fn sizes(server: &Server) -> Vec<Value> {
    let requests = server.requests().into_iter();
    requests
        .map(|request| request.json()["max_bytes"].clone())
        .collect()
}

#[tokio::test]
async fn after_a_lost_answer_and_in_a_full_sync_that_goes_on_chunks_are_small() {
    let server = Server::start();
    let device = Device::made(&server).await;
    let retries = Retries {
        max_tries: 2,
        backoff: QUICK,
    };
    server.then(Answer::Lost);
    let newest = json!([object(OTHER, 9, "b")]);
    server.then_news(chunk("full", "c5", true, newest, json!([])));
    server.then(Answer::Lost);
    server.then(Answer::Lost);
    let error = device.sync_with(&server, retries, false).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Unreachable { .. }), "{error}");
    assert_eq!(sizes(&server), [125_000, 50_000, 50_000, 50_000]);
    let oldest = json!([object(POST, 3, "a")]);
    server.then_news(chunk("full", "c9", false, oldest, json!([])));
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    assert_eq!(sizes(&server), [25_000, 25_000]);
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    assert_eq!(sizes(&server), [125_000]);
}

#[tokio::test]
async fn chunks_become_smaller_with_each_sync_whose_answer_is_lost() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    // Nothing was lost by a request that was not sent.
    let error = device.sync(&Server::refusing()).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Unreachable { .. }), "{error}");
    for bytes in [125_000, 50_000, 25_000] {
        server.then(Answer::Lost);
        device.sync(&server).await.unwrap_err();
        assert_eq!(sizes(&server), [bytes]);
    }
    let objects = json!([object(POST, 10, "a")]);
    server.then_news(chunk("changes", "c10", false, objects, json!([])));
    device.sync(&server).await.unwrap();
    assert_eq!(sizes(&server), [12_500]);
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    assert_eq!(sizes(&server), [125_000]);
}

#[tokio::test]
async fn answers_of_a_proxy_are_told_from_refusals() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    let json = |status| Answer::Json(status, json!({"error": "maintenance"}));
    for (answer, may_be_of_proxy) in [
        (json(302), true),
        (json(404), true),
        (Answer::Events("<html>maintenance</html>"), true),
        (json(401), false),
        (json(400), false),
    ] {
        server.then(answer.clone());
        let error = device.sync(&server).await.unwrap_err();
        assert_eq!(error.may_be_of_proxy(), may_be_of_proxy, "{answer:?}");
    }
}

#[tokio::test]
async fn a_chunk_that_comes_twice_changes_nothing_more() {
    let server = Server::start();
    let device = with_two_notes(&server).await;
    for _ in 0..2 {
        let gone = json!([{"key": OTHER, "usn": "11"}]);
        let changed = json!([object(POST, 10, "c")]);
        server.then_news(chunk("changes", "c11", false, changed, gone));
        let report = device.sync(&server).await.unwrap();
        assert_eq!(report.new_conflicts, 0);
        assert_eq!(texts(&device.objects().await), [(POST, "c")]);
    }
    assert!(server.requests().iter().all(|request| !request.is_push()));
}

#[tokio::test]
async fn a_push_whose_answer_was_lost_is_sent_again_as_it_was() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    assert!(device.edit(POST, Some(note("a"))).await);
    assert!(!device.edit(POST, Some(note("a"))).await);
    server.then_news(json!([]));
    server.then(Answer::Lost);
    lose_answer(&device, &server).await;
    let [pull, first] = server.requests().try_into().unwrap();
    assert!(!pull.is_push() && first.is_push());
    assert_eq!(first.json()["sequence"], "1");
    assert!(status(&device).await.is_push_pending);

    // Edited in between.
    assert!(device.edit(POST, Some(note("b"))).await);
    server.then_news(json!([]));
    server.then(stored(POST, 10, "c9", "c10"));
    server.then(stored(POST, 11, "c10", "c11"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pushed, report.dirty), (2, 0));
    let [_, again, second] = server.requests().try_into().unwrap();
    assert_eq!(again.body, first.body);
    let hash = StoredPush {
        identity: DeviceIdentity::new(0),
        full_sync: 0,
        changes: Vec::new(),
        body: first.body,
    };
    let second = second.json();
    assert_eq!(second["sequence"], "2");
    assert_eq!(second["previous"], hash.hash());
    assert_eq!(
        second["changes"],
        json!([{"key": POST, "base": "10", "value": note("b")}])
    );
    let status = status(&device).await;
    assert_eq!(status.cursor.as_deref(), Some("c11"));
    assert!(!status.is_push_pending);
}

#[tokio::test]
async fn a_device_of_which_the_server_has_another_record_takes_another_identity() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(POST, Some(note("a"))).await;
    server.then_news(json!([]));
    server.then(Answer::Json(409, json!({"error": "device"})));
    server.then_news(json!([]));
    server.then(stored(POST, 10, "c9", "c10"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pushed, report.dirty), (1, 0));
    let [_, first, _, second] = server.requests().try_into().unwrap();
    let (first, second) = (first.json(), second.json());
    assert_ne!(first["device"], second["device"]);
    assert_eq!(second["device"], status(&device).await.device.as_str());
    assert_eq!(
        (&second["sequence"], &second["previous"]),
        (&json!("1"), &json!(""))
    );
    assert_eq!(first["changes"], second["changes"]);
}

#[tokio::test]
async fn a_token_that_has_ended_costs_nothing_and_is_replaced() {
    let server = Server::start();
    let device = synced(&server, json!([object(POST, 3, "a")])).await;
    device.edit(OTHER, Some(note("b"))).await;
    server.then(Answer::Json(401, json!({"error": "unknown token"})));
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(
        error,
        ReplicaError::Unauthorized { status: 401, .. }
    ));
    assert!(
        error.to_string().contains("driftline replica init"),
        "{error}"
    );
    let before = status(&device).await;
    assert_eq!((before.dirty, before.cursor.as_deref()), (1, Some("c9")));

    let device = device.with_token("another-token");
    server.then_news(json!([]));
    assert_eq!(
        device.init(&server).await.unwrap(),
        InitOutcome::TokenRenewed
    );
    assert_eq!(status(&device).await, before);
    let file = device.folder().join("token");
    assert_eq!(fs::read_to_string(&file).unwrap(), "another-token\n");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.requests();
    server.then_news(json!([]));
    server.then(stored(OTHER, 10, "c9", "c10"));
    device.sync(&server).await.unwrap();
    for request in server.requests() {
        assert_eq!(request.authorization, "Bearer another-token");
    }
}

#[tokio::test]
async fn another_account_and_another_server_get_nothing() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(POST, Some(note("a"))).await;
    let before = status(&device).await;
    for (store, account) in [(SERVER, "999"), ("5c01", ACCOUNT)] {
        let answer = json!({"server": store, "account": account, "news": []});
        for _ in 0..2 {
            server.then(Answer::Json(200, answer.clone()));
        }
        let of_sync = device.sync(&server).await.unwrap_err();
        let of_init = device.init(&server).await.unwrap_err();
        for error in [of_sync, of_init] {
            match store == SERVER {
                true => assert!(matches!(error, ReplicaError::OtherAccount { .. })),
                false => assert!(matches!(error, ReplicaError::OtherServer { .. })),
            }
            assert!(error.to_string().contains("Nothing was pushed"), "{error}");
        }
    }
    assert!(server.requests().iter().all(|request| !request.is_push()));
    assert_eq!(status(&device).await, before);
    let token = fs::read_to_string(device.folder().join("token")).unwrap();
    assert_eq!(token.trim(), TOKEN);
}

#[tokio::test]
async fn no_error_shows_the_token() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    let echo = json!({"error": format!("not {TOKEN}"), "server": "", "account": "", "news": TOKEN});
    for code in [200, 302, 400, 401, 403, 404, 409, 413, 422, 429, 500, 503] {
        server.then(Answer::Json(code, echo.clone()));
        let error = device.sync(&server).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(TOKEN), "{code}: {shown}");
    }
    assert_eq!(server.answers_left(), 0);
    let shown = format!("{:?}", device.client(&server));
    assert!(!shown.contains(TOKEN), "{shown}");
}

#[tokio::test]
async fn a_request_is_sent_four_times_at_most() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    let retries = Retries {
        backoff: QUICK,
        ..Retries::few()
    };
    let busy = || Answer::Json(503, json!({"error": "busy"}));
    for answer in [busy(), Answer::Lost, busy()] {
        server.then(answer);
    }
    server.then_news(json!([]));
    device.sync_with(&server, retries, false).await.unwrap();
    assert_eq!(server.requests().len(), 4);
    for _ in 0..4 {
        server.then(busy());
    }
    let error = device.sync_with(&server, retries, false).await.unwrap_err();
    assert!(
        matches!(error, ReplicaError::Busy { status: 503, .. }),
        "{error}"
    );
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn most_of_a_replica_is_removed_only_if_a_person_agrees() {
    let server = Server::start();
    let key = |number: u64| format!("note:https://a.example/{number}");
    let objects: Vec<Value> = (1..=50).map(|n| object(&key(n), n, "a")).collect();
    let device = synced(&server, json!(objects)).await;
    // In two chunks, of which the first one alone is not many.
    let gone = |numbers: std::ops::RangeInclusive<u64>| {
        let gone = numbers.map(|n| json!({"key": key(n), "usn": (100 + n).to_string()}));
        json!(gone.collect::<Vec<_>>())
    };
    for is_agreed in [false, false, true] {
        if !is_agreed && status(&device).await.cursor.as_deref() == Some("c9") {
            server.then_news(chunk("changes", "c110", true, json!([]), gone(1..=10)));
        }
        server.then_news(chunk("changes", "c130", false, json!([]), gone(11..=30)));
        let outcome = device.sync_with(&server, support::ONCE, is_agreed).await;
        let left = device.objects().await.len();
        match is_agreed {
            false => {
                let error = outcome.unwrap_err();
                assert!(
                    matches!(
                        error,
                        ReplicaError::ManyRemoved {
                            removed: 30,
                            all: 50,
                            ..
                        }
                    ),
                    "{error}"
                );
                assert_eq!(left, 40);
            }
            true => assert_eq!((outcome.unwrap().work.removed, left), (20, 20)),
        }
    }
}

#[tokio::test]
async fn what_a_server_lost_is_offered_back() {
    let server = Server::start();
    let device = with_two_notes(&server).await;
    let diverged = json!([{"library": "account", "state": "diverged"}]);
    server.then_news(diverged);
    server.then_news(chunk(
        "full",
        "d3",
        false,
        json!([object(POST, 3, "a")]),
        json!([]),
    ));
    server.then_news(json!([]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.removed, report.open_conflicts), (0, 1));
    assert!(server.requests().iter().all(|request| !request.is_push()));

    let replica = device.open().await;
    let conflicts = replica.conflicts(false).await.unwrap();
    let [conflict] = conflicts.as_slice() else {
        panic!("{conflicts:?}");
    };
    assert_eq!(conflict.reason, ConflictReason::LostByServer);
    assert_eq!(conflict.mine, Some(note("b")));
    let resolved = replica
        .resolve(conflict.id, Resolution::Mine)
        .await
        .unwrap();
    assert_eq!(resolved.as_str(), OTHER);
    let again = replica.resolve(conflict.id, Resolution::Mine).await;
    assert!(
        matches!(again, Err(ReplicaError::NoConflict(_))),
        "{again:?}"
    );
    replica.close().await;
    server.then_news(json!([]));
    server.then(stored(OTHER, 4, "d3", "d4"));
    device.sync(&server).await.unwrap();
    let push = server.requests().pop().unwrap().json();
    assert_eq!(
        push["changes"],
        json!([{"key": OTHER, "base": "0", "value": note("b")}])
    );
}

#[tokio::test]
async fn what_the_server_refuses_is_a_conflict_and_not_sent_again() {
    let server = Server::start();
    let device = synced(&server, json!([object(POST, 3, "a")])).await;
    device.edit(POST, None).await;
    device.edit(OTHER, Some(note("b"))).await;
    server.then_news(json!([]));
    let results = json!([
        {"key": POST, "status": "conflict", "usn": "8", "value": note("c")},
        {"key": OTHER, "status": "refused", "reason": "there is no such post"},
    ]);
    let answer = json!({
        "server": SERVER, "account": ACCOUNT, "before": "c9", "after": "c9", "results": results,
    });
    server.then(Answer::Json(200, answer));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(
        (report.work.pushed, report.dirty, report.open_conflicts),
        (0, 0, 2)
    );
    assert_eq!(texts(&device.objects().await), [(POST, "c")]);
    let replica = device.open().await;
    let conflicts = replica.conflicts(false).await.unwrap();
    let details = conflicts.iter().map(|of| of.detail.as_deref());
    assert_eq!(
        details.collect::<Vec<_>>(),
        [None, Some("there is no such post")]
    );
    replica
        .resolve(conflicts[1].id, Resolution::Theirs)
        .await
        .unwrap();
    let open = replica.conflicts(false).await.unwrap();
    assert_eq!((open.len(), open[0].mine.as_ref()), (1, None));
    assert_eq!(replica.conflicts(true).await.unwrap().len(), 2);
    replica.close().await;
}

#[tokio::test]
async fn a_push_that_is_too_long_is_sent_in_parts() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(POST, Some(note("a"))).await;
    device.edit(OTHER, Some(note("b"))).await;
    server.then_news(json!([]));
    server.then(Answer::Json(413, json!({"error": "too long"})));
    server.then(stored(POST, 10, "c9", "c10"));
    server.then(stored(OTHER, 11, "c10", "c11"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(
        (report.work.pushed, report.dirty, report.open_conflicts),
        (2, 0, 0)
    );
    let requests = server.requests();
    let sequences: Vec<Value> = requests[1..]
        .iter()
        .map(|request| request.json()["sequence"].clone())
        .collect();
    assert_eq!(sequences, ["1", "1", "2"]);
}

#[tokio::test]
async fn a_change_that_an_older_server_rejects_holds_up_no_other() {
    let server = Server::start();
    let device = synced(&server, json!([object(POST, 3, "a")])).await;
    device.edit(POST, Some(note("b"))).await;
    device.edit(OTHER, Some(note("c"))).await;
    server.then_news(json!([]));
    let rejected = |status| Answer::Json(status, json!({"error": "an invalid key"}));
    server.then(rejected(422));
    server.then(rejected(400));
    server.then(stored(OTHER, 10, "c9", "c10"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(
        (report.work.pushed, report.dirty, report.open_conflicts),
        (1, 0, 1)
    );
    assert_eq!(texts(&device.objects().await), [(POST, "a"), (OTHER, "c")]);
    let replica = device.open().await;
    let conflict = replica.conflicts(false).await.unwrap().remove(0);
    replica.close().await;
    assert_eq!(conflict.key.as_str(), POST);
    assert_eq!(conflict.reason, ConflictReason::Refused);
    assert_eq!(conflict.detail.as_deref(), Some("an invalid key"));
    assert_eq!(conflict.mine, Some(note("b")));
    let pushes = server.requests()[1..]
        .iter()
        .map(|request| request.json())
        .map(|push| {
            (
                push["sequence"].clone(),
                push["changes"].as_array().unwrap().len(),
            )
        })
        .collect::<Vec<_>>();
    assert_eq!(pushes, [(json!("1"), 2), (json!("1"), 1), (json!("1"), 1)]);
}

#[tokio::test]
async fn an_answer_without_the_servers_words_refuses_no_change() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(POST, Some(note("a"))).await;
    server.then_news(json!([]));
    server.then(Answer::Json(400, json!("Bad Request")));
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Rejected { .. }), "{error}");
    let status = status(&device).await;
    assert_eq!((status.dirty, status.open_conflicts), (1, 0));
}

#[tokio::test]
async fn devices_change_what_the_protocol_lets_them() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    let replica = device.open().await;
    let edit = async |key: &str, value: Option<Value>| {
        let key = ObjectKey::parse(key).unwrap();
        replica.edit(key, value).await
    };
    for (key, value) in [
        ("later:1", Some(json!({}))),
        ("marker:home", None),
        ("profile:self", None),
    ] {
        let refused = edit(key, value).await;
        assert!(matches!(refused, Err(ReplicaError::ReadOnly(_))), "{key}");
    }
    let filter = format!("filter:{:032x}", 1);
    for (key, value) in [(POST, note("")), (filter.as_str(), json!({"title": "x"}))] {
        let refused = edit(key, Some(value)).await;
        assert!(matches!(refused, Err(ReplicaError::Value(_))), "{key}");
    }
    for (value, changed, dirty) in [
        (Some(note("a")), true, true),
        (Some(note("a")), false, true),
        (None, true, false),
        (None, false, false),
    ] {
        let edited = edit(POST, value).await.unwrap();
        assert_eq!((edited.changed, edited.dirty), (changed, dirty));
    }
    replica.close().await;
}

#[tokio::test]
async fn a_folder_without_a_replica_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let none = Replica::open(folder.path()).await.unwrap_err();
    assert!(matches!(none, ReplicaError::NoReplica(_)), "{none}");
    fs::write(folder.path().join("replica.db"), "").unwrap();
    let none = Replica::open(folder.path()).await.unwrap_err();
    assert!(matches!(none, ReplicaError::NoReplica(_)), "{none}");
}

#[tokio::test]
async fn a_token_that_ends_in_the_middle_of_a_sync_costs_nothing() {
    let server = Server::start();
    let device = Device::made(&server).await;
    device.edit(POST, Some(note("a"))).await;
    let unauthorized = || Answer::Json(401, json!({"error": "unknown token"}));
    let newest = json!([object(OTHER, 9, "b")]);
    server.then_news(chunk("full", "c5", true, newest, json!([])));
    server.then(unauthorized());
    let error = device.sync(&server).await.unwrap_err();
    assert!(
        matches!(error, ReplicaError::Unauthorized { .. }),
        "{error}"
    );
    let before = status(&device).await;
    assert_eq!((before.dirty, before.cursor.as_deref()), (1, Some("c5")));

    // Another account must not get what waits here.
    let device = device.with_token("another-token");
    let other = json!({"server": SERVER, "account": "999", "news": []});
    server.then(Answer::Json(200, other));
    let error = device.init(&server).await.unwrap_err();
    assert!(
        matches!(error, ReplicaError::OtherAccount { .. }),
        "{error}"
    );
    server.then_news(json!([]));
    device.init(&server).await.unwrap();
    assert_eq!(status(&device).await, before);

    // The next token ends before the push.
    server.requests();
    server.then_news(chunk("full", "c9", false, json!([]), json!([])));
    server.then_news(json!([]));
    server.then(unauthorized());
    let error = device.sync(&server).await.unwrap_err();
    assert!(
        matches!(error, ReplicaError::Unauthorized { .. }),
        "{error}"
    );
    let [last_chunk, _, first] = server.requests().try_into().unwrap();
    assert_eq!(last_chunk.cursor(), "c5");
    server.then_news(json!([]));
    server.then(stored(POST, 10, "c9", "c10"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pushed, report.dirty), (1, 0));
    assert_eq!(server.requests().pop().unwrap().body, first.body);
    assert_eq!(texts(&device.objects().await), [(POST, "a"), (OTHER, "b")]);
}

#[tokio::test]
async fn a_list_takes_its_accounts_along_without_a_question() {
    let server = Server::start();
    let list = format!("list:{:032x}", 1);
    let member = |number: u64| format!("list-member:{:032x}:ann{number}@a.example", 1);
    let mut keys: Vec<String> = (1..=30).map(member).collect();
    keys.sort();
    let other = format!("list-member:{:032x}:ann@a.example", 2);
    let here = keys.iter().chain([&list, &other]).zip(1_u64..);
    let objects = here.map(|(key, usn)| json!({"key": key, "usn": usn.to_string(), "value": {}}));
    let device = synced(&server, json!(objects.collect::<Vec<_>>())).await;
    assert!(device.edit(&list, None).await);
    let left = device.objects().await.into_iter().map(|(key, _)| key);
    assert_eq!(left.collect::<Vec<_>>(), [other]);

    keys.push(list);
    let usns = || keys.iter().zip(40_u64..);
    let results =
        usns().map(|(key, usn)| json!({"key": key, "status": "done", "usn": usn.to_string()}));
    let answer = json!({
        "server": SERVER, "account": ACCOUNT, "before": "c9", "after": "c70",
        "results": results.collect::<Vec<_>>(),
    });
    server.then_news(json!([]));
    server.then(Answer::Json(200, answer));
    let gone = usns().map(|(key, usn)| json!({"key": key, "usn": usn.to_string()}));
    let gone = json!(gone.collect::<Vec<_>>());
    server.then_news(chunk("changes", "c70", false, json!([]), gone));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pushed, report.work.removed), (31, 0));
    assert_eq!((report.dirty, report.open_conflicts), (0, 0));
}

#[tokio::test]
async fn what_another_device_changes_during_a_reconciliation_is_not_lost() {
    let server = Server::start();
    let device = with_two_notes(&server).await;
    server.then_news(json!([{"library": "account", "state": "diverged"}]));
    let full = json!([object(POST, 3, "a")]);
    server.then_news(chunk("full", "d8", false, full, json!([])));
    server.then(Answer::Lost);
    device.sync(&server).await.unwrap_err();
    assert!(!status(&device).await.is_complete);
    let changed = json!([object(OTHER, 9, "c")]);
    server.then_news(chunk("changes", "d9", false, changed, json!([])));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.removed, report.open_conflicts), (0, 0));
    assert!(status(&device).await.is_complete);
    assert_eq!(texts(&device.objects().await), [(POST, "a"), (OTHER, "c")]);
}
