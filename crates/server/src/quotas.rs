//! The quotas of credentials, as this process uses them.
//!
//! Requests are taken from the store's ledger in small blocks, before they are sent: what is taken
//! is gone for every other process. A block that its process does not live to use is lost until its
//! window ends, which is the safe side.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use driftline_core::{
    answer::{AnswerHeaders, Failure, FailureKind},
    quota::{Grant, Ledger, RequestKind, Unit, Use, WINDOW_EDGE_MS},
};
use driftline_store::{
    CredentialId, Store, StoreError, Tx,
    credential::{self, Credential, Quarantine},
    quota,
};
use metrics::{counter, gauge};

use crate::{
    clock::{now_ms, random},
    month,
};

/// The quotas of this process. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Quotas {
    store: Store,
    polling_share: f64,
    blocks: Arc<Mutex<HashMap<Key, Block>>>,
    /// How often each credential was refused, or taken again, in this process.
    turns: Arc<Mutex<HashMap<CredentialId, u64>>>,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuotaPurpose {
    /// Reading a timeline, which goes first.
    Poll,
    /// Refreshing posts.
    Refresh,
}

impl QuotaPurpose {
    /// What an answer to it tells of: a poll's may be of a limit that only pages have.
    const fn asked(self) -> RequestKind {
        match self {
            Self::Poll => RequestKind::Page,
            Self::Refresh => RequestKind::LookUp,
        }
    }
}

/// A request that may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// It may; it counts as sent, and was charged this.
    Sent(Charge),
    /// Not before this, Unix ms.
    Until(i64),
}

/// The posts that a request was charged under a month's cap; none without a cap. It is to be
/// settled when the answer is there, or put back: else all of it counts as read.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charge {
    of_month: Option<Charged>,
    /// Whether the request was taken in the last seconds of its window: the next one counts it too.
    is_late: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Charged {
    posts: u32,
    /// When the month ends that they were charged to, Unix ms.
    ends_at_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    credential: CredentialId,
    scope: &'static str,
    purpose: QuotaPurpose,
}

/// What is left of what was taken at once.
#[derive(Debug, Clone, Default)]
struct Block {
    left: u32,
    /// Those that were taken in the window's last seconds, and put back: the next window counts
    /// them too, so they may be sent in either.
    late: u32,
    until_ms: i64,
    /// The ledger as it was then: most answers bring no news to it.
    ledger: Ledger,
    /// The upstream tells of no limits: until then nothing is taken from anywhere, Unix ms.
    free_until_ms: i64,
}

impl Quotas {
    /// The quotas of a store's credentials. Refreshing leaves to polling this share, 0 to 1, of
    /// what is left of each window.
    pub fn new(store: Store, polling_share: f64) -> Self {
        Self {
            store,
            polling_share,
            blocks: Arc::default(),
            turns: Arc::default(),
        }
    }

    /// Takes one request that reads up to `posts` posts, and charges them where a cap counts them.
    ///
    /// # Errors
    /// [`StoreError`] if the ledger cannot be read or kept; then the request must not be sent.
    pub async fn take(
        &self,
        credential: &Credential,
        scope: &'static str,
        purpose: QuotaPurpose,
        posts: u32,
    ) -> Result<Permit, StoreError> {
        let key = Key {
            credential: credential.id,
            scope,
            purpose,
        };
        let held = self.take_held(key);
        let is_held = held.is_some();
        let cap = credential.monthly_posts;
        if let (Some(is_late), None) = (held, cap) {
            let of_month = None;
            return Ok(Permit::Sent(Charge { of_month, is_late }));
        }
        let want = Want {
            id: credential.id,
            scope,
            purpose: match purpose {
                QuotaPurpose::Poll => Use::Poll,
                QuotaPurpose::Refresh => Use::Refresh {
                    left_to_polling: self.polling_share,
                },
            },
            posts,
            cap,
            is_held,
        };
        let root = credential::root(credential.id);
        let taken = self
            .store
            .write(root, move |tx| take_block(tx, &want, now_ms()))
            .await;
        if let Some(is_late) = held
            && !matches!(taken, Ok((Grant::Requests(_), ..)))
        {
            self.hold(key, is_late);
        }
        let (grant, ledger, mut charge) = taken?;
        show(credential, scope, &ledger);
        let granted = match grant {
            Grant::Until(until_ms) => return Ok(Permit::Until(until_ms)),
            Grant::Requests(granted) => granted,
        };
        charge.is_late = match held {
            Some(is_late) => is_late,
            None => self.keep_block(key, granted - 1, ledger),
        };
        Ok(Permit::Sent(charge))
    }

    /// Keeps what is left of what was taken at once. Returns whether its window is about to end.
    fn keep_block(&self, key: Key, left: u32, ledger: Ledger) -> bool {
        let ends = ledger.windows().iter().map(|window| window.reset_at_ms);
        let until_ms = ends.min().unwrap_or(i64::MAX);
        let mut blocks = self.blocks();
        let held = blocks.entry(key).or_default();
        let is_late = is_late(until_ms, now_ms());
        let (kept, kept_late) = if held.until_ms == until_ms {
            (held.left, held.late)
        } else {
            (0, 0)
        };
        *held = Block {
            left: kept + if is_late { 0 } else { left },
            late: kept_late + if is_late { left } else { 0 },
            until_ms,
            ledger,
            free_until_ms: 0,
        };
        is_late
    }

    /// Puts a request back that was taken and not sent. It is held for the next one until its
    /// window ends; the posts that it was charged are given back at once.
    ///
    /// # Errors
    /// [`StoreError`] if that cannot be kept.
    pub async fn put_back(
        &self,
        credential: &Credential,
        scope: &'static str,
        purpose: QuotaPurpose,
        charge: Charge,
    ) -> Result<(), StoreError> {
        let key = Key {
            credential: credential.id,
            scope,
            purpose,
        };
        self.hold(key, charge.is_late);
        self.settle(credential, charge, 0).await
    }

    fn hold(&self, key: Key, is_late: bool) {
        let now = now_ms();
        if let Some(block) = self.blocks().get_mut(&key)
            && now >= block.free_until_ms
            && now < block.until_ms
        {
            if is_late {
                block.late += 1;
            } else {
                block.left += 1;
            }
        }
    }

    /// Settles what a request was charged against the posts that it read.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn settle(
        &self,
        credential: &Credential,
        charge: Charge,
        read: u32,
    ) -> Result<(), StoreError> {
        let Some(Charged { posts, ends_at_ms }) = charge.of_month.filter(|of| of.posts != read)
        else {
            return Ok(());
        };
        self.change(credential, MONTH, move |ledger| {
            // What was charged to a month that is over was not taken from this one.
            if ledger
                .cap()
                .is_some_and(|cap| cap.reset_at_ms == ends_at_ms)
            {
                ledger.give_back(posts.saturating_sub(read));
                ledger.also_read(read.saturating_sub(posts));
            }
        })
        .await
    }

    /// Settles what a request was charged that failed: all is given back, unless an answer came
    /// that may have held posts.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn settle_failed(
        &self,
        credential: &Credential,
        purpose: QuotaPurpose,
        charge: Charge,
        kind: FailureKind,
    ) -> Result<(), StoreError> {
        if may_have_read(purpose, kind) {
            return Ok(());
        }
        self.settle(credential, charge, 0).await
    }

    /// Takes in what an answer's headers said.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn answered(
        &self,
        credential: &Credential,
        scope: &'static str,
        purpose: QuotaPurpose,
        facts: &AnswerHeaders,
    ) -> Result<(), StoreError> {
        let now = now_ms();
        let (throttle, asked) = (facts.throttle, purpose.asked());
        let is_news = {
            let blocks = self.blocks();
            let ledger = |purpose| {
                let key = Key {
                    credential: credential.id,
                    scope,
                    purpose,
                };
                blocks.get(&key).map(|block| &block.ledger)
            };
            let known = [ledger(QuotaPurpose::Poll), ledger(QuotaPurpose::Refresh)];
            let newest = known
                .into_iter()
                .flatten()
                .max_by_key(|ledger| ledger.granted());
            newest.is_none_or(|ledger| ledger.is_news(asked, throttle.as_ref(), now))
        };
        if throttle.is_none() && credential.monthly_posts.is_none() {
            self.note_silence(credential.id, scope, now);
        }
        if !is_news {
            return Ok(());
        }
        self.change(credential, scope, move |ledger| {
            ledger.answered(asked, throttle.as_ref(), now);
        })
        .await
    }

    /// Takes in a failure: a refusal changes the ledger, and a credential that the upstream does
    /// not take is quarantined.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn failed(
        &self,
        credential: &Credential,
        scope: &'static str,
        purpose: QuotaPurpose,
        failure: &Failure,
    ) -> Result<(), StoreError> {
        let (now, asked) = (now_ms(), purpose.asked());
        match failure.kind {
            FailureKind::Throttled => {
                counter!("driftline_throttled_total", "credential" => credential.name.clone())
                    .increment(1);
                let (throttle, retry_after_ms) = (failure.throttle, failure.retry_after_ms);
                self.drop_blocks(credential.id, scope);
                self.change(credential, scope, move |ledger| {
                    ledger.refused(asked, throttle.as_ref(), retry_after_ms, random(), now);
                })
                .await
            }
            FailureKind::Unauthorized | FailureKind::Capped => {
                let quarantine = Quarantine {
                    since_ms: now,
                    until_ms: now.saturating_add(QUARANTINE_MS),
                    reason: failure.message.clone(),
                };
                tracing::warn!(
                    credential = %credential.name,
                    "the upstream gives it nothing; it rests for an hour, or until `driftline credential test`: {}",
                    failure.message
                );
                let id = credential.id;
                self.store
                    .write(credential::root(id), move |tx| {
                        credential::quarantine(tx, id, &quarantine)
                    })
                    .await?;
                self.turn(id);
                Ok(())
            }
            _ => match failure.throttle {
                Some(throttle) => {
                    self.change(credential, scope, move |ledger| {
                        ledger.answered(asked, Some(&throttle), now);
                    })
                    .await
                }
                // It is not on its way any more.
                None => self.change(credential, scope, Ledger::unanswered).await,
            },
        }
    }

    /// Ends a credential's quarantine: it was taken again.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn restore(&self, credential: &Credential) -> Result<(), StoreError> {
        let id = credential.id;
        self.store
            .write(credential::root(id), move |tx| credential::restore(tx, id))
            .await?;
        self.turn(id);
        Ok(())
    }

    /// How often this process saw a credential refused, or taken again: its token may have been
    /// changed since another number was told.
    pub(crate) fn turns(&self, id: CredentialId) -> u64 {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.get(&id).copied().unwrap_or(0)
    }

    fn turn(&self, id: CredentialId) {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        *turns.entry(id).or_default() += 1;
    }

    async fn change(
        &self,
        credential: &Credential,
        scope: &'static str,
        mut change: impl FnMut(&mut Ledger) + Send + 'static,
    ) -> Result<(), StoreError> {
        let id = credential.id;
        let ledger = self
            .store
            .write(credential::root(id), move |tx| {
                let mut ledger = quota::load(tx, id, scope)?;
                change(&mut ledger);
                quota::store(tx, id, scope, &ledger)?;
                Ok::<_, StoreError>(ledger)
            })
            .await?;
        show(credential, scope, &ledger);
        for purpose in [QuotaPurpose::Poll, QuotaPurpose::Refresh] {
            let key = Key {
                credential: id,
                scope,
                purpose,
            };
            if let Some(block) = self.blocks().get_mut(&key) {
                block.ledger = ledger.clone();
            }
        }
        Ok(())
    }

    /// Takes a request that is there already, and says whether it is a late one.
    fn take_held(&self, key: Key) -> Option<bool> {
        let mut blocks = self.blocks();
        let block = blocks.get_mut(&key)?;
        let now = now_ms();
        if now < block.free_until_ms {
            return Some(false);
        }
        if now >= block.until_ms {
            block.late = 0;
        }
        // What is sent so late belongs to the next window, and only the ledger can say so.
        if is_late(block.until_ms, now) {
            block.left = 0;
        }
        let is_late = block.left == 0;
        let from = if is_late {
            &mut block.late
        } else {
            &mut block.left
        };
        *from = from.checked_sub(1)?;
        Some(is_late)
    }

    fn note_silence(&self, id: CredentialId, scope: &'static str, now: i64) {
        let mut blocks = self.blocks();
        let of = blocks
            .iter_mut()
            .filter(|(key, _)| key.credential == id && key.scope == scope);
        for (_, block) in of.filter(|(_, block)| block.ledger.windows().is_empty()) {
            block.free_until_ms = now.saturating_add(SILENCE_MS);
        }
    }

    fn drop_blocks(&self, id: CredentialId, scope: &'static str) {
        let is_other = |key: &Key| key.credential != id || key.scope != scope;
        self.blocks().retain(|key, _| is_other(key));
    }

    fn blocks(&self) -> MutexGuard<'_, HashMap<Key, Block>> {
        // A block is whole after each of its changes.
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request, as it is asked of the store.
#[derive(Debug, Clone, Copy)]
struct Want {
    id: CredentialId,
    scope: &'static str,
    purpose: Use,
    posts: u32,
    /// The most posts that may be read in a month.
    cap: Option<i64>,
    /// The request is there already: only its posts are to be charged.
    is_held: bool,
}

fn take_block(
    tx: &mut Tx<'_>,
    want: &Want,
    now_ms: i64,
) -> Result<(Grant, Ledger, Charge), StoreError> {
    let Want {
        id,
        scope,
        purpose,
        posts,
        ..
    } = *want;
    let mut ledger = quota::load(tx, id, scope)?;
    let mut capped = match want.cap {
        Some(cap) => Some(capped(quota::load(tx, id, MONTH)?, cap, now_ms)),
        None => None,
    };
    if let Some(capped) = &mut capped {
        let ahead = capped.clone().take(1, posts, purpose, now_ms);
        if let Grant::Until(_) = ahead {
            return Ok((ahead, ledger, Charge::default()));
        }
    }
    // Under a cap, requests are taken one by one: a block would count posts that are not read.
    let most = match &capped {
        Some(_) => 1,
        None => block_of(&ledger, purpose),
    };
    let grant = if want.is_held {
        Grant::Requests(1)
    } else {
        ledger.take(most, posts, purpose, now_ms)
    };
    let mut charge = Charge::default();
    if let Grant::Requests(granted) = grant {
        quota::store(tx, id, scope, &ledger)?;
        if let Some(mut capped) = capped {
            capped.take(granted, posts, purpose, now_ms);
            quota::store(tx, id, MONTH, &capped)?;
            charge.of_month = capped.cap().map(|cap| Charged {
                posts,
                ends_at_ms: cap.reset_at_ms,
            });
        }
    }
    Ok((grant, ledger, charge))
}

/// Whether a window that ends then is about to: what is sent now may be counted by the next one.
fn is_late(until_ms: i64, now_ms: i64) -> bool {
    now_ms >= until_ms.saturating_sub(WINDOW_EDGE_MS)
}

/// The ledger of a credential's posts in a month, under the cap as it is now.
pub(crate) fn capped(mut ledger: Ledger, cap: i64, now_ms: i64) -> Ledger {
    let (ends_at_ms, length_ms) = month::of(now_ms);
    let cap = u32::try_from(cap).unwrap_or(u32::MAX);
    ledger.set_cap(cap, ends_at_ms, length_ms);
    ledger
}

/// Whether an upstream may have sent posts, and counted them, though the request failed.
fn may_have_read(purpose: QuotaPurpose, kind: FailureKind) -> bool {
    match kind {
        FailureKind::Truncated | FailureKind::TooLarge | FailureKind::BadJson => true,
        // A look-up of an ID that cannot be sent is not sent.
        FailureKind::BadId => purpose == QuotaPurpose::Poll,
        _ => false,
    }
}

/// How many requests to take at once: fewer as the window runs out, so that little is left unused
/// at its end.
fn block_of(ledger: &Ledger, purpose: Use) -> u32 {
    let windows = ledger.windows().iter();
    let left = windows
        .filter(|w| w.unit == Unit::Requests && (purpose == Use::Poll || !w.pages_only))
        .map(|w| w.remaining);
    (left.min().unwrap_or(0) / 32).clamp(1, LARGEST_BLOCK)
}

fn show(credential: &Credential, scope: &'static str, ledger: &Ledger) {
    for window in ledger.windows().iter().filter(|w| w.unit == Unit::Requests) {
        gauge!(
            "driftline_quota_remaining",
            "credential" => credential.name.clone(),
            "scope" => scope
        )
        .set(f64::from(window.remaining));
    }
}

/// The scope of the cap on posts read in a month.
pub(crate) const MONTH: &str = "posts a month";
/// How long an answer without limits lets requests go without a look at the ledger.
const SILENCE_MS: i64 = 10_000;
const LARGEST_BLOCK: u32 = 8;
const QUARANTINE_MS: i64 = 3_600_000;

#[cfg(test)]
mod tests;
