//! Sources whose rows others hold, as a removal of many posts does.

use std::{sync::mpsc, time::Duration};

use driftline_db::testing::Fresh;
use driftline_net::{Http, Options};
use driftline_store::{SourceKey, Store, StoreError, local_ids, source, testing::new_source};
use tokio::task::JoinHandle;

use super::{Pollers, PollersOptions};
use crate::upstream_access::UpstreamAccess;

#[tokio::test]
async fn a_source_whose_row_is_held_delays_no_other_change() {
    let store = open().await;
    let one = add(&store, "one").await;
    let held = HeldRow::of(&store, one).await;
    let pollers = start(&store);
    // What is to be read is known when it begins to be opened.
    until("it is known", async || {
        pollers.health().is_read(one.id).is_some()
    })
    .await;
    let two = add(&store, "two").await;
    reads(&pollers, &[two]).await;
    set_paused(&store, two, true).await;
    reads(&pollers, &[]).await;
    held.free().await;
    reads(&pollers, &[one]).await;
    pollers.stop().await;
    store.close().await;
}

#[tokio::test]
async fn a_source_whose_row_is_held_while_it_is_read_delays_no_other_change() {
    let store = open().await;
    let one = add(&store, "one").await;
    let two = add(&store, "two").await;
    let pollers = start(&store);
    reads(&pollers, &[one, two]).await;
    let held = HeldRow::of(&store, one).await;
    // Two renewals of leases begin after that.
    let fence_ends = lease_end(&store, two).await;
    until("the other lease is renewed", async || {
        lease_end(&store, two).await > fence_ends + LEASE_MS
    })
    .await;
    let three = add(&store, "three").await;
    reads(&pollers, &[one, two, three]).await;
    held.free().await;
    pollers.stop().await;
    store.close().await;
}

async fn open() -> Store {
    let target = Fresh::postgres().target;
    let open = tokio::task::spawn_blocking(move || Store::open(target).unwrap());
    open.await.unwrap()
}

async fn add(store: &Store, name: &'static str) -> SourceKey {
    let add = store.write(local_ids::root(), move |tx| {
        source::add(tx, &new_source(name), 0)
    });
    add.await.unwrap().unwrap()
}

async fn set_paused(store: &Store, source: SourceKey, paused: bool) {
    let set = store.write(source::root(source), move |tx| {
        source::set_paused(tx, source, paused)
    });
    set.await.unwrap();
}

fn start(store: &Store) -> Pollers {
    let http = Http::new(Options::default()).unwrap();
    let options = PollersOptions {
        scan: Duration::from_millis(20),
        lease: Duration::from_millis(LEASE_MS.unsigned_abs()),
        ..PollersOptions::new("test")
    };
    Pollers::start(store.clone(), UpstreamAccess::new(store, http), options)
}

/// Waits until these are what is read.
async fn reads(pollers: &Pollers, sources: &[SourceKey]) {
    let mut sources: Vec<_> = sources.iter().map(|source| source.id).collect();
    sources.sort();
    let what = format!("{sources:?} are read");
    until(&what, async || {
        let progress = pollers.progress().await;
        let read: Vec<_> = progress.iter().map(|of| of.source.id).collect();
        read == sources
    })
    .await;
}

async fn lease_end(store: &Store, source: SourceKey) -> i64 {
    let found = store.read(source::list).await.unwrap();
    let found = found.into_iter().find(|found| found.id == source.id);
    found.unwrap().holding.unwrap().until_ms
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), wait).await;
    assert!(waited.is_ok(), "not so: {what}");
}

/// The row of a source that a transaction has locked.
struct HeldRow {
    free: mpsc::Sender<()>,
    holding: JoinHandle<Result<(), StoreError>>,
}

impl HeldRow {
    async fn of(store: &Store, source: SourceKey) -> Self {
        let (locked, mut is_locked) = tokio::sync::mpsc::channel(1);
        let (free, is_free) = mpsc::channel::<()>();
        let is_free = parking_lot::Mutex::new(is_free);
        let store = store.clone();
        let holding = tokio::spawn(async move {
            let hold = store.write(source::root(source), move |tx| {
                // The root is locked with the first statement.
                driftline_store::touch(tx)?;
                let _ = locked.blocking_send(());
                let is_free = is_free.lock();
                // Statements keep the server from ending an idle transaction.
                while let Err(mpsc::RecvTimeoutError::Timeout) = is_free.recv_timeout(TURN) {
                    driftline_store::touch(tx)?;
                }
                Ok::<_, StoreError>(())
            });
            hold.await
        });
        is_locked.recv().await.unwrap();
        Self { free, holding }
    }

    async fn free(self) {
        self.free.send(()).unwrap();
        self.holding.await.unwrap().unwrap();
    }
}

const LEASE_MS: i64 = 1_000;
const TURN: Duration = Duration::from_millis(100);
