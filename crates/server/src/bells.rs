//! Notifications of posts of those whom accounts follow with `notify`.

use std::time::Duration;

use driftline_mastodon::reply_to;
use driftline_runtime::now_ms;
use driftline_store::{
    LocalAccountId, Store, StoreError, Tx,
    social::{bell, local_account},
    timeline::TimelinePost,
};
use tokio::{sync::watch, time::MissedTickBehavior};

/// Notifies of new posts every few seconds, until the stop.
pub async fn keep_ringing(store: Store, mut stop: watch::Receiver<bool>) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            _ = ticks.tick() => {}
        }
        let turn = ring_all(&store);
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            // Others tell of a store that is out.
            done = turn => if let Err(error) = done {
                tracing::debug!(%error, "not all new posts were notified; it is tried again soon");
            },
        }
    }
}

/// Notifies each account of new posts, of a page of them at most.
///
/// # Errors
/// [`StoreError`] of the last account whose notifications could not be written; the others are notified.
pub async fn ring_all(store: &Store) -> Result<(), StoreError> {
    let mut outcome = Ok(());
    for account in store.read(bell::accounts).await? {
        if let Err(error) = ring(store, account).await {
            outcome = Err(error);
        }
    }
    outcome
}

async fn ring(store: &Store, account: LocalAccountId) -> Result<(), StoreError> {
    // Most have nothing new, and writes wait for each other.
    if !store.read(move |tx| bell::is_due(tx, account)).await? {
        return Ok(());
    }
    let now_ms = now_ms();
    let ring = move |tx: &mut Tx<'_>| bell::ring(tx, account, &is_no_reply_to_others, now_ms);
    store.write(local_account::root(account), ring).await?;
    Ok(())
}

/// As on Mastodon, replies to others are not notified.
fn is_no_reply_to_others(post: &TimelinePost) -> bool {
    reply_to(&post.raw).is_none()
}

const EVERY: Duration = Duration::from_secs(5);
