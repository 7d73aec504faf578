use driftline_core::{answer::Throttle, api::Api, quota::RequestKind};
use driftline_store::{
    Target, clock,
    credential::{self, NewCredential},
};

use super::*;

const CAP: u32 = 10_000;
const SCOPE: &str = "requests";

struct World {
    quotas: Quotas,
    credential: Credential,
    _folder: tempfile::TempDir,
}

impl World {
    /// A credential with a cap, that polls: what it takes of a month is not spent evenly.
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("driftline.db");
        let open = move || Store::open(Target::Sqlite { path }).unwrap();
        let store = tokio::task::spawn_blocking(open).await.unwrap();
        let new = NewCredential {
            name: "capped".into(),
            origin: "https://x.test".into(),
            api: Api::X,
            place: None,
            monthly_posts: Some(i64::from(CAP)),
        };
        let id = store
            .write(clock::root(), move |tx| credential::add(tx, &new, 0))
            .await
            .unwrap()
            .unwrap();
        let found = store.read(move |tx| credential::by_id(tx, id)).await;
        Self {
            quotas: Quotas::new(store, 0.5),
            credential: found.unwrap().unwrap(),
            _folder: folder,
        }
    }

    async fn take(&self, posts: u32) -> Charge {
        let taken = self
            .quotas
            .take(&self.credential, SCOPE, QuotaPurpose::Poll, posts)
            .await
            .unwrap();
        match taken {
            Permit::Sent(charge) => charge,
            Permit::Until(until_ms) => panic!("not before {until_ms}"),
        }
    }

    async fn put_back(&self, charge: Charge) {
        self.quotas
            .put_back(&self.credential, SCOPE, QuotaPurpose::Poll, charge)
            .await
            .unwrap();
    }

    async fn settle(&self, charge: Charge, read: u32) {
        let settled = self.quotas.settle(&self.credential, charge, read);
        settled.await.unwrap();
    }

    async fn fail(&self, purpose: QuotaPurpose, kind: FailureKind) {
        let charge = self.take(100).await;
        let settled = self
            .quotas
            .settle_failed(&self.credential, purpose, charge, kind);
        settled.await.unwrap();
    }

    async fn ledger(&self, scope: &'static str) -> QuotaLedger {
        let id = self.credential.id;
        let ledger = self.quotas.store.read(move |tx| quota::load(tx, id, scope));
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
async fn a_request_that_read_nothing_gives_its_posts_back() {
    let world = World::new().await;
    for kind in [
        FailureKind::Unreachable,
        FailureKind::TimedOut,
        FailureKind::ServerError,
        FailureKind::Throttled,
        FailureKind::NotFound,
        FailureKind::NotJson,
    ] {
        world.fail(QuotaPurpose::Poll, kind).await;
        assert_eq!(world.charged().await, 0, "{kind}");
    }
    assert_eq!(world.ledger(SCOPE).await.granted(), 6, "all were sent");
    world.fail(QuotaPurpose::Refresh, FailureKind::BadId).await;
    assert_eq!(world.charged().await, 0, "it was not sent");
}

#[tokio::test]
async fn unreadable_answers_stay_charged() {
    let world = World::new().await;
    world.fail(QuotaPurpose::Poll, FailureKind::Truncated).await;
    world.fail(QuotaPurpose::Poll, FailureKind::TooLarge).await;
    world
        .fail(QuotaPurpose::Refresh, FailureKind::BadJson)
        .await;
    world.fail(QuotaPurpose::Poll, FailureKind::BadId).await;
    assert_eq!(world.charged().await, 400);
}

#[tokio::test]
async fn a_held_request_charges_no_posts() {
    let world = World::new().await;
    let charge = world.take(100).await;
    assert_eq!(world.charged().await, 100);
    world.put_back(charge).await;
    // Whether or not its window ends before it is sent.
    assert_eq!(world.charged().await, 0);
}

#[tokio::test]
async fn a_held_request_is_charged_when_it_is_sent() {
    let world = World::new().await;
    let alone = world.take(1).await;
    world.put_back(alone).await;
    let batch = world.take(100).await;
    assert_eq!(world.charged().await, 100);
    assert_eq!(world.ledger(SCOPE).await.granted(), 1, "it was held");
    world.settle(batch, 60).await;
    assert_eq!(world.charged().await, 60);
}

#[tokio::test]
async fn a_held_request_stays_held_when_the_month_has_no_posts_left() {
    let world = World::new().await;
    let alone = world.take(1).await;
    world.put_back(alone).await;
    let (quotas, credential) = (&world.quotas, &world.credential);
    let whole = quotas
        .take(credential, SCOPE, QuotaPurpose::Poll, CAP + 1)
        .await;
    assert!(matches!(whole, Ok(Permit::Until(_))), "{whole:?}");
    let _ = world.take(1).await;
    assert_eq!(world.ledger(SCOPE).await.granted(), 1);
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
    };
    let changed = world
        .quotas
        .change(&world.credential, SCOPE, move |ledger| {
            ledger.answered(RequestKind::LookUp, Some(&throttle), now_ms());
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
