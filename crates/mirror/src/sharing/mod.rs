//! This process's part in the work that several processes share: its membership, what it cannot do,
//! and what it last saw of all.
//!
//! The pollers' keeper drives it: it renews the membership with the leases of sources and looks at the
//! number that rises with every change; only when that has risen does it read everything again. What
//! follows for this process is a [`View`], which pollers and refresh workers act on.

mod view;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use driftline_runtime::random;
use driftline_store::{
    InstanceId, Root, SourceId, SourceKey, Store, StoreError,
    instance::Instance,
    refresh::Shards,
    sharing::{
        change::Change,
        member::{self, Beat, Beaten, Refusals},
    },
    source_lease::{self, Lease},
};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

pub(crate) use view::{SharedWork, View};

/// How this process takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Its weight: 0 for none of the work.
    pub share: u32,
    /// Whether it refreshes posts.
    pub refreshes: bool,
    /// The program's version.
    pub version: String,
}

/// This process's part in the shared work. Clones share it.
#[derive(Clone)]
pub struct Sharing(Arc<State>);

struct State {
    name: String,
    nonce: String,
    /// `None` for a process that is no member: it takes what nobody holds.
    membership: Option<Membership>,
    refusals: Mutex<Refusals>,
    /// What others do not know yet.
    has_news: AtomicBool,
    /// The last known wish, should the row be gone when the process joins again.
    is_draining: AtomicBool,
    /// Set for good when it has left. Held while its row is written.
    has_left: tokio::sync::Mutex<bool>,
    /// Whether another process's use of the name was logged.
    has_warned: AtomicBool,
    view: watch::Sender<Option<Arc<View>>>,
    must_look: AtomicBool,
    poke: Notify,
}

impl Sharing {
    pub(crate) fn new(name: String, membership: Option<Membership>) -> Self {
        let refreshes = membership.as_ref().is_none_or(|of| of.refreshes);
        Self(Arc::new(State {
            name,
            nonce: format!("{:016x}{:016x}", random(), random()),
            membership,
            refusals: Mutex::new(Refusals {
                refreshing: !refreshes,
                ..Refusals::default()
            }),
            has_news: AtomicBool::new(false),
            is_draining: AtomicBool::new(false),
            has_left: tokio::sync::Mutex::new(false),
            has_warned: AtomicBool::new(false),
            view: watch::channel(None).0,
            must_look: AtomicBool::new(true),
            poke: Notify::new(),
        }))
    }

    /// The shards of an instance's due times that this process looks at.
    pub(crate) fn shards(&self, instance: InstanceId) -> Shards {
        if self.0.membership.is_none() {
            return Shards::ALL;
        }
        let view = self.0.view.borrow();
        let shards = view.as_ref().and_then(|view| view.shards.get(&instance));
        shards.copied().unwrap_or(Shards::NONE)
    }

    /// Waits until these are no more the shards of an instance that this process looks at.
    pub(crate) async fn shards_change(&self, instance: InstanceId, from: Shards) {
        let mut view = self.view();
        while self.shards(instance) == from {
            // The sender is in this value.
            let _ = view.changed().await;
        }
    }

    /// The instances of the last look; `None` for a process that does not look in time.
    pub(crate) fn instances(&self) -> Option<Vec<Instance>> {
        let view = self.0.view.borrow();
        let view = view.as_ref().filter(|_| self.is_member())?;
        Some(view.instances.clone())
    }

    /// Changes with what this process is to do.
    pub(crate) fn view(&self) -> watch::Receiver<Option<Arc<View>>> {
        self.0.view.subscribe()
    }

    /// Whether this process is a member.
    pub(crate) fn is_member(&self) -> bool {
        self.0.membership.is_some()
    }

    /// Sets the sources that this process cannot read now.
    pub(crate) fn set_refused_sources(&self, sources: BTreeSet<SourceId>) {
        let mut refusals = self.0.refusals.lock();
        if refusals.sources != sources {
            refusals.sources = sources;
            drop(refusals);
            self.publish();
        }
    }

    /// Whether no member can refresh an instance's posts.
    pub(crate) fn is_unrefreshed(&self, instance: InstanceId) -> bool {
        let view = self.0.view.borrow();
        view.as_ref()
            .is_some_and(|view| view.unrefreshed.contains(&instance))
    }

    /// Whether this process cannot refresh an instance's posts.
    pub(crate) fn refuses_instance(&self, instance: InstanceId) -> bool {
        self.0.refusals.lock().instances.contains(&instance)
    }

    /// Sets whether this process cannot refresh an instance's posts.
    pub(crate) fn refuse_instance(&self, instance: InstanceId, refuses: bool) {
        let mut refusals = self.0.refusals.lock();
        let has_changed = match refuses {
            true => refusals.instances.insert(instance),
            false => refusals.instances.remove(&instance),
        };
        drop(refusals);
        if has_changed {
            self.publish();
        }
    }

    /// Publishes a change here, at once.
    fn publish(&self) {
        self.0.has_news.store(true, Ordering::SeqCst);
        self.look_now();
    }

    /// Lets the keeper read everything again, at once.
    pub(crate) fn look_now(&self) {
        self.0.must_look.store(true, Ordering::SeqCst);
        self.0.poke.notify_one();
    }

    pub(crate) fn takes_look(&self) -> bool {
        self.0.must_look.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn has_news(&self) -> bool {
        self.0.has_news.load(Ordering::SeqCst)
    }

    pub(crate) async fn poked(&self) {
        self.0.poke.notified().await;
    }

    /// Renews the membership; `sources` is how many this process reads. Returns what shows whether others
    /// have changed anything, if the store said so in passing.
    ///
    /// Apart from the leases: whoever holds a source's row for long, as its removal does, must not end
    /// the membership, and nobody may wait for a source while holding the number of changes.
    ///
    /// # Errors
    /// [`StoreError`] if the store failed.
    pub(crate) async fn beat(
        &self,
        store: &Store,
        sources: usize,
        ttl: Duration,
    ) -> Result<Option<Change>, StoreError> {
        let state = &self.0;
        let has_left = state.has_left.lock().await;
        let Some(membership) = state.membership.as_ref().filter(|_| !*has_left) else {
            return Ok(None);
        };
        let beat = self.beat_of(membership, sources, in_ms(ttl));
        let is_news = state.has_news.swap(false, Ordering::SeqCst);
        let written = store.write(Root::none(), move |tx| member::beat(tx, &beat, is_news));
        let beaten = match written.await {
            Ok(beaten) => beaten,
            Err(error) => {
                state.has_news.fetch_or(is_news, Ordering::SeqCst);
                return Err(error);
            }
        };
        match beaten {
            Beaten::Renewed {
                is_draining,
                change,
            } => {
                state.is_draining.store(is_draining, Ordering::SeqCst);
                return Ok(Some(change));
            }
            Beaten::Joined { is_draining } => {
                state.is_draining.store(is_draining, Ordering::SeqCst);
                tracing::info!(member = %state.name, "joined the processes that share the work");
                self.look_now();
            }
            Beaten::NameTaken if state.has_warned.swap(true, Ordering::SeqCst) => {}
            Beaten::NameTaken => {
                tracing::error!(member = %state.name, "another process has this process's name; this one does no work");
            }
        }
        Ok(None)
    }

    /// Renews leases of sources, in one order in every process; returns whether all were renewed, which
    /// leases are not that were lost or whose sources' rows others hold at the moment.
    ///
    /// # Errors
    /// [`StoreError`] if the store failed.
    pub(crate) async fn renew(
        &self,
        store: &Store,
        mut leases: Vec<Lease>,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        if leases.is_empty() {
            return Ok(true);
        }
        leases.sort_by_key(|lease| lease.source);
        let sources: Vec<SourceKey> = leases.iter().map(|lease| lease.source).collect();
        let (name, ttl_ms) = (self.0.name.clone(), in_ms(ttl));
        let renew = store.write(Root::none(), move |tx| {
            source_lease::renew_held(tx, &name, &sources, ttl_ms)
        });
        Ok(renew.await? == leases.len() as u64)
    }

    fn beat_of(&self, membership: &Membership, sources: usize, ttl_ms: i64) -> Beat {
        let state = &self.0;
        let view = state.view.borrow();
        let buckets = view.as_ref().map_or(0, |view| view.buckets);
        Beat {
            name: state.name.clone(),
            nonce: state.nonce.clone(),
            version: membership.version.clone(),
            share: membership.share,
            was_draining: state.is_draining.load(Ordering::SeqCst),
            refusals: state.refusals.lock().clone(),
            sources: i64::try_from(sources).unwrap_or(i64::MAX),
            buckets: i64::try_from(buckets).unwrap_or(i64::MAX),
            ttl_ms,
        }
    }

    /// Leaves, so that others take over at once. What this process holds is still to be given back.
    ///
    /// # Errors
    /// [`StoreError`] if the store failed: then the membership ends with its lease.
    pub(crate) async fn leave(&self, store: &Store) -> Result<(), StoreError> {
        let state = &self.0;
        let mut has_left = state.has_left.lock().await;
        *has_left = true;
        if state.membership.is_none() {
            return Ok(());
        }
        let (name, nonce) = (state.name.clone(), state.nonce.clone());
        store
            .write(Root::none(), move |tx| member::leave(tx, &name, &nonce))
            .await
    }

    /// Adopts what was seen.
    pub(crate) fn see(&self, seen: SharedWork) {
        let state = &self.0;
        let view = View::new(seen, &state.name, self.is_member(), &state.refusals.lock());
        state.view.send_replace(Some(Arc::new(view)));
    }

    /// Whether the last look saw this process as a member, or it is none.
    pub(crate) fn takes_part(&self, seen: &SharedWork) -> bool {
        !self.is_member() || seen.is_live(&self.0.name)
    }
}

fn in_ms(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use driftline_db::testing::Fresh;
    use driftline_store::{local_ids, source, testing::new_source};

    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_member_whose_source_is_locked_stays_one_and_holds_nobody_up() {
        let target = Fresh::postgres().target;
        let open = tokio::task::spawn_blocking(move || Store::open(target).unwrap());
        let store = open.await.unwrap();
        let add = store.write(local_ids::root(), |tx| {
            source::add(tx, &new_source("one"), 0)
        });
        let id = add.await.unwrap().unwrap();
        let membership = Membership {
            share: 1,
            refreshes: true,
            version: String::new(),
        };
        let sharing = Sharing::new("one".into(), Some(membership));
        sharing.beat(&store, 0, TTL).await.unwrap();
        let claim = store.write(source::root(id), move |tx| {
            source_lease::claim(tx, id, "one", 60_000)
        });
        let lease = claim.await.unwrap().unwrap();
        // As a removal does, for as long as it takes.
        let (locked, is_locked) = std::sync::mpsc::channel();
        let (free, is_free) = std::sync::mpsc::channel::<()>();
        let is_free = Mutex::new(is_free);
        let locking = tokio::spawn({
            let store = store.clone();
            async move {
                let lock = store.write(source::root(id), move |tx| {
                    driftline_store::touch(tx)?;
                    let _ = locked.send(());
                    let _ = is_free.lock().recv_timeout(Duration::from_secs(20));
                    Ok::<_, StoreError>(())
                });
                lock.await
            }
        });
        tokio::task::spawn_blocking(move || is_locked.recv().unwrap())
            .await
            .unwrap();
        // News, which raise the number of changes.
        sharing.refuse_instance(InstanceId::new(9), true);
        let (beat, renewal) = tokio::join!(
            sharing.beat(&store, 1, TTL),
            sharing.renew(&store, vec![lease], TTL)
        );
        beat.unwrap();
        assert!(!renewal.unwrap(), "others hold the source");
        let refusals = async || {
            let rows = store.read(member::list).await.unwrap();
            rows[0].refusals.instances.clone()
        };
        assert!(!refusals().await.is_empty());
        let drain = store.write(Root::none(), |tx| member::set_draining(tx, "one", true));
        let drained = tokio::time::timeout(Duration::from_secs(10), drain).await;
        assert_eq!(drained.unwrap().unwrap(), Some(true));
        free.send(()).unwrap();
        locking.await.unwrap().unwrap();
        assert!(sharing.renew(&store, vec![lease], TTL).await.unwrap());
        store.close().await;
    }
}
