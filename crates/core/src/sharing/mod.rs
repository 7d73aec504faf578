//! Work that several processes share: who does what.
//!
//! Each process computes the same division of all pieces from the same view of members and holders,
//! and does its own part of it: it gives back what it holds and is another's, and claims what is its
//! own and free. So no two processes claim one piece or both give one up, as long as they see the
//! same; leases keep them apart when they do not.

mod division;

pub use division::Division;

/// A process that takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name, unique among the members: the order of names decides between equals.
    pub name: String,
    /// Its weight: with twice the weight of another it takes twice as much.
    pub share: u32,
    /// Whether it gives up all work.
    pub is_draining: bool,
}

/// A piece of work, as the members see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work<K> {
    /// What it is. Members agree on the order of keys.
    pub key: K,
    /// The name of who holds it.
    pub holder: Option<String>,
    /// The names of those who cannot do it now. What no member can do counts in nobody's share.
    pub refused_by: Vec<String>,
}

/// What a member is to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moves<K> {
    /// What nobody holds and is to be claimed.
    pub claim: Vec<K>,
    /// What it holds and is another's, or nobody's.
    pub give_back: Vec<K>,
    /// What is its own once the holder gives it back.
    pub awaited: Vec<K>,
}

impl<K> Default for Moves<K> {
    fn default() -> Self {
        Self {
            claim: Vec::new(),
            give_back: Vec::new(),
            awaited: Vec::new(),
        }
    }
}
