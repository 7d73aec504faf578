//! The quotas of credentials, as this process uses them.
//!
//! Requests are taken from the store's ledger in small blocks before they are sent, so that no other
//! process can take them. The block of a process that dies is lost until its window ends, which is
//! the safe side.

mod request_block;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use driftline_core::{
    answer::{AnswerHeaders, Failure, FailureKind},
    quota::{Grant, QuotaLedger, RequestKind, RequestPriority, Unit, WINDOW_EDGE_MS},
};
use driftline_runtime::{
    metrics::{QUOTA_REMAINING, THROTTLED},
    now_ms, random,
};
use driftline_store::{
    CredentialId, Store, StoreError,
    credential::{self, Credential, Quarantine},
    quota,
};

use self::request_block::{QuotaRequest, take_block};
use crate::month;

/// The quotas of this process. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Quotas {
    store: Store,
    polling_share: f64,
    blocks: Arc<Mutex<HashMap<Key, Block>>>,
    /// How often each credential was quarantined or restored in this process.
    credential_changes: Arc<Mutex<HashMap<CredentialId, u64>>>,
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
    /// The kind of request whose limits an answer reports: some limits concern pages only.
    const fn request_kind(self) -> RequestKind {
        match self {
            Self::Poll => RequestKind::Page,
            Self::Refresh => RequestKind::LookUp,
        }
    }
}

/// A request that may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// It counts as sent, with this charge.
    Sent(Charge),
    /// Not before this, Unix ms.
    Until(i64),
}

/// The posts charged for a request under a monthly cap; none without a cap. Settle it when the answer
/// is there, or put it back: otherwise all of it counts as read.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charge {
    of_month: Option<Charged>,
    /// Whether the request was taken in the last seconds of its window, so that the next window counts
    /// it too.
    is_late: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Charged {
    posts: u32,
    /// The end of the month that the posts are charged to, Unix ms.
    ends_at_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    credential: CredentialId,
    scope: &'static str,
    purpose: QuotaPurpose,
}

/// The unused requests of a block.
#[derive(Debug, Clone, Default)]
struct Block {
    left: u32,
    /// Requests that were taken in the window's last seconds and put back: the next window counts them
    /// too, so they may be sent in either.
    late: u32,
    until_ms: i64,
    /// The last known ledger: most answers change nothing in it.
    ledger: QuotaLedger,
    /// The upstream reports no limits, so requests are free until then, Unix ms.
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
            credential_changes: Arc::default(),
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
        let request = QuotaRequest {
            id: credential.id,
            scope,
            priority: match purpose {
                QuotaPurpose::Poll => RequestPriority::Poll,
                QuotaPurpose::Refresh => RequestPriority::Refresh {
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
            .write(root, move |tx| take_block(tx, &request, now_ms()))
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

    /// Keeps the rest of a block. Returns whether its window is about to end.
    fn keep_block(&self, key: Key, left: u32, ledger: QuotaLedger) -> bool {
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

    /// Puts a taken request back that was not sent. The next call of [`Quotas::take`] gets it until its
    /// window ends; the charged posts are given back at once.
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

    /// Settles the charge of a request against the posts that it read.
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
            // A charge to a past month was not taken from this one.
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

    /// Settles the charge of a failed request: all posts are given back, unless the answer may have
    /// contained posts.
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

    /// Records the headers of an answer.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn answered(
        &self,
        credential: &Credential,
        scope: &'static str,
        purpose: QuotaPurpose,
        headers: &AnswerHeaders,
    ) -> Result<(), StoreError> {
        let now = now_ms();
        let (throttle, request_kind) = (headers.throttle, purpose.request_kind());
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
            newest.is_none_or(|ledger| ledger.is_news(request_kind, throttle.as_ref(), now))
        };
        if throttle.is_none() && credential.monthly_posts.is_none() {
            self.note_silence(credential.id, scope, now);
        }
        if !is_news {
            return Ok(());
        }
        self.change(credential, scope, move |ledger| {
            ledger.answered(request_kind, throttle.as_ref(), now);
        })
        .await
    }

    /// Records a failure: throttling changes the ledger, and a credential that the upstream rejects is
    /// quarantined.
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
        let (now, request_kind) = (now_ms(), purpose.request_kind());
        match failure.kind {
            FailureKind::Throttled => {
                THROTTLED.with([credential.name.clone()]).increment(1);
                let (throttle, retry_after_ms) = (failure.throttle, failure.retry_after_ms);
                self.drop_blocks(credential.id, scope);
                self.change(credential, scope, move |ledger| {
                    ledger.refused(
                        request_kind,
                        throttle.as_ref(),
                        retry_after_ms,
                        random(),
                        now,
                    );
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
                    "the upstream rejects the credential; it is not used for an hour, or until `driftline credential test`: {}",
                    failure.message
                );
                let id = credential.id;
                self.store
                    .write(credential::root(id), move |tx| {
                        credential::quarantine(tx, id, &quarantine)
                    })
                    .await?;
                self.count_change(id);
                Ok(())
            }
            _ => match failure.throttle {
                Some(throttle) => {
                    self.change(credential, scope, move |ledger| {
                        ledger.answered(request_kind, Some(&throttle), now);
                    })
                    .await
                }
                // The request is no longer in flight.
                None => {
                    self.change(credential, scope, QuotaLedger::unanswered)
                        .await
                }
            },
        }
    }

    /// Ends a credential's quarantine, since the upstream accepts it again.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn restore(&self, credential: &Credential) -> Result<(), StoreError> {
        let id = credential.id;
        self.store
            .write(credential::root(id), move |tx| credential::restore(tx, id))
            .await?;
        self.count_change(id);
        Ok(())
    }

    /// How often this process quarantined or restored a credential. The token may have changed
    /// whenever the number has.
    pub(crate) fn credential_changes(&self, id: CredentialId) -> u64 {
        let credential_changes = self
            .credential_changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        credential_changes.get(&id).copied().unwrap_or(0)
    }

    fn count_change(&self, id: CredentialId) {
        let mut credential_changes = self
            .credential_changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *credential_changes.entry(id).or_default() += 1;
    }

    async fn change(
        &self,
        credential: &Credential,
        scope: &'static str,
        mut change: impl FnMut(&mut QuotaLedger) + Send + 'static,
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

    /// Takes a request of the block. Returns whether it is a late one.
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
        // Such a late request belongs to the next window too, which only the ledger can count.
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
        // Blocks are consistent even if a holder of the lock panicked.
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a window is about to end, so that the next one may count a request that is sent now.
fn is_late(until_ms: i64, now_ms: i64) -> bool {
    now_ms >= until_ms.saturating_sub(WINDOW_EDGE_MS)
}

/// The ledger of a credential's posts in a month, under the current cap.
pub fn capped(mut ledger: QuotaLedger, cap: i64, now_ms: i64) -> QuotaLedger {
    let (ends_at_ms, length_ms) = month::of(now_ms);
    let cap = u32::try_from(cap).unwrap_or(u32::MAX);
    ledger.set_cap(cap, ends_at_ms, length_ms);
    ledger
}

/// Whether an upstream may have sent and counted posts although the request failed.
fn may_have_read(purpose: QuotaPurpose, kind: FailureKind) -> bool {
    match kind {
        FailureKind::Truncated | FailureKind::TooLarge | FailureKind::BadJson => true,
        // A look-up with an invalid ID is not sent.
        FailureKind::BadId => purpose == QuotaPurpose::Poll,
        _ => false,
    }
}

fn show(credential: &Credential, scope: &'static str, ledger: &QuotaLedger) {
    for window in ledger.windows().iter().filter(|w| w.unit == Unit::Requests) {
        QUOTA_REMAINING
            .with([credential.name.clone(), scope.to_owned()])
            .set(f64::from(window.remaining));
    }
}

/// The scope of the cap on posts read in a month.
pub const MONTH: &str = "posts a month";
/// How long requests are free after an answer without limits.
const SILENCE_MS: i64 = 10_000;
const QUARANTINE_MS: i64 = 3_600_000;

#[cfg(test)]
mod tests;
