//! Looks up posts of a claim with one credential.

use std::{collections::HashMap, time::Duration};

use driftline_core::{
    answer::{AnswerHeaders, Failure, FailureKind, Finding, LookUps},
    refresh::{Bisection, Blame, LookupOutcome, may_blame_posts},
    upstream_id::UpstreamId,
};
use driftline_runtime::{now_ms, steady_ms};
use driftline_store::{
    StoreError,
    refresh::{AnsweredLookup, DuePost, LookupAnswer, LookupTarget},
};

use super::{Shared, lookup_client::LookupClient};
use crate::quotas::{Charge, Permit};

/// The result of looking posts up.
#[derive(Default)]
pub(super) struct LookupAnswers {
    /// The answers; posts without one stay due.
    pub(super) answers: Vec<AnsweredLookup>,
    /// The failure, if not all posts were answered.
    pub(super) failure: Option<Failure>,
    /// Posts that were refused alone (403), if nothing else was answered: the upstream may reject the
    /// credential.
    pub(super) refused: Vec<LookupTarget>,
}

/// The deadlines of a look-up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    /// No request is sent after this, ms by the process's monotonic clock.
    pub(super) last_ms: i64,
    /// No answer is waited for after this, likewise.
    pub(super) over_ms: i64,
}

impl Deadlines {
    /// The timeout of one request: some time is left to find out which post of the request causes a
    /// timeout.
    pub(super) fn timeout(self) -> Duration {
        let left_ms = self.over_ms.saturating_sub(steady_ms()).max(0) * 3 / 5;
        Duration::from_millis(left_ms.unsigned_abs())
    }

    /// Whether no more requests may be sent.
    pub(super) fn have_passed(self) -> bool {
        steady_ms() >= self.last_ms
    }
}

/// Looks posts up. The first request is already taken from the quota, with that charge. A part that
/// fails is halved, within the quota and the deadlines, until the posts at fault are alone.
/// `is_after_silence` says that the upstream gave no answer in the last turn.
pub(super) async fn look_up(
    shared: &Shared,
    lookup_client: &LookupClient,
    charge: Charge,
    posts: &[&DuePost],
    deadlines: Deadlines,
    is_after_silence: bool,
) -> Result<LookupAnswers, StoreError> {
    let failures = |due: &&DuePost| {
        if due.freshness.missing {
            // A list without the post may be a mistake: it is requested alone before it counts as gone.
            ALONE
        } else {
            due.freshness.failures
        }
    };
    let mut bisection = Bisection::new(posts.to_vec(), failures, is_after_silence);
    let mut found = LookupAnswers::default();
    let mut first = Some(charge);
    while let Some(part) = bisection.part() {
        let ids: Vec<UpstreamId> = part.iter().map(|due| id_of(due)).collect();
        let charge = match first.take() {
            Some(charge) => charge,
            None if deadlines.have_passed() => break,
            None => match lookup_client.take(ids.len()).await? {
                Permit::Sent(charge) => charge,
                Permit::Until(_) => break,
            },
        };
        let timeout = deadlines.timeout();
        match lookup_client.ask(shared, charge, &ids, timeout).await? {
            Ok(answer) => found.answers.extend(matched(&bisection.answered(), answer)),
            Err(failure) => {
                bisection.failed(failure.kind);
                found.failure = Some(failure);
            }
        }
    }
    if let Some(charge) = first {
        lookup_client.quota.put_back(charge).await?;
    }
    found.blame(shared, lookup_client, bisection);
    Ok(found)
}

impl LookupAnswers {
    /// The kind of the failure.
    pub(super) fn kind(&self) -> Option<FailureKind> {
        self.failure.as_ref().map(|failure| failure.kind)
    }

    /// Whether no post got a usable answer.
    pub(super) fn is_silent(&self) -> bool {
        let mut answers = self.answers.iter();
        !answers.any(|answered| answered.answer.is_usable())
    }

    /// Adds the results of the posts without an answer.
    fn blame(
        &mut self,
        shared: &Shared,
        lookup_client: &LookupClient,
        bisection: Bisection<&DuePost>,
    ) {
        let (works, is_forbidden) = (bisection.has_answers(), bisection.is_forbidden());
        let Blame {
            mut failed,
            forbidden,
            suspects,
            is_cut_short,
        } = bisection.end();
        // Failures of single posts are no failure of the upstream if other posts were answered.
        if works && !is_cut_short {
            self.failure
                .take_if(|failure| may_blame_posts(failure.kind));
        }
        let hidden = if works {
            forbidden
        } else {
            let is_clear = shared.refusals.is_clear(lookup_client.credential().id);
            let (hidden, refused): (Vec<_>, Vec<_>) = forbidden.into_iter().partition(|due| {
                // The second refusal, with an answer to another post in between.
                let is_second = is_clear && due.freshness.failures > 0;
                is_second || due.last_outcome == Some(LookupOutcome::Hidden)
            });
            if is_forbidden {
                self.refused = refused.iter().map(|due| due.what).collect();
            }
            failed.extend(refused);
            hidden
        };
        for (posts, answer) in [
            (hidden, LookupAnswer::Hidden),
            (failed, LookupAnswer::Nothing),
            (suspects, LookupAnswer::Suspect),
        ] {
            self.answers
                .extend(posts.into_iter().map(|due| AnsweredLookup {
                    what: due.what,
                    answer: answer.clone(),
                    asked_at_ms: now_ms(),
                }));
        }
    }
}

/// More failures than any batch can be halved.
const ALONE: u32 = 31;

fn id_of(due: &DuePost) -> UpstreamId {
    UpstreamId::from(due.upstream_id.as_str())
}

/// Each post with its finding; a post that the answer leaves out is missing.
fn matched<'a>(part: &'a [&DuePost], found: LookUps) -> impl Iterator<Item = AnsweredLookup> + 'a {
    let LookUps { findings, headers } = found;
    let AnswerHeaders { sent_at_ms, .. } = headers;
    let findings: HashMap<UpstreamId, Finding> = findings.into_iter().collect();
    part.iter().map(move |due| AnsweredLookup {
        what: due.what,
        answer: match findings.get(&id_of(due)).cloned() {
            Some(Finding::Found(post)) => LookupAnswer::Found(post),
            Some(Finding::Gone) => LookupAnswer::Gone,
            Some(Finding::Hidden) => LookupAnswer::Hidden,
            Some(Finding::Missing) | None => LookupAnswer::Missing,
        },
        asked_at_ms: sent_at_ms,
    })
}
