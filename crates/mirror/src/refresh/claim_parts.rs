//! The parts of a claim: the posts that one credential may ask for are looked up together.

use std::collections::HashSet;

use driftline_runtime::now_ms;
use driftline_store::{
    Owner,
    refresh::{AnsweredLookup, Claim, LookupAccess, LookupAnswer, LookupTarget},
};

use super::lookup_client::LookupClient;

/// A claim's posts that are still to be looked up, and what became of the others.
pub(super) struct ClaimParts<'c> {
    claim: &'c Claim,
    done: HashSet<LookupTarget>,
    pub(super) answers: Vec<AnsweredLookup>,
    /// Posts that are due later instead, Unix ms.
    pub(super) put_off: Vec<(LookupTarget, i64)>,
    /// When to go on after failures, Unix ms.
    pub(super) until_ms: Option<i64>,
    /// Whether a part was answered, or needed no answer.
    pub(super) is_answered: bool,
}

impl<'c> ClaimParts<'c> {
    pub(super) fn new(claim: &'c Claim) -> Self {
        Self {
            claim,
            done: HashSet::new(),
            answers: Vec::new(),
            put_off: Vec::new(),
            until_ms: None,
            is_answered: false,
        }
    }

    /// What is left of the claim that a credential may ask for. An account's asks for nothing that the world
    /// may see.
    pub(super) fn of(&self, lookup_client: &LookupClient) -> Claim {
        let credential = lookup_client.credential();
        self.claim.part(|due| {
            let is_spared = due.access.is_shared() && credential.owner != Owner::Operator;
            !self.done.contains(&due.what) && !is_spared && due.access.admits_credential(credential)
        })
    }

    /// The access of a post that is left.
    pub(super) fn next_access(&self) -> Option<LookupAccess> {
        let mut left = self.claim.posts.iter();
        let due = left.find(|due| !self.done.contains(&due.what))?;
        Some(due.access.clone())
    }

    /// A part was answered, with failures perhaps.
    pub(super) fn answered(&mut self, part: &Claim, answers: Vec<AnsweredLookup>) {
        self.is_answered = true;
        self.answers.extend(answers);
        self.done.extend(part.posts.iter().map(|due| due.what));
    }

    /// A part had no answer. An account's posts are put off, so that they hold up no others.
    pub(super) fn failed(&mut self, lookup_client: &LookupClient, part: &Claim, until_ms: i64) {
        self.until_ms = self.until_ms.max(Some(until_ms));
        self.done.extend(part.posts.iter().map(|due| due.what));
        if lookup_client.credential().owner != Owner::Operator {
            let due_at_ms = until_ms.max(now_ms() + FAILED_MS);
            let posts = part.posts.iter().map(|due| (due.what, due_at_ms));
            self.put_off.extend(posts);
        }
    }

    /// Posts with that access cannot be looked up before then, Unix ms.
    pub(super) fn put_off(&mut self, access: &LookupAccess, until_ms: i64) {
        for what in self.take(access) {
            self.put_off.push((what, until_ms));
        }
        self.is_answered = true;
    }

    /// Nobody who may ask for posts with that access has a credential.
    pub(super) fn without_credential(&mut self, access: &LookupAccess, now_ms: i64) {
        for what in self.take(access) {
            self.answers.push(AnsweredLookup {
                what,
                answer: LookupAnswer::NoCredential,
                asked_at_ms: now_ms,
            });
        }
        self.is_answered = true;
    }

    fn take(&mut self, access: &LookupAccess) -> Vec<LookupTarget> {
        let posts = self.claim.posts.iter();
        let left = posts.filter(|due| due.access == *access && !self.done.contains(&due.what));
        let left: Vec<LookupTarget> = left.map(|due| due.what).collect();
        self.done.extend(&left);
        left
    }
}

/// How long an account's posts that had no answer wait, ms.
const FAILED_MS: i64 = 60_000;
