//! Notifications of posts: by authors whom accounts follow with `notify`, and of lists that notify.

use std::time::Duration;

use driftline_api::find::Search;
use driftline_mastodon::reply_to;
use driftline_runtime::now_ms;
use driftline_store::{
    LocalAccountId, Store, StoreError, Tx, search,
    social::{
        bell,
        list_bell::{self, NewMatches, NotifyingList},
        local_account,
    },
    timeline::{Range, TimelinePost, Viewer},
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
    for account in store.read(list_bell::accounts).await? {
        if let Err(error) = ring_lists(store, account).await {
            outcome = Err(error);
        }
    }
    outcome
}

/// Notifies an account of the new posts that its lists select.
///
/// # Errors
/// [`StoreError`] of the last list that failed; the others notify.
async fn ring_lists(store: &Store, account: LocalAccountId) -> Result<(), StoreError> {
    let mut outcome = Ok(());
    for list in store.read(move |tx| list_bell::lists(tx, account)).await? {
        if let Err(error) = ring_list(store, account, list).await {
            outcome = Err(error);
        }
    }
    outcome
}

/// Notifies an account of the new posts that a list selects, of at most [`bell::MAX_POSTS`] and from one part.
async fn ring_list(
    store: &Store,
    account: LocalAccountId,
    list: NotifyingList,
) -> Result<(), StoreError> {
    let now_ms = now_ms();
    let Ok(search) = Search::new(list.predicate.clone()) else {
        return Ok(());
    };
    let above = list_bell::search_above(&list, now_ms);
    let find = move |tx: &mut Tx<'_>| {
        let end = search::end(tx)?;
        if end <= above {
            return Ok(None);
        }
        let range = Range {
            min: Some(above),
            limit: bell::MAX_POSTS,
            ..Range::default()
        };
        let found = search.stretch(tx, &range, Viewer::Account(account), now_ms)?;
        let is_full = found.posts.len() >= usize::from(bell::MAX_POSTS);
        let newest = found.posts.first().filter(|_| is_full);
        let stopped_at = found.rest.and_then(|rest| rest.min);
        Ok::<_, StoreError>(Some(NewMatches {
            list: list.clone(),
            above,
            reached: stopped_at.or(newest.map(|post| post.id)).unwrap_or(end),
            posts: found.posts,
        }))
    };
    let found = store.read(find).await?;
    if let Some(matches) = found.filter(NewMatches::is_worth_writing) {
        let ring = move |tx: &mut Tx<'_>| list_bell::ring(tx, account, &matches, now_ms);
        store.write(local_account::root(account), ring).await?;
    }
    Ok(())
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
