//! Bookmarks whose posts changed: each takes the next USN of its account's library, so that devices get the post again,
//! or lose it.
//!
//! Each turn compares the bookmarks of the posts that changed in any source since the turn before. The end of a source,
//! another audience, and changes of posts that no source lists take no USN in a source. So all bookmarks are compared
//! when a source ends or has another audience, at the start and every hour. The store has what bookmarks are compared
//! with, so a process that ends loses nothing, and several processes do not disturb each other.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use driftline_core::names::audience::Audience;
use driftline_runtime::steady_ms;
use driftline_store::{
    LocalAccountId, LocalId, SourceId, Store, StoreError, Tx,
    change_feed::{self, FeedSource},
    social::{
        bookmark_copy::{self, BookmarkKey},
        local_account,
    },
};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};

/// Compares bookmarks every few seconds, until the stop.
pub async fn keep_watched(store: Store, mut stop: watch::Receiver<bool>) {
    let mut bookmarks = BookmarkWatch::new(store);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            _ = ticks.tick() => {}
        }
        let turn = bookmarks.turn(steady_ms());
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            // Other tasks report that the store is unavailable.
            done = turn => if let Err(error) = done {
                tracing::debug!(%error, "not all bookmarks were compared; it is tried again soon");
            },
        }
    }
}

/// Compares bookmarks with what their accounts are shown.
#[derive(Debug)]
pub struct BookmarkWatch {
    store: Store,
    /// The sources with changes, as they were in the last turn.
    sources: HashMap<SourceId, FollowedSource>,
    /// The time at which all bookmarks were compared; `None` before the first time.
    compared_at_ms: Option<i64>,
}

/// A source whose changes were followed.
#[derive(Clone, Copy, Debug)]
struct FollowedSource {
    audience: Audience,
    /// The USN up to which the bookmarks of its posts were compared.
    usn: i64,
}

impl BookmarkWatch {
    /// Compares the bookmarks of a store.
    pub fn new(store: Store) -> BookmarkWatch {
        BookmarkWatch {
            store,
            sources: HashMap::new(),
            compared_at_ms: None,
        }
    }

    /// Compares the bookmarks of changed posts, or all of them if that is due. Returns the number of bookmarks that took a
    /// USN. The time is one of a monotonic clock.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails. The next turn begins where this one failed.
    pub async fn turn(&mut self, now_ms: i64) -> Result<usize, StoreError> {
        let sources = self.store.read(change_feed::all_sources).await?;
        if self.is_due(&sources, now_ms) {
            let renewed = self.compare_all().await?;
            let followed = sources.iter().map(|source| {
                let (audience, usn) = (source.audience, source.update_count);
                (source.key.id, FollowedSource { audience, usn })
            });
            self.sources = followed.collect();
            self.compared_at_ms = Some(now_ms);
            return Ok(renewed);
        }
        let mut renewed = 0;
        for source in &sources {
            renewed += self.follow(source).await?;
        }
        Ok(renewed)
    }

    /// True if all bookmarks have to be compared.
    fn is_due(&self, sources: &[FeedSource], now_ms: i64) -> bool {
        let is_late = |at_ms: i64| now_ms - at_ms >= ALL_EVERY_MS;
        let audiences = sources
            .iter()
            .map(|source| (source.key.id, source.audience));
        let audiences: HashMap<SourceId, Audience> = audiences.collect();
        let mut followed = self.sources.iter();
        self.compared_at_ms.is_none_or(is_late)
            || followed.any(|(id, known)| audiences.get(id) != Some(&known.audience))
    }

    async fn compare_all(&self) -> Result<usize, StoreError> {
        let (mut above, mut renewed) = (None, 0);
        loop {
            let read = move |tx: &mut Tx<'_>| bookmark_copy::page(tx, above, AT_ONCE);
            let page = self.store.read(read).await?;
            let Some(last) = page.last().copied() else {
                return Ok(renewed);
            };
            above = Some(last);
            renewed += self.compare(&page).await?;
        }
    }

    /// Compares the bookmarks of the posts that changed in a source.
    async fn follow(&mut self, source: &FeedSource) -> Result<usize, StoreError> {
        let (key, audience) = (source.key, source.audience);
        let mut usn = self.sources.get(&key.id).map_or(0, |known| known.usn);
        let mut renewed = 0;
        while usn < source.update_count {
            let read = move |tx: &mut Tx<'_>| {
                let changed = change_feed::posts_after(tx, key, usn, AT_ONCE)?;
                let bookmarks = bookmark_copy::of_posts(tx, &changed.posts)?;
                Ok::<_, StoreError>((changed.end, changed.has_more, bookmarks))
            };
            let (end, has_more, bookmarks) = self.store.read(read).await?;
            renewed += self.compare(&bookmarks).await?;
            usn = end;
            let followed = FollowedSource { audience, usn };
            self.sources.insert(key.id, followed);
            if !has_more {
                break;
            }
        }
        Ok(renewed)
    }

    /// Gives USNs to those of some bookmarks whose posts are shown otherwise than before.
    async fn compare(&self, bookmarks: &[BookmarkKey]) -> Result<usize, StoreError> {
        let mut by_account: BTreeMap<LocalAccountId, Vec<LocalId>> = BTreeMap::new();
        for bookmark in bookmarks {
            let ids = by_account.entry(bookmark.account).or_default();
            ids.push(bookmark.id);
        }
        let mut renewed = 0;
        for (account, ids) in by_account {
            for ids in ids.chunks(AT_ONCE as usize) {
                match compare_of(&self.store, account, ids.to_vec()).await {
                    Ok(count) => renewed += count,
                    Err(error) if error.is_outage() => return Err(error),
                    // It may concern this account alone, whose bookmarks are compared again within the hour.
                    Err(error) => {
                        tracing::warn!(%error, "bookmarks of the account {account} were not compared with their posts");
                    }
                }
            }
        }
        Ok(renewed)
    }
}

async fn compare_of(
    store: &Store,
    account: LocalAccountId,
    ids: Vec<LocalId>,
) -> Result<usize, StoreError> {
    // Most are as they were, and writes wait for each other.
    let read = move |tx: &mut Tx<'_>| bookmark_copy::outdated(tx, account, &ids);
    let outdated = store.read(read).await?;
    if outdated.is_empty() {
        return Ok(0);
    }
    let renew = move |tx: &mut Tx<'_>| bookmark_copy::renew(tx, account, &outdated);
    match store.write(local_account::root(account), renew).await {
        // It was removed meanwhile.
        Err(StoreError::NoAccount) => Ok(0),
        renewed => renewed,
    }
}

const EVERY: Duration = Duration::from_secs(2);
const ALL_EVERY_MS: i64 = 60 * 60_000;
/// The number of bookmarks, or of changes of a source, that one transaction reads.
const AT_ONCE: u32 = 200;
