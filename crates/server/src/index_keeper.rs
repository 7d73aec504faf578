//! Keeps the search index up to date with the commits.

use std::time::Duration;

use driftline_mastodon::TEXT_EXTRACTION;
use driftline_runtime::{FaultLog, IndexBacklog, Weight, now_ms, show_ms, steady_ms};
use driftline_store::{Store, StoreError, Tx, search};
use tokio::{sync::watch, time::sleep};

use crate::admin::index_rebuild::rebuild_portion;

/// Indexes what is committed, until the stop, and reports how many posts wait. Documents that an earlier version of the
/// program made are made again.
pub async fn keep_indexed(store: Store, backlog: IndexBacklog, mut stop: watch::Receiver<bool>) {
    let mut commits = store.commits();
    let mut indexing = FaultLog::default();
    loop {
        let written = match index_all(&store, &backlog, &stop).await {
            Ok(()) => refill(&store, &backlog, &stop).await,
            error => error,
        };
        match written {
            Ok(()) => {
                if let Some(failed_ms) = indexing.succeeded(now_ms()) {
                    tracing::warn!(
                        "the search index is written again, after {}",
                        show_ms(failed_ms)
                    );
                }
            }
            Err(error) => {
                backlog.report_failure();
                if indexing.failed(Weight::Lasting, now_ms()) {
                    tracing::warn!(%error, "the search index cannot be written; searches read the posts that wait for it");
                }
            }
        }
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            // The sender lives as long as the store.
            _ = commits.changed() => {}
            // Another process may have written, too.
            () = sleep(LOOK) => {}
        }
        // The commits of a burst are indexed together.
        sleep(PAUSE).await;
    }
}

/// Indexes all posts that wait for it, in short transactions.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub async fn index_all(
    store: &Store,
    backlog: &IndexBacklog,
    stop: &watch::Receiver<bool>,
) -> Result<(), StoreError> {
    while !*stop.borrow() {
        let count = |tx: &mut Tx<'_>| search::pending(tx, IndexBacklog::COUNTED);
        let waiting = store.read(count).await?;
        backlog.report(waiting, steady_ms());
        if waiting == 0 {
            break;
        }
        store
            .write(search::root(), |tx| search::index_pending(tx, PART))
            .await?;
    }
    Ok(())
}

/// Makes all texts and documents again that an earlier extraction made. Searches do not look for what these lack until
/// all are made.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub async fn refill(
    store: &Store,
    backlog: &IndexBacklog,
    stop: &watch::Receiver<bool>,
) -> Result<(), StoreError> {
    if store.read(search::extraction).await? >= TEXT_EXTRACTION {
        return Ok(());
    }
    tracing::info!("the search index is filled again, since this version knows more about posts");
    let mut after = None;
    while !*stop.borrow() {
        let portion = rebuild_portion(store, after).await?;
        index_all(store, backlog, stop).await?;
        after = portion.next;
        if after.is_none() {
            let set = |tx: &mut Tx<'_>| search::set_extraction(tx, TEXT_EXTRACTION);
            store.write(search::root(), set).await?;
            tracing::info!("the search index is filled");
            return Ok(());
        }
    }
    Ok(())
}

/// The number of posts that one transaction indexes.
const PART: u32 = 200;
const PAUSE: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(2);
