use proptest::prelude::*;

use super::*;

/// A source that is read as planned.
fn reading() -> SourceFacts {
    SourceFacts {
        is_read: true,
        polled_ago_ms: Some(2_000),
        may_be_ago_ms: 70_000,
        quiet_ms: Some(5_000),
        has_posts: true,
        ranges: RangeCounts {
            provisional: 4,
            ..RangeCounts::default()
        },
        ..SourceFacts::default()
    }
}

fn fault() -> Option<SourceFault> {
    Some(SourceFault::new("wrong_order", &"posts are out of order"))
}

fn wait() -> Option<SourceWait> {
    Some(SourceWait {
        server: "https://a.example".to_owned(),
        until_ms: 1_112_345,
        left_ms: 112_345,
    })
}

/// What changes a source, the state in words, and the verdict.
type Row = (fn(&mut SourceFacts), &'static str, Verdict);

#[test]
fn each_state_and_verdict_follows_from_the_facts() {
    use Verdict::*;
    let rows: [Row; 30] = [
        (|_| (), "reading", Provisional),
        (|of| of.ranges.provisional = 0, "reading", Settled),
        (|of| of.quiet_ms = Some(3_600_000), "quiet", Provisional),
        (|of| of.is_paused = true, "paused", Provisional),
        (|of| of.is_tracked = true, "tracked", Provisional),
        (|of| of.is_out_of_room = true, OUT_OF_ROOM, Provisional),
        (|of| of.is_read = false, "not read", Provisional),
        (
            |of| of.polled_ago_ms = Some(70_001),
            "not polled for 1m10s",
            NotPolled,
        ),
        (|of| of.polled_ago_ms = None, "not polled yet", NotPolled),
        (
            |of| (of.polled_ago_ms, of.ranges.history) = (None, 1),
            "not polled yet",
            NotPolled,
        ),
        (|of| of.is_catching_up = true, "catching up", CatchingUp),
        (|of| of.late_ms = Some(90_000), "reading", LaterThanLooks),
        (
            |of| (of.late_ms, of.ranges.provisional) = (Some(90_000), 0),
            "reading",
            LaterThanLooks,
        ),
        (|of| of.fault = fault(), FAILING, Provisional),
        (
            |of| (of.fault, of.wait) = (fault(), wait()),
            "failing: posts are out of order; https://a.example asked to wait, 1m52s left",
            Provisional,
        ),
        (
            |of| (of.fault, of.polls_fail) = (fault(), true),
            FAILING,
            PollsFail,
        ),
        (
            |of| (of.fault, of.is_read) = (fault(), false),
            FAILING,
            Provisional,
        ),
        (
            |of| (of.is_read, of.polls_fail) = (false, true),
            "not read",
            PollsFail,
        ),
        (
            |of| (of.fault, of.ranges.history) = (fault(), 1),
            FAILING,
            History,
        ),
        (
            |of| of.unprovable = Some("why".into()),
            "cannot be proven: why",
            CannotBeProven,
        ),
        (
            |of| (of.unprovable, of.ranges.history) = (Some("why".into()), 1),
            "cannot be proven: why",
            CannotBeProven,
        ),
        (
            |of| (of.ranges.history, of.history_posts) = (1, 12_400),
            "history 12,400 posts",
            History,
        ),
        (|of| of.ranges.open = 1, "reading", Gaps),
        (|of| of.ranges.unrecoverable = 1, "reading", Gaps),
        (|of| of.overdue_ms = Some(1), "reading", LooksOverdue),
        (|of| of.ranges.passed_over = 1, "reading", PassedOver),
        (|of| empty(of, 30_000), "quiet", EmptySoFar),
        (|of| empty(of, 600_000), "quiet", Empty),
        (
            |of| {
                empty(of, 600_000);
                of.polls_fail = true;
            },
            "quiet",
            PollsFail,
        ),
        (
            |of| {
                empty(of, 600_000);
                of.polled_ago_ms = None;
            },
            "not polled yet",
            NothingRead,
        ),
    ];
    for (index, (change, text, verdict)) in rows.into_iter().enumerate() {
        let mut facts = reading();
        change(&mut facts);
        assert_eq!(facts.state_text(), text, "row {index}: {facts:?}");
        assert_eq!(facts.verdict(), verdict, "row {index}: {facts:?}");
    }
}

/// A timeline that has had no post for so long.
fn empty(facts: &mut SourceFacts, ms: i64) {
    (facts.has_posts, facts.empty_ms) = (false, Some(ms));
    facts.quiet_ms = Some(ms);
    facts.ranges.provisional = 0;
}

prop_compose! {
    fn facts()(
        flags in prop::array::uniform8(any::<bool>()),
        unprovable in prop::option::of("[a-z]{1,5}"),
        polled_ago_ms in prop::option::of(0_i64..200_000),
        may_be_ago_ms in 0_i64..200_000,
        overdue_ms in prop::option::weighted(0.2, 1_i64..1_000_000),
        late_ms in prop::option::weighted(0.2, 1_i64..1_000_000),
        quiet_ms in prop::option::of(0_i64..10_000_000),
        empty_ms in prop::option::of(0_i64..1_200_000),
        ranges in prop::array::uniform5(prop_oneof![Just(0), 0_u64..3]),
    ) -> SourceFacts {
        let [is_paused, is_out_of_room, is_tracked, is_read, fails, polls_fail, has_posts, is_catching_up] = flags;
        let [open, history, provisional, passed_over, unrecoverable] = ranges;
        SourceFacts {
            is_paused, is_out_of_room, is_tracked, is_read, polls_fail, has_posts,
            is_catching_up,
            fault: fault().filter(|_| fails),
            unprovable, polled_ago_ms, may_be_ago_ms, overdue_ms, late_ms, quiet_ms, empty_ms,
            wait: None,
            ranges: RangeCounts { open, history, provisional, passed_over, unrecoverable },
            history_posts: 0,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn complete_is_said_only_of_what_polls_and_looks_prove_now(facts in facts()) {
        let verdict = facts.verdict();
        if verdict.is_complete() {
            prop_assert!(!facts.polls_fail && !facts.is_catching_up);
            prop_assert!(facts.polled_ago_ms.is_some_and(|ms| ms <= facts.may_be_ago_ms));
            prop_assert_eq!(facts.overdue_ms, None);
            prop_assert_eq!(facts.late_ms, None);
            prop_assert_eq!(&facts.unprovable, &None);
            let of = &facts.ranges;
            prop_assert_eq!(of.open + of.history + of.unrecoverable + of.passed_over, 0);
        }
        if verdict.is_settled() {
            prop_assert!(verdict.is_complete());
            prop_assert!(facts.ranges.provisional == 0 || !facts.has_posts);
        }
    }

    #[test]
    fn a_source_with_a_fault_is_never_shown_as_read(facts in facts()) {
        let state = facts.state();
        let is_to_be_read = !(facts.is_paused || facts.is_out_of_room || facts.is_tracked);
        if facts.fault.is_some() && is_to_be_read {
            prop_assert_eq!(state, SourceState::Failing);
        }
        if matches!(state, SourceState::Reading | SourceState::Quiet | SourceState::History) {
            prop_assert!(facts.fault.is_none() && facts.is_read && !facts.is_out_of_room);
            prop_assert!(facts.unprovable.is_none());
            prop_assert!(facts.polled_ago_ms.is_some_and(|ms| ms <= facts.may_be_ago_ms));
        }
        prop_assert!(facts.state_text().starts_with(state.name()));
    }
}

#[test]
fn thousands_are_separated() {
    for (number, text) in [
        (0, "0"),
        (999, "999"),
        (1_000, "1,000"),
        (12_400, "12,400"),
        (1_234_567, "1,234,567"),
    ] {
        assert_eq!(grouped(number), text);
    }
}

const FAILING: &str = "failing: posts are out of order";
