//! What it proves that a server answers 404 for a post.
//!
//! Servers answer so for what they do not show this reader (blocks, suspensions), and some for every
//! boost, or for every post. So such an answer counts only next to one for a live post: a *control*.
//! A credential that has found no live post of the kind proves nothing. With a token, a post by the
//! same author has to be found, for the author may have blocked the reader. An unboost is no deletion.

use driftline_core::{
    answer::{Failure, FailureKind, LookUp},
    api::Api,
    post::PostKind,
    upstream_id::UpstreamId,
};
use driftline_runtime::now_ms;
use driftline_store::{
    GoneProof, SourceKey, Store, StoreError, Tx,
    control_posts::{ControlPosts, control_posts},
};
use driftline_upstream::Upstream;

use crate::{
    look_up_abilities::LookUpAbilities,
    quotas::{Permit, Quota},
};

/// The reader whose look-up found nothing.
#[derive(Clone, Copy)]
pub(crate) struct AbsenceProof<'a> {
    pub(crate) store: &'a Store,
    pub(crate) client: &'a Upstream,
    pub(crate) quota: &'a Quota,
    pub(crate) abilities: &'a LookUpAbilities,
    /// The source whose posts serve as controls.
    pub(crate) source: SourceKey,
}

impl AbsenceProof<'_> {
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
        let credential = self.quota.credential.key();
        let known = self.abilities.finds(self.store, credential, controls.kind);
        let known = known.await?;
        if known == Some(false) {
            return Ok(Ok(GoneProof::Nothing));
        }
        self.by(&controls, known == Some(true)).await
    }

    async fn by(
        self,
        controls: &ControlPosts,
        is_proven: bool,
    ) -> Result<Result<GoneProof, Failure>, StoreError> {
        let kind = controls.kind;
        let has_reader = self.quota.credential.token.is_some();
        let mut proof = match kind {
            PostKind::Boost if !controls.is_original_deleted => GoneProof::Hidden,
            _ => GoneProof::Deleted,
        };
        if kind == PostKind::Post && has_reader && !controls.of_author.is_empty() {
            match self.find_one(kind, &controls.of_author).await? {
                Ok(Some(_)) => return Ok(Ok(GoneProof::Deleted)),
                // The author may be hidden from the reader.
                Ok(None) => proof = GoneProof::Hidden,
                Err(failure) => return Ok(Err(failure)),
            }
        }
        if is_proven {
            return Ok(Ok(proof));
        }
        match self.find_one(kind, &controls.of_others).await? {
            Ok(Some(_)) => Ok(Ok(proof)),
            Ok(None) => {
                // One control may have been deleted since it was shown.
                if controls.of_others.len() > 1 {
                    self.learn(kind, false).await?;
                }
                Ok(Ok(GoneProof::Nothing))
            }
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// The first of these posts that a look-up finds.
    async fn find_one(
        self,
        kind: PostKind,
        ids: &[UpstreamId],
    ) -> Result<Result<Option<&UpstreamId>, Failure>, StoreError> {
        for id in ids {
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
            match self.client.look_up(id).await {
                Ok((found, headers)) => {
                    self.quota.answered(charge, 1, &headers).await?;
                    if let LookUp::Found(_) = found {
                        self.learn(kind, true).await?;
                        return Ok(Ok(Some(id)));
                    }
                }
                Err(failure) => {
                    self.quota.failed(charge, &failure).await?;
                    return Ok(Err(failure));
                }
            }
        }
        Ok(Ok(None))
    }

    async fn learn(self, kind: PostKind, finds: bool) -> Result<(), StoreError> {
        let credential = self.quota.credential.key();
        self.abilities
            .learn(self.store, credential, kind, finds)
            .await
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
