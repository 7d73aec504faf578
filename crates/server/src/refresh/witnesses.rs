//! Posts that upstreams have shown, by which an upstream's silence or refusal is told from a post's.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use driftline_core::upstream_id::UpstreamId;
use driftline_store::CredentialId;

/// What each credential was last shown in this process.
#[derive(Debug, Default)]
pub(super) struct Witnesses(Mutex<HashMap<CredentialId, Witness>>);

#[derive(Debug, Default)]
struct Witness {
    /// The one to ask first first.
    posts: VecDeque<UpstreamId>,
    /// Refusals (403) in a row that no answer stands beside.
    refusals: u32,
}

impl Witnesses {
    /// A credential was answered, and shown that post.
    pub(super) fn answered(&self, credential: CredentialId, shown: Option<&UpstreamId>) {
        self.with(credential, |witness| {
            witness.refusals = 0;
            if let Some(shown) = shown
                && !witness.posts.contains(shown)
            {
                witness.posts.push_front(shown.clone());
                witness.posts.truncate(MOST_POSTS);
            }
        });
    }

    /// A post that the credential was shown, other than these.
    pub(super) fn apart_from(
        &self,
        credential: CredentialId,
        posts: &[UpstreamId],
    ) -> Option<UpstreamId> {
        self.with(credential, |witness| {
            let mut others = witness.posts.iter();
            others.find(|post| !posts.contains(post)).cloned()
        })
    }

    /// A witness was asked for in vain. It may be at fault itself: another is asked for the next
    /// time.
    pub(super) fn failed(&self, credential: CredentialId, post: &UpstreamId) {
        self.with(credential, |witness| {
            if let Some(at) = witness.posts.iter().position(|other| other == post)
                && let Some(post) = witness.posts.remove(at)
            {
                witness.posts.push_back(post);
            }
        });
    }

    /// A credential was refused, and nothing speaks for it. Whether that is once too often.
    pub(super) fn is_refused_again(&self, credential: CredentialId) -> bool {
        self.with(credential, |witness| {
            witness.refusals = witness.refusals.saturating_add(1);
            witness.refusals >= MOST_REFUSALS
        })
    }

    /// Forgets what a credential was shown.
    pub(super) fn forget(&self, credential: CredentialId) {
        self.with(credential, |witness| *witness = Witness::default());
    }

    fn with<T>(&self, credential: CredentialId, then: impl FnOnce(&mut Witness) -> T) -> T {
        // A witness is whole after each of its changes.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        then(all.entry(credential).or_default())
    }
}

/// So many posts in a row are not hidden by chance from a credential that was never answered.
const MOST_REFUSALS: u32 = 3;
const MOST_POSTS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_no_witness_of_itself() {
        let witnesses = Witnesses::default();
        let mine = CredentialId::from(7);
        let others = CredentialId::from(8);
        assert_eq!(witnesses.apart_from(mine, &[]), None);
        witnesses.answered(mine, Some(&"5".into()));
        witnesses.answered(mine, None);
        assert_eq!(witnesses.apart_from(mine, &["6".into()]), Some("5".into()));
        assert_eq!(witnesses.apart_from(mine, &["5".into()]), None);
        assert_eq!(witnesses.apart_from(others, &[]), None);
        witnesses.answered(mine, Some(&"6".into()));
        assert_eq!(witnesses.apart_from(mine, &[]), Some("6".into()));
        witnesses.failed(mine, &"6".into());
        assert_eq!(witnesses.apart_from(mine, &[]), Some("5".into()));
        assert_eq!(witnesses.apart_from(mine, &["5".into()]), Some("6".into()));
        witnesses.forget(mine);
        assert_eq!(witnesses.apart_from(mine, &[]), None);
    }

    #[test]
    fn an_answer_ends_a_row_of_refusals() {
        let witnesses = Witnesses::default();
        let mine = CredentialId::from(7);
        assert!(!witnesses.is_refused_again(mine));
        assert!(!witnesses.is_refused_again(mine));
        witnesses.answered(mine, None);
        assert!(!witnesses.is_refused_again(mine));
        assert!(!witnesses.is_refused_again(mine));
        assert!(witnesses.is_refused_again(mine));
    }
}
