//! One synchronization: which requests follow which answers.

use driftline_core::sync::{
    Binding, DeviceIdentity, Intake, LibraryNews, LibraryProgress, LibraryState, ObjectKey,
    ObjectKind, PushAnswer, RawJson, SentChange, StoredPush, SweepMode, SyncAnswer, SyncSession,
    SyncStep, SyncStop, SyncedObject, Usn,
};
use serde_json::json;

use crate::model_server::{binding, news};

fn answer(news: Option<LibraryNews>) -> SyncAnswer {
    let Binding { server, account } = binding();
    SyncAnswer {
        server,
        account,
        news: news.into_iter().collect(),
    }
}

/// News with one object.
fn chunk(state: LibraryState, cursor: &str, more: bool) -> SyncAnswer {
    answer(Some(LibraryNews {
        cursor: Some(cursor.to_owned()),
        more,
        objects: vec![SyncedObject {
            key: ObjectKey::parse("note:1").expect("a key"),
            usn: Usn::new(1),
            value: RawJson::from(&json!({"text": "a"})),
        }],
        ..news(state)
    }))
}

fn push_answer(before: &str, after: &str) -> PushAnswer {
    let Binding { server, account } = binding();
    PushAnswer {
        server,
        account,
        before: before.to_owned(),
        after: after.to_owned(),
        results: Vec::new(),
    }
}

/// A push of a note, or of the deletion of a list.
fn push(deleted_list: Option<ObjectKey>) -> StoredPush {
    let note = ObjectKey::parse("note:1").expect("a key");
    StoredPush {
        identity: DeviceIdentity::new(1),
        full_sync: 1,
        changes: vec![SentChange {
            value: deleted_list.is_none().then(|| json!({"text": "a"})),
            key: deleted_list.unwrap_or(note),
            base: Usn::new(1),
            generation: 1,
        }],
        body: String::new(),
    }
}

fn at(cursor: &str) -> LibraryProgress {
    LibraryProgress {
        cursor: Some(cursor.to_owned()),
        full_sync: 1,
        ..LibraryProgress::default()
    }
}

fn pull(cursor: Option<&str>) -> SyncStep {
    let cursor = cursor.map(str::to_owned);
    SyncStep::Pull { cursor }
}

fn take(session: &mut SyncSession, answer: SyncAnswer) -> Intake {
    session.pulled(answer).expect("a valid answer")
}

#[test]
fn a_first_synchronization_is_a_full_sync_then_changes_then_pushes() {
    let mut session = SyncSession::new(LibraryProgress::default(), None);
    assert_eq!(session.next(), pull(None));
    let intake = take(&mut session, chunk(LibraryState::Full, "a", true));
    assert_eq!(intake.binding, binding());
    assert_eq!(intake.progress.paging, Some(SweepMode::Sweep));
    assert_eq!((intake.progress.full_sync, intake.sweep), (1, None));
    assert_eq!(intake.entries.len(), 1);
    assert_eq!(intake.entries[0].full_sync, 1);

    // The device stops, and goes on where it was.
    let mut session = SyncSession::new(intake.progress, Some(intake.binding));
    assert_eq!(session.next(), pull(Some("a")));
    let intake = take(&mut session, chunk(LibraryState::Full, "b", false));
    let full_sync_ended = LibraryProgress {
        sweep: Some(SweepMode::Sweep),
        ..at("b")
    };
    assert_eq!((&intake.progress, intake.sweep), (&full_sync_ended, None));

    // The sweep waits for the changes since the start of the full sync.
    let mut session = SyncSession::new(intake.progress, Some(intake.binding));
    assert_eq!(session.next(), pull(Some("b")));
    let intake = take(&mut session, chunk(LibraryState::Changes, "c", true));
    assert_eq!((intake.entries[0].full_sync, intake.sweep), (1, None));
    let intake = take(&mut session, chunk(LibraryState::Changes, "d", false));
    assert_eq!(
        (intake.progress, intake.sweep),
        (at("d"), Some(SweepMode::Sweep))
    );

    assert_eq!(session.next(), SyncStep::Push);
    assert_eq!(
        session.pushed(&push(None), &push_answer("d", "e")),
        Ok(at("e"))
    );
    assert_eq!(session.next(), SyncStep::Push);
    session.nothing_to_push();
    assert_eq!(session.next(), SyncStep::Done);
}

#[test]
fn each_full_sync_has_a_number() {
    let mut session = SyncSession::new(at("a"), Some(binding()));
    for (cursor, number) in [("b", 2), ("c", 3)] {
        let intake = take(&mut session, chunk(LibraryState::Full, cursor, false));
        let progress = intake.progress;
        assert_eq!(
            (progress.full_sync, progress.sweep, intake.sweep),
            (number, Some(SweepMode::Sweep), None)
        );
    }
    let intake = take(&mut session, answer(None));
    assert_eq!(
        (intake.progress.full_sync, intake.sweep),
        (3, Some(SweepMode::Sweep))
    );
}

#[test]
fn a_replica_that_diverged_reconciles() {
    let mut session = SyncSession::new(at("a"), Some(binding()));
    let intake = take(&mut session, answer(Some(news(LibraryState::Diverged))));
    assert_eq!(intake.progress.cursor, None);
    assert_eq!(intake.progress.paging, Some(SweepMode::Reconcile));
    assert_eq!(intake.progress.full_sync, 2);

    let mut session = SyncSession::new(intake.progress, Some(binding()));
    assert_eq!(session.next(), pull(None));
    take(&mut session, chunk(LibraryState::Full, "b", true));
    let intake = take(&mut session, chunk(LibraryState::Full, "c", false));
    assert_eq!(
        (intake.progress.sweep, intake.sweep),
        (Some(SweepMode::Reconcile), None)
    );
    assert_eq!(session.next(), pull(Some("c")));

    // The server raises its epoch before the losses are listed.
    let mut again = SyncSession::new(intake.progress, Some(binding()));
    let intake = take(&mut again, chunk(LibraryState::Full, "d", false));
    assert_eq!(
        (intake.progress.full_sync, intake.progress.sweep),
        (3, Some(SweepMode::Reconcile))
    );
    for (mut session, number) in [(session, 2), (again, 3)] {
        let intake = take(&mut session, answer(None));
        assert_eq!(
            (intake.progress.full_sync, intake.sweep),
            (number, Some(SweepMode::Reconcile))
        );
        assert_eq!(session.next(), SyncStep::Push);
    }
}

#[test]
fn other_changes_before_a_push_are_pulled_and_its_own_are_checked() {
    let mut session = SyncSession::new(at("a"), Some(binding()));
    take(&mut session, answer(None));
    let progress = session
        .pushed(&push(None), &push_answer("b", "c"))
        .expect("an answer");
    assert_eq!(progress.cursor.as_deref(), Some("a"));
    assert_eq!(progress.ahead.as_deref(), Some("c"));
    assert_eq!(session.next(), pull(Some("a")));
    // The replica's cursor reaches the push's.
    let intake = take(
        &mut session.clone(),
        chunk(LibraryState::Changes, "c", false),
    );
    assert_eq!(intake.progress, at("c"));

    // It goes beyond: does the server still have the push?
    let mut session = SyncSession::new(progress, Some(binding()));
    take(&mut session, chunk(LibraryState::Changes, "d", false));
    assert_eq!(session.next(), pull(Some("c")));
    let mut restored = session.clone();
    let intake = take(&mut session, chunk(LibraryState::Changes, "d", false));
    assert_eq!((intake.entries.len(), intake.progress), (0, at("d")));
    assert_eq!(session.next(), SyncStep::Push);
    let intake = take(&mut restored, answer(Some(news(LibraryState::Diverged))));
    assert_eq!(
        (intake.progress.cursor, intake.progress.ahead),
        (None, None)
    );
    assert_eq!(restored.next(), pull(None));
}

/// A restored server may have begun the full sync. What the replica has of the push is not removed before that is known.
#[test]
fn a_full_sync_after_an_unchecked_push_sweeps_when_it_is_checked() {
    let progress = LibraryProgress {
        ahead: Some("c".to_owned()),
        ..at("a")
    };
    let mut session = SyncSession::new(progress, Some(binding()));
    take(&mut session, chunk(LibraryState::Full, "d", false));
    let intake = take(&mut session, answer(None));
    assert_eq!(intake.sweep, None);
    assert_eq!(session.next(), pull(Some("c")));
    let mut session = SyncSession::new(intake.progress, Some(binding()));
    assert_eq!(session.next(), pull(Some("d")));
    take(&mut session, answer(None));
    assert_eq!(session.next(), pull(Some("c")));

    let mut restored = session.clone();
    let intake = take(&mut session, chunk(LibraryState::Full, "e", true));
    assert_eq!(intake.sweep, Some(SweepMode::Sweep));
    let swept = LibraryProgress {
        full_sync: 2,
        ..at("d")
    };
    assert_eq!((intake.entries.len(), intake.progress), (0, swept));
    assert_eq!(session.next(), SyncStep::Push);

    let intake = take(&mut restored, answer(Some(news(LibraryState::Diverged))));
    assert_eq!(intake.sweep, None);
    let reconciles = LibraryProgress {
        full_sync: 3,
        paging: Some(SweepMode::Reconcile),
        ..LibraryProgress::default()
    };
    assert_eq!(intake.progress, reconciles);
    assert_eq!(restored.next(), pull(None));
}

/// The members that are deleted with a list come with the next pull.
#[test]
fn a_pull_follows_the_deletion_of_a_list() {
    let mut session = SyncSession::new(at("a"), Some(binding()));
    take(&mut session, answer(None));
    let list = ObjectKey::random(ObjectKind::List, 1);
    let progress = session.pushed(&push(Some(list)), &push_answer("a", "c"));
    let progress = progress.expect("an answer");
    assert_eq!(progress.ahead.as_deref(), Some("c"));
    assert_eq!(session.next(), pull(Some("a")));
    take(&mut session, chunk(LibraryState::Changes, "c", false));
    assert_eq!(session.next(), SyncStep::Push);
}

/// The follow that a block ends, and the members that an ended follow takes out of lists, come with the next pull.
#[test]
fn a_pull_follows_changes_of_follows_blocks_and_mutes() {
    for (key, value) in [
        ("follow:ann@local", Some(json!({}))),
        ("follow:ann@local", None),
        ("block:ann@local", Some(json!({}))),
        ("mute:ann@local", Some(json!({}))),
    ] {
        let mut session = SyncSession::new(at("a"), Some(binding()));
        take(&mut session, answer(None));
        let mut push = push(None);
        push.changes[0].key = ObjectKey::parse(key).expect("a key");
        push.changes[0].value = value;
        let progress = session.pushed(&push, &push_answer("a", "c"));
        assert_eq!(progress.expect("an answer").cursor.as_deref(), Some("a"));
        assert_eq!(session.next(), pull(Some("a")));
    }
}

#[test]
fn a_refused_device_pulls_before_it_pushes_again() {
    let mut session = SyncSession::new(at("a"), Some(binding()));
    take(&mut session, answer(None));
    for _ in 0..100 {
        assert_eq!(session.next(), SyncStep::Push);
        session.device_refused();
        assert_eq!(session.next(), pull(Some("a")));
        take(&mut session, answer(None));
    }
    assert_eq!(session.next(), SyncStep::Done, "no more than 100 pushes");
}

/// The answer says which of the changes are the device's own.
#[test]
fn changes_wait_for_the_answer_to_a_stored_push() {
    let push = push(None);
    let mut session = SyncSession::new(at("a"), Some(binding())).with_stored_push(Some(&push));
    assert_eq!(session.next(), pull(Some("a")));
    let intake = take(&mut session, chunk(LibraryState::Changes, "c", false));
    assert_eq!((intake.entries.len(), intake.progress), (0, at("a")));
    assert!(session.is_resending());
    assert_eq!(session.next(), SyncStep::Push);

    let mut refused = session.clone();
    let mut dropped = session.clone();
    assert_eq!(session.pushed(&push, &push_answer("a", "b")), Ok(at("b")));
    assert_eq!(session.next(), pull(Some("b")));
    refused.device_refused();
    assert_eq!(refused.next(), pull(Some("a")));
    dropped.nothing_to_push();
    assert_eq!(dropped.next(), pull(Some("a")));
    for mut session in [session, refused, dropped] {
        let intake = take(&mut session, chunk(LibraryState::Changes, "c", false));
        assert_eq!((intake.entries.len(), intake.progress), (1, at("c")));
        assert_eq!(session.next(), SyncStep::Push);
        assert!(!session.is_resending());
    }
}

#[test]
fn other_answers_than_changes_are_taken_before_a_stored_push_is_sent_again() {
    let earlier = StoredPush {
        full_sync: 0,
        ..push(None)
    };
    let after = |push: &StoredPush, answer| {
        let session = SyncSession::new(at("a"), Some(binding()));
        let mut session = session.with_stored_push(Some(push));
        let intake = take(&mut session, answer);
        assert!(!session.is_resending());
        (intake.entries.len(), session.next())
    };
    let changes = || chunk(LibraryState::Changes, "c", false);
    assert_eq!(after(&earlier, changes()), (1, SyncStep::Push));
    let push = push(None);
    assert_eq!(after(&push, answer(None)), (0, SyncStep::Push));
    let full = chunk(LibraryState::Full, "c", true);
    assert_eq!(after(&push, full), (1, pull(Some("c"))));
    let diverged = answer(Some(news(LibraryState::Diverged)));
    assert_eq!(after(&push, diverged), (0, pull(None)));
}

#[test]
fn an_answer_of_another_server_or_account_stops() {
    for (server, account) in [("other", "113"), ("server", "114")] {
        let mut session = SyncSession::new(at("a"), Some(binding()));
        let mut wrong = chunk(LibraryState::Changes, "b", false);
        (wrong.server, wrong.account) = (server.to_owned(), account.to_owned());
        let stop = session.pulled(wrong).expect_err("another library");
        let text = stop.to_string();
        assert!(
            text.contains(if server == "other" { "other" } else { "114" }),
            "{text}"
        );

        let mut session = SyncSession::new(at("a"), Some(binding()));
        take(&mut session, answer(None));
        let mut wrong = push_answer("a", "b");
        (wrong.server, wrong.account) = (server.to_owned(), account.to_owned());
        assert_eq!(session.pushed(&push(None), &wrong), Err(stop));
    }
}

#[test]
fn an_answer_without_progress_stops() {
    let take = |progress: LibraryProgress, answer| {
        let mut session = SyncSession::new(progress, Some(binding()));
        session.pulled(answer).map(|_| ())
    };
    let chunk_of = |state, more| chunk(state, "a", more);
    assert_eq!(
        take(at("a"), chunk_of(LibraryState::Changes, true)),
        Err(SyncStop::NoProgress)
    );
    assert_eq!(
        take(at("a"), chunk_of(LibraryState::Changes, false)),
        Ok(())
    );
    assert_eq!(
        take(at("a"), chunk_of(LibraryState::Full, true)),
        Err(SyncStop::NoProgress)
    );
    assert_eq!(
        take(at("a"), chunk_of(LibraryState::Full, false)),
        Err(SyncStop::NoProgress)
    );
    let is_invalid = |result| matches!(result, Err(SyncStop::InvalidAnswer(_)));
    assert!(is_invalid(take(
        at("a"),
        answer(Some(news(LibraryState::Changes)))
    )));
    assert!(is_invalid(take(LibraryProgress::default(), answer(None))));
    let diverged = answer(Some(news(LibraryState::Diverged)));
    assert!(is_invalid(take(LibraryProgress::default(), diverged)));
    let paging = LibraryProgress {
        paging: Some(SweepMode::Sweep),
        ..at("a")
    };
    assert!(is_invalid(take(paging.clone(), answer(None))));
    assert!(is_invalid(take(
        paging,
        chunk(LibraryState::Changes, "b", false)
    )));
}

#[test]
fn chunks_are_bounded() {
    let mut session = SyncSession::new(at("a"), Some(binding()));
    let mut chunks = 0_u64;
    let stop = loop {
        let news = LibraryNews {
            cursor: Some(chunks.to_string()),
            more: true,
            ..news(LibraryState::Changes)
        };
        match session.pulled(answer(Some(news))) {
            Ok(_) => chunks += 1,
            Err(stop) => break stop,
        }
    };
    assert_eq!((chunks, stop), (1_000_000, SyncStop::TooManyChunks));
}

#[test]
fn a_library_that_is_gone_ends_the_synchronization() {
    let mut session = SyncSession::new(at("a"), Some(binding()));
    let intake = take(&mut session, answer(Some(news(LibraryState::Gone))));
    assert!(intake.is_gone && intake.entries.is_empty());
    assert_eq!(
        (intake.progress.cursor, intake.progress.full_sync),
        (None, 1)
    );
    assert_eq!(session.next(), SyncStep::Done);
}

#[test]
fn a_full_sync_counts_down_what_its_first_chunk_says() {
    let counted = |cursor: &str, more, first, count| {
        let mut answer = chunk(LibraryState::Full, cursor, more);
        answer.news[0].first = first;
        answer.news[0].count = count;
        answer
    };
    let mut session = SyncSession::new(LibraryProgress::default(), None);
    let intake = take(&mut session, counted("c9", true, true, Some(3)));
    assert_eq!(intake.progress.objects_left, Some(2));
    // The device stops, and goes on where it was.
    let mut session = SyncSession::new(intake.progress, Some(binding()));
    assert_eq!(session.objects_left(), Some(2));
    take(&mut session, counted("c8", true, false, None));
    assert_eq!(session.objects_left(), Some(1));
    let last = take(&mut session, counted("c7", false, false, None));
    assert_eq!(last.progress.objects_left, None);
    assert_eq!(session.objects_left(), Some(0));

    // A server that lost changes: the full sync has begun before its first chunk.
    let mut session = SyncSession::new(at("a"), Some(binding()));
    take(&mut session, answer(Some(news(LibraryState::Diverged))));
    assert_eq!(session.objects_left(), None);
    take(&mut session, counted("b", true, true, Some(5)));
    assert_eq!(session.objects_left(), Some(4));
}

#[test]
fn a_value_that_cannot_be_read_stops_it() {
    let mut answer = chunk(LibraryState::Changes, "b", false);
    let surrogate = r#"{"text": "\ud800"}"#;
    answer.news[0].objects[0].value = serde_json::from_str(surrogate).expect("a raw value");
    let stopped = SyncSession::new(at("a"), Some(binding())).pulled(answer);
    assert!(matches!(stopped, Err(SyncStop::InvalidAnswer(_))));
}
