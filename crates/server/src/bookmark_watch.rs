//! Bookmarks whose posts changed: each takes the next USN of its account's library, so that devices get the post again,
//! or lose it.
//!
//! Each turn compares the bookmarks of the posts that changed in any source since the turn before. The end of a source,
//! another audience, and changes of posts that no source lists take no USN in a source. So all bookmarks are compared
//! at the start, every hour, and when a source ends or has another audience, but then at most every five minutes. A turn
//! compares one page of all bookmarks, and one of each source's changes, so that neither holds up the other. The store has
//! what bookmarks are compared with, so a process that ends loses nothing, and several processes do not disturb each other.

mod full_comparison;
#[cfg(test)]
mod tests;

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
use tokio::{sync::watch, time::sleep};

use full_comparison::{FullComparison, Place};

/// Compares bookmarks every few seconds, until the stop.
pub async fn keep_watched(store: Store, mut stop: watch::Receiver<bool>) {
    let mut bookmarks = BookmarkWatch::new(store);
    loop {
        let turn = bookmarks.turn(steady_ms());
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            // Other tasks report that the store is unavailable.
            done = turn => if let Err(error) = done {
                tracing::debug!(%error, "not all bookmarks were compared; it is tried again soon");
            },
        }
        let pause = match bookmarks.is_behind {
            true => BETWEEN_PAGES,
            false => EVERY,
        };
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            () = sleep(pause) => {}
        }
    }
}

/// Compares bookmarks with what their accounts are shown.
#[derive(Debug)]
pub struct BookmarkWatch {
    store: Store,
    /// The sources with changes, as they were in the last turn.
    sources: HashMap<SourceId, FollowedSource>,
    comparison: FullComparison,
    /// True if the last turn left something to compare.
    is_behind: bool,
}

/// A source whose changes are followed.
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
            comparison: FullComparison::default(),
            is_behind: false,
        }
    }

    /// Compares bookmarks of changed posts, and the next page of all bookmarks if that is due. Returns the number of
    /// bookmarks that took a USN. The time is one of a monotonic clock.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails. The next turn begins where this one failed.
    pub async fn turn(&mut self, now_ms: i64) -> Result<usize, StoreError> {
        let sources = self.store.read(change_feed::all_sources).await?;
        self.note(&sources);
        // Before anything can fail: what was noted at the first turn needs this comparison.
        let place = self.comparison.next(now_ms);
        let (mut renewed, mut is_behind) = (0, false);
        for source in &sources {
            let (count, has_more) = self.follow(source).await?;
            renewed += count;
            is_behind |= has_more;
        }
        if let Some(Place(above)) = place {
            renewed += self.compare_page(above).await?;
        }
        self.is_behind = is_behind || self.comparison.is_under_way();
        Ok(renewed)
    }

    /// Notes which sources there are, and their audiences. Asks for a comparison of all bookmarks if they differ from what is
    /// known. The changes before the first one need not be followed.
    fn note(&mut self, sources: &[FeedSource]) {
        if !self.comparison.has_begun() {
            let followed = sources.iter().map(|source| {
                let (audience, usn) = (source.audience, source.update_count);
                (source.key.id, FollowedSource { audience, usn })
            });
            self.sources = followed.collect();
            return;
        }
        let audiences = sources
            .iter()
            .map(|source| (source.key.id, source.audience));
        let audiences: HashMap<SourceId, Audience> = audiences.collect();
        let mut has_changed = false;
        self.sources.retain(|id, known| {
            let audience = audiences.get(id).copied();
            has_changed |= audience != Some(known.audience);
            known.audience = audience.unwrap_or(known.audience);
            audience.is_some()
        });
        if has_changed {
            self.comparison.ask();
        }
    }

    /// Compares the next page of all bookmarks.
    async fn compare_page(&mut self, above: Option<BookmarkKey>) -> Result<usize, StoreError> {
        let read = move |tx: &mut Tx<'_>| bookmark_copy::page(tx, above, AT_ONCE);
        let page = self.store.read(read).await?;
        let renewed = self.compare(&page).await?;
        let is_full = page.len() >= AT_ONCE as usize;
        self.comparison
            .advance(page.last().copied().filter(|_| is_full));
        Ok(renewed)
    }

    /// Compares the bookmarks of the next posts that changed in a source. Returns true as well if there are more.
    async fn follow(&mut self, source: &FeedSource) -> Result<(usize, bool), StoreError> {
        let (key, audience) = (source.key, source.audience);
        let usn = self.sources.get(&key.id).map_or(0, |known| known.usn);
        if usn >= source.update_count {
            return Ok((0, false));
        }
        let read = move |tx: &mut Tx<'_>| {
            let changed = change_feed::posts_after(tx, key, usn, AT_ONCE)?;
            let bookmarks = bookmark_copy::of_posts(tx, &changed.posts)?;
            Ok::<_, StoreError>((changed.end, changed.has_more, bookmarks))
        };
        let (usn, has_more, bookmarks) = self.store.read(read).await?;
        let renewed = self.compare(&bookmarks).await?;
        let followed = FollowedSource { audience, usn };
        self.sources.insert(key.id, followed);
        Ok((renewed, has_more))
    }

    /// Gives USNs to the bookmarks whose posts are shown in another version than before.
    async fn compare(&self, bookmarks: &[BookmarkKey]) -> Result<usize, StoreError> {
        let mut by_account: BTreeMap<LocalAccountId, Vec<LocalId>> = BTreeMap::new();
        for bookmark in bookmarks {
            let ids = by_account.entry(bookmark.account).or_default();
            ids.push(bookmark.id);
        }
        let mut renewed = 0;
        for (account, ids) in by_account {
            match compare_of(&self.store, account, ids).await {
                Ok(count) => renewed += count,
                Err(error) if error.is_outage() => return Err(error),
                // It may concern this account alone, whose bookmarks are compared again within the hour.
                Err(error) => {
                    tracing::warn!(%error, "bookmarks of the account {account} were not compared with their posts");
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
/// The time between two turns while there is something left to compare.
const BETWEEN_PAGES: Duration = Duration::from_millis(500);
/// The number of bookmarks, or of changes of a source, that one turn compares.
const AT_ONCE: u32 = 200;
