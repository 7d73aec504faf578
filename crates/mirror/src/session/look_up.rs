use driftline_core::{
    answer::{Failure, LookUp},
    upstream_id::UpstreamId,
};
use driftline_runtime::{metrics::REQUESTS, now_ms, random};
use driftline_store::{CommitLookUp, GoneProof, commit_look_up, source};

use super::{Done, Session, SessionError, count};
use crate::{absence_proof::AbsenceProof, quotas::Charge};

impl Session {
    /// Looks up a post that was missing from a page, and commits what became of it.
    pub(super) async fn look_up(
        &mut self,
        id: UpstreamId,
        charge: Charge,
    ) -> Result<Done, SessionError> {
        // The charge is one post, which counts as read whether it is found or not.
        let (look_up, headers) = match self.client.look_up(&id).await {
            Ok(answer) => answer,
            Err(failure) => {
                self.look_up_quota.failed(charge, &failure).await?;
                return self.look_up_failed(&id, &failure).await;
            }
        };
        self.look_up_quota.answered(charge, 1, &headers).await?;
        REQUESTS.with(["look_up"]).increment(1);
        let proof = match &look_up {
            LookUp::Found(post) => {
                tracing::debug!(source = %self.source.name, post = %post.id, "missing from a page, but it exists");
                let credential = self.look_up_quota.credential.key();
                let abilities = &self.access.look_up_abilities;
                abilities
                    .learn(&self.store, credential, post.kind(), true)
                    .await?;
                GoneProof::Nothing
            }
            LookUp::Hidden => GoneProof::Nothing,
            LookUp::Gone => match self.absence_proof().of(&id).await? {
                Ok(proof) => proof,
                Err(failure) => return self.look_up_failed(&id, &failure).await,
            },
        };
        let (source, fence) = (self.source.key(), self.fence);
        let before = self.machine.clone();
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
                        id: &id,
                        look_up: &look_up,
                        proof,
                        headers: &headers,
                        policy: &policy,
                        keep_deleted,
                        now_ms: now_ms(),
                    },
                )
            })
            .await?;
        self.machine = machine;
        self.saved();
        if summary.left > 0 {
            self.recent_posts.clear();
        }
        count(&summary);
        Ok(Done::Read(summary))
    }

    fn absence_proof(&self) -> AbsenceProof<'_> {
        AbsenceProof {
            store: &self.store,
            client: &self.client,
            quota: &self.look_up_quota,
            abilities: &self.access.look_up_abilities,
            source: self.source.key(),
        }
    }

    async fn look_up_failed(
        &mut self,
        id: &UpstreamId,
        failure: &Failure,
    ) -> Result<Done, SessionError> {
        self.log_failure(failure);
        let settings = &self.settings;
        self.machine
            .look_up_failed(settings, id, failure, now_ms(), random());
        self.save().await?;
        Ok(Done::Failed(failure.kind))
    }
}
