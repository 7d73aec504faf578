//! One credential, asking.

use std::time::Duration;

use driftline_core::{
    answer::{Failure, FailureKind, Finding, LookUps},
    api::Api,
    upstream_id::UpstreamId,
};
use driftline_store::{StoreError, credential::Credential};
use driftline_upstream::{Purpose as UpstreamPurpose, Upstream};
use metrics::counter;

use super::Shared;
use crate::quotas::{Charge, Permit, Purpose};

/// A credential with its client.
pub(super) struct Reader {
    pub(super) credential: Credential,
    pub(super) client: Upstream,
}

impl Reader {
    /// Takes a request for so many posts from the quota.
    pub(super) async fn take(&self, shared: &Shared, posts: usize) -> Result<Permit, StoreError> {
        let posts = u32::try_from(posts).unwrap_or(u32::MAX);
        let quotas = &shared.access.quotas;
        quotas
            .take(&self.credential, self.scope(), Purpose::Refresh, posts)
            .await
    }

    /// Puts a request back that was taken and not sent.
    pub(super) async fn put_back(&self, shared: &Shared, charge: Charge) -> Result<(), StoreError> {
        let quotas = &shared.access.quotas;
        quotas
            .put_back(&self.credential, self.scope(), Purpose::Refresh, charge)
            .await
    }

    /// Settles what a request was charged: so many posts were asked for and answered, found or not.
    pub(super) async fn settle(
        &self,
        shared: &Shared,
        charge: Charge,
        posts: usize,
    ) -> Result<(), StoreError> {
        let posts = u32::try_from(posts).unwrap_or(u32::MAX);
        let quotas = &shared.access.quotas;
        quotas.settle(&self.credential, charge, posts).await
    }

    /// Settles what a request was charged that failed.
    pub(super) async fn settle_failed(
        &self,
        shared: &Shared,
        charge: Charge,
        failure: &Failure,
    ) -> Result<(), StoreError> {
        let quotas = &shared.access.quotas;
        quotas
            .settle_failed(&self.credential, Purpose::Refresh, charge, failure.kind)
            .await
    }

    /// Asks for posts; the request is taken already, and its charge is settled here. What the answer
    /// says of the quota is kept.
    pub(super) async fn ask(
        &self,
        shared: &Shared,
        charge: Charge,
        ids: &[UpstreamId],
        time: Duration,
    ) -> Result<Result<LookUps, Failure>, StoreError> {
        shared.count(self.credential.instance, |tally| tally.asked(ids.len()));
        let found = match tokio::time::timeout(time, self.look_up(ids)).await {
            Ok(found) => found,
            Err(_) => Err(Failure::new(
                FailureKind::TimedOut,
                format!(
                    "a look-up of {} posts took longer than {} ms; raise refresh.lease if the server is that slow",
                    ids.len(),
                    time.as_millis()
                ),
            )),
        };
        let quotas = &shared.access.quotas;
        match &found {
            Ok(found) => {
                self.settle(shared, charge, ids.len()).await?;
                quotas
                    .answered(
                        &self.credential,
                        self.scope(),
                        Purpose::Refresh,
                        &found.facts,
                    )
                    .await?;
                let shown = found
                    .findings
                    .iter()
                    .find_map(|(id, finding)| match finding {
                        Finding::Found(_) => Some(id),
                        _ => None,
                    });
                shared.witnesses.answered(self.credential.id, shown);
            }
            Err(failure) => {
                self.settle_failed(shared, charge, failure).await?;
                self.failed(shared, failure).await?;
            }
        }
        Ok(found)
    }

    /// Takes in what a failure means for the credential.
    pub(super) async fn failed(
        &self,
        shared: &Shared,
        failure: &Failure,
    ) -> Result<(), StoreError> {
        counter!("driftline_refresh_failures_total", "kind" => failure.kind.name()).increment(1);
        let quotas = &shared.access.quotas;
        quotas
            .failed(&self.credential, self.scope(), Purpose::Refresh, failure)
            .await
    }

    async fn look_up(&self, ids: &[UpstreamId]) -> Result<LookUps, Failure> {
        let mut found = self.client.look_up_many(ids).await?;
        if self.client.api() == Api::Mastodon {
            // It says of posts that are not for this reader that they do not exist.
            for (_, finding) in &mut found.findings {
                if *finding == Finding::Gone {
                    *finding = Finding::Missing;
                }
            }
        }
        Ok(found)
    }

    pub(super) fn scope(&self) -> &'static str {
        self.client.scope(UpstreamPurpose::LookUp)
    }
}
