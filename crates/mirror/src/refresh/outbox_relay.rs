//! Relays the outbox: notifies the libraries of sources of what refreshes changed.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use driftline_runtime::{FaultLogs, Weight, now_ms, show_ms};
use driftline_store::{
    InstanceId, LocalId, Root, SourceId, Store, StoreError, listed_in, notify,
    refresh::{OutboxItem, forget_relayed, outbox, outbox_of},
    source,
};

/// Notifies the libraries of sources. Clones share which notes were delivered.
#[derive(Clone)]
pub struct OutboxRelay {
    store: Store,
    delivered: Arc<Delivered>,
    faults: Arc<FaultLogs<SourceId>>,
    /// The last post that was relayed, of each instance whose outbox was not relayed to its end.
    reached: Arc<tokio::sync::Mutex<HashMap<InstanceId, LocalId>>>,
}

impl OutboxRelay {
    pub(crate) fn new(store: &Store) -> Self {
        Self {
            store: store.clone(),
            delivered: Arc::default(),
            faults: Arc::default(),
            reached: Arc::default(),
        }
    }

    /// Relays the notes about these posts to every source of the instance. A note that one source
    /// could not receive stays in the outbox, and does not delay others.
    pub(crate) async fn relay(
        &self,
        instance: InstanceId,
        posts: &[LocalId],
    ) -> Result<(), StoreError> {
        if posts.is_empty() {
            return Ok(());
        }
        let posts = posts.to_vec();
        let notes = self
            .store
            .read(move |tx| outbox_of(tx, instance, &posts))
            .await?;
        self.notify_all(instance, notes).await
    }

    /// Relays the notes of a poll about posts of its page and, since no worker may be running, what
    /// was left before.
    pub(crate) async fn notify_polled(
        &self,
        instance: InstanceId,
        posts: &[LocalId],
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.relay(instance, posts).await?;
        self.relay_what_is_left(instance, now_ms).await
    }

    /// Relays notes that have been in the outbox for a while. Notes that fail again are skipped: the
    /// next call continues after them, if there were more than one call relays.
    pub(crate) async fn relay_what_is_left(
        &self,
        instance: InstanceId,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        // Another task is relaying them: nothing must be delivered twice.
        let Ok(mut reached) = self.reached.try_lock() else {
            return Ok(());
        };
        let until_ms = now_ms.saturating_sub(LEFT_AFTER_MS);
        let mut above = reached.remove(&instance);
        for _ in 0..MAX_PARTS {
            let notes = self
                .store
                .read(move |tx| outbox(tx, instance, until_ms, above, PART))
                .await?;
            let is_full = notes.len() == PART as usize;
            above = notes.last().map(|note| note.post).filter(|_| is_full);
            self.notify_all(instance, notes).await?;
            if above.is_none() {
                return Ok(());
            }
        }
        reached.extend(above.map(|above| (instance, above)));
        Ok(())
    }

    async fn notify_all(
        &self,
        instance: InstanceId,
        notes: Vec<OutboxItem>,
    ) -> Result<(), StoreError> {
        if notes.is_empty() {
            return Ok(());
        }
        let sources = self.store.read(source::list).await?;
        let (mut received, mut kept) = (Vec::new(), HashSet::new());
        for source in sources.into_iter().filter(|s| s.instance.id == instance) {
            let (id, news) = (source.id, Arc::new(self.delivered.news(source.id, &notes)));
            if news.is_empty() {
                received.push(id);
                continue;
            }
            let written = {
                let news = Arc::clone(&news);
                self.store
                    .write(source::root(id), move |tx| notify(tx, id, &news))
                    .await
            };
            match written {
                Ok(_) => {
                    received.push(id);
                    if let Some(failed_ms) = self.faults.succeeded(&id, now_ms()) {
                        tracing::warn!(source = %source.name, "its library is notified of refreshes again, after {}", show_ms(failed_ms));
                    }
                }
                // Removed meanwhile: there is no library to notify.
                Err(StoreError::NoSource) => {}
                Err(error) => {
                    if self.faults.failed(id, Weight::Lasting, now_ms()) {
                        tracing::warn!(source = %source.name, %error, "its library could not be notified of refreshes; trying again");
                    }
                    kept.extend(self.store.read(move |tx| listed_in(tx, id, &news)).await?);
                }
            }
        }
        let (kept, relayed): (Vec<_>, Vec<_>) = notes
            .into_iter()
            .partition(|note| kept.contains(&note.post));
        self.delivered.forget(&relayed);
        self.delivered.add(&received, &kept);
        self.store
            .write(Root::none(), move |tx| {
                forget_relayed(tx, instance, &relayed)
            })
            .await
    }
}

/// Notes that some sources received while another could not: such a note stays in the outbox, and must
/// not be delivered twice.
#[derive(Debug, Default)]
struct Delivered(Mutex<HashSet<(SourceId, LocalId, i64)>>);

impl Delivered {
    /// The notes that the source has not received.
    fn news(&self, source: SourceId, notes: &[OutboxItem]) -> Vec<OutboxItem> {
        let delivered = self.lock();
        let is_news = |note: &&OutboxItem| !delivered.contains(&(source, note.post, note.since_ms));
        notes.iter().filter(is_news).copied().collect()
    }

    fn add(&self, sources: &[SourceId], notes: &[OutboxItem]) {
        let mut delivered = self.lock();
        for source in sources {
            delivered.extend(notes.iter().map(|note| (*source, note.post, note.since_ms)));
        }
    }

    /// Forgets notes that all sources have received, or that were replaced.
    fn forget(&self, notes: &[OutboxItem]) {
        let mut delivered = self.lock();
        if !delivered.is_empty() {
            let over: HashSet<LocalId> = notes.iter().map(|note| note.post).collect();
            delivered.retain(|(_, post, _)| !over.contains(post));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(SourceId, LocalId, i64)>> {
        // The set is consistent even if a holder of the lock panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Workers and polls relay their notes at once; older ones were left by a dead process, or failed.
const LEFT_AFTER_MS: i64 = 30_000;
const PART: u32 = 1_000;
const MAX_PARTS: usize = 10;

#[cfg(test)]
mod tests {
    use driftline_db::{Tx, testing::Fresh};
    use driftline_store::{local_ids, testing::new_source};

    use super::*;
    use driftline_runtime::testing::Warnings;

    #[test]
    fn no_source_receives_a_note_twice() {
        let note = |post: u64, since_ms| OutboxItem {
            post: LocalId::from(post),
            counts: true,
            since_ms,
        };
        let (one, other) = (SourceId::from(1), SourceId::from(2));
        let delivered = Delivered::default();
        delivered.add(&[one], &[note(7, 10)]);
        let both = [note(7, 10), note(8, 10)];
        assert_eq!(delivered.news(one, &both), [note(8, 10)]);
        assert_eq!(delivered.news(other, &[note(7, 10)]), [note(7, 10)]);
        let new = [note(7, 11)];
        assert_eq!(delivered.news(one, &new), new, "a new note");
        delivered.forget(&[note(7, 10)]);
        assert_eq!(delivered.news(one, &[note(7, 10)]), [note(7, 10)]);
    }

    #[tokio::test]
    async fn a_failing_source_does_not_delay_later_notes() {
        let fresh = Fresh::sqlite();
        let target = fresh.target.clone();
        let store = tokio::task::spawn_blocking(move || Store::open(target));
        let store = store.await.unwrap().unwrap();
        let add = |tx: &mut Tx<'_>| source::add(tx, &new_source("broken"), 1);
        let source = store.write(local_ids::root(), add).await.unwrap().unwrap();
        let instance = store.read(source::instances).await.unwrap()[0].id;
        let (source_id, instance_id) = (u64::from(source), u64::from(instance));
        let notes = u64::from(PART) * 2;
        let write = async |sql: String| {
            let job = move |tx: &mut Tx<'_>| Ok::<_, StoreError>(tx.execute(&sql, &[])?);
            store.write(Root::none(), job).await.unwrap();
        };
        let numbers = format!(
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < {notes})"
        );
        write(format!(
            "insert into post (id, instance_id, upstream_id, first_source_id, read_at_ms,
                 visibility, content_hash, listed)
             {numbers} select i, {instance_id}, 'p' || i, {source_id}, 1, 'public', 1, false from n"
        ))
        .await;
        write(format!(
            "insert into entry (source_id, id, post_id, position, first_usn, usn, arrived_at_ms,
                 content_hash, gone, listed, streamed)
             {numbers} select {source_id}, i, i, 'p' || i, i, i, 1, 0, false, true, false from n"
        ))
        .await;
        write(format!(
            "insert into outbox (instance_id, post_id, since_ms, counts)
             {numbers} select {instance_id}, i, 1, true from n"
        ))
        .await;
        let listed_nowhere = notes + 1;
        write(format!(
            "insert into outbox values ({instance_id}, {listed_nowhere}, 1, true)"
        ))
        .await;
        write(format!(
            "create trigger broken before update on library when old.owner_id = {source_id}
             begin select raise(abort, 'broken'); end"
        ))
        .await;
        let outbox_relay = OutboxRelay::new(&store);
        let left_after = async |now_ms| {
            let relayed = outbox_relay.relay_what_is_left(instance, now_ms);
            relayed.await.unwrap();
            let left = move |tx: &mut Tx<'_>| outbox(tx, instance, i64::MAX, None, 5 * PART);
            store.read(left).await.unwrap().len() as u64
        };
        let (warnings, _guard) = Warnings::listen();
        let early = left_after(LEFT_AFTER_MS).await;
        assert_eq!(early, notes + 1, "it was noted a moment ago");
        let broken = left_after(LEFT_AFTER_MS + 1).await;
        assert_eq!(broken, notes, "kept for the broken one alone");
        assert_eq!(warnings.times("could not be notified"), 1, "of two parts");
        write("drop trigger broken".to_owned()).await;
        assert_eq!(left_after(LEFT_AFTER_MS + 1).await, 0);
        store.close().await;
    }
}
