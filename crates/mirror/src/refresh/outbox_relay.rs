//! Relays the outbox: notifies the libraries of sources of what refreshes and other sources' polls changed.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use driftline_runtime::{FaultLogs, Weight, now_ms, show_ms};
use driftline_store::{
    InstanceId, LocalId, Root, SourceId, Store, StoreError, listing_sources, notify,
    refresh::{OutboxItem, forget_relayed, outbox, outbox_of, with_outbox},
    source,
};
use parking_lot::Mutex;

/// Notifies the libraries of sources. Clones share which notes were delivered.
#[derive(Clone)]
pub struct OutboxRelay {
    store: Store,
    /// Notes that some sources received while another could not: such a note stays in the outbox, and
    /// must not be delivered twice.
    delivered: Arc<Mutex<HashSet<(SourceId, LocalId, i64)>>>,
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

    /// The instances with notes that [`OutboxRelay::relay_what_is_left`] takes.
    pub(crate) async fn with_what_is_left(
        &self,
        now_ms: i64,
    ) -> Result<HashSet<InstanceId>, StoreError> {
        let until_ms = now_ms.saturating_sub(LEFT_AFTER_MS);
        let left = self.store.read(move |tx| with_outbox(tx, until_ms)).await?;
        Ok(left.into_iter().collect())
    }

    async fn notify_all(
        &self,
        instance: InstanceId,
        notes: Vec<OutboxItem>,
    ) -> Result<(), StoreError> {
        if notes.is_empty() {
            return Ok(());
        }
        let (items, sources) = (notes.clone(), self.store.read(source::list).await?);
        let listed = self
            .store
            .read(move |tx| listing_sources(tx, instance, &items));
        let listed = listed.await?;
        let with_posts = |source: source::Source| Some((listed.get(&source.id)?, source));
        let (mut received, mut kept) = (Vec::new(), HashSet::new());
        for (posts, source) in sources.into_iter().filter_map(with_posts) {
            let (id, key, mut news) = (source.id, source.key(), notes.clone());
            {
                let delivered = self.delivered.lock();
                let is_new =
                    |note: &OutboxItem| !delivered.contains(&(id, note.post, note.since_ms));
                news.retain(|note| posts.contains(&note.post) && is_new(note));
            }
            let news = Arc::new(news);
            if news.is_empty() {
                received.push(id);
                continue;
            }
            let written = {
                let news = Arc::clone(&news);
                self.store
                    .write(source::root(key), move |tx| notify(tx, key, &news))
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
                    kept.extend(news.iter().map(|note| note.post));
                }
            }
        }
        let (kept, relayed): (Vec<_>, Vec<_>) = notes
            .into_iter()
            .partition(|note| kept.contains(&note.post));
        {
            let mut delivered = self.delivered.lock();
            delivered.retain(|(_, post, _)| relayed.iter().all(|note| note.post != *post));
            for id in received {
                delivered.extend(kept.iter().map(|note| (id, note.post, note.since_ms)));
            }
        }
        self.store
            .write(Root::none(), move |tx| {
                forget_relayed(tx, instance, &relayed)
            })
            .await
    }
}

/// Workers and polls relay their notes at once; older ones were left by a dead process, or failed.
const LEFT_AFTER_MS: i64 = 30_000;
const PART: u32 = 1_000;
const MAX_PARTS: usize = 10;

#[cfg(test)]
mod tests {
    use driftline_db::{Tx, testing::Fresh};
    use driftline_runtime::testing::Warnings;
    use driftline_store::{local_ids, testing::new_source};

    use super::*;

    /// A store with two sources of one instance, the first of which cannot be notified.
    struct World {
        store: Store,
        instance: InstanceId,
        _fresh: Fresh,
    }

    impl World {
        /// With so many posts in both sources, and a note about each.
        async fn new(posts: u64) -> Self {
            let fresh = Fresh::sqlite();
            let target = fresh.target.clone();
            let store = tokio::task::spawn_blocking(move || Store::open(target));
            let store = store.await.unwrap().unwrap();
            for name in ["broken", "other"] {
                let add = move |tx: &mut Tx<'_>| source::add(tx, &new_source(name), 1);
                store.write(local_ids::root(), add).await.unwrap().unwrap();
            }
            let instance = store.read(source::instances).await.unwrap()[0].id;
            let world = Self {
                store,
                instance,
                _fresh: fresh,
            };
            let numbers = format!(
                "with recursive n(i) as (select 1 union all select i + 1 from n where i < {posts})"
            );
            for insert in [
                "post (id, instance_id, upstream_id, first_source_id, read_at_ms, visibility,
                     content_hash, listed)
                 select i, instance_id, 'p' || i, id, 1, 'public', 1, false
                 from n, source where name = 'broken'",
                "entry (source_id, instance_id, id, post_id, position, first_usn, usn, arrived_at_ms,
                     content_hash, gone, visibility, streamed)
                 select id, instance_id, i, i, 'p' || i, i, i, 1, 0, false, 0, false
                 from n, source",
                "outbox (instance_id, post_id, since_ms, counts)
                 select instance_id, i, 1, true from n, source where name = 'broken'",
            ] {
                world.write(format!("{numbers} insert into {insert}")).await;
            }
            let trigger = "create trigger broken before update on library
                 when old.owner_id = (select id from source where name = 'broken')
                 begin select raise(abort, 'broken'); end";
            world.write(trigger.to_owned()).await;
            world
        }

        async fn write(&self, sql: String) {
            let job = move |tx: &mut Tx<'_>| Ok::<_, StoreError>(tx.execute(&sql, &[])?);
            self.store.write(Root::none(), job).await.unwrap();
        }

        /// How many notes are left after what was left at this time is relayed.
        async fn left_after(&self, relay: &OutboxRelay, now_ms: i64) -> u64 {
            let relayed = relay.relay_what_is_left(self.instance, now_ms);
            relayed.await.unwrap();
            let instance = self.instance;
            let left = move |tx: &mut Tx<'_>| outbox(tx, instance, i64::MAX, None, 5 * PART);
            self.store.read(left).await.unwrap().len() as u64
        }
    }

    #[tokio::test]
    async fn no_source_receives_a_note_twice() {
        let world = World::new(1).await;
        let relay = OutboxRelay::new(&world.store);
        let mut counts = Vec::new();
        for since_ms in [1, 1, 2] {
            world
                .write(format!("update outbox set since_ms = {since_ms}"))
                .await;
            assert_eq!(world.left_after(&relay, i64::MAX).await, 1);
            let other = world.store.read(|tx| source::by_name(tx, "other")).await;
            counts.push(other.unwrap().unwrap().update_count);
        }
        assert_eq!(counts[0], counts[1], "it has received it");
        assert!(counts[2] > counts[1], "a new note");
        world.store.close().await;
    }

    #[tokio::test]
    async fn a_failing_source_does_not_delay_later_notes() {
        let notes = u64::from(PART) * 2;
        let world = World::new(notes).await;
        let listed_nowhere =
            "insert into outbox select instance_id, max(post_id) + 1, 1, true from outbox";
        world.write(listed_nowhere.to_owned()).await;
        let relay = OutboxRelay::new(&world.store);
        let (warnings, _guard) = Warnings::listen();
        let early = world.left_after(&relay, LEFT_AFTER_MS).await;
        assert_eq!(early, notes + 1, "it was noted a moment ago");
        let broken = world.left_after(&relay, LEFT_AFTER_MS + 1).await;
        assert_eq!(broken, notes, "kept for the broken one alone");
        assert_eq!(warnings.times("could not be notified"), 1, "of two parts");
        world.write("drop trigger broken".to_owned()).await;
        assert_eq!(world.left_after(&relay, LEFT_AFTER_MS + 1).await, 0);
        world.store.close().await;
    }
}
