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
    answer::{AnswerFacts, Failure, FailureKind},
    quota::{Asked, Grant, Ledger, SEAM_MS, Unit, Use},
};
use driftline_store::{
    CredentialId, Store, StoreError, Tx,
    credential::{self, Credential, Quarantine},
    quota,
};
use metrics::{counter, gauge};

use crate::{
    clock::{chance, now_ms},
    month,
};

/// The quotas of this process. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Quotas {
    store: Store,
    polling_share: f64,
    blocks: Arc<Mutex<HashMap<Key, Block>>>,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Reading a timeline, which goes first.
    Poll,
    /// Refreshing posts.
    Refresh,
}

impl Purpose {
    /// What an answer to it tells of: a poll's may be of a limit that only pages have.
    const fn asked(self) -> Asked {
        match self {
            Self::Poll => Asked::Page,
            Self::Refresh => Asked::LookUp,
        }
    }
}

/// A request that may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// It may; it counts as sent.
    Sent,
    /// Not before this, Unix ms.
    Until(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    credential: CredentialId,
    scope: &'static str,
    purpose: Purpose,
}

/// What is left of what was taken at once.
#[derive(Debug, Clone, Default)]
struct Block {
    left: u32,
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
        }
    }

    /// Takes one request that reads up to `posts` posts.
    ///
    /// # Errors
    /// [`StoreError`] if the ledger cannot be read or kept; then the request must not be sent.
    pub async fn take(
        &self,
        credential: &Credential,
        scope: &'static str,
        purpose: Purpose,
        posts: u32,
    ) -> Result<Permit, StoreError> {
        let key = Key {
            credential: credential.id,
            scope,
            purpose,
        };
        if self.take_held(key) {
            return Ok(Permit::Sent);
        }
        let id = credential.id;
        let cap = credential.monthly_posts;
        let purpose = match purpose {
            Purpose::Poll => Use::Poll,
            Purpose::Refresh => Use::Refresh {
                left_to_polling: self.polling_share,
            },
        };
        let (grant, ledger) = self
            .store
            .write(credential::root(id), move |tx| {
                take_block(tx, id, scope, cap, purpose, posts, now_ms())
            })
            .await?;
        show(credential, scope, &ledger);
        match grant {
            Grant::Until(until_ms) => Ok(Permit::Until(until_ms)),
            Grant::Requests(granted) => {
                let ends = ledger.windows().iter().map(|window| window.reset_at_ms);
                let block = Block {
                    left: granted - 1,
                    until_ms: ends.min().unwrap_or(i64::MAX),
                    ledger,
                    free_until_ms: 0,
                };
                let mut blocks = self.blocks();
                let held = blocks.entry(key).or_default();
                let kept = if held.until_ms == block.until_ms {
                    held.left
                } else {
                    0
                };
                *held = block;
                held.left += kept;
                Ok(Permit::Sent)
            }
        }
    }

    /// Puts a request back that was taken and not sent.
    pub fn put_back(&self, credential: &Credential, scope: &'static str, purpose: Purpose) {
        let key = Key {
            credential: credential.id,
            scope,
            purpose,
        };
        let now = now_ms();
        if let Some(block) = self.blocks().get_mut(&key)
            && now >= block.free_until_ms
            && now < block.until_ms
        {
            block.left += 1;
        }
    }

    /// Gives back what was taken of a month's cap for posts that were not read.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn not_read(&self, credential: &Credential, posts: u32) -> Result<(), StoreError> {
        if credential.monthly_posts.is_none() || posts == 0 {
            return Ok(());
        }
        self.change(credential, MONTH, move |ledger| ledger.give_back(posts))
            .await
    }

    /// Takes in what an answer's headers said.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn answered(
        &self,
        credential: &Credential,
        scope: &'static str,
        purpose: Purpose,
        facts: &AnswerFacts,
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
            let known = [ledger(Purpose::Poll), ledger(Purpose::Refresh)];
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
        purpose: Purpose,
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
                    ledger.refused(asked, throttle.as_ref(), retry_after_ms, chance(), now);
                })
                .await
            }
            FailureKind::Unauthorized => {
                let quarantine = Quarantine {
                    since_ms: now,
                    until_ms: now.saturating_add(QUARANTINE_MS),
                    reason: failure.message.clone(),
                };
                tracing::warn!(
                    credential = %credential.name,
                    "the upstream does not take it; it rests for an hour, or until `driftline credential test`: {}",
                    failure.message
                );
                let id = credential.id;
                self.store
                    .write(credential::root(id), move |tx| {
                        credential::quarantine(tx, id, &quarantine)
                    })
                    .await
            }
            _ => match failure.throttle {
                Some(throttle) => {
                    self.change(credential, scope, move |ledger| {
                        ledger.answered(asked, Some(&throttle), now);
                    })
                    .await
                }
                None => Ok(()),
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
        Ok(())
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
        for purpose in [Purpose::Poll, Purpose::Refresh] {
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

    fn take_held(&self, key: Key) -> bool {
        let mut blocks = self.blocks();
        let Some(block) = blocks.get_mut(&key) else {
            return false;
        };
        let now = now_ms();
        if now < block.free_until_ms {
            return true;
        }
        // What is sent so late belongs to the next window, and only the ledger can say so.
        if block.left == 0 || now >= block.until_ms.saturating_sub(SEAM_MS) {
            block.left = 0;
            return false;
        }
        block.left -= 1;
        true
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

fn take_block(
    tx: &mut Tx<'_>,
    id: CredentialId,
    scope: &str,
    cap: Option<i64>,
    purpose: Use,
    posts: u32,
    now_ms: i64,
) -> Result<(Grant, Ledger), StoreError> {
    let mut ledger = quota::load(tx, id, scope)?;
    let mut capped = match cap {
        Some(cap) => {
            let mut capped = quota::load(tx, id, MONTH)?;
            let (ends_at_ms, length_ms) = month::of(now_ms);
            capped.set_cap(
                u32::try_from(cap).unwrap_or(u32::MAX),
                ends_at_ms,
                length_ms,
            );
            Some(capped)
        }
        None => None,
    };
    if let Some(capped) = &mut capped {
        let ahead = capped.clone().take(1, posts, purpose, now_ms);
        if let Grant::Until(_) = ahead {
            return Ok((ahead, ledger));
        }
    }
    // Under a cap, requests are taken one by one: a block would count posts that are not read.
    let want = if capped.is_some() {
        1
    } else {
        want(&ledger, purpose)
    };
    let grant = ledger.take(want, posts, purpose, now_ms);
    if let Grant::Requests(granted) = grant {
        quota::store(tx, id, scope, &ledger)?;
        if let Some(mut capped) = capped {
            capped.take(granted, posts, purpose, now_ms);
            quota::store(tx, id, MONTH, &capped)?;
        }
    }
    Ok((grant, ledger))
}

/// How many requests to take at once: fewer as the window runs out, so that little is left unused
/// at its end.
fn want(ledger: &Ledger, purpose: Use) -> u32 {
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
