//! Claims: posts that one worker looks up, and no other worker meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driftline_core::{
    post::PostKind,
    refresh::{BatchRule, Fill, Policy},
};
use driftline_db::{DbError, Dialect, Root, Tx};

use super::{
    SHARDS, Shards,
    choice::{self, Choice},
    claim_book::ClaimBook,
    claim_lease::{self, ClaimLock},
    due_post::{DuePost, LookupTarget},
    lookup_access::{PendingHolders, is_open},
    pending_lookup,
    schedule::{self, Slot},
    stored,
    unrefreshed::PendingUnrefreshed,
};
use crate::{
    error::StoreError,
    id_types::{InstanceId, SourceKey, from_sql, sql},
    open::store::Store,
    posts::content_scope::ContentScope,
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
    /// The shards to claim of.
    pub shards: Shards,
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
    /// Slots whose post was not to be kept fresh by any of its sources.
    pub(crate) unrefreshed: Vec<Slot>,
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
        if store.dialect() == Dialect::Sqlite {
            return Ok(());
        }
        let job = move |tx: &mut Tx<'_>| {
            if claim_lease::end(tx, base_bucket(&claim), claim.id)? {
                schedule::insert(tx, &claim.slots().collect::<Vec<_>>())?;
            }
            Ok(())
        };
        store.write(Root::none(), job).await
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
        // Claims in memory are always given back.
        if store.dialect() == Dialect::Sqlite {
            return Ok(());
        }
        let base = sql(instance) * SHARDS;
        let job = move |tx: &mut Tx<'_>| claim_lease::put_back_of(tx, base, &holder);
        store.write(Root::none(), job).await?;
        Ok(())
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
        // A row that is missing was removed with its post.
        schedule::remove(tx, claim.slots())?;
        Ok(true)
    }

    fn in_memory(&self, tx: &mut Tx<'_>, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        // The book is locked from before the snapshot, which the first statement takes, to the end:
        // so no other claim takes what is chosen here, and no save ends a claim whose posts the
        // snapshot still shows as due.
        let mut book = self.book();
        book.clear_ended(request.now_ms);
        let (due, _) = find_due(tx, request, &book)?;
        if let Some(wait) = wait(tx, request, &due)? {
            return Ok(wait);
        }
        let is_free = |slot: &Slot| !book.holds(slot.post_id, request.now_ms);
        let taken = take(tx, request, &due, is_free)?;
        let until_ms = request.now_ms.saturating_add(request.lease_ms);
        let id = book.take(
            taken.slots().map(|slot| slot.post_id),
            (request.now_ms, until_ms),
        );
        Ok(Claimed::Batch(Claim {
            id,
            until_ms,
            ..taken
        }))
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
        let no_book = ClaimBook::default();
        let (mut due, mut clock_ms) = find_due(tx, request, &no_book)?;
        // A full batch looks for ended leases only now and then.
        let is_full = due.len() >= request.batch_rule.size();
        let is_time = self.book().is_time_for_ended(base, request.now_ms);
        if (is_time || !is_full) && claim_lease::put_back_ended(tx, base)? > 0 {
            // They have been due for longest.
            (due, clock_ms) = find_due(tx, request, &no_book)?;
        }
        if lock == ClaimLock::Shared && due.len() < request.batch_rule.size() {
            let all_due = schedule::count_due(
                tx,
                buckets(request),
                request.now_ms,
                request.batch_rule.size(),
            )?;
            if all_due > due.len() {
                return Ok(None);
            }
        }
        if let Some(wait) = wait(tx, request, &due)? {
            return Ok(Some(wait));
        }
        let taken = take(tx, request, &due, |_| true)?;
        let slots: Vec<Slot> = taken.slots().collect();
        let time = (clock_ms, request.lease_ms);
        let (id, until_ms) = claim_lease::take(tx, base, &request.holder, time, &slots)?;
        Ok(Some(Claimed::Batch(Claim {
            id,
            until_ms,
            ..taken
        })))
    }
}

impl Claim {
    /// The same claim of these posts of it alone, to look them up.
    #[must_use]
    pub fn part(&self, mut is_part: impl FnMut(&DuePost) -> bool) -> Self {
        Self {
            posts: self
                .posts
                .iter()
                .filter(|due| is_part(due))
                .cloned()
                .collect(),
            idle: Vec::new(),
            later: Vec::new(),
            unrefreshed: Vec::new(),
            ..*self
        }
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        let posts = self.posts.iter().map(|post| post.slot);
        let others = self.idle.iter().chain(&self.later).chain(&self.unrefreshed);
        posts.chain(others.copied())
    }

    fn post_ids(&self) -> impl Iterator<Item = i64> {
        self.slots().map(|slot| slot.post_id)
    }
}

/// Finds the posts that are due and that the book does not hold; on PostgreSQL it locks those that
/// are in no lease. Returns them with the time by the database's clock.
fn find_due(
    tx: &mut Tx<'_>,
    request: &ClaimRequest,
    book: &ClaimBook,
) -> Result<(Vec<Slot>, i64), DbError> {
    let (mut due, mut clock_ms) = (Vec::new(), 0);
    let reach = choice::reach(&request.policy, request.batch_rule.size());
    let all: Vec<i64> = buckets(request).collect();
    for (slot, now_ms) in schedule::first(tx, &all, request.now_ms, reach + book.len())? {
        clock_ms = now_ms;
        if !book.holds(slot.post_id, request.now_ms) {
            due.push(slot);
        }
    }
    due.truncate(reach);
    Ok((due, clock_ms))
}

/// What to wait for; `None` if the batch leaves now.
fn wait(tx: &mut Tx<'_>, request: &ClaimRequest, due: &[Slot]) -> Result<Option<Claimed>, DbError> {
    let first_ms = due.iter().map(|slot| slot.due_at_ms).min();
    let first_ms = first_ms.unwrap_or(request.now_ms);
    match request.batch_rule.fill(due.len(), first_ms, request.now_ms) {
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

/// The claim of them and of those that fill its batch up, before it has an ID and an end.
fn take(
    tx: &mut Tx<'_>,
    request: &ClaimRequest,
    slots: &[Slot],
    is_free: impl Fn(&Slot) -> bool,
) -> Result<Claim, StoreError> {
    let Slots {
        due,
        idle,
        unrefreshed,
    } = posts(tx, request.instance, slots)?;
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
    Ok(Claim {
        instance: request.instance,
        id: 0,
        until_ms: 0,
        posts,
        idle,
        later,
        unrefreshed,
    })
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
    let all: Vec<i64> = buckets(request).collect();
    let mut next = schedule::after(tx, &all, request.now_ms, each)?;
    next.retain(is_free);
    let Slots { due: next, .. } = posts(tx, request.instance, &next)?;
    Ok(choice::most_valuable(
        &request.policy,
        next,
        missing,
        request.now_ms,
    ))
}

/// Slots, sorted out.
struct Slots {
    due: Vec<DuePost>,
    /// Those whose post needs no look-up.
    idle: Vec<Slot>,
    /// Those whose post no source keeps fresh.
    unrefreshed: Vec<Slot>,
}

/// The posts of slots.
fn posts(tx: &mut Tx<'_>, instance: InstanceId, slots: &[Slot]) -> Result<Slots, StoreError> {
    let ids: Vec<i64> = slots.iter().map(|slot| slot.post_id).collect();
    let pending = PendingUnrefreshed::ask(tx, sql(instance))?;
    let holders = PendingHolders::ask(tx, sql(instance))?;
    let mut known = stored::with_posts(tx, sql(instance), &ids)?;
    let mut lookups = pending_lookup::by_ids(tx, sql(instance), &ids)?;
    let off = pending.among(tx, &ids)?;
    let holders = holders.of_posts(tx, &ids)?;
    let mut posts = Vec::with_capacity(slots.len());
    let (mut idle, mut unrefreshed) = (Vec::new(), Vec::new());
    for slot in slots {
        let id = slot.post_id;
        if off.contains(&id) {
            unrefreshed.push(*slot);
            continue;
        }
        let (state, post) = known.remove(&id).unzip();
        let target = match (lookups.remove(&id), post.flatten()) {
            (Some(lookup), _) => {
                let what = LookupTarget::Pending {
                    lookup_id: id,
                    source: SourceKey {
                        id: from_sql(lookup.source_id)?,
                        instance,
                    },
                };
                let access = holders.access_of_pending(&lookup);
                let of = (true, access, ContentScope::WORLD);
                Some((what, lookup.upstream_id, of, PostKind::Post))
            }
            (None, Some(post)) if !post.is_gone() => {
                let is_open = is_open(post.visibility);
                let access = holders.access(id, is_open, post.in_public, post.scope);
                let what = LookupTarget::Stored(from_sql(id)?);
                let of = (is_open, access, post.scope);
                Some((what, post.upstream_id, of, post.kind))
            }
            _ => None,
        };
        match (state, target) {
            (Some(state), Some((what, upstream_id, (is_open, access, scope), kind))) => {
                posts.push(DuePost {
                    what,
                    upstream_id,
                    due_at_ms: slot.due_at_ms,
                    freshness: state.freshness,
                    last_outcome: state
                        .outcome
                        .filter(|_| matches!(what, LookupTarget::Stored(_))),
                    is_open,
                    kind,
                    access,
                    scope,
                    slot: *slot,
                });
            }
            _ => idle.push(*slot),
        }
    }
    // Across shards, the post that has waited longest comes first.
    posts.sort_by_key(|due: &DuePost| due.due_at_ms);
    Ok(Slots {
        due: posts,
        idle,
        unrefreshed,
    })
}

fn buckets(request: &ClaimRequest) -> impl Iterator<Item = i64> {
    let base = sql(request.instance) * SHARDS;
    let first = (request.shard % SHARDS as u64) as i64;
    let all = (0..SHARDS).map(move |step| (first + step) % SHARDS);
    let shards = request.shards;
    all.filter(move |shard| shards.contains(*shard))
        .map(move |shard| base + shard)
}

fn base_bucket(claim: &Claim) -> i64 {
    sql(claim.instance) * SHARDS
}

/// How long a worker waits before it asks again when others hold all that is due, ms.
const HELD_MS: i64 = 250;
