//! Posts that are due, as claims hold them.

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
    /// What to look up.
    pub what: LookupTarget,
    /// Its ID at the upstream.
    pub upstream_id: String,
    /// When it was due, Unix ms.
    pub due_at_ms: i64,
    /// What its answers said.
    pub freshness: Freshness,
    /// The outcome of its last look-up; `None` for a pending one.
    pub last_outcome: Option<LookupOutcome>,
    /// True if anyone may see it at the upstream.
    pub is_open: bool,
    /// What it is to look-ups.
    pub kind: PostKind,
    /// With whose credentials it may be looked up.
    pub access: LookupAccess,
    /// The scope of its content when it was claimed: answers are of the same.
    pub(crate) scope: ContentScope,
    pub(crate) slot: Slot,
}

/// What a look-up is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LookupTarget {
    /// A stored post.
    Stored(LocalId),
    /// A post that was requested by its upstream ID and is not stored yet.
    Pending {
        /// The pending look-up's ID.
        lookup_id: i64,
        /// The source to store it in.
        source: SourceKey,
    },
}
