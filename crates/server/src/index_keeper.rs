//! Keeps the search index up to date with the commits.

use std::time::Duration;

use driftline_runtime::{FaultLog, IndexBacklog, Weight, now_ms, show_ms, steady_ms};
use driftline_store::{Store, StoreError, Tx, search};
use tokio::{sync::watch, time::sleep};

/// Indexes what is committed, until the stop, and reports how many posts wait.
pub async fn keep_indexed(store: Store, backlog: IndexBacklog, mut stop: watch::Receiver<bool>) {
    let mut commits = store.commits();
    let mut indexing = FaultLog::default();
    loop {
        match index_all(&store, &backlog, &stop).await {
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

/// The number of posts that one transaction indexes.
const PART: u32 = 200;
const PAUSE: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(2);
