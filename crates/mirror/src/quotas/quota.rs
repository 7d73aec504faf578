use driftline_core::{
    answer::{AnswerHeaders, Failure, FailureKind, Throttle},
    clock::MAX_SKEW_MS,
    quota::{Grant, LedgerAge, QuotaLedger, QuotaPurpose, QuotaView, Unit},
};
use driftline_runtime::{
    metrics::{QUOTA_REMAINING, THROTTLED},
    now_ms, random, read_clocks, steady_ms,
};
use driftline_store::{
    StoreError, Tx,
    credential::{self, Credential},
    quota,
};

use tokio::time::{Instant, sleep_until};

use super::{
    KnownQuotas, MONTH, Quotas,
    block::{Scope, block_of},
    capped,
};

/// The quota of one credential for a family of endpoints. Clones are handles to the same one.
#[derive(Clone)]
pub struct Quota {
    pub(super) quotas: Quotas,
    pub(crate) credential: Credential,
    pub(super) scope: &'static str,
    pub(super) purpose: QuotaPurpose,
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
    pub(super) of_month: Option<Charged>,
    /// Whether the request was taken in the last seconds of its window, so that the next window counts
    /// it too.
    pub(super) is_late: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Charged {
    pub(super) posts: u32,
    /// The end of the month that the posts are charged to, Unix ms.
    pub(super) ends_at_ms: i64,
}

impl Quota {
    /// Takes one request that reads up to `posts` posts, and charges them where a cap counts them.
    /// Where the upstream announces no limit, look-ups of single posts wait for their turn.
    ///
    /// # Errors
    /// [`StoreError`] if the ledger cannot be read or kept; then the request must not be sent.
    pub async fn take(&self, posts: u32) -> Result<Permit, StoreError> {
        let permit = self.take_of_ledger(posts).await?;
        if posts == 1
            && matches!(permit, Permit::Sent(_))
            && let Some(place) = self.look_up_place()
        {
            sleep_until(place).await;
        }
        Ok(permit)
    }

    /// When a look-up may be sent; `None` where limits are known.
    fn look_up_place(&self) -> Option<Instant> {
        let mut known = self.quotas.known.lock();
        let ledger = known.ledgers.get(&self.scope());
        let is_limited = ledger.is_some_and(|ledger| !ledger.windows().is_empty());
        (!is_limited).then(|| known.look_up_pace.next(self.scope(), Instant::now()))
    }

    async fn take_of_ledger(&self, posts: u32) -> Result<Permit, StoreError> {
        let (scope, purpose) = (self.scope(), self.purpose);
        let held = self
            .quotas
            .known
            .lock()
            .blocks
            .take(scope, purpose, steady_ms());
        if let (Some(is_late), None) = (held, self.credential.monthly_posts) {
            let of_month = None;
            return Ok(Permit::Sent(Charge { of_month, is_late }));
        }
        let (quota, is_held) = (self.clone(), held.is_some());
        let taken = self
            .quotas
            .store
            .write(credential::root(self.credential.key()), move |tx| {
                quota.take_block(tx, posts, is_held)
            })
            .await;
        if let Some(is_late) = held
            && !matches!(taken, Ok((Grant::Requests(_), ..)))
        {
            self.hold(is_late);
        }
        let (grant, (ledger, age), of_month) = taken?;
        let is_late = match (grant, held) {
            (Grant::Until(until_ms), _) => {
                self.learn(self.scope, ledger, age);
                return Ok(Permit::Until(until_ms));
            }
            (Grant::Requests(_), Some(is_late)) => is_late,
            (Grant::Requests(granted), None) => {
                let blocks = &mut self.quotas.known.lock().blocks;
                blocks.add(scope, purpose, granted - 1, &ledger, read_clocks())
            }
        };
        self.learn(self.scope, ledger, age);
        Ok(Permit::Sent(Charge { of_month, is_late }))
    }

    /// Takes a block of requests of the ledger, and their posts of the month's cap. If a request is
    /// held already, only its posts are charged.
    fn take_block(
        &self,
        tx: &mut Tx<'_>,
        posts: u32,
        is_held: bool,
    ) -> Result<(Grant, Synced, Option<Charged>), StoreError> {
        let (key, scope, purpose) = (self.credential.key(), self.scope, self.purpose);
        let share = self.quotas.polling_share;
        let (mut ledger, clocks) = (quota::load(tx, key, scope)?, read_clocks());
        let now_ms = clocks.wall_ms;
        let is_ahead = ledger.is_ahead(now_ms);
        let age = ledger.sync(clocks, self.age(scope));
        let mut month = match self.credential.monthly_posts {
            Some(cap) => Some(capped(quota::load(tx, key, MONTH)?, cap, now_ms)),
            None => None,
        };
        if let Some(month) = &month {
            let ahead = month.clone().take(1, posts, purpose, share, now_ms);
            if let Grant::Until(_) = ahead {
                return Ok((ahead, (ledger, age), None));
            }
        }
        // Under a cap, requests are taken one by one: a block would charge posts that are not read.
        let max = match &month {
            Some(_) => 1,
            None => block_of(&ledger, purpose),
        };
        let grant = if is_held {
            Grant::Requests(1)
        } else {
            ledger.take(max, posts, purpose, share, now_ms)
        };
        if let Grant::Until(_) = grant
            && !is_ahead
        {
            return Ok((grant, (ledger, age), None));
        }
        quota::store(tx, key, scope, &ledger)?;
        let age = ledger.stored(clocks);
        if let Grant::Until(_) = grant {
            return Ok((grant, (ledger, age), None));
        }
        let mut charged = None;
        if let Some(month) = &mut month {
            month.take(1, posts, purpose, share, now_ms);
            quota::store(tx, key, MONTH, month)?;
            charged = month.cap().map(|cap| Charged {
                posts,
                ends_at_ms: cap.reset_at_ms,
            });
        }
        Ok((grant, (ledger, age), charged))
    }

    /// Puts a taken request back that was not sent. The next call of [`Quota::take`] gets it until its
    /// window ends; the charged posts are given back at once.
    ///
    /// # Errors
    /// [`StoreError`] if that cannot be kept.
    pub async fn put_back(&self, charge: Charge) -> Result<(), StoreError> {
        self.hold(charge.is_late);
        self.settle(charge, 0).await
    }

    fn hold(&self, is_late: bool) {
        let (scope, purpose) = (self.scope(), self.purpose);
        let blocks = &mut self.quotas.known.lock().blocks;
        blocks.put_back(scope, purpose, is_late, steady_ms());
    }

    /// Settles the charge of a request against the posts that it read.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn settle(&self, charge: Charge, read: u32) -> Result<(), StoreError> {
        let Some(Charged { posts, ends_at_ms }) = charge.of_month.filter(|of| of.posts != read)
        else {
            return Ok(());
        };
        self.change(MONTH, move |ledger, _| {
            // A charge to a past month was not taken from this one.
            if ledger
                .cap()
                .is_some_and(|cap| cap.reset_at_ms == ends_at_ms)
            {
                ledger.settle(posts, read);
            }
        })
        .await
    }

    /// Settles the charge of a request against the posts that it read, and records the answer's
    /// headers.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn answered(
        &self,
        charge: Charge,
        read: u32,
        headers: &AnswerHeaders,
    ) -> Result<(), StoreError> {
        self.settle(charge, read).await?;
        let (now, purpose) = (now_ms(), self.purpose);
        let throttle = headers.throttle.map(|throttle| Throttle {
            reset_at_ms: throttle.reset_at_ms.saturating_add(step_ms(headers, now)),
            ..throttle
        });
        {
            let mut known = self.quotas.known.lock();
            known.answered_ms.insert(self.credential.instance, now);
            let ledger = self.current(&known);
            let ledger = ledger.as_ref();
            let is_news =
                ledger.is_none_or(|ledger| ledger.is_news(purpose, throttle.as_ref(), now));
            let is_unlimited = throttle.is_none()
                && self.credential.monthly_posts.is_none()
                && ledger.is_some_and(|ledger| ledger.windows().is_empty());
            if is_unlimited {
                known.blocks.free(self.scope(), steady_ms());
            }
            if !is_news {
                return Ok(());
            }
        }
        self.change(self.scope, move |ledger, now| {
            ledger.answered(purpose, throttle.as_ref(), now);
        })
        .await
    }

    /// Records a failure. All charged posts are given back, unless the answer may have contained
    /// posts. Throttling changes the ledger, and a credential that the upstream rejects is
    /// quarantined.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn failed(&self, charge: Charge, failure: &Failure) -> Result<(), StoreError> {
        let (purpose, throttle) = (self.purpose, failure.throttle);
        if !may_have_read(purpose, failure.kind) {
            self.settle(charge, 0).await?;
        }
        match failure.kind {
            FailureKind::Throttled => {
                THROTTLED.with([self.credential.name.clone()]).increment(1);
                let retry_after_ms = failure.retry_after_ms;
                self.quotas.known.lock().blocks.clear(self.scope());
                self.change(self.scope, move |ledger, now| {
                    ledger.refused(purpose, throttle.as_ref(), retry_after_ms, random(), now);
                })
                .await
            }
            // A refusal of one timeline proves nothing about the credential elsewhere.
            FailureKind::Unauthorized if purpose == QuotaPurpose::Poll => Ok(()),
            FailureKind::Unauthorized | FailureKind::Capped => {
                let (quotas, credential) = (&self.quotas, &self.credential);
                quotas.quarantine(credential, &failure.message).await
            }
            _ => {
                self.change(self.scope, move |ledger, now| match &throttle {
                    Some(throttle) => ledger.answered(purpose, Some(throttle), now),
                    // The request is no longer in flight.
                    None => ledger.unanswered(),
                })
                .await
            }
        }
    }

    /// When the server last answered a request of this process as it should, Unix ms.
    pub fn server_answered_ms(&self) -> Option<i64> {
        let known = self.quotas.known.lock();
        known.answered_ms.get(&self.credential.instance).copied()
    }

    /// What is left for reading a timeline, as far as this process knows.
    pub fn view(&self) -> QuotaView {
        let known = self.quotas.known.lock();
        let ledger = self.current(&known);
        ledger.map_or_else(QuotaView::default, |ledger| ledger.view(now_ms()))
    }

    /// The last known ledger, its times by the wall clock as it is now.
    fn current(&self, known: &KnownQuotas) -> Option<QuotaLedger> {
        let mut ledger = known.ledgers.get(&self.scope())?.clone();
        let age = known.ages.get(&self.scope()).copied();
        ledger.sync(read_clocks(), age);
        Some(ledger)
    }

    fn age(&self, scope: &'static str) -> Option<LedgerAge> {
        let known = self.quotas.known.lock();
        known.ages.get(&(self.credential.id, scope)).copied()
    }

    pub(super) async fn change(
        &self,
        scope: &'static str,
        mut change: impl FnMut(&mut QuotaLedger, i64) + Send + 'static,
    ) -> Result<(), StoreError> {
        let (key, quota) = (self.credential.key(), self.clone());
        let (ledger, age) = self
            .quotas
            .store
            .write(credential::root(key), move |tx| {
                let (mut ledger, clocks) = (quota::load(tx, key, scope)?, read_clocks());
                ledger.sync(clocks, quota.age(scope));
                change(&mut ledger, clocks.wall_ms);
                quota::store(tx, key, scope, &ledger)?;
                let age = ledger.stored(clocks);
                Ok::<_, StoreError>((ledger, age))
            })
            .await?;
        self.learn(scope, ledger, age);
        Ok(())
    }

    /// Exports and remembers a ledger, unless a newer one is known.
    fn learn(&self, scope: &'static str, ledger: QuotaLedger, age: LedgerAge) {
        for window in ledger.windows().iter().filter(|w| w.unit == Unit::Requests) {
            QUOTA_REMAINING
                .with([self.credential.name.clone(), scope.to_owned()])
                .set(f64::from(window.remaining));
        }
        let mut known = self.quotas.known.lock();
        let last = known.ledgers.entry((self.credential.id, scope));
        let last = last.or_default();
        if ledger.granted() >= last.granted() {
            *last = ledger;
            known.ages.insert((self.credential.id, scope), age);
        }
    }

    fn scope(&self) -> Scope {
        (self.credential.id, self.scope)
    }
}

/// A ledger that was read, and how old what is stored of it is.
type Synced = (QuotaLedger, LedgerAge);

/// How far the wall clock was set since the answer was received, ms: by it the end of its window was computed.
fn step_ms(headers: &AnswerHeaders, now_ms: i64) -> i64 {
    let passed_ms = now_ms.saturating_sub(headers.received_at_ms);
    match (0..=MAX_SKEW_MS).contains(&passed_ms) || headers.received_at_ms == 0 {
        true => 0,
        false => passed_ms,
    }
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
