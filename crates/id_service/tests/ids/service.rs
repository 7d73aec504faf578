//! The service from its start to its end, on real files.

use std::{path::Path, sync::Arc, time::Duration};

use driftline_id::{ClockPolicy, Layout, clock::ManualClock, window::Record};
use driftline_id_service::{
    HeldNodeError, NodeChoice, Service, ServiceError, Settings, SharedClock, thrift::Limits,
};
use driftline_store::{Store, Target, node_lease::NodeLeases};
use tokio::sync::watch;

use crate::support::{START_MS, node, serve, still};

fn settings(folder: &Path, number: u64) -> Settings {
    Settings {
        node: NodeChoice::Configured {
            node: node(number),
            folder: folder.to_owned(),
        },
        policy: ClockPolicy::Refuse,
        peers: Vec::new(),
        skip_sanity_check: false,
    }
}

fn record(folder: &Path, number: u64) -> Record {
    let path = folder.join(format!("twitter-{number}.window"));
    Record::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// It is never stopped.
fn never() -> watch::Receiver<bool> {
    watch::channel(false).1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stops_leaves_nothing_to_wait_for() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at_ms(START_MS);
    let shared = || -> SharedClock { Arc::new(clock.clone()) };
    let service = Service::start(settings(folder.path(), 5), shared(), never()).await;
    let service = service.unwrap();
    let last = service.issuer().one().await.unwrap();
    assert!(record(folder.path(), 5).until_us() > START_MS * 1_000);
    service.stop().await;
    let ended_us = record(folder.path(), 5).until_us();
    assert_eq!(ended_us, (START_MS + 1) * 1_000, "up to the last ID's tick");
    clock.advance_us(1_000);
    let again = Service::start(settings(folder.path(), 5), shared(), never()).await;
    let again = again.unwrap();
    assert!(again.issuer().one().await.unwrap() > last);
    again.stop().await;
}

/// After a crash the window's end is waited for before anything is given out.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_waits_until_its_window_begins() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at_ms(START_MS);
    let shared: SharedClock = Arc::new(clock.clone());
    let crashed = Service::start(settings(folder.path(), 5), shared.clone(), never()).await;
    let last = crashed.as_ref().unwrap().issuer().one().await.unwrap();
    let until_us = record(folder.path(), 5).until_us();
    // A crash: the lock is gone with the process, the record is not ended.
    let path = folder.path().join("twitter-5.window");
    let left = std::fs::read(&path).unwrap();
    crashed.unwrap().stop().await;
    std::fs::write(&path, left).unwrap();

    clock.advance_us(-60_000);
    let starting = tokio::spawn(Service::start(settings(folder.path(), 5), shared, never()));
    // Its own window is recorded before it waits.
    while record(folder.path(), 5).fence() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(record(folder.path(), 5).from_us(), until_us);
    assert!(!starting.is_finished());
    clock.set_us(until_us);
    let service = starting.await.unwrap().unwrap();
    let first = service.issuer().one().await.unwrap();
    assert!(first > last);
    assert!(Layout::TWITTER.time_us(first.into()) >= until_us);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_does_not_fit_gives_its_node_back() {
    let folder = tempfile::tempdir().unwrap();
    let peer = serve(still(5, ClockPolicy::Refuse).0, Limits::default());
    let clock: SharedClock = Arc::new(ManualClock::at_ms(START_MS));
    let mut wrong = settings(folder.path(), 5);
    wrong.peers = vec![peer.address().to_string()];
    let refused = Service::start(wrong.clone(), clock.clone(), never()).await;
    assert!(matches!(refused, Err(ServiceError::Sanity(_))));
    assert_eq!(record(folder.path(), 5).until_us(), START_MS * 1_000);
    wrong.skip_sanity_check = true;
    let service = Service::start(wrong, clock, never()).await.unwrap();
    service.issuer().one().await.unwrap();
    service.stop().await;
}

/// A peer that is down does not keep the others from starting.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_is_down_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = settings(folder.path(), 5);
    settings.peers = vec![listener.local_addr().unwrap().to_string()];
    drop(listener);
    let clock: SharedClock = Arc::new(ManualClock::at_ms(START_MS));
    let service = Service::start(settings, clock, never()).await.unwrap();
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_holds_a_node() {
    let folder = tempfile::tempdir().unwrap();
    let clock: SharedClock = Arc::new(ManualClock::at_ms(START_MS));
    let held = Service::start(settings(folder.path(), 5), clock.clone(), never()).await;
    let second = Service::start(settings(folder.path(), 5), clock.clone(), never()).await;
    assert!(matches!(second, Err(ServiceError::Node(_))));
    let leased = Settings {
        node: NodeChoice::Folder {
            layout: Layout::TWITTER,
            folder: folder.path().to_owned(),
        },
        ..settings(folder.path(), 0)
    };
    let mut others = Vec::new();
    for expected in [0, 1, 2, 3, 4, 6] {
        let other = Service::start(leased.clone(), clock.clone(), never()).await;
        let other = other.unwrap();
        assert_eq!(other.issuer().node().number(), expected);
        others.push(other);
    }
    for service in others.into_iter().chain(held) {
        service.stop().await;
    }
}

/// A clock before the layout's epoch leaves no record of that epoch.
#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_that_cannot_be_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let clock: SharedClock = Arc::new(ManualClock::at_ms(START_MS));
    let layout = Layout::TWITTER.with_epoch(START_MS * 10);
    let wrong = Settings {
        node: NodeChoice::Configured {
            node: driftline_id::Node::new(&layout, 5).unwrap(),
            folder: folder.path().to_owned(),
        },
        ..settings(folder.path(), 5)
    };
    let refused = Service::start(wrong, clock.clone(), never()).await;
    assert!(matches!(refused, Err(ServiceError::Start(_))));
    let right = Service::start(settings(folder.path(), 5), clock, never()).await;
    right.unwrap().stop().await;
}

/// A folder and a store know nothing of each other's nodes: only one of them hands out any.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_from_the_folder_or_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("driftline.db");
    let opened = tokio::task::spawn_blocking(|| Store::open(Target::Sqlite { path }));
    let store = opened.await.unwrap().unwrap();
    let window_config = driftline_id::window::WindowConfig::default();
    let leases = NodeLeases::new(store.clone(), Layout::TWITTER, window_config, "a test");
    let from_store = Settings {
        node: NodeChoice::Store {
            leases: Box::new(leases),
            layout: Layout::TWITTER,
            folder: folder.path().join("ids"),
        },
        ..settings(folder.path(), 0)
    };
    let from_folder = settings(&folder.path().join("ids"), 5);
    let clock: SharedClock = Arc::new(ManualClock::at_ms(START_MS));
    let start =
        async |settings: &Settings| Service::start(settings.clone(), clock.clone(), never()).await;
    let held = start(&from_folder).await.unwrap();
    let refused = start(&from_store).await.err();
    assert!(
        matches!(
            &refused,
            Some(ServiceError::Node(HeldNodeError::HeldInFolder { .. }))
        ),
        "{refused:?}"
    );
    held.stop().await;
    let leased = start(&from_store).await.unwrap();
    leased.issuer().one().await.unwrap();
    let refused = start(&from_folder).await.err();
    assert!(
        matches!(
            &refused,
            Some(ServiceError::Node(HeldNodeError::LeasedFromStore { .. }))
        ),
        "{refused:?}"
    );
    leased.stop().await;
    store.close().await;
}

/// A service whose lock was taken from under it says that its node is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_node_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at_ms(START_MS);
    let shared: SharedClock = Arc::new(clock.clone());
    let service = Service::start(settings(folder.path(), 5), shared, never()).await;
    let service = service.unwrap();
    std::fs::remove_file(folder.path().join("twitter-5.lock")).unwrap();
    // The window wants to be extended now.
    clock.advance_us(2_000_000);
    let told = tokio::time::timeout(Duration::from_secs(30), service.lost());
    told.await.unwrap();
    service.stop().await;
}

/// A service that waits for its window can be stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_may_be_stopped_before_it_has_started() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at_ms(START_MS);
    let shared: SharedClock = Arc::new(clock.clone());
    let first = Service::start(settings(folder.path(), 5), shared.clone(), never()).await;
    let path = folder.path().join("twitter-5.window");
    let left = std::fs::read(&path).unwrap();
    first.unwrap().stop().await;
    std::fs::write(&path, left).unwrap();
    let (stop, stopped) = watch::channel(false);
    let starting = tokio::spawn(Service::start(settings(folder.path(), 5), shared, stopped));
    while record(folder.path(), 5).fence() < 2 {
        tokio::task::yield_now().await;
    }
    stop.send_replace(true);
    assert!(matches!(
        starting.await.unwrap(),
        Err(ServiceError::Stopped)
    ));
}
