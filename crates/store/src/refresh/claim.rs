//! Claims: which posts a worker looks up, and nobody else meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driftline_core::{
    post::Visibility,
    refresh::{BatchRule, Fill, Freshness, Policy},
};
use driftline_db::{DbError, Dialect, Root, Tx};

use super::{
    SHARDS,
    book::Book,
    choice::{self, Choice},
    lease::{self, Beside},
    pending_lookup,
    schedule::{self, Slot},
    stored,
};
use crate::{
    error::StoreError,
    ids::{InstanceId, LocalId, SourceId, from_sql, sql},
    store::Store,
};

/// The claims of this process. Clones are handles to the same ones; all workers of a process
/// share one.
#[derive(Clone, Debug, Default)]
pub struct Claims(Arc<Mutex<Book>>);

/// What to claim.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The posts' upstream.
    pub instance: InstanceId,
    /// When a batch leaves, and how large it may be.
    pub batch_rule: BatchRule,
    /// The shard to begin with, any number: workers that begin with different ones seldom meet.
    /// Who claims again counts on.
    pub shard: u64,
    /// The worker's name, no other's.
    pub holder: String,
    /// How long the claim lasts, ms.
    pub lease_ms: i64,
    /// The time, Unix ms.
    pub now_ms: i64,
    /// Which of the posts that are due go first. Under a policy by value it is those of the most
    /// worth, posts that the price has left behind are put off, and a batch that leaves before it
    /// is full is filled up with the most valuable posts that are not due yet.
    pub policy: Arc<Policy>,
}

/// Posts of one upstream that this worker alone may look up.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Their upstream.
    pub instance: InstanceId,
    /// The fencing token.
    pub id: i64,
    /// When it ends, Unix ms: by the database's clock on PostgreSQL, by this process's on SQLite.
    pub until_ms: i64,
    /// The posts, the one first that was due first; those that fill a batch up by value come last.
    pub posts: Vec<DuePost>,
    /// Slots whose post needs no look-up any more: it is deleted or removed.
    pub(crate) idle: Vec<Slot>,
    /// Slots whose post is to be scheduled anew.
    pub(crate) later: Vec<Slot>,
}

/// A post that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct DuePost {
    /// What the post is here.
    pub what: What,
    /// Its ID at the upstream.
    pub upstream_id: String,
    /// When it was due, Unix ms.
    pub due_at_ms: i64,
    /// What its answers said.
    pub freshness: Freshness,
    /// Whether anyone may see it at the upstream.
    pub is_open: bool,
    pub(crate) slot: Slot,
}

/// What a due post is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A stored post.
    Stored(LocalId),
    /// A post that someone named and that is not stored yet: its lookup_id, and the source that it is
    /// for.
    Wanted {
        /// The lookup_id.
        lookup_id: i64,
        /// The source.
        source: SourceId,
    },
}

/// What asking for a claim brings.
#[derive(Clone, Debug, PartialEq)]
pub enum Claimed {
    /// A batch.
    Batch(Claim),
    /// Nothing yet: a batch fills until then, or nothing is due before it, Unix ms.
    Until(i64),
    /// Nothing is scheduled for the instance.
    Idle,
}

impl Claims {
    /// Claims a batch of due posts, if one is to leave.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database failed; then nothing is claimed.
    pub async fn claim(&self, store: &Store, ask: Ask) -> Result<Claimed, StoreError> {
        let claims = self.clone();
        match store.db().dialect() {
            Dialect::Sqlite => store.read(move |tx| claims.in_memory(tx, &ask)).await,
            Dialect::Postgres => {
                let mut beside = Beside::Others;
                loop {
                    let (claims, ask) = (self.clone(), ask.clone());
                    let job = move |tx: &mut Tx<'_>| claims.in_rows(tx, &ask, beside);
                    match store.write(Root::none(), job).await? {
                        Some(claimed) => return Ok(claimed),
                        None => beside = Beside::Nobody,
                    }
                }
            }
        }
    }

    /// [`Claims::claim`] for plain threads.
    ///
    /// # Errors
    /// As there.
    pub fn claim_blocking(&self, store: &Store, ask: Ask) -> Result<Claimed, StoreError> {
        let claims = self.clone();
        match store.db().dialect() {
            Dialect::Sqlite => store.read_blocking(move |tx| claims.in_memory(tx, &ask)),
            Dialect::Postgres => {
                let mut beside = Beside::Others;
                loop {
                    let (claims, ask) = (self.clone(), ask.clone());
                    let job = move |tx: &mut Tx<'_>| claims.in_rows(tx, &ask, beside);
                    match store.write_blocking(Root::none(), job)? {
                        Some(claimed) => return Ok(claimed),
                        None => beside = Beside::Nobody,
                    }
                }
            }
        }
    }

    /// Gives a claim back: its posts are due as they were.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database failed; then the claim ends by itself.
    pub async fn give_back(&self, store: &Store, claim: Claim) -> Result<(), StoreError> {
        self.forget(&claim);
        match store.db().dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => {
                store
                    .write(Root::none(), move |tx| put_back(tx, &claim))
                    .await
            }
        }
    }

    /// [`Claims::give_back`] for plain threads.
    ///
    /// # Errors
    /// As there.
    pub fn give_back_blocking(&self, store: &Store, claim: Claim) -> Result<(), StoreError> {
        self.forget(&claim);
        match store.db().dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => store.write_blocking(Root::none(), move |tx| put_back(tx, &claim)),
        }
    }

    /// Gives back whatever of an instance is claimed in a holder's name: what could not be given
    /// back, and what was claimed by a commit whose answer was lost. Its name is to be no other's.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database failed.
    pub async fn give_back_of(
        &self,
        store: &Store,
        instance: InstanceId,
        holder: String,
    ) -> Result<(), StoreError> {
        match store.db().dialect() {
            // Claims in memory are always given back.
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => {
                let job = move |tx: &mut Tx<'_>| put_back_of(tx, instance, &holder);
                store.write(Root::none(), job).await
            }
        }
    }

    /// [`Claims::give_back_of`] for plain threads.
    ///
    /// # Errors
    /// As there.
    pub fn give_back_of_blocking(
        &self,
        store: &Store,
        instance: InstanceId,
        holder: String,
    ) -> Result<(), StoreError> {
        match store.db().dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => {
                let job = move |tx: &mut Tx<'_>| put_back_of(tx, instance, &holder);
                store.write_blocking(Root::none(), job)
            }
        }
    }

    /// Ends a claim in memory.
    pub(crate) fn forget(&self, claim: &Claim) {
        self.book().end(claim.id, claim.post_ids());
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        // A book is whole after each of its calls.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a claim for its save: takes what it holds off the schedule. `false` if it is lost.
    pub(crate) fn redeem(
        &self,
        tx: &mut Tx<'_>,
        claim: &Claim,
        now_ms: i64,
    ) -> Result<bool, DbError> {
        if tx.dialect() == Dialect::Postgres {
            return lease::end(tx, base_bucket(claim), claim.id);
        }
        if !self.book().is_whole(claim.id, claim.post_ids(), now_ms) {
            return Ok(false);
        }
        let slots: Vec<Slot> = claim.slots().collect();
        // A row that is not there any more went with its post, which was removed.
        schedule::remove(tx, &slots)?;
        Ok(true)
    }

    fn in_memory(&self, tx: &mut Tx<'_>, ask: &Ask) -> Result<Claimed, StoreError> {
        // LockedSource from before the snapshot, which the first statement takes, to the end: so no other
        // claim takes what is decision here, and no save ends a claim whose posts the snapshot still
        // shows as due.
        let mut book = self.book();
        book.clear_ended(ask.now_ms);
        let reach = choice::reach(&ask.policy, ask.batch_rule.size());
        let mut due = Due::default();
        for bucket in buckets(ask) {
            let limit = reach - due.slots.len() + book.len();
            let found = schedule::first(tx, bucket, ask.now_ms, limit)?;
            due.add(
                found
                    .into_iter()
                    .map(|(slot, _)| slot)
                    .filter(|slot| !book.holds(slot.post_id, ask.now_ms)),
            );
            if due.slots.len() >= reach {
                break;
            }
        }
        due.slots.truncate(reach);
        if let Some(wait) = due.wait(tx, ask)? {
            return Ok(wait);
        }
        let is_free = |slot: &Slot| !book.holds(slot.post_id, ask.now_ms);
        let taken = due.taken(tx, ask, is_free)?;
        let until_ms = ask.now_ms.saturating_add(ask.lease_ms);
        let id = book.take(taken.slots().map(|slot| slot.post_id), until_ms);
        Ok(Claimed::Batch(taken.claim(ask, id, until_ms)))
    }

    /// `None` if too little is free for a full batch because others are claiming: what they leave
    /// is to be decision when they are done, beside nobody.
    fn in_rows(
        &self,
        tx: &mut Tx<'_>,
        ask: &Ask,
        beside: Beside,
    ) -> Result<Option<Claimed>, StoreError> {
        let base = sql(ask.instance) * SHARDS;
        lease::enter(tx, base, beside)?;
        let (mut due, mut clock_ms) = Due::locked(tx, ask)?;
        // Full batches are not held up for what ended leases hold more often than it matters.
        let is_full = due.slots.len() >= ask.batch_rule.size();
        let looks = self.book().looks_for_ended(base, ask.now_ms);
        if (looks || !is_full) && lease::put_back_ended(tx, base)? > 0 {
            // They have been due for longest.
            (due, clock_ms) = Due::locked(tx, ask)?;
        }
        if beside == Beside::Others && due.slots.len() < ask.batch_rule.size() {
            let shown = schedule::count_due(tx, buckets(ask), ask.now_ms, ask.batch_rule.size())?;
            if shown > due.slots.len() {
                return Ok(None);
            }
        }
        if let Some(wait) = due.wait(tx, ask)? {
            return Ok(Some(wait));
        }
        let taken = due.taken(tx, ask, |_| true)?;
        let slots: Vec<Slot> = taken.slots().collect();
        let time = (clock_ms, ask.lease_ms);
        let (id, until_ms) = lease::take(tx, base, &ask.holder, time, &slots)?;
        Ok(Some(Claimed::Batch(taken.claim(ask, id, until_ms))))
    }
}

impl Claim {
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        let posts = self.posts.iter().map(|post| post.slot);
        let others = self.idle.iter().chain(&self.later);
        posts.chain(others.copied())
    }

    fn post_ids(&self) -> impl Iterator<Item = i64> {
        self.slots().map(|slot| slot.post_id)
    }
}

fn put_back(tx: &mut Tx<'_>, claim: &Claim) -> Result<(), StoreError> {
    if lease::end(tx, base_bucket(claim), claim.id)? {
        let slots: Vec<Slot> = claim.slots().collect();
        schedule::insert(tx, &slots)?;
    }
    Ok(())
}

fn put_back_of(tx: &mut Tx<'_>, instance: InstanceId, holder: &str) -> Result<(), StoreError> {
    lease::put_back_of(tx, sql(instance) * SHARDS, holder)?;
    Ok(())
}

/// What of an instance is due and free.
#[derive(Default)]
struct Due {
    slots: Vec<Slot>,
    first_ms: Option<i64>,
}

impl Due {
    /// What is due and in no lease, locked, with the time by the database's clock.
    fn locked(tx: &mut Tx<'_>, ask: &Ask) -> Result<(Self, i64), DbError> {
        let (mut due, mut clock_ms) = (Self::default(), 0);
        let reach = choice::reach(&ask.policy, ask.batch_rule.size());
        for bucket in buckets(ask) {
            let limit = reach - due.slots.len();
            let found = schedule::first(tx, bucket, ask.now_ms, limit)?;
            clock_ms = found.last().map_or(clock_ms, |(_, clock_ms)| *clock_ms);
            due.add(found.into_iter().map(|(slot, _)| slot));
            if due.slots.len() >= reach {
                break;
            }
        }
        Ok((due, clock_ms))
    }

    fn add(&mut self, slots: impl Iterator<Item = Slot>) {
        for slot in slots {
            let first_ms = self.first_ms.unwrap_or(slot.due_at_ms);
            self.first_ms = Some(first_ms.min(slot.due_at_ms));
            self.slots.push(slot);
        }
    }

    /// What to wait for, unless the batch is to leave.
    fn wait(&self, tx: &mut Tx<'_>, ask: &Ask) -> Result<Option<Claimed>, DbError> {
        let first_ms = self.first_ms.unwrap_or(ask.now_ms);
        match ask.batch_rule.fill(self.slots.len(), first_ms, ask.now_ms) {
            Fill::Full | Fill::Over => Ok(None),
            Fill::Until(until_ms) => Ok(Some(Claimed::Until(until_ms))),
            Fill::Empty => {
                let mut next: Option<i64> = None;
                for bucket in buckets(ask) {
                    let due_ms = schedule::next_due_ms(tx, bucket)?;
                    next = [next, due_ms].into_iter().flatten().min();
                }
                // What is due already is held by others: there is nothing to do at once.
                let soon = |due_ms: i64| Claimed::Until(due_ms.max(ask.now_ms + HELD_MS));
                Ok(Some(next.map_or(Claimed::Idle, soon)))
            }
        }
    }
}

impl Due {
    /// What a claim takes of it, with what fills its batch up.
    fn taken(
        self,
        tx: &mut Tx<'_>,
        ask: &Ask,
        is_free: impl Fn(&Slot) -> bool,
    ) -> Result<IntakeCounts, StoreError> {
        let (due, idle) = posts(tx, &self.slots)?;
        let size = ask.batch_rule.size();
        // Not in step with the shard that is looked into first.
        let turn = ask.shard / SHARDS as u64;
        let Choice { mut posts, later } = choice::choose(&ask.policy, due, size, turn, ask.now_ms);
        let missing = size.saturating_sub(posts.len());
        // No request is sent for what is not due alone.
        if missing > 0 && !posts.is_empty() {
            posts.extend(more(tx, ask, missing, is_free)?);
        }
        Ok(IntakeCounts { posts, idle, later })
    }
}

/// The most valuable of the posts that are not due yet, under a policy by value.
fn more(
    tx: &mut Tx<'_>,
    ask: &Ask,
    missing: usize,
    is_free: impl Fn(&Slot) -> bool,
) -> Result<Vec<DuePost>, StoreError> {
    let Policy::Value { .. } = *ask.policy else {
        return Ok(Vec::new());
    };
    let each = choice::reach(&ask.policy, missing).div_ceil(SHARDS as usize);
    let mut next = Vec::new();
    for bucket in buckets(ask) {
        next.extend(schedule::after(tx, bucket, ask.now_ms, each)?);
    }
    next.retain(is_free);
    let (next, _) = posts(tx, &next)?;
    Ok(choice::most_valuable(
        &ask.policy,
        next,
        missing,
        ask.now_ms,
    ))
}

/// What a claim takes.
struct IntakeCounts {
    posts: Vec<DuePost>,
    idle: Vec<Slot>,
    later: Vec<Slot>,
}

impl IntakeCounts {
    fn slots(&self) -> impl Iterator<Item = Slot> {
        let posts = self.posts.iter().map(|post| post.slot);
        posts.chain(self.idle.iter().chain(&self.later).copied())
    }

    fn claim(self, ask: &Ask, id: i64, until_ms: i64) -> Claim {
        Claim {
            instance: ask.instance,
            id,
            until_ms,
            posts: self.posts,
            idle: self.idle,
            later: self.later,
        }
    }
}

/// The posts of slots, and the slots whose post needs no look-up.
fn posts(tx: &mut Tx<'_>, slots: &[Slot]) -> Result<(Vec<DuePost>, Vec<Slot>), StoreError> {
    let ids: Vec<i64> = slots.iter().map(|slot| slot.post_id).collect();
    let mut known = stored::by_ids(tx, &ids)?;
    let mut lookup_ids = pending_lookup::lookup_ids(tx, &ids)?;
    let mut posts = Vec::with_capacity(slots.len());
    let mut idle = Vec::new();
    for slot in slots {
        let id = slot.post_id;
        let (refresh_state, post) = known.remove(&id).unzip();
        let post = post.flatten();
        let named = match lookup_ids.remove(&id) {
            Some(lookup_id) => {
                let source = from_sql(lookup_id.source_id)?;
                let what = What::Wanted {
                    lookup_id: id,
                    source,
                };
                Some((what, (lookup_id.upstream_id, true)))
            }
            None => match post {
                Some(post) if post.deleted_at_ms.is_none() => {
                    let is_open =
                        matches!(post.visibility, Visibility::Public | Visibility::Unlisted);
                    Some((What::Stored(from_sql(id)?), (post.upstream_id, is_open)))
                }
                _ => None,
            },
        };
        match (refresh_state, named) {
            (Some(refresh_state), Some((what, (upstream_id, is_open)))) => posts.push(DuePost {
                what,
                upstream_id,
                due_at_ms: slot.due_at_ms,
                freshness: refresh_state.freshness,
                is_open,
                slot: *slot,
            }),
            _ => idle.push(*slot),
        }
    }
    // Of several shards, the one that waits longest comes first.
    posts.sort_by_key(|due: &DuePost| due.due_at_ms);
    Ok((posts, idle))
}

fn buckets(ask: &Ask) -> impl Iterator<Item = i64> {
    let base = sql(ask.instance) * SHARDS;
    let first = (ask.shard % SHARDS as u64) as i64;
    (0..SHARDS).map(move |step| base + (first + step) % SHARDS)
}

fn base_bucket(claim: &Claim) -> i64 {
    sql(claim.instance) * SHARDS
}

/// How long nobody asks again when all that is due is held, ms.
const HELD_MS: i64 = 250;
