//! Whether the workers of an instance may look up several posts at once.

use driftline_core::{
    answer::{Failure, FailureKind},
    api::Api,
    refresh::may_blame_posts,
    upstream_id::UpstreamId,
};
use driftline_runtime::now_ms;
use driftline_store::{
    Root, StoreError,
    instance::{has_batch_look_up, set_batch_look_up},
    refresh::Claim,
};

use super::Worker;
use crate::{
    quotas::{Charge, Permit},
    refresh::{batch_ability::BatchAbility, lookup_client::LookupClient},
};

impl Worker {
    /// Loads what other workers found out about the look-up of several posts.
    pub(super) async fn recall_batch(&mut self) -> Result<(), StoreError> {
        if !self.batch.is_unknown() {
            return Ok(());
        }
        let instance = self.instance.id;
        let known = self
            .shared
            .store
            .read(move |tx| has_batch_look_up(tx, instance))
            .await?;
        if let Some(known) = known {
            self.batch = BatchAbility::remembered(known, now_ms());
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
        let Some(due) = due.filter(|_| self.batch.is_check_due(now_ms())) else {
            return Ok(Ok(charge));
        };
        if self.instance.api != Api::Mastodon {
            // The other APIs always have it, and nothing is asked.
            self.found_batch(true).await?;
            return Ok(Ok(charge));
        }
        let id = UpstreamId::from(due.upstream_id.as_str());
        let time = self.shared.options.lease.mul_f64(PROBE_SHARE);
        let found = tokio::time::timeout(time, lookup_client.client.has_batch_look_up(&id)).await;
        let found = found.unwrap_or_else(|_| {
            let message = format!("{}: no answer in time", self.instance.origin);
            Err(Failure::new(FailureKind::TimedOut, message))
        });
        match found {
            Ok(known) => {
                lookup_client.quota.settle(charge, 1).await?;
                match known {
                    Some(has_it) => self.found_batch(has_it).await?,
                    // Inconclusive, since the post may be gone or hidden: another post will show it.
                    None => self.batch = self.batch.still(now_ms()),
                }
            }
            Err(failure) => {
                lookup_client.failed(charge, &failure).await?;
                self.batch = self.batch.still(now_ms());
                // The post may be the cause: its look-up will show that, and the next check uses another.
                if !may_blame_posts(failure.kind) {
                    tracing::info!(instance = %self.instance.origin, kind = %failure.kind, "{}", failure.message);
                    self.failures = self.failures.saturating_add(1);
                    return Ok(Err(self.pause()));
                }
            }
        }
        Ok(match lookup_client.take(claim.posts.len()).await? {
            Permit::Sent(charge) => Ok(charge),
            Permit::Until(until_ms) => Err(until_ms),
        })
    }

    async fn found_batch(&mut self, has_it: bool) -> Result<(), StoreError> {
        let instance = self.instance.id;
        tracing::info!(instance = %self.instance.origin, has_it, "checked for a look-up of several posts");
        self.shared
            .store
            .write(Root::none(), move |tx| {
                set_batch_look_up(tx, instance, Some(has_it))
            })
            .await?;
        self.batch = BatchAbility::shown(has_it, now_ms());
        Ok(())
    }

    /// Forgets a look-up of several posts that may have been removed.
    pub(super) async fn forget_batch(&mut self) -> Result<(), StoreError> {
        let instance = self.instance.id;
        self.batch = BatchAbility::default();
        self.shared
            .store
            .write(Root::none(), move |tx| {
                set_batch_look_up(tx, instance, None)
            })
            .await
    }
}

/// The share of a claim's time for checking for a look-up of several posts.
const PROBE_SHARE: f64 = 0.2;
