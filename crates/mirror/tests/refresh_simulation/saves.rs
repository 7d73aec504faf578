//! Saves of answers, in the commits of the pipeline.

use std::{collections::HashMap, sync::Arc};

use driftline_core::{refresh::LookupOutcome, upstream_id::UpstreamId};
use driftline_store::{
    StoreError, block_on,
    refresh::{AnsweredLookup, Claim, LookupAnswer, LookupTarget, Save},
    source,
    tracked::hydrate,
};
use rand::RngExt;

use super::Simulation;

impl Simulation {
    pub(super) fn save(&mut self, claim: Claim, answers: Vec<AnsweredLookup>) {
        let ends_ms = claim.until_ms;
        let named: HashMap<LookupTarget, UpstreamId> = claim
            .posts
            .iter()
            .map(|due| (due.what, UpstreamId::from(due.upstream_id.as_str())))
            .collect();
        let by_what: HashMap<LookupTarget, AnsweredLookup> = answers
            .iter()
            .map(|answered| (answered.what, answered.clone()))
            .collect();
        let save = Save {
            claim,
            answers,
            put_off: Vec::new(),
            policy: Arc::clone(&self.policy),
            keep_deleted: true,
            now_ms: self.now_ms,
            random: self.rng.random(),
        };
        match block_on(self.claims.save(&self.store, save)) {
            Ok(saved) => {
                assert!(self.now_ms < ends_ms, "a late holder saved");
                self.postponed += saved.postponed;
                for (what, outcome) in saved.outcomes {
                    let id = named[&what].clone();
                    let answered = &by_what[&what];
                    match (outcome, &answered.answer) {
                        (
                            LookupOutcome::Updated | LookupOutcome::Unchanged,
                            LookupAnswer::Found(post),
                        ) => {
                            let at_ms = answered.asked_at_ms;
                            self.due_times.answered(&id, post.created_at_ms, at_ms);
                            self.answered(id, at_ms, post.counts.favourites);
                        }
                        (LookupOutcome::Superseded, _) => {}
                        (LookupOutcome::Deleted | LookupOutcome::Hidden, _) => {
                            // A pending look-up that is given up deletes nothing.
                            let is_stored = matches!(what, LookupTarget::Stored(_));
                            if outcome == LookupOutcome::Deleted && is_stored {
                                self.check_deletion(&id);
                            }
                            self.due_times.forget(&id);
                            self.deleted.insert(id);
                        }
                        _ => self.due_times.forget(&id),
                    }
                }
            }
            // Its process died meanwhile, or its time was over.
            Err(StoreError::LeaseLost) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn answered(&mut self, id: UpstreamId, asked_ms: i64, favourites: Option<i64>) {
        if let Some((before_ms, _)) = self.newest.get(&id) {
            assert!(*before_ms <= asked_ms, "an older answer won: {id}");
        }
        self.newest.insert(id, (asked_ms, favourites));
    }

    /// Stores the found posts of pending look-ups, in a commit of its own.
    pub(super) fn hydrate(&mut self, answers: &[AnsweredLookup]) {
        let mut is_empty = true;
        for answered in answers {
            let (LookupTarget::Pending { .. }, LookupAnswer::Found(post)) =
                (answered.what, &answered.answer)
            else {
                continue;
            };
            is_empty = false;
            let asked_ms = &answered.asked_at_ms;
            let known = self.newest.get(&post.id);
            if known.is_none() {
                // Another worker may have stored it, when this one's claim had ended.
                self.due_times
                    .answered(&post.id, post.created_at_ms, *asked_ms);
            }
            if known.is_none_or(|(before_ms, _)| before_ms <= asked_ms) {
                let newest = (*asked_ms, post.counts.favourites);
                self.newest.entry(post.id.clone()).or_insert(newest);
            }
        }
        if is_empty {
            return;
        }
        let (source, policy, now_ms) = (self.source, Arc::clone(&self.policy), self.now_ms);
        let answers = answers.to_vec();
        self.store
            .write_blocking(source::root(source), move |tx| {
                hydrate(tx, source, &answers, &policy, now_ms)
            })
            .unwrap();
    }
}
