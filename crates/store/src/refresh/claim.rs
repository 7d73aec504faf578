//! Claims: posts that one worker looks up, and no other worker meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driftline_core::{
    post::Visibility,
    refresh::{BatchRule, Fill, Freshness, Policy},
};
use driftline_db::{DbError, Dialect, Root, Tx};

use super::{
    SHARDS,
    choice::{self, Choice},
    claim_book::ClaimBook,
    claim_lease::{self, ClaimLock},
    pending_lookup,
    schedule::{self, Slot},
    stored,
};
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, SourceId, from_sql, sql},
    store::Store,
};

/// The claims of this process. Clones are handles to the same ones; all workers of a process
/// share one.
#[derive(Clone, Debug, Default)]
pub struct Claims(Arc<Mutex<ClaimBook>>);

/// A worker's request for a batch of due posts.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The posts' upstream.
    pub instance: InstanceId,
    /// When a batch leaves, and how large it may be.
    pub batch_rule: BatchRule,
    /// The shard to begin with, any number: workers that begin with different ones seldom meet.
    /// A worker counts on from claim to claim.
    pub shard: u64,
    /// The worker's name, which must be unique.
    pub holder: String,
    /// How long the claim lasts, ms.
    pub lease_ms: i64,
    /// The time, Unix ms.
    pub now_ms: i64,
    /// Which of the due posts go first. Under a policy by value the most valuable do, posts below
    /// the present price are postponed, and a batch that leaves before it is full is filled up with
    /// the most valuable posts that are not due yet.
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
    /// Slots whose post no longer needs a look-up, because it is deleted or removed.
    pub(crate) idle: Vec<Slot>,
    /// Slots whose post is to be rescheduled without a look-up.
    pub(crate) later: Vec<Slot>,
}

/// A post that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct DuePost {
    /// What to look up.
    pub what: LookupTarget,
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

/// What a look-up is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LookupTarget {
    /// A stored post.
    Stored(LocalId),
    /// A post that was requested by its upstream ID and is not stored yet.
    Pending {
        /// The pending look-up's ID.
        lookup_id: i64,
        /// The source to store it in.
        source: SourceId,
    },
}

/// The outcome of a [`ClaimRequest`].
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
    pub async fn claim(&self, store: &Store, request: ClaimRequest) -> Result<Claimed, StoreError> {
        let claims = self.clone();
        match store.dialect() {
            Dialect::Sqlite => store.read(move |tx| claims.in_memory(tx, &request)).await,
            Dialect::Postgres => {
                let mut lock = ClaimLock::Shared;
                loop {
                    let (claims, request) = (self.clone(), request.clone());
                    let job = move |tx: &mut Tx<'_>| claims.in_rows(tx, &request, lock);
                    match store.write(Root::none(), job).await? {
                        Some(claimed) => return Ok(claimed),
                        None => lock = ClaimLock::Exclusive,
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
        match store.dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => {
                store
                    .write(Root::none(), move |tx| put_back(tx, &claim))
                    .await
            }
        }
    }

    /// Gives back all claims of a holder on an instance: those that could not be given back, and
    /// those of a commit whose answer was lost. The holder's name must be unique.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database failed.
    pub async fn give_back_of(
        &self,
        store: &Store,
        instance: InstanceId,
        holder: String,
    ) -> Result<(), StoreError> {
        match store.dialect() {
            // Claims in memory are always given back.
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => {
                let job = move |tx: &mut Tx<'_>| put_back_of(tx, instance, &holder);
                store.write(Root::none(), job).await
            }
        }
    }

    /// Ends a claim in memory.
    pub(crate) fn forget(&self, claim: &Claim) {
        self.book().end(claim.id, claim.post_ids());
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, ClaimBook> {
        // The book is consistent after each of its calls, so a poisoned lock does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a claim for its save, and takes its posts off the schedule; `false` if it is lost.
    pub(crate) fn redeem(
        &self,
        tx: &mut Tx<'_>,
        claim: &Claim,
        now_ms: i64,
    ) -> Result<bool, DbError> {
        if tx.dialect() == Dialect::Postgres {
            return claim_lease::end(tx, base_bucket(claim), claim.id);
        }
        if !self.book().is_whole(claim.id, claim.post_ids(), now_ms) {
            return Ok(false);
        }
        let slots: Vec<Slot> = claim.slots().collect();
        // A row that is missing was removed with its post.
        schedule::remove(tx, &slots)?;
        Ok(true)
    }

    fn in_memory(&self, tx: &mut Tx<'_>, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        // The book is locked from before the snapshot, which the first statement takes, to the end:
        // so no other claim takes what is chosen here, and no save ends a claim whose posts the
        // snapshot still shows as due.
        let mut book = self.book();
        book.clear_ended(request.now_ms);
        let reach = choice::reach(&request.policy, request.batch_rule.size());
        let mut due = Due::default();
        for bucket in buckets(request) {
            let limit = reach - due.slots.len() + book.len();
            let found = schedule::first(tx, bucket, request.now_ms, limit)?;
            due.add(
                found
                    .into_iter()
                    .map(|(slot, _)| slot)
                    .filter(|slot| !book.holds(slot.post_id, request.now_ms)),
            );
            if due.slots.len() >= reach {
                break;
            }
        }
        due.slots.truncate(reach);
        if let Some(wait) = due.wait(tx, request)? {
            return Ok(wait);
        }
        let is_free = |slot: &Slot| !book.holds(slot.post_id, request.now_ms);
        let taken = due.taken(tx, request, is_free)?;
        let until_ms = request.now_ms.saturating_add(request.lease_ms);
        let id = book.take(taken.slots().map(|slot| slot.post_id), until_ms);
        Ok(Claimed::Batch(taken.claim(request, id, until_ms)))
    }

    /// `None` if too little is free for a full batch because others are claiming: the caller then
    /// tries again under [`ClaimLock::Exclusive`], when they are done.
    fn in_rows(
        &self,
        tx: &mut Tx<'_>,
        request: &ClaimRequest,
        lock: ClaimLock,
    ) -> Result<Option<Claimed>, StoreError> {
        let base = sql(request.instance) * SHARDS;
        claim_lease::enter(tx, base, lock)?;
        let (mut due, mut clock_ms) = Due::locked(tx, request)?;
        // A full batch looks for ended leases only now and then.
        let is_full = due.slots.len() >= request.batch_rule.size();
        let is_time = self.book().is_time_for_ended(base, request.now_ms);
        if (is_time || !is_full) && claim_lease::put_back_ended(tx, base)? > 0 {
            // They have been due for longest.
            (due, clock_ms) = Due::locked(tx, request)?;
        }
        if lock == ClaimLock::Shared && due.slots.len() < request.batch_rule.size() {
            let all_due = schedule::count_due(
                tx,
                buckets(request),
                request.now_ms,
                request.batch_rule.size(),
            )?;
            if all_due > due.slots.len() {
                return Ok(None);
            }
        }
        if let Some(wait) = due.wait(tx, request)? {
            return Ok(Some(wait));
        }
        let taken = due.taken(tx, request, |_| true)?;
        let slots: Vec<Slot> = taken.slots().collect();
        let time = (clock_ms, request.lease_ms);
        let (id, until_ms) = claim_lease::take(tx, base, &request.holder, time, &slots)?;
        Ok(Some(Claimed::Batch(taken.claim(request, id, until_ms))))
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
    if claim_lease::end(tx, base_bucket(claim), claim.id)? {
        let slots: Vec<Slot> = claim.slots().collect();
        schedule::insert(tx, &slots)?;
    }
    Ok(())
}

fn put_back_of(tx: &mut Tx<'_>, instance: InstanceId, holder: &str) -> Result<(), StoreError> {
    claim_lease::put_back_of(tx, sql(instance) * SHARDS, holder)?;
    Ok(())
}

/// The posts of an instance that are due and free.
#[derive(Default)]
struct Due {
    slots: Vec<Slot>,
    first_ms: Option<i64>,
}

impl Due {
    /// Locks the posts that are due and in no lease. Returns them with the time by the database's
    /// clock.
    fn locked(tx: &mut Tx<'_>, request: &ClaimRequest) -> Result<(Self, i64), DbError> {
        let (mut due, mut clock_ms) = (Self::default(), 0);
        let reach = choice::reach(&request.policy, request.batch_rule.size());
        for bucket in buckets(request) {
            let limit = reach - due.slots.len();
            let found = schedule::first(tx, bucket, request.now_ms, limit)?;
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

    /// What to wait for; `None` if the batch leaves now.
    fn wait(&self, tx: &mut Tx<'_>, request: &ClaimRequest) -> Result<Option<Claimed>, DbError> {
        let first_ms = self.first_ms.unwrap_or(request.now_ms);
        match request
            .batch_rule
            .fill(self.slots.len(), first_ms, request.now_ms)
        {
            Fill::Ready => Ok(None),
            Fill::Until(until_ms) => Ok(Some(Claimed::Until(until_ms))),
            Fill::Empty => {
                let next = schedule::next_due_ms(tx, buckets(request))?;
                // Other workers hold what is due already, so there is nothing to do at once.
                let soon = |due_ms: i64| Claimed::Until(due_ms.max(request.now_ms + HELD_MS));
                Ok(Some(next.map_or(Claimed::Idle, soon)))
            }
        }
    }
}

impl Due {
    /// The slots that a claim takes, and those that fill its batch up.
    fn taken(
        self,
        tx: &mut Tx<'_>,
        request: &ClaimRequest,
        is_free: impl Fn(&Slot) -> bool,
    ) -> Result<ClaimedSlots, StoreError> {
        let (due, idle) = posts(tx, &self.slots)?;
        let size = request.batch_rule.size();
        // A turn lasts a round of the shards, so that it does not depend on which shard comes first.
        let turn = request.shard / SHARDS as u64;
        let Choice { mut posts, later } =
            choice::choose(&request.policy, due, size, turn, request.now_ms);
        let missing = size.saturating_sub(posts.len());
        // Posts that are not due are no reason to send a request.
        if missing > 0 && !posts.is_empty() {
            posts.extend(more(tx, request, missing, is_free)?);
        }
        Ok(ClaimedSlots { posts, idle, later })
    }
}

/// The most valuable of the posts that are not due yet, under a policy by value.
fn more(
    tx: &mut Tx<'_>,
    request: &ClaimRequest,
    missing: usize,
    is_free: impl Fn(&Slot) -> bool,
) -> Result<Vec<DuePost>, StoreError> {
    let Policy::Value { .. } = *request.policy else {
        return Ok(Vec::new());
    };
    let each = choice::reach(&request.policy, missing).div_ceil(SHARDS as usize);
    let mut next = Vec::new();
    for bucket in buckets(request) {
        next.extend(schedule::after(tx, bucket, request.now_ms, each)?);
    }
    next.retain(is_free);
    let (next, _) = posts(tx, &next)?;
    Ok(choice::most_valuable(
        &request.policy,
        next,
        missing,
        request.now_ms,
    ))
}

/// The slots that a claim takes.
struct ClaimedSlots {
    posts: Vec<DuePost>,
    idle: Vec<Slot>,
    later: Vec<Slot>,
}

impl ClaimedSlots {
    fn slots(&self) -> impl Iterator<Item = Slot> {
        let posts = self.posts.iter().map(|post| post.slot);
        posts.chain(self.idle.iter().chain(&self.later).copied())
    }

    fn claim(self, request: &ClaimRequest, id: i64, until_ms: i64) -> Claim {
        Claim {
            instance: request.instance,
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
    let mut lookups = pending_lookup::by_ids(tx, &ids)?;
    let mut posts = Vec::with_capacity(slots.len());
    let mut idle = Vec::new();
    for slot in slots {
        let id = slot.post_id;
        let (refresh_state, post) = known.remove(&id).unzip();
        let post = post.flatten();
        let target = match lookups.remove(&id) {
            Some(lookup) => {
                let source = from_sql(lookup.source_id)?;
                let what = LookupTarget::Pending {
                    lookup_id: id,
                    source,
                };
                Some((what, (lookup.upstream_id, true)))
            }
            None => match post {
                Some(post) if post.deleted_at_ms.is_none() => {
                    let is_open =
                        matches!(post.visibility, Visibility::Public | Visibility::Unlisted);
                    Some((
                        LookupTarget::Stored(from_sql(id)?),
                        (post.upstream_id, is_open),
                    ))
                }
                _ => None,
            },
        };
        match (refresh_state, target) {
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
    // Across shards, the post that has waited longest comes first.
    posts.sort_by_key(|due: &DuePost| due.due_at_ms);
    Ok((posts, idle))
}

fn buckets(request: &ClaimRequest) -> impl Iterator<Item = i64> {
    let base = sql(request.instance) * SHARDS;
    let first = (request.shard % SHARDS as u64) as i64;
    (0..SHARDS).map(move |step| base + (first + step) % SHARDS)
}

fn base_bucket(claim: &Claim) -> i64 {
    sql(claim.instance) * SHARDS
}

/// How long a worker waits before it asks again when others hold all that is due, ms.
const HELD_MS: i64 = 250;
