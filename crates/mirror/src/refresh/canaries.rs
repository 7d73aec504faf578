//! Canary posts: posts that upstreams have shown, which distinguish a failure of the upstream or the
//! credential from a failure of one post.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use driftline_core::upstream_id::UpstreamId;
use driftline_store::CredentialId;

/// The canary posts of each credential in this process.
#[derive(Debug, Default)]
pub(super) struct Canaries(Mutex<HashMap<CredentialId, CredentialCanaries>>);

#[derive(Debug, Default)]
struct CredentialCanaries {
    /// In the order in which to request them.
    posts: VecDeque<UpstreamId>,
    /// Refusals (403) in a row without a successful answer.
    refusals: u32,
}

impl Canaries {
    /// Records an answer to a credential, and a post in it.
    pub(super) fn answered(&self, credential: CredentialId, shown: Option<&UpstreamId>) {
        self.with(credential, |canary| {
            canary.refusals = 0;
            if let Some(shown) = shown
                && !canary.posts.contains(shown)
            {
                canary.posts.push_front(shown.clone());
                canary.posts.truncate(MAX_POSTS);
            }
        });
    }

    /// A canary of the credential that is none of these posts.
    pub(super) fn apart_from(
        &self,
        credential: CredentialId,
        posts: &[UpstreamId],
    ) -> Option<UpstreamId> {
        self.with(credential, |canary| {
            let mut others = canary.posts.iter();
            others.find(|post| !posts.contains(post)).cloned()
        })
    }

    /// Records that a canary failed. The canary itself may be the cause, so another one is next.
    pub(super) fn failed(&self, credential: CredentialId, post: &UpstreamId) {
        self.with(credential, |canary| {
            if let Some(at) = canary.posts.iter().position(|other| other == post)
                && let Some(post) = canary.posts.remove(at)
            {
                canary.posts.push_back(post);
            }
        });
    }

    /// Records a refusal of a credential. Returns whether there were too many in a row.
    pub(super) fn is_refused_again(&self, credential: CredentialId) -> bool {
        self.with(credential, |canary| {
            canary.refusals = canary.refusals.saturating_add(1);
            canary.refusals >= MAX_REFUSALS
        })
    }

    /// Forgets the canaries of a credential.
    pub(super) fn forget(&self, credential: CredentialId) {
        self.with(credential, |canary| *canary = CredentialCanaries::default());
    }

    fn with<T>(
        &self,
        credential: CredentialId,
        then: impl FnOnce(&mut CredentialCanaries) -> T,
    ) -> T {
        // The map is consistent even if a holder of the lock panicked.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        then(all.entry(credential).or_default())
    }
}

/// So many refusals in a row are unlikely to be hidden posts only.
const MAX_REFUSALS: u32 = 3;
const MAX_POSTS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_not_its_own_canary() {
        let canaries = Canaries::default();
        let mine = CredentialId::from(7);
        let others = CredentialId::from(8);
        assert_eq!(canaries.apart_from(mine, &[]), None);
        canaries.answered(mine, Some(&"5".into()));
        canaries.answered(mine, None);
        assert_eq!(canaries.apart_from(mine, &["6".into()]), Some("5".into()));
        assert_eq!(canaries.apart_from(mine, &["5".into()]), None);
        assert_eq!(canaries.apart_from(others, &[]), None);
        canaries.answered(mine, Some(&"6".into()));
        assert_eq!(canaries.apart_from(mine, &[]), Some("6".into()));
        canaries.failed(mine, &"6".into());
        assert_eq!(canaries.apart_from(mine, &[]), Some("5".into()));
        assert_eq!(canaries.apart_from(mine, &["5".into()]), Some("6".into()));
        canaries.forget(mine);
        assert_eq!(canaries.apart_from(mine, &[]), None);
    }

    #[test]
    fn an_answer_ends_a_row_of_refusals() {
        let canaries = Canaries::default();
        let mine = CredentialId::from(7);
        assert!(!canaries.is_refused_again(mine));
        assert!(!canaries.is_refused_again(mine));
        canaries.answered(mine, None);
        assert!(!canaries.is_refused_again(mine));
        assert!(!canaries.is_refused_again(mine));
        assert!(canaries.is_refused_again(mine));
    }
}
