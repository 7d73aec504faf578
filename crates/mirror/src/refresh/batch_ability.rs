//! Whether the workers of an instance may look up several posts at once.

use driftline_core::{
    answer::{Failure, FailureKind},
    api::Api,
    refresh::may_blame_posts,
    upstream_id::UpstreamId,
};
use driftline_runtime::steady_ms;
use driftline_store::{
    Root, StoreError,
    instance::{has_batch_look_up, set_batch_look_up},
    refresh::Claim,
};

use super::{lookup_client::LookupClient, worker_pool::Worker};
use crate::quotas::{Charge, Permit};

/// Whether an upstream has a look-up of several posts, as far as a worker knows.
///
/// A yes is assumed until the look-up answers 404 or 410. A no is assumed for an hour: servers are
/// updated, and a failing front end may have answered for them. While it is unknown, the waits
/// between checks double.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BatchAbility {
    known: Option<bool>,
    /// When to check unless it is there, Unix ms.
    check_at_ms: i64,
    /// The wait before that, ms.
    wait_ms: i64,
}

impl BatchAbility {
    /// Only of Mastodon's servers it is unknown.
    pub(super) fn new(api: Api) -> Self {
        Self {
            known: (api != Api::Mastodon).then_some(true),
            ..Self::default()
        }
    }

    /// Whether to request several posts at once.
    pub(super) fn has_it(self) -> bool {
        self.known == Some(true)
    }

    fn is_check_due(self, now_ms: i64) -> bool {
        !self.has_it() && now_ms >= self.check_at_ms
    }

    /// Takes what a check or another worker found out. What it left open stays as it was.
    fn checked(&mut self, found: Option<bool>, now_ms: i64) {
        self.known = found.or(self.known);
        self.wait_ms = match self.known {
            Some(_) => MAX_WAIT_MS,
            None => (2 * self.wait_ms).clamp(MIN_WAIT_MS, MAX_WAIT_MS),
        };
        self.check_at_ms = now_ms.saturating_add(self.wait_ms);
    }
}

impl Worker {
    /// Loads what other workers found out about the look-up of several posts.
    pub(super) async fn recall_batch(&mut self) -> Result<(), StoreError> {
        if self.batch.known.is_none() {
            let (instance, store) = (self.instance.id, &self.shared.store);
            let known = store
                .read(move |tx| has_batch_look_up(tx, instance))
                .await?;
            if known.is_some() {
                self.batch.checked(known, steady_ms());
            }
        }
        Ok(())
    }

    /// Checks whether the upstream has a look-up of several posts, if that is unknown or was checked
    /// long ago. The check uses the request that was taken, and takes another one for the look-up.
    /// Returns the charge of the look-up, or until when there is no quota, Unix ms.
    pub(super) async fn knows_batch(
        &mut self,
        claim: &Claim,
        lookup_client: &LookupClient,
        charge: Charge,
    ) -> Result<Result<Charge, i64>, StoreError> {
        let due = claim.posts.first();
        let Some(due) = due.filter(|_| self.batch.is_check_due(steady_ms())) else {
            return Ok(Ok(charge));
        };
        let id = UpstreamId::from(due.upstream_id.as_str());
        let time = self.shared.options.lease.mul_f64(CHECK_SHARE);
        let found = tokio::time::timeout(time, lookup_client.client.has_batch_look_up(&id)).await;
        let found = found.unwrap_or_else(|_| {
            let message = format!("{}: no answer in time", self.instance.origin);
            Err(Failure::new(FailureKind::TimedOut, message))
        });
        // Without a result the post may be gone, hidden or at fault: the next check uses another.
        let known = found.as_ref().ok().copied().flatten();
        self.batch.checked(known, steady_ms());
        match found {
            Ok(_) => lookup_client.quota.settle(charge, 1).await?,
            Err(failure) => {
                lookup_client.failed(charge, &failure).await?;
                if !may_blame_posts(failure.kind) {
                    self.log_failure(lookup_client, &failure);
                    return Ok(Err(self.after_failure(failure.kind)));
                }
            }
        }
        if let Some(has_it) = known {
            let (instance, store) = (self.instance.id, &self.shared.store);
            tracing::info!(instance = %self.instance.origin, has_it, "checked for a look-up of several posts");
            store
                .write(Root::none(), move |tx| {
                    set_batch_look_up(tx, instance, Some(has_it))
                })
                .await?;
        }
        Ok(match lookup_client.take(claim.posts.len()).await? {
            Permit::Sent(charge) => Ok(charge),
            Permit::Until(until_ms) => Err(until_ms),
        })
    }

    /// Forgets a look-up of several posts that may have been removed.
    pub(super) async fn forget_batch(&mut self) -> Result<(), StoreError> {
        let (instance, store) = (self.instance.id, &self.shared.store);
        self.batch = BatchAbility::new(self.instance.api);
        store
            .write(Root::none(), move |tx| {
                set_batch_look_up(tx, instance, None)
            })
            .await
    }
}

const MIN_WAIT_MS: i64 = 5_000;
const MAX_WAIT_MS: i64 = 3_600_000;
/// The share of a claim's time for checking for a look-up of several posts.
const CHECK_SHARE: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_is_checked_again_after_an_hour_and_a_yes_never() {
        let mut ability = BatchAbility::new(Api::Mastodon);
        assert!(!ability.has_it() && ability.is_check_due(0));
        for found in [Some(false), None] {
            ability.checked(found, 1_000);
            assert!(!ability.has_it() && !ability.is_check_due(1_000 + MAX_WAIT_MS - 1));
            assert!(ability.is_check_due(1_000 + MAX_WAIT_MS));
        }
        ability.checked(Some(true), 1_000);
        for ability in [ability, BatchAbility::new(Api::X)] {
            assert!(ability.has_it() && !ability.is_check_due(i64::MAX));
        }
    }

    #[test]
    fn an_unknown_ability_is_checked_ever_more_rarely() {
        let (mut ability, mut asked) = (BatchAbility::new(Api::Mastodon), 0);
        for now_ms in (0..24 * 3_600_000).step_by(1_000) {
            if ability.is_check_due(now_ms) {
                ability.checked(None, now_ms);
                assert!(ability.known.is_none());
                asked += 1;
            }
        }
        assert!((24..40).contains(&asked), "{asked} times in a day");
    }
}
