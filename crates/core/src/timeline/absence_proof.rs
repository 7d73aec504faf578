//! The decision about the proof in a 404 for a post, without I/O.
//!
//! Servers answer 404 for posts that they hide from this reader (blocks, suspensions). Some answer
//! it for every boost, or for every post. So a 404 counts only if a look-up finds a live post: a
//! *control*. A credential that has found no live post of the kind proves nothing. With a token, a
//! post by the same author must be found, because the author may have blocked the reader. An
//! unboost is not a deletion.
//!
//! Controls are looked up again for each proof. An earlier result does not exclude a later block.

use std::collections::VecDeque;

use super::session::GoneProof;
use crate::{post::PostKind, upstream_id::UpstreamId};

/// The posts that a look-up should find if the post in question is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlPosts {
    /// The kind of the post in question.
    pub kind: PostKind,
    /// True if the post in question is a boost of a deleted post.
    pub is_original_deleted: bool,
    /// Other posts by its author; empty for a boost. Posts that everyone may see and the source
    /// lists come first.
    pub of_author: Vec<UpstreamId>,
    /// Other posts of its kind that pages have just shown.
    pub of_others: Vec<UpstreamId>,
}

/// A proof in progress. The shell looks up controls until the proof is over.
#[derive(Debug, Clone)]
pub struct AbsenceProof {
    /// The controls to look up, each with the proof that results if it is found.
    controls: VecDeque<(UpstreamId, GoneProof)>,
    /// The result once no control is left.
    proof: GoneProof,
    /// True if look-ups find no posts of the kind in case no control is found.
    disproves: bool,
    learned: Option<bool>,
}

/// The next step of a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofStep {
    /// Look up this control.
    LookUp(UpstreamId),
    /// The proof is over.
    Over {
        /// The result.
        proof: GoneProof,
        /// The ability of look-ups with this credential to find posts of the kind, if the controls
        /// have shown it.
        finds: Option<bool>,
    },
}

impl AbsenceProof {
    /// Starts a proof. `finds` is the known ability of the credential: true if its look-ups find
    /// posts of the kind, false if not, `None` if unknown.
    pub fn new(controls: ControlPosts, has_token: bool, finds: Option<bool>) -> Self {
        let ControlPosts {
            kind,
            is_original_deleted,
            of_author,
            of_others,
        } = controls;
        let asks_for_author = kind == PostKind::Post && has_token && !of_author.is_empty();
        let proof = match kind {
            PostKind::Boost if !is_original_deleted => GoneProof::Hidden,
            // No post of the author is found, so the author may be hidden from the reader.
            _ if asks_for_author => GoneProof::Hidden,
            _ => GoneProof::Deleted,
        };
        let mut proof_of = Self {
            controls: VecDeque::new(),
            proof: GoneProof::Nothing,
            // One control may have been deleted since it was shown.
            disproves: of_others.len() > 1,
            learned: None,
        };
        if finds == Some(false) {
            return proof_of;
        }
        if asks_for_author {
            let deleted = of_author.into_iter().map(|id| (id, GoneProof::Deleted));
            proof_of.controls.extend(deleted);
        }
        if finds == Some(true) {
            proof_of.proof = proof;
            proof_of.disproves = false;
        } else {
            let others = of_others.into_iter().map(|id| (id, proof));
            proof_of.controls.extend(others);
        }
        proof_of
    }

    /// Returns the next step.
    pub fn step(&self) -> ProofStep {
        match self.controls.front() {
            Some((id, _)) => ProofStep::LookUp(id.clone()),
            None => ProofStep::Over {
                proof: self.proof,
                finds: self.learned,
            },
        }
    }

    /// Records the look-up of the present step's control.
    pub fn answered(&mut self, is_found: bool) {
        let Some((_, proof)) = self.controls.pop_front() else {
            return;
        };
        if is_found {
            self.controls.clear();
            self.proof = proof;
            self.learned = Some(true);
        } else if self.controls.is_empty() && self.disproves {
            self.learned = Some(false);
        }
    }
}
