//! Sends look-ups with one credential.

use std::time::Duration;

use driftline_core::{
    answer::{Failure, FailureKind, Finding, LookUps},
    api::Api,
    quota::QuotaPurpose,
    upstream_id::UpstreamId,
};
use driftline_runtime::metrics::REFRESH_FAILURES;
use driftline_store::{StoreError, credential::Credential};
use driftline_upstream::{ClientPurpose, Upstream, is_post_id};

use super::Shared;
use crate::quotas::{Charge, Permit, Quota, Quotas};

/// A credential with its client.
pub(super) struct LookupClient {
    pub(super) client: Upstream,
    pub(super) quota: Quota,
}

impl LookupClient {
    pub(super) fn new(quotas: &Quotas, credential: &Credential, client: Upstream) -> Self {
        let scope = client.scope(ClientPurpose::LookUp);
        let quota = quotas.of(credential, scope, QuotaPurpose::Refresh);
        Self { client, quota }
    }

    pub(super) fn credential(&self) -> &Credential {
        &self.quota.credential
    }

    /// Takes a request for so many posts from the quota.
    pub(super) async fn take(&self, posts: usize) -> Result<Permit, StoreError> {
        self.quota
            .take(u32::try_from(posts).unwrap_or(u32::MAX))
            .await
    }

    /// Looks posts up. The request is already taken, and its charge is settled here. The quota in the
    /// answer is recorded.
    pub(super) async fn ask(
        &self,
        shared: &Shared,
        charge: Charge,
        ids: &[UpstreamId],
        time: Duration,
    ) -> Result<Result<LookUps, Failure>, StoreError> {
        let (ids, impossible) = self.split_valid(ids);
        let impossible = impossible.into_iter().map(|id| (id, Finding::Gone));
        if ids.is_empty() {
            self.quota.put_back(charge).await?;
            let nothing = self.client.look_up_many(&[]).await;
            return Ok(nothing.map(|LookUps { headers, .. }| LookUps {
                findings: impossible.collect(),
                headers,
            }));
        }
        shared.count(self.credential().instance, |refresh_stats| {
            refresh_stats.asked(ids.len());
        });
        let found = tokio::time::timeout(time, self.client.look_up_many(&ids)).await;
        let mut found = found.unwrap_or_else(|_| {
            let message = format!(
                "a look-up of {} posts took longer than {} ms; raise refresh.lease if the server is that slow",
                ids.len(),
                time.as_millis()
            );
            Err(Failure::new(FailureKind::TimedOut, message))
        });
        match &mut found {
            Ok(found) => {
                let posts = u32::try_from(ids.len()).unwrap_or(u32::MAX);
                self.quota.answered(charge, posts, &found.headers).await?;
                shared.refusals.answered(self.credential().id);
                if self.credential().quarantine.is_some() {
                    shared.access.quotas.restore(self.credential()).await?;
                }
                if self.client.api() == Api::Mastodon {
                    // It says that posts which the credential may not see do not exist.
                    for (_, finding) in &mut found.findings {
                        if *finding == Finding::Gone {
                            *finding = Finding::Missing;
                        }
                    }
                }
                found.findings.extend(impossible);
            }
            Err(failure) => self.failed(charge, failure).await?,
        }
        Ok(found)
    }

    /// The valid IDs, and those that X and Twitter cannot have issued: one of these would fail the
    /// request for all others.
    fn split_valid(&self, ids: &[UpstreamId]) -> (Vec<UpstreamId>, Vec<UpstreamId>) {
        let api = self.client.api();
        let can_be = |id: &UpstreamId| api == Api::Mastodon || is_post_id(api, id.as_str());
        ids.iter().cloned().partition(can_be)
    }

    /// Settles the charge of a failed request, and records the failure for the credential.
    pub(super) async fn failed(&self, charge: Charge, failure: &Failure) -> Result<(), StoreError> {
        REFRESH_FAILURES.with([failure.kind.name()]).increment(1);
        self.quota.failed(charge, failure).await
    }
}

#[cfg(test)]
mod tests {
    use driftline_runtime::now_ms;
    use driftline_store::credential;
    use driftline_upstream::{Address, Credential as UpstreamCredential};

    use super::{super::testing::World, *};

    #[tokio::test]
    async fn an_id_that_x_cannot_have_issued_is_gone_and_not_requested() {
        let world = World::new().await;
        world.credential("mine").await;
        let shared = &world.shared;
        let all = shared.store.read(credential::list).await.unwrap();
        let address = Address::parse("https://x.test").unwrap();
        let http = shared.access.http.clone();
        let client = Upstream::new(Api::X, http, address, UpstreamCredential::None).unwrap();
        let lookup_client = LookupClient::new(&shared.access.quotas, &all[0], client);
        let ids = ["00017", "99999999999999999999"].map(UpstreamId::from);
        let Permit::Sent(charge) = lookup_client.take(ids.len()).await.unwrap() else {
            panic!("nothing was requested yet");
        };
        let before_ms = now_ms();
        let time = Duration::from_secs(5);
        let found = lookup_client.ask(shared, charge, &ids, time).await.unwrap();
        let found = found.unwrap();
        assert!(found.headers.sent_at_ms >= before_ms);
        assert_eq!(found.findings, ids.map(|id| (id, Finding::Gone)));
        let instance = lookup_client.credential().instance;
        shared.count(instance, |refresh_stats| {
            assert_eq!(refresh_stats.requests, 0);
        });
    }
}
