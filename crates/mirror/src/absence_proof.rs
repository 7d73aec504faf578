//! The shell of [`AbsenceProof`]: it looks up the control posts.

use driftline_core::{
    answer::{Failure, FailureKind, LookUp},
    api::Api,
    timeline::{AbsenceProof, ProofStep},
    upstream_id::UpstreamId,
};
use driftline_runtime::now_ms;
use driftline_store::{GoneProof, SourceKey, Store, StoreError, Tx, control_posts::control_posts};
use driftline_upstream::Upstream;

use crate::{
    look_up_abilities::LookUpAbilities,
    quotas::{Permit, Quota},
};

/// The reader whose look-up found nothing.
#[derive(Clone, Copy)]
pub(crate) struct AbsenceProver<'a> {
    pub(crate) store: &'a Store,
    pub(crate) client: &'a Upstream,
    pub(crate) quota: &'a Quota,
    pub(crate) abilities: &'a LookUpAbilities,
    /// The source whose posts serve as controls.
    pub(crate) source: SourceKey,
}

impl AbsenceProver<'_> {
    /// What it proves that the server says that a post does not exist; a failure if a control
    /// look-up had no usable answer.
    pub(crate) async fn of(
        self,
        id: &UpstreamId,
    ) -> Result<Result<GoneProof, Failure>, StoreError> {
        if self.client.api() != Api::Mastodon {
            return Ok(Ok(GoneProof::DeletedForAll));
        }
        let (source, asked) = (self.source, id.clone());
        let own = &self.quota.credential;
        let reader = (own.owner, own.token.is_some());
        let read = move |tx: &mut Tx<'_>| control_posts(tx, source, reader, &asked);
        let controls = self.store.read(read);
        let Some(controls) = controls.await? else {
            return Ok(Ok(GoneProof::Nothing));
        };
        let (kind, credential) = (controls.kind, own.key());
        let known = self.abilities.finds(self.store, credential, kind).await?;
        let mut proof = AbsenceProof::new(controls, own.token.is_some(), known);
        loop {
            match proof.step() {
                ProofStep::LookUp(control) => match self.finds(&control).await? {
                    Ok(is_found) => proof.answered(is_found),
                    Err(failure) => return Ok(Err(failure)),
                },
                ProofStep::Over { proof, finds } => {
                    if let Some(finds) = finds {
                        let learnt = self.abilities.learn(self.store, credential, kind, finds);
                        learnt.await?;
                    }
                    return Ok(Ok(proof));
                }
            }
        }
    }

    /// Returns whether a look-up finds a control.
    async fn finds(self, control: &UpstreamId) -> Result<Result<bool, Failure>, StoreError> {
        let charge = match self.quota.take(1).await? {
            Permit::Sent(charge) => charge,
            Permit::Until(until_ms) => {
                let message = "no quota for a control look-up";
                return Ok(Err(Failure {
                    retry_after_ms: Some(until_ms.saturating_sub(now_ms()).max(0)),
                    ..Failure::new(FailureKind::TimedOut, message)
                }));
            }
        };
        match self.client.look_up(control).await {
            Ok((found, headers)) => {
                self.quota.answered(charge, 1, &headers).await?;
                Ok(Ok(matches!(found, LookUp::Found(_))))
            }
            Err(failure) => {
                self.quota.failed(charge, &failure).await?;
                Ok(Err(failure))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
