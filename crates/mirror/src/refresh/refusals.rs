use std::collections::{HashMap, HashSet};

use driftline_store::{CredentialId, refresh::LookupTarget};
use parking_lot::Mutex;

/// The posts that each credential of this process was refused (403) since its last answer: one such
/// post may be hidden, many show that the upstream rejects the credential.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<CredentialId, HashSet<LookupTarget>>>);

impl Refusals {
    /// The credential was answered.
    pub(super) fn answered(&self, credential: CredentialId) {
        self.with(credential, HashSet::clear);
    }

    /// Whether the credential was refused nothing since its last answer.
    pub(super) fn is_clear(&self, credential: CredentialId) -> bool {
        self.with(credential, |refused| refused.is_empty())
    }

    /// Records refusals of posts that were requested alone. Returns whether there are too many, and
    /// then begins again.
    pub(super) fn are_too_many(&self, credential: CredentialId, posts: &[LookupTarget]) -> bool {
        self.with(credential, |refused| {
            refused.extend(posts);
            let are_too_many = refused.len() >= MAX_POSTS;
            if are_too_many {
                refused.clear();
            }
            are_too_many
        })
    }

    fn with<T>(
        &self,
        credential: CredentialId,
        then: impl FnOnce(&mut HashSet<LookupTarget>) -> T,
    ) -> T {
        then(self.0.lock().entry(credential).or_default())
    }
}

/// So many posts in a row are unlikely to be hidden.
const MAX_POSTS: usize = 5;

#[cfg(test)]
mod tests {
    use driftline_store::LocalId;

    use super::*;

    #[test]
    fn only_different_posts_in_a_row_count() {
        let refusals = Refusals::default();
        let mine = CredentialId::from(7);
        let post = |id| LookupTarget::Stored(LocalId::from(id));
        let are_too_many = |id| refusals.are_too_many(mine, &[post(id)]);
        assert!((0..9).all(|_| !are_too_many(1)), "one post");
        assert!((1..5).all(|id| !are_too_many(id)));
        refusals.answered(mine);
        assert!(refusals.is_clear(mine));
        assert!((1..5).all(|id| !are_too_many(id)), "an answer ends the row");
        assert!(!refusals.is_clear(mine));
        assert!(are_too_many(5) && refusals.is_clear(mine));
        assert!(refusals.is_clear(CredentialId::from(8)));
    }
}
