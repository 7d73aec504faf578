//! Claims: posts that one worker looks up, and no other worker at the same time.

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

/// The claims of this process. Clones are handles to the same ones, and all workers of a process
/// share them.
#[derive(Clone, Debug, Default)]
pub struct Claims(Arc<Mutex<ClaimBook>>);

/// A worker's request for a batch of due posts.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The posts' upstream.
    pub instance: InstanceId,
    /// The rule for sending a batch, and its largest size.
    pub batch_rule: BatchRule,
    /// The first shard to try, any number. Workers that begin with different ones rarely collide. A
    /// worker counts up from claim to claim.
    pub shard: u64,
    /// The shards from which to claim.
    pub shards: Shards,
    /// The worker's name, which must be unique.
    pub holder: String,
    /// The length of the claim in ms.
    pub lease_ms: i64,
    /// The present time in Unix ms.
    pub now_ms: i64,
    /// The order of due posts. Under a policy by value, the most valuable come first and posts
    /// below the present price are postponed. A batch that leaves before it is full is filled with
    /// the most valuable posts that are not due yet.
    pub policy: Arc<Policy>,
}

/// Posts of one upstream that only this worker may look up.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Their upstream.
    pub instance: InstanceId,
    /// The fencing token.
    pub id: i64,
    /// The end of the claim, in Unix ms: by the database's clock on PostgreSQL, by this process's
    /// on SQLite.
    pub until_ms: i64,
    /// The posts in order of their due times. Posts that fill a batch by value come last.
    pub posts: Vec<DuePost>,
    /// Slots whose posts no longer need a look-up, because they are deleted or removed.
    pub(crate) idle: Vec<Slot>,
    /// Slots whose posts must be rescheduled without a look-up.
    pub(crate) later: Vec<Slot>,
    /// Slots whose posts none of their sources wants to be refreshed.
    pub(crate) unrefreshed: Vec<Slot>,
}

/// The outcome of a [`ClaimRequest`].
#[derive(Clone, Debug, PartialEq)]
pub enum Claimed {
    /// A batch.
    Batch(Claim),
    /// Nothing yet: a batch fills until this time, or no post is due before it, in Unix ms.
    Until(i64),
    /// No post is scheduled for the instance.
    Idle,
}

impl Claims {
    /// Claims a batch of due posts, if one must be sent.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database fails. Nothing is claimed then.
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

    /// Gives a claim back. Its posts keep their due times.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database fails. The claim then ends by itself.
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
    /// [`StoreError::Db`] if the database fails.
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

    /// Ends a claim for its save, and removes its posts from the schedule. Returns `false` if the
    /// claim is lost.
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
        // A missing row was removed with its post.
        schedule::remove(tx, claim.slots())?;
        Ok(true)
    }

    fn in_memory(&self, tx: &mut Tx<'_>, request: &ClaimRequest) -> Result<Claimed, StoreError> {
        // The book is locked from before the snapshot, which begins with the first statement, to
        // the end. So no other claim takes the posts chosen here, and no save ends a claim whose
        // posts the snapshot still shows as due.
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

    /// Claims in rows. `None` if there are too few free posts for a full batch because others are
    /// claiming. The caller then tries again with [`ClaimLock::Exclusive`], after the others.
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
        // A full batch checks for ended leases only from time to time.
        let is_full = due.len() >= request.batch_rule.size();
        let is_time = self.book().is_time_for_ended(base, request.now_ms);
        if (is_time || !is_full) && claim_lease::put_back_ended(tx, base)? > 0 {
            // Their posts have been due for longest.
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
    /// The same claim with only these of its posts, to look them up.
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

/// Finds the due posts that the book does not contain; on PostgreSQL it locks those without a
/// lease. Returns them with the time by the database's clock.
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

/// The time to wait for; `None` if the batch leaves now.
fn wait(tx: &mut Tx<'_>, request: &ClaimRequest, due: &[Slot]) -> Result<Option<Claimed>, DbError> {
    let first_ms = due.iter().map(|slot| slot.due_at_ms).min();
    let first_ms = first_ms.unwrap_or(request.now_ms);
    match request.batch_rule.fill(due.len(), first_ms, request.now_ms) {
        Fill::Ready => Ok(None),
        Fill::Until(until_ms) => Ok(Some(Claimed::Until(until_ms))),
        Fill::Empty => {
            let next = schedule::next_due_ms(tx, buckets(request))?;
            // Other workers have all due posts already, so there is no work now.
            let soon = |due_ms: i64| Claimed::Until(due_ms.max(request.now_ms + HELD_MS));
            Ok(Some(next.map_or(Claimed::Idle, soon)))
        }
    }
}

/// The claim of these posts and of those that fill its batch, before it has an ID and an end.
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
    // A turn lasts for a round of the shards, so that it does not depend on the first shard.
    let turn = request.shard / SHARDS as u64;
    let Choice { mut posts, later } =
        choice::choose(&request.policy, due, size, turn, request.now_ms);
    let missing = size.saturating_sub(posts.len());
    // Posts that are not due are no reason for a request.
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

/// The most valuable posts that are not due yet, under a policy by value.
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

/// Slots, sorted by their treatment.
struct Slots {
    due: Vec<DuePost>,
    /// Slots whose posts need no look-up.
    idle: Vec<Slot>,
    /// Slots whose posts no source wants to be refreshed.
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

/// The wait of a worker while others have all due posts, in ms.
const HELD_MS: i64 = 250;
