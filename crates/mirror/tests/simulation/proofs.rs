//! The shell of `AbsenceProof` under virtual time, and a copy of the refresh worker's `gone_check`.

use std::collections::HashMap;

use driftline_core::{
    answer::{Failure, Finding, LookUp, LookUps},
    post::PostKind,
    timeline::{AbsenceProof, ProofStep},
    upstream_id::UpstreamId,
};
use driftline_sim::Upstream;
use driftline_store::{
    GoneProof, SourceId, SourceKey, Store, StoreError,
    control_posts::control_posts,
    refresh::{AnsweredLookup, DuePost, LookupAnswer, LookupTarget},
};

use crate::answers::Access;

/// What is known of look-ups, by kind of post: whether they find live ones, and since when.
#[derive(Debug, Default)]
pub(crate) struct Proofs(HashMap<PostKind, (bool, i64)>);

/// Who asks.
pub(crate) struct Asker<'a> {
    pub(crate) store: &'a Store,
    pub(crate) upstream: &'a mut Upstream,
    pub(crate) access: Access,
    pub(crate) source: SourceKey,
    /// Goes on with each answer.
    pub(crate) now_ms: i64,
}

impl Proofs {
    /// What it proves that the upstream says that a post does not exist.
    pub(crate) fn of(
        &mut self,
        asker: &mut Asker<'_>,
        id: &UpstreamId,
    ) -> Result<GoneProof, Failure> {
        let (source, asked) = (asker.source, id.clone());
        let controls = asker.store.read_blocking(move |tx| {
            control_posts(tx, source, (driftline_store::Owner::Operator, true), &asked)
        });
        let controls = match controls {
            Ok(Some(controls)) => controls,
            Ok(None) | Err(StoreError::NoSource) => return Ok(GoneProof::Nothing),
            Err(error) => panic!("{error}"),
        };
        let kind = controls.kind;
        let has_token = !asker.access.token.is_empty();
        let known = self.finds(kind, asker.now_ms);
        let mut proof = AbsenceProof::new(controls, has_token, known);
        loop {
            match proof.step() {
                ProofStep::LookUp(control) => {
                    let (access, now_ms) = (asker.access, asker.now_ms);
                    let found = access.look_up(asker.upstream, now_ms, &control);
                    asker.now_ms = asker.upstream.received_at_ms();
                    proof.answered(matches!(found?, LookUp::Found(_)));
                }
                ProofStep::Over { proof, finds } => {
                    if let Some(finds) = finds {
                        self.learn(kind, finds, asker.now_ms);
                    }
                    return Ok(proof);
                }
            }
        }
    }

    pub(crate) fn learn(&mut self, kind: PostKind, finds: bool, now_ms: i64) {
        self.0.insert(kind, (finds, now_ms));
    }

    fn finds(&self, kind: PostKind, now_ms: i64) -> Option<bool> {
        let (finds, at_ms) = self.0.get(&kind).copied()?;
        let valid_ms = if finds { 86_400_000 } else { 3_600_000 };
        (now_ms - at_ms < valid_ms).then_some(finds)
    }

    /// Looks due posts up, except those of a kind that look-ups are known not to find. One that was
    /// left out before is asked for alone.
    pub(crate) fn look_ups(
        &self,
        access: Access,
        upstream: &mut Upstream,
        now_ms: i64,
        posts: &[DuePost],
    ) -> Result<LookUps, Failure> {
        let is_asked = |due: &&DuePost| {
            matches!(due.what, LookupTarget::Pending { .. })
                || self.finds(due.kind, now_ms) != Some(false)
        };
        let (asked, unfindable): (Vec<_>, Vec<_>) = posts.iter().partition(is_asked);
        let (alone, together): (Vec<_>, Vec<_>) =
            asked.into_iter().partition(|due| due.freshness.missing);
        let ids: Vec<UpstreamId> = together.into_iter().map(id_of).collect();
        let mut answer = access.look_ups(upstream, now_ms, &ids)?;
        let hidden = unfindable
            .into_iter()
            .map(|due| (id_of(due), Finding::Hidden));
        answer.findings.extend(hidden);
        for due in alone {
            let finding = match access.look_up(upstream, now_ms, &id_of(due)) {
                Ok(LookUp::Found(post)) => Finding::Found(post),
                Ok(LookUp::Gone) => Finding::Missing,
                Ok(LookUp::Hidden) => Finding::Hidden,
                Err(_) => continue,
            };
            answer.findings.push((id_of(due), finding));
        }
        Ok(answer)
    }

    /// Turns answers that would delete posts, and prove no deletion, into answers that hide them.
    pub(crate) fn check(
        &mut self,
        asker: &mut Asker<'_>,
        posts: &[DuePost],
        answers: &mut [AnsweredLookup],
    ) {
        for answered in &*answers {
            if let LookupAnswer::Found(post) = &answered.answer {
                self.learn(post.kind(), true, asker.now_ms);
            }
        }
        for answered in answers {
            let due = posts.iter().find(|due| due.what == answered.what);
            let is_final = |due: &&DuePost| {
                answered.answer == LookupAnswer::Missing
                    && due.freshness.missing
                    && due.is_open
                    && matches!(due.what, LookupTarget::Stored(_))
            };
            let Some(due) = due.filter(is_final) else {
                continue;
            };
            let proof = match due.freshness.source.map(SourceId::from) {
                Some(id) => {
                    asker.source.id = id;
                    self.of(asker, &id_of(due))
                }
                None => Ok(GoneProof::Nothing),
            };
            answered.answer = match proof {
                Ok(GoneProof::Deleted | GoneProof::DeletedForAll) => LookupAnswer::Missing,
                Ok(GoneProof::Hidden | GoneProof::Nothing) => LookupAnswer::Hidden,
                Err(_) => LookupAnswer::Nothing,
            };
        }
    }
}

fn id_of(due: &DuePost) -> UpstreamId {
    UpstreamId::from(due.upstream_id.as_str())
}
