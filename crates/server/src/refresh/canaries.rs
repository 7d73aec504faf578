//! Posts that upstreams have shown, by which an upstream's silence or refusal is told from a post's.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use driftline_core::upstream_id::UpstreamId;
use driftline_store::CredentialId;

/// What each credential was last shown in this process.
#[derive(Debug, Default)]
pub(super) struct Canaries(Mutex<HashMap<CredentialId, Canary>>);

#[derive(Debug, Default)]
struct Canary {
    /// The one to ask first first.
    posts: VecDeque<UpstreamId>,
    /// Refusals (403) in a row that no answer stands beside.
    refusals: u32,
}

impl Canaries {
    /// A credential was answered, and shown that post.
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

    /// A post that the credential was shown, other than these.
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

    /// A canary was asked for in vain. It may be at fault itself: another is asked for the next
    /// time.
    pub(super) fn failed(&self, credential: CredentialId, post: &UpstreamId) {
        self.with(credential, |canary| {
            if let Some(at) = canary.posts.iter().position(|other| other == post)
                && let Some(post) = canary.posts.remove(at)
            {
                canary.posts.push_back(post);
            }
        });
    }

    /// A credential was refused, and nothing speaks for it. Whether that is once too often.
    pub(super) fn is_refused_again(&self, credential: CredentialId) -> bool {
        self.with(credential, |canary| {
            canary.refusals = canary.refusals.saturating_add(1);
            canary.refusals >= MAX_REFUSALS
        })
    }

    /// Forgets what a credential was shown.
    pub(super) fn forget(&self, credential: CredentialId) {
        self.with(credential, |canary| *canary = Canary::default());
    }

    fn with<T>(&self, credential: CredentialId, then: impl FnOnce(&mut Canary) -> T) -> T {
        // A canary is whole after each of its changes.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        then(all.entry(credential).or_default())
    }
}

/// So many posts in a row are not hidden by random from a credential that was never answered.
const MAX_REFUSALS: u32 = 3;
const MAX_POSTS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_no_witness_of_itself() {
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
