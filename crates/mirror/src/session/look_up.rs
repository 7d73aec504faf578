use std::sync::Arc;

use driftline_core::{
    answer::LookUp,
    timeline::session::{Event, LookUpCommit},
    upstream_id::UpstreamId,
};
use driftline_runtime::{metrics::REQUESTS, now_ms};
use driftline_store::{CommitLookUp, CommitSummary, StoreError, commit_look_up, source};

use super::{Session, SessionError, count};
use crate::{absence_proof::AbsenceProver, quotas::Charge};

impl Session {
    /// Looks up a post that was missing from a page.
    pub(super) async fn look_up(
        &self,
        id: &UpstreamId,
        charge: Charge,
    ) -> Result<Event, StoreError> {
        let answer = self.client.look_up(id).await;
        match &answer {
            // The charge is one post, which counts as read whether it is found or not.
            Ok((look_up, headers)) => {
                self.look_up_quota.answered(charge, 1, headers).await?;
                REQUESTS.with(["look_up"]).increment(1);
                if let LookUp::Found(post) = look_up {
                    tracing::debug!(source = %self.source.name, post = %post.id, "missing from a page, but it exists");
                    let credential = self.look_up_quota.credential.key();
                    let abilities = &self.access.look_up_abilities;
                    abilities
                        .learn(&self.store, credential, post.kind(), true)
                        .await?;
                }
            }
            Err(failure) => {
                self.look_up_quota.failed(charge, failure).await?;
                self.log_failure(failure);
            }
        }
        Ok(Event::LookedUp(answer))
    }

    pub(super) fn absence_proof(&self) -> AbsenceProver<'_> {
        AbsenceProver {
            store: &self.store,
            client: &self.client,
            quota: &self.look_up_quota,
            abilities: &self.access.look_up_abilities,
            source: self.source.key(),
        }
    }

    /// Commits what became of a post that was looked up.
    pub(super) async fn commit_look_up(
        &self,
        commit: Arc<LookUpCommit>,
    ) -> Result<(Event, CommitSummary), SessionError> {
        let (source, fence) = (self.source.key(), self.fence);
        let before = self.machine().clone();
        let policy = self.access.policies.of(self.source.instance.id);
        let keep_deleted = self.access.keep_deleted;
        let (machine, summary) = self
            .store
            .write(source::root(source), move |tx| {
                commit_look_up(
                    tx,
                    &CommitLookUp {
                        source,
                        fence,
                        machine: &before,
                        id: &commit.id,
                        look_up: &commit.look_up,
                        proof: commit.proof,
                        headers: &commit.headers,
                        policy: &policy,
                        keep_deleted,
                        now_ms: now_ms(),
                    },
                )
            })
            .await?;
        count(&summary);
        let event = Event::LookUpCommitted {
            machine: Box::new(machine),
            left: summary.left,
        };
        Ok((event, summary))
    }
}
