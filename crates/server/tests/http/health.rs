//! What those who run the server see, and how it stops.

use driftline_api::auth::Authorization;
use driftline_db::testing::Fresh;
use driftline_server::testing::wait;
use driftline_store::{Root, StoreError};
use metrics_exporter_prometheus::PrometheusBuilder;
use reqwest::StatusCode;

use crate::world::World;

#[tokio::test]
async fn alive_at_once_and_ready_when_told() {
    let world = World::new().await;
    world.ready.send(false).unwrap();
    assert_eq!(world.answer("/livez").await.status(), StatusCode::OK);
    let answer = world.answer("/readyz").await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    world.ready.send(true).unwrap();
    assert_eq!(world.answer("/readyz").await.status(), StatusCode::OK);
}

async fn execute(world: &World, sql: &'static str) {
    let done = world.store.write(Root::none(), move |tx| {
        tx.execute(sql, &[])?;
        Ok::<_, StoreError>(())
    });
    done.await.unwrap();
}

#[tokio::test]
async fn a_store_that_cannot_be_written_makes_it_unready_until_it_can() {
    let world = World::new().await;
    let answer = world.answer("/readyz").await;
    let kind = answer.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(kind.starts_with("text/plain"), "{kind}");
    assert_eq!(answer.text().await.unwrap(), "ok");
    let trigger = "create trigger broken before insert on store_identity \
         begin select raise(abort, 'it is broken'); end";
    execute(&world, trigger).await;
    let becomes = async |status: StatusCode| {
        let mut text = String::new();
        wait(status.as_str(), async || {
            let answer = world.answer("/readyz").await;
            let is_so = answer.status() == status;
            text = answer.text().await.unwrap();
            is_so
        })
        .await;
        text
    };
    let body = becomes(StatusCode::SERVICE_UNAVAILABLE).await;
    assert!(body.starts_with("The store cannot be written: "), "{body}");
    assert!(body.contains("it is broken"), "{body}");
    execute(&world, "drop trigger broken").await;
    assert_eq!(becomes(StatusCode::OK).await, "ok");
}

#[tokio::test]
async fn why_a_store_fails_is_told_to_the_operator_alone() {
    let world = World::on(Fresh::sqlite(), |app| {
        app.authorization = Authorization::Closed;
    })
    .await;
    let trigger = "create trigger broken before insert on store_identity \
         begin select raise(abort, 'it is broken'); end";
    execute(&world, trigger).await;
    let answer = world.answer("/readyz").await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.text().await.unwrap(), "The store cannot be written");
}

#[tokio::test]
async fn however_often_readiness_is_asked_for_the_store_is_asked_once_a_second() {
    let world = World::new().await;
    let before = world.store.stats().writes;
    let begun = std::time::Instant::now();
    for _ in 0..50 {
        assert_eq!(world.answer("/readyz").await.status(), StatusCode::OK);
    }
    let writes = world.store.stats().writes - before;
    let seconds = begun.elapsed().as_secs();
    assert!(
        (1..=2 + seconds).contains(&writes),
        "{writes} in {seconds} s"
    );
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let world = World::on(Fresh::sqlite(), |app| app.metrics = Some(handle)).await;
    metrics::with_local_recorder(&recorder, || {
        metrics::counter!("driftline_tests_total").increment(2);
    });
    let answer = world.answer("/metrics").await;
    let kind = answer.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = answer.text().await.unwrap();
    assert!(text.contains("driftline_tests_total 2"), "{text}");
}
