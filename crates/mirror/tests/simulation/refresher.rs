//! Look-ups of stored posts next to the polls, as one refresh worker makes
//! them.

use std::sync::Arc;

use driftline_core::{
    answer::{Failure, Finding, LookUps},
    refresh::{AgeBand, AgeTable, BatchRule, LookupOutcome, Policy},
    upstream_id::UpstreamId,
};
use driftline_sim::Upstream;
use driftline_store::{
    SourceKey, StoreError, block_on,
    refresh::{
        AnsweredLookup, Claim, ClaimRequest, Claimed, Claims, DuePost, LookupAnswer, Save, Shards,
    },
};

use crate::{
    answers::Access,
    faults::{Broken, FaultyStore, Operation},
    laws::Laws,
    proofs::{Asker, Proofs},
    settings::{Drawn, MINUTE_MS, SECOND_MS},
};

pub(crate) struct Refresher {
    pub(crate) claims: Claims,
    pub(crate) policy: Arc<Policy>,
    source: SourceKey,
    shard: u64,
    next_ms: i64,
    asking: Option<Asking>,
    keep_deleted: bool,
    access: Access,
}

/// A batch that was asked for.
struct Asking {
    claim: Claim,
    sent_at_ms: i64,
    received_at_ms: i64,
    answer: Result<LookUps, Failure>,
}

impl Refresher {
    pub(crate) fn new(source: SourceKey, drawn: &Drawn) -> Self {
        let band = |below_ms, every_ms| AgeBand { below_ms, every_ms };
        let bands = vec![
            band(10 * MINUTE_MS, MINUTE_MS),
            band(120 * MINUTE_MS, 10 * MINUTE_MS),
        ];
        let ages = AgeTable::new(bands, 5 * MINUTE_MS).unwrap();
        let policy = if drawn.refreshes {
            Policy::of_ages(ages)
        } else {
            Policy::Never { ages }
        };
        Self {
            claims: Claims::default(),
            policy: Arc::new(policy),
            source,
            shard: 0,
            next_ms: if drawn.refreshes { 0 } else { i64::MAX },
            asking: None,
            keep_deleted: drawn.keep_deleted,
            access: drawn.access,
        }
    }

    /// The process died: claims and answers in hand are gone.
    pub(crate) fn die(&mut self) {
        self.claims = Claims::default();
        self.asking = None;
    }

    /// Takes in what was answered by now, or asks for what is due. `true` if
    /// something was saved.
    pub(crate) fn step(
        &mut self,
        store: &mut FaultyStore,
        upstream: &mut Upstream,
        (laws, proofs): (&mut Laws, &mut Proofs),
        now_ms: &mut i64,
    ) -> Result<bool, Broken> {
        if let Some(asking) = self
            .asking
            .take_if(|asking| asking.received_at_ms <= *now_ms)
        {
            self.save((store, upstream), (laws, proofs), asking, now_ms)?;
            return Ok(true);
        }
        if self.asking.is_some() || *now_ms < self.next_ms {
            return Ok(false);
        }
        self.next_ms = *now_ms + 5 * SECOND_MS;
        self.shard += 1;
        let ask = ClaimRequest {
            instance: self.source.instance,
            batch_rule: BatchRule::new(20, 2 * SECOND_MS),
            shard: self.shard,
            shards: Shards::ALL,
            holder: "worker".to_owned(),
            lease_ms: MINUTE_MS,
            now_ms: *now_ms,
            policy: Arc::clone(&self.policy),
        };
        let claims = self.claims.clone();
        let claimed = store.run(now_ms, Operation::RefreshClaim, |store| {
            block_on(claims.claim(store, ask))
        })?;
        if let Claimed::Batch(claim) = claimed {
            let sent_at_ms = *now_ms;
            let answer = proofs.look_ups(self.access, upstream, sent_at_ms, &claim.posts);
            self.asking = Some(Asking {
                claim,
                sent_at_ms,
                received_at_ms: upstream.received_at_ms(),
                answer,
            });
        }
        Ok(false)
    }

    fn save(
        &mut self,
        (store, upstream): (&mut FaultyStore, &mut Upstream),
        (laws, proofs): (&mut Laws, &mut Proofs),
        asking: Asking,
        now_ms: &mut i64,
    ) -> Result<(), Broken> {
        let Asking {
            claim, sent_at_ms, ..
        } = asking;
        let posts = claim.posts.clone();
        let mut answers = answers(&posts, asking.answer, sent_at_ms);
        let mut asker = Asker {
            store: store.plain(),
            upstream,
            access: self.access,
            source: self.source,
            now_ms: *now_ms,
        };
        proofs.check(&mut asker, &posts, &mut answers);
        *now_ms = asker.now_ms;
        let save = Save {
            claim,
            answers: answers.clone(),
            put_off: Vec::new(),
            policy: Arc::clone(&self.policy),
            keep_deleted: self.keep_deleted,
            now_ms: *now_ms,
            random: 7,
        };
        let claims = self.claims.clone();
        let saved = store.run(now_ms, Operation::RefreshSave, |store| {
            block_on(claims.save(store, save))
        });
        let saved = match saved {
            Ok(saved) => saved,
            // It was asked for too long.
            Err(Broken::Refused(StoreError::LeaseLost)) => return Ok(()),
            Err(broken) => return Err(broken),
        };
        for (what, outcome) in saved.outcomes {
            let post = posts.iter().find(|post| post.what == what);
            let answered = answers.iter().find(|answered| answered.what == what);
            let (Some(post), Some(answered)) = (post, answered) else {
                continue;
            };
            match (outcome, &answered.answer) {
                (LookupOutcome::Updated | LookupOutcome::Unchanged, LookupAnswer::Found(post)) => {
                    laws.shown_alive(post, sent_at_ms);
                    laws.told_counts(post);
                }
                (LookupOutcome::Deleted, _) => laws.reported_gone(&id_of(post), sent_at_ms),
                _ => {}
            }
        }
        Ok(())
    }
}

/// An answer without any post passes for none: the server asks others for a
/// second opinion then.
fn answers(
    posts: &[DuePost],
    answer: Result<LookUps, Failure>,
    asked_at_ms: i64,
) -> Vec<AnsweredLookup> {
    let mut findings = match answer {
        Ok(found) => found.findings,
        Err(_) => Vec::new(),
    };
    let is_found = |(_, finding): &(UpstreamId, Finding)| matches!(finding, Finding::Found(_));
    if !findings.iter().any(is_found) {
        findings.clear();
    }
    posts
        .iter()
        .map(|due| {
            let id = id_of(due);
            let at = findings.iter().position(|(found, _)| *found == id);
            AnsweredLookup {
                what: due.what,
                answer: match at.map(|at| findings.swap_remove(at).1) {
                    Some(Finding::Found(post)) => LookupAnswer::Found(post),
                    Some(Finding::Gone) => LookupAnswer::Gone,
                    Some(Finding::Hidden) => LookupAnswer::Hidden,
                    Some(Finding::Missing) => LookupAnswer::Missing,
                    None => LookupAnswer::Nothing,
                },
                asked_at_ms,
            }
        })
        .collect()
}

fn id_of(due: &DuePost) -> UpstreamId {
    UpstreamId::from(due.upstream_id.as_str())
}
