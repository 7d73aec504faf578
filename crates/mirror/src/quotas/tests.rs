use driftline_core::{
    answer::{Failure, FailureKind, Throttle},
    quota::WINDOW_EDGE_MS,
};
use driftline_runtime::now_ms;
use driftline_store::quota;

use super::{look_up_pace::LOOK_UP_SPACING, quota::Charged, *};
use crate::refresh::testing;

const CAP: u32 = 10_000;
const SCOPE: &str = "requests";

struct World {
    world: testing::World,
    credential: Credential,
}

impl World {
    /// A credential with a cap, that polls: what it takes of a month is not spent evenly.
    async fn new() -> Self {
        let world = testing::World::new().await;
        let key = world.capped_credential("capped", Some(CAP.into())).await;
        let store = &world.shared.store;
        let found = store.read(move |tx| credential::by_key(tx, key)).await;
        let credential = found.unwrap().unwrap();
        Self { world, credential }
    }

    fn quota(&self, purpose: QuotaPurpose) -> Quota {
        let quotas = &self.world.shared.access.quotas;
        quotas.of(&self.credential, SCOPE, purpose)
    }

    async fn take(&self, posts: u32) -> Charge {
        match self.quota(QuotaPurpose::Poll).take(posts).await.unwrap() {
            Permit::Sent(charge) => charge,
            Permit::Until(until_ms) => panic!("not before {until_ms}"),
        }
    }

    async fn put_back(&self, charge: Charge) {
        let quota = self.quota(QuotaPurpose::Poll);
        quota.put_back(charge).await.unwrap();
    }

    async fn settle(&self, charge: Charge, read: u32) {
        let quota = self.quota(QuotaPurpose::Poll);
        quota.settle(charge, read).await.unwrap();
    }

    async fn fail(&self, purpose: QuotaPurpose, kind: FailureKind) {
        let charge = self.take(100).await;
        let failure = Failure::new(kind, "no");
        self.quota(purpose).failed(charge, &failure).await.unwrap();
    }

    async fn ledger(&self, scope: &'static str) -> QuotaLedger {
        let key = self.credential.key();
        let store = &self.world.shared.store;
        let ledger = store.read(move |tx| quota::load(tx, key, scope));
        ledger.await.unwrap()
    }

    /// How many posts are charged to the month.
    async fn charged(&self) -> u32 {
        let month = self.ledger(MONTH).await;
        let cap = month.cap().expect("a cap");
        assert_eq!(cap.limit, CAP);
        cap.limit - cap.remaining
    }
}

#[tokio::test]
async fn a_failed_request_gives_its_posts_back_unless_the_answer_may_have_held_some() {
    let world = World::new().await;
    for (purpose, kind, charged) in [
        (QuotaPurpose::Poll, FailureKind::Unreachable, 0),
        (QuotaPurpose::Poll, FailureKind::TimedOut, 0),
        (QuotaPurpose::Poll, FailureKind::ServerError, 0),
        (QuotaPurpose::Poll, FailureKind::NotFound, 0),
        (QuotaPurpose::Poll, FailureKind::NotJson, 0),
        // It was not sent.
        (QuotaPurpose::Refresh, FailureKind::BadId, 0),
        (QuotaPurpose::Poll, FailureKind::Truncated, 100),
        (QuotaPurpose::Poll, FailureKind::TooLarge, 200),
        (QuotaPurpose::Refresh, FailureKind::BadJson, 300),
        (QuotaPurpose::Poll, FailureKind::BadId, 400),
        (QuotaPurpose::Poll, FailureKind::Throttled, 400),
    ] {
        world.fail(purpose, kind).await;
        assert_eq!(world.charged().await, charged, "{kind}");
    }
    assert_eq!(world.ledger(SCOPE).await.granted(), 11, "all were sent");
}

#[tokio::test]
async fn a_request_that_is_put_back_is_charged_when_it_is_sent() {
    let world = World::new().await;
    let alone = world.take(1).await;
    assert_eq!(world.charged().await, 1);
    world.put_back(alone).await;
    // Whether or not its window ends before it is sent.
    assert_eq!(world.charged().await, 0);
    let whole = world.quota(QuotaPurpose::Poll).take(CAP + 1).await;
    assert!(matches!(whole, Ok(Permit::Until(_))), "{whole:?}");
    let batch = world.take(100).await;
    assert_eq!(world.charged().await, 100);
    let ledger = world.ledger(SCOPE).await;
    assert_eq!(ledger.granted(), 1, "it stayed held");
    world.settle(batch, 60).await;
    assert_eq!(world.charged().await, 60);
}

#[tokio::test]
async fn posts_read_beyond_the_charge_are_charged() {
    let world = World::new().await;
    let charge = world.take(1).await;
    world.settle(charge, 20).await;
    assert_eq!(world.charged().await, 20);
    let nothing = world.take(0).await;
    world.settle(nothing, 0).await;
    assert_eq!(world.charged().await, 20);
}

#[tokio::test]
async fn a_charge_to_a_past_month_is_not_given_back_to_this_one() {
    let world = World::new().await;
    let _ = world.take(100).await;
    let before = Charge {
        of_month: Some(Charged {
            posts: 100,
            ends_at_ms: 1,
        }),
        is_late: false,
    };
    world.settle(before, 0).await;
    assert_eq!(world.charged().await, 100);
}

#[tokio::test]
async fn a_late_request_that_is_put_back_is_held_until_its_window_ends() {
    let mut world = World::new().await;
    world.credential.monthly_posts = None;
    let ends_ms = now_ms() + WINDOW_EDGE_MS - 500;
    let throttle = Throttle {
        limit: 3,
        remaining: 3,
        reset_at_ms: ends_ms,
        error_ms: 0,
    };
    let quota = world.quota(QuotaPurpose::Poll);
    let changed = quota.change(SCOPE, move |ledger, _| {
        ledger.answered(QuotaPurpose::Refresh, Some(&throttle), now_ms());
    });
    changed.await.unwrap();
    for _ in 0..10 {
        let charge = world.take(20).await;
        world.put_back(charge).await;
    }
    let ledger = world.ledger(SCOPE).await;
    let left: Vec<u32> = ledger.windows().iter().map(|w| w.remaining).collect();
    assert_eq!(left, [2], "one request was taken ten times");
    let _ = world.take(20).await;
    let _ = world.take(20).await;
    assert_eq!(world.ledger(SCOPE).await.windows()[0].remaining, 1);
}

/// Takahe, GoToSocial and Mitra announce no limit: 124 look-ups were sent within a second.
#[tokio::test]
async fn single_look_ups_are_spaced_where_no_limit_is_announced() {
    let world = World::new().await;
    let begun = tokio::time::Instant::now();
    for _ in 0..5 {
        let _ = world.take(1).await;
        let _ = world.take(40).await;
    }
    assert!(begun.elapsed() >= 4 * LOOK_UP_SPACING);
}
