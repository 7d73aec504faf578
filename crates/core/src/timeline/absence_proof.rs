//! What it proves that a server answers 404 for a post: the decision, without I/O.
//!
//! Servers answer so for what they do not show this reader (blocks, suspensions), and some for every
//! boost, or for every post. So such an answer counts only next to one for a live post: a *control*.
//! A credential that has found no live post of the kind proves nothing. With a token, a post by the
//! same author has to be found, for the author may have blocked the reader. An unboost is no deletion.
//!
//! A control is looked up after the post each time: one that was found before says nothing of a block
//! that came in between.

use std::collections::VecDeque;

use super::session::GoneProof;
use crate::{post::PostKind, upstream_id::UpstreamId};

/// The posts that show what a look-up that did not find a post is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlPosts {
    /// What the post in question is to look-ups.
    pub kind: PostKind,
    /// Whether the post that it boosts is known to be deleted.
    pub is_original_deleted: bool,
    /// Others by its author, if it is no boost: those first that anyone may see and the source lists.
    pub of_author: Vec<UpstreamId>,
    /// Others of its kind, which pages have just shown.
    pub of_others: Vec<UpstreamId>,
}

/// A proof in progress: whoever carries it out looks controls up until the proof is over.
#[derive(Debug, Clone)]
pub struct AbsenceProof {
    /// The controls to look up, each with what it proves if it is found.
    controls: VecDeque<(UpstreamId, GoneProof)>,
    /// What is proven once none is left.
    proof: GoneProof,
    /// Whether it shows that look-ups find no posts of the kind, if none of them is found.
    disproves: bool,
    learned: Option<bool>,
}

/// The next step of a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofStep {
    /// Look this control up.
    LookUp(UpstreamId),
    /// It is over.
    Over {
        /// What is proven.
        proof: GoneProof,
        /// Whether look-ups with this credential find posts of the kind, if the controls have shown it.
        finds: Option<bool>,
    },
}

impl AbsenceProof {
    /// A proof by a credential, with a token or without, that is known to find posts of the kind, or not to, or of
    /// which neither is known.
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
            // None of the author's is found: the author may be hidden from the reader.
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

    /// What to do next.
    pub fn step(&self) -> ProofStep {
        match self.controls.front() {
            Some((id, _)) => ProofStep::LookUp(id.clone()),
            None => ProofStep::Over {
                proof: self.proof,
                finds: self.learned,
            },
        }
    }

    /// The control of the present step was found, or was not.
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
