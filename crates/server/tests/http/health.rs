//! What those who run the server see, and how it stops.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use driftline_db::testing::Fresh;
use driftline_server::http::{Limits, serve};
use metrics_exporter_prometheus::PrometheusBuilder;
use reqwest::StatusCode;

use crate::world::{World, client};

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

#[tokio::test]
async fn requests_under_way_are_answered_before_the_end() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (begun, begins) = tokio::sync::oneshot::channel::<()>();
    let begun = Mutex::new(Some(begun));
    let answered = Arc::new(AtomicBool::new(false));
    let (is_answered, begun) = (answered.clone(), Arc::new(begun));
    let slow = async move || {
        drop(begun.lock().unwrap().take());
        tokio::time::sleep(Duration::from_millis(300)).await;
        is_answered.store(true, Ordering::SeqCst);
        "done"
    };
    let router = axum::Router::new().route("/", axum::routing::get(slow));
    let server = tokio::spawn(serve(listener, router, Limits::default(), async {
        let _ = begins.await;
    }));
    let answer = tokio::spawn(client().get(url).send());
    server.await.unwrap().unwrap();
    assert!(answered.load(Ordering::SeqCst));
    assert_eq!(answer.await.unwrap().unwrap().status(), StatusCode::OK);
}
