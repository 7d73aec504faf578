//! Due posts, as claims contain them.

use driftline_core::{
    post::PostKind,
    refresh::{Freshness, LookupOutcome},
};

use super::{lookup_access::LookupAccess, schedule::Slot};
use crate::{
    id_types::{LocalId, SourceKey},
    posts::content_scope::ContentScope,
};

/// A post that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct DuePost {
    /// The target of the look-up.
    pub what: LookupTarget,
    /// Its ID at the upstream.
    pub upstream_id: String,
    /// Its due time in Unix ms.
    pub due_at_ms: i64,
    /// Its freshness by its answers.
    pub freshness: Freshness,
    /// The outcome of its last look-up; `None` for a pending one.
    pub last_outcome: Option<LookupOutcome>,
    /// True if it is visible to everyone at the upstream.
    pub is_open: bool,
    /// Its kind for look-ups.
    pub kind: PostKind,
    /// The credentials with which it may be looked up.
    pub access: LookupAccess,
    /// The scope of its content when it was claimed. Answers have the same scope.
    pub(crate) scope: ContentScope,
    pub(crate) slot: Slot,
}

/// The target of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LookupTarget {
    /// A stored post.
    Stored(LocalId),
    /// A post that was requested by its upstream ID and is not stored yet.
    Pending {
        /// The pending look-up's ID.
        lookup_id: i64,
        /// The source that stores it.
        source: SourceKey,
    },
}
