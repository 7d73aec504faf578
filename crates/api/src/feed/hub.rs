use std::{sync::Arc, time::Duration};

use driftline_core::feed::FeedPosition;
use driftline_runtime::{FaultLog, Weight, now_ms, show_ms};
use driftline_store::{
    SourceKey, Store, StoreError,
    change_feed::{self, ChangePage, FeedSource},
};
use tokio::sync::{Mutex, broadcast, watch};

use super::{FeedError, FeedEvent, FeedReader, Selection, Start, event::SourceReaders};

/// The feed of a store's changes, shared by all who follow it in this process; clones are handles to
/// the same one. It asks the store for nothing while nobody follows it.
#[derive(Clone, Debug)]
pub struct Feed(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    batches: broadcast::Sender<Arc<Batch>>,
    /// Whether the task that publishes runs.
    is_running: Mutex<bool>,
    ended: watch::Sender<bool>,
}

/// Changes of a source that follow each other.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) source: u64,
    /// The people who may read it.
    pub(super) readers: SourceReaders,
    /// The USN after which they begin.
    pub(super) after: i64,
    /// The USN up to which there are no others.
    pub(super) end: i64,
    pub(super) events: Vec<Arc<FeedEvent>>,
}

impl Feed {
    /// The feed of a store.
    pub fn new(store: Store) -> Self {
        Self(Arc::new(Shared {
            store,
            batches: broadcast::Sender::new(MAX_BATCHES),
            is_running: Mutex::new(false),
            ended: watch::Sender::new(false),
        }))
    }

    /// Follows the feed.
    ///
    /// # Errors
    /// [`FeedError`] if there is no such source, or no such position.
    pub async fn follow(
        &self,
        selection: Selection,
        start: Start,
    ) -> Result<FeedReader, FeedError> {
        // Before the first look at the store, so that nothing falls between the two.
        let batches = self.0.batches.subscribe();
        if self.0.batches.receiver_count() > MAX_FOLLOWERS {
            return Err(FeedError::Full);
        }
        self.0.clone().run().await?;
        FeedReader::new(self.clone(), batches, selection, start).await
    }

    /// How many follow the feed here.
    pub fn followers(&self) -> u64 {
        self.0.batches.receiver_count() as u64
    }

    /// Ends what everybody follows.
    pub fn end(&self) {
        self.0.ended.send_replace(true);
    }

    pub(super) fn ended(&self) -> watch::Receiver<bool> {
        self.0.ended.subscribe()
    }

    pub(super) async fn sources(&self) -> Result<Vec<FeedSource>, StoreError> {
        self.0.store.read(change_feed::sources).await
    }

    /// The changes of a source after a USN.
    pub(super) async fn batch(
        &self,
        source: &FeedSource,
        usn: i64,
    ) -> Result<(Batch, bool), StoreError> {
        self.0.batch(source, usn).await
    }
}

impl Shared {
    /// Runs the task that publishes, unless it runs already.
    async fn run(self: Arc<Self>) -> Result<(), StoreError> {
        let mut is_running = self.is_running.lock().await;
        if !*is_running {
            let commits = self.store.commits();
            let published = self.store.read(change_feed::end).await?;
            *is_running = true;
            drop(is_running);
            tokio::spawn(self.publish_all(commits, published));
        }
        Ok(())
    }

    /// Publishes what is committed, until nobody follows it.
    async fn publish_all(
        self: Arc<Self>,
        mut commits: watch::Receiver<u64>,
        mut published: FeedPosition,
    ) {
        let mut reading = FaultLog::default();
        let mut ended = self.ended.subscribe();
        loop {
            tokio::select! {
                // The sender lives as long as the store.
                _ = commits.changed() => {}
                // Another process may have written, too.
                () = tokio::time::sleep(LOOK) => {}
                _ = ended.wait_for(|ended| *ended) => {}
            }
            // Whoever begins to follow subscribes first and then looks whether this runs.
            let mut is_running = self.is_running.lock().await;
            if self.batches.receiver_count() == 0 || *ended.borrow() {
                *is_running = false;
                return;
            }
            drop(is_running);
            match self.publish(&mut published).await {
                Ok(()) => {
                    if let Some(failed_ms) = reading.succeeded(now_ms()) {
                        tracing::warn!("the feed goes on, after {}", show_ms(failed_ms));
                    }
                }
                Err(error) => {
                    if reading.failed(Weight::Lasting, now_ms()) {
                        tracing::warn!(%error, "the feed cannot read the store; trying again");
                    }
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
    }

    async fn publish(&self, published: &mut FeedPosition) -> Result<(), StoreError> {
        let sources = self.store.read(change_feed::sources).await?;
        for source in &sources {
            let id = u64::from(source.key.id);
            while published.usn(id) < source.update_count {
                let (batch, has_more) = self.batch(source, published.usn(id)).await?;
                published.advance(id, batch.end);
                // Without receivers it is gone, which is as well.
                let _ = self.batches.send(Arc::new(batch));
                if !has_more {
                    break;
                }
            }
        }
        published.retain(|id| sources.iter().any(|source| u64::from(source.key.id) == id));
        Ok(())
    }

    async fn batch(&self, source: &FeedSource, usn: i64) -> Result<(Batch, bool), StoreError> {
        let key: SourceKey = source.key;
        let read = self
            .store
            .read(move |tx| change_feed::after(tx, key, usn, MAX_EVENTS));
        let ChangePage {
            changes,
            end,
            has_more,
        } = read.await?;
        let name: Arc<str> = source.name.as_str().into();
        let events = changes.into_iter().map(|change| {
            let event = FeedEvent::new(source, Arc::clone(&name), change);
            Arc::new(event)
        });
        let batch = Batch {
            source: u64::from(key.id),
            readers: SourceReaders::new(source),
            after: usn,
            // A source that was removed meanwhile has none.
            end: end.max(usn),
            events: events.collect(),
        };
        Ok((batch, has_more))
    }
}

/// WebSockets count as no open connections.
const MAX_FOLLOWERS: usize = 2_000;
/// How long what another process wrote may stay unseen.
const LOOK: Duration = Duration::from_millis(250);
/// Of one page of a source.
const MAX_EVENTS: u32 = 100;
/// How far one may fall behind before the store is read instead.
const MAX_BATCHES: usize = 256;
