//! Mastodon's look-ups, and what goes wrong with them.

use driftline_core::upstream_id::UpstreamId;
use driftline_sim::{
    BatchAbility, FaultKind, FaultsConfig, Mishap, PoisonAnswer, QuotaCut, Revocation, SpanMs,
    ThrottleRule, WorldConfig,
    http::{SetClock, SimServer},
};

use crate::raw::{HOME, Raw, ask, frozen_server};

async fn home_ids(server: &SimServer) -> Vec<String> {
    ask(server, HOME, "reader").await.ids()
}

fn path(ids: &[String]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("id[]={id}")).collect();
    format!("/api/v1/statuses?{}", ids.join("&"))
}

async fn look_up(server: &SimServer, ids: &[String], token: &str) -> Raw {
    ask(server, &path(ids), token).await
}

async fn plain() -> (SimServer, SetClock) {
    frozen_server(WorldConfig::punctual(20.0).into()).await
}

#[tokio::test]
async fn several_posts_come_in_the_order_asked_without_those_that_are_absent() {
    let (server, _) = plain().await;
    let mut ids = home_ids(&server).await;
    ids.truncate(18);
    ids.reverse();
    let mut asked = ids.clone();
    asked.insert(3, "12".into());
    asked.push("nonsense".into());
    assert_eq!(look_up(&server, &asked, "t").await.ids(), ids);
    let encoded = path(&asked).replace("[]", "%5B%5D");
    assert_eq!(ask(&server, &encoded, "t").await.ids(), ids);
    let twice = [ids.clone(), ids.clone()].concat();
    assert_eq!(look_up(&server, &twice, "t").await.ids(), ids, "each once");
    assert_eq!(server.traffic().batches, 3);
    assert_eq!(server.traffic().posts_refreshed, 3 * 18);
    let none = ask(&server, "/api/v1/statuses", "t").await;
    assert_eq!((none.status(), none.body()), ("200", "[]"));
}

#[tokio::test]
async fn more_than_twenty_are_refused() {
    let (server, _) = plain().await;
    let ids = home_ids(&server).await;
    assert_eq!(look_up(&server, &ids[..20], "t").await.ids().len(), 20);
    let refused = look_up(&server, &ids[..21], "t").await;
    assert_eq!(refused.status(), "422");
    assert!(refused.json()["error"].is_string());
}

#[tokio::test]
async fn batches_can_be_shuffled_or_unknown() {
    for (ability, status) in [
        (BatchAbility::Served, "200"),
        (BatchAbility::NotFound, "404"),
        (BatchAbility::MethodNotAllowed, "405"),
    ] {
        let mut world = WorldConfig::punctual(20.0);
        world.batches.ability = ability;
        world.batches.shuffled = true;
        let (server, _) = frozen_server(world.into()).await;
        let mut ids = home_ids(&server).await;
        ids.truncate(20);
        let answer = look_up(&server, &ids, "t").await;
        assert_eq!(answer.status(), status);
        if status == "200" {
            let mut shown = answer.ids();
            assert_ne!(shown, ids);
            shown.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(shown, ids);
        }
        let one = ask(&server, &format!("/api/v1/statuses/{}", ids[0]), "t").await;
        assert_eq!(one.status(), "200", "one by one works everywhere");
    }
}

#[tokio::test]
async fn the_history_of_a_post_has_its_versions_and_its_thread_is_empty() {
    let mut world = WorldConfig::punctual(20.0);
    world.edited_share = 1.0;
    world.edited_after_ms = SpanMs::new(100_000, 100_000);
    let (server, clock) = frozen_server(world.into()).await;
    let id = home_ids(&server).await.remove(0);
    let post = format!("/api/v1/statuses/{id}");
    let versions = async || ask(&server, &format!("{post}/history"), "t").await.json();
    let before = ask(&server, &post, "t").await.json();
    let version = |of: &serde_json::Value, at: &str| (of["content"].clone(), of[at].clone());
    let found = versions().await;
    assert_eq!(found.as_array().expect("a list").len(), 1);
    assert_eq!(
        version(&found[0], "created_at"),
        version(&before, "created_at")
    );
    clock.set(clock.now_ms() + 150_000);
    let after = ask(&server, &post, "t").await.json();
    assert_ne!(after["content"], before["content"]);
    let found = versions().await;
    assert_eq!(found.as_array().expect("a list").len(), 2);
    assert_eq!(
        version(&found[0], "created_at"),
        version(&before, "created_at")
    );
    assert_eq!(
        version(&found[1], "created_at"),
        version(&after, "edited_at")
    );
    assert_eq!(found[0]["account"], before["account"]);
    let thread = ask(&server, &format!("{post}/context"), "t").await;
    assert_eq!(thread.body(), r#"{"ancestors":[],"descendants":[]}"#);
    for path in ["history", "context"] {
        let unknown = ask(&server, &format!("/api/v1/statuses/12/{path}"), "t").await;
        assert_eq!(unknown.status(), "404", "{path}");
    }
}

#[tokio::test]
async fn credentials_need_a_token() {
    let (server, _) = plain().await;
    for (path, key) in [("accounts", "acct"), ("apps", "name")] {
        let path = format!("/api/v1/{path}/verify_credentials");
        assert!(ask(&server, &path, "t").await.json()[key].is_string());
        assert_eq!(ask(&server, &path, "").await.status(), "401");
    }
}

#[tokio::test]
async fn poison_spoils_every_batch_that_names_it_and_itself_alone() {
    for (answer, status) in [
        (PoisonAnswer::BadRequest, "400"),
        (PoisonAnswer::Unprocessable, "422"),
        (PoisonAnswer::InternalError, "500"),
        (PoisonAnswer::Forbidden, "403"),
    ] {
        let (server, _) = plain().await;
        let ids = home_ids(&server).await;
        server.change_faults(|faults| {
            faults.poison_ids = vec![UpstreamId::new(ids[7].clone())];
            faults.poison_answer = answer;
        });
        assert_eq!(look_up(&server, &ids[..10], "t").await.status(), status);
        assert_eq!(look_up(&server, &ids[7..8], "t").await.status(), status);
        let one = ask(&server, &format!("/api/v1/statuses/{}", ids[7]), "t").await;
        assert_eq!(one.status(), status);
        assert_eq!(look_up(&server, &ids[..7], "t").await.ids().len(), 7);
    }
}

#[tokio::test]
async fn a_revoked_token_gets_401_from_its_time_on() {
    let (server, clock) = plain().await;
    server.change_faults(|faults| {
        faults.revocations.push(Revocation {
            token: "t".into(),
            after_ms: 61_000,
        });
    });
    assert_eq!(ask(&server, HOME, "t").await.status(), "200");
    clock.set(clock.now_ms() + 1_000);
    assert_eq!(ask(&server, HOME, "t").await.status(), "401");
    assert_eq!(ask(&server, HOME, "u").await.status(), "200");
}

#[tokio::test]
async fn quotas_shrink_by_others_and_by_cuts() {
    let rule = ThrottleRule {
        others: 60,
        cut: Some(QuotaCut {
            after_ms: 100_000,
            limit: 30,
        }),
        ..ThrottleRule::all(100, 60_000)
    };
    let world = WorldConfig {
        faults: FaultsConfig {
            throttles: vec![rule],
            ..FaultsConfig::default()
        },
        ..WorldConfig::punctual(1.0)
    };
    let (server, clock) = frozen_server(world.into()).await;
    clock.set(clock.now_ms() / 60_000 * 60_000 + 30_000);
    let first = ask(&server, HOME, "t").await;
    assert_eq!(first.header("x-ratelimit-remaining"), Some("69"));
    clock.set(clock.now_ms() + 60_000);
    let cut = ask(&server, HOME, "t").await;
    assert_eq!(cut.header("x-ratelimit-limit"), Some("30"));
    assert_eq!(cut.status(), "429", "the other user needs 30 by now");
}

#[tokio::test]
async fn a_lost_answer_is_counted_and_processed() {
    let mishap = Mishap {
        after_ms: 0,
        fault: FaultKind::Lost,
    };
    let world = WorldConfig {
        faults: FaultsConfig {
            mishaps: vec![mishap],
            ..FaultsConfig::mastodon()
        },
        ..WorldConfig::punctual(20.0)
    };
    let (server, _) = frozen_server(world.into()).await;
    assert_eq!(ask(&server, HOME, "t").await.text, "");
    assert_eq!(server.traffic().posts_served, 40);
    let next = ask(&server, HOME, "t").await;
    assert_eq!(next.header("x-ratelimit-remaining"), Some("298"));
}
