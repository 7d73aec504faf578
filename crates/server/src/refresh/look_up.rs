//! Looks posts of a claim up with one credential.

use std::{collections::HashMap, time::Duration};

use driftline_core::{
    answer::{AnswerHeaders, Failure, FailureKind, Finding, LookUps},
    refresh::{Blame, CanaryResult, Next, Search, is_silence, may_blame_posts},
    upstream_id::UpstreamId,
};
use driftline_store::{
    StoreError,
    refresh::{Answer, Answered, DuePost, due_last},
};

use super::{Shared, reader::Reader};
use crate::{
    clock::now_ms,
    quotas::{Charge, Permit},
};

/// What looking posts up brought.
#[derive(Default)]
pub(super) struct Outcome {
    /// What was found; posts without an answer are due as they were.
    pub(super) answers: Vec<Answered>,
    /// Why not all were answered, if so.
    pub(super) failure: Option<Failure>,
}

/// How long a look-up may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    /// No request is sent after this, Unix ms.
    pub(super) last_ms: i64,
    /// No answer is waited for after this, Unix ms.
    pub(super) over_ms: i64,
}

impl Deadlines {
    /// How long one answer is waited for: something is left to find out whether the upstream or a
    /// post of the request is to blame for a silence.
    fn timeout(self) -> Duration {
        let left_ms = self.over_ms.saturating_sub(now_ms()).max(0) * 3 / 5;
        Duration::from_millis(left_ms.unsigned_abs())
    }

    /// Whether no request is to be sent any more.
    pub(super) fn are_over(self) -> bool {
        now_ms() >= self.last_ms
    }
}

/// Looks posts up; the first request is taken from the quota already, for that charge. A batch that
/// is refused is halved, within the quota and the time, until what it is refused for stands alone.
/// `silent` are the turns in a row that the upstream has answered nothing in.
pub(super) async fn look_up(
    shared: &Shared,
    reader: &Reader,
    charge: Charge,
    posts: &[&DuePost],
    hours: Deadlines,
    silent: u32,
) -> Result<Outcome, StoreError> {
    let failures = |due: &&DuePost| {
        if due.freshness.missing {
            // A list without it may be a mistake: it is asked for alone before it counts as gone.
            ALONE
        } else {
            due.freshness.failures
        }
    };
    let mut asking = Asking {
        shared,
        reader,
        hours,
        search: Search::new(posts.to_vec(), failures, silent),
        answers: Vec::with_capacity(posts.len()),
        failure: None,
    };
    asking.run(charge).await?;
    asking.end().await
}

/// A search, and what came of it so far.
struct Asking<'a> {
    shared: &'a Shared,
    reader: &'a Reader,
    hours: Deadlines,
    search: Search<&'a DuePost>,
    answers: Vec<Answered>,
    failure: Option<Failure>,
}

impl<'a> Asking<'a> {
    async fn run(&mut self, first: Charge) -> Result<(), StoreError> {
        let mut first = Some(first);
        let mut asked = Vec::new();
        loop {
            let part = match self.search.next() {
                Next::Posts(part) => part,
                Next::Canary => {
                    let said = self.ask_canary(&asked).await?;
                    self.search.heard(said);
                    continue;
                }
                Next::Nothing => break,
            };
            let ids: Vec<UpstreamId> = part.iter().map(|due| id_of(due)).collect();
            let charge = match first.take() {
                Some(charge) => charge,
                None if self.hours.are_over() => break,
                None => match self.reader.take(self.shared, ids.len()).await? {
                    Permit::Sent(charge) => charge,
                    Permit::Until(_) => break,
                },
            };
            let timeout = self.hours.timeout();
            match self.reader.ask(self.shared, charge, &ids, timeout).await? {
                Ok(found) => {
                    let part = self.search.answered();
                    self.answers.extend(matched(&part, found));
                }
                Err(failure) => {
                    self.search.failed(failure.kind);
                    self.failure = Some(failure);
                    asked = ids;
                }
            }
        }
        match first {
            Some(charge) => self.reader.put_back(self.shared, charge).await,
            None => Ok(()),
        }
    }

    /// Asks for a post that this credential was shown before, or for another one of the instance,
    /// but for none of these.
    async fn ask_canary(&self, ids: &[UpstreamId]) -> Result<CanaryResult, StoreError> {
        let credential = self.reader.credential.id;
        let canary = match self.shared.canaries.apart_from(credential, ids) {
            Some(canary) => Some(canary),
            None => self.stored_canary(ids).await?,
        };
        let kind = self.failure.as_ref().map(|failure| failure.kind);
        // Where nothing was shown yet, the other posts of the batch will tell.
        let is_enough = canary.is_some() || kind.is_some_and(is_silence);
        if !is_enough || self.hours.timeout().is_zero() {
            return Ok(CanaryResult::Unasked);
        }
        let posts = usize::from(canary.is_some());
        let Permit::Sent(charge) = self.reader.take(self.shared, posts).await? else {
            return Ok(CanaryResult::Unasked);
        };
        let timeout = self.hours.timeout();
        let Some(canary) = canary else {
            // There is none: whether it answers anything at all has to do.
            let asked = self.reader.client.verify();
            return Ok(match tokio::time::timeout(timeout, asked).await {
                Err(_) => CanaryResult::Failed(FailureKind::TimedOut),
                Ok(Err(failure)) if !may_blame_posts(failure.kind) => CanaryResult::Answered,
                Ok(Err(failure)) => CanaryResult::Failed(failure.kind),
                Ok(Ok(_)) => CanaryResult::Answered,
            });
        };
        let asked = std::slice::from_ref(&canary);
        let found = self.reader.ask(self.shared, charge, asked, timeout).await?;
        Ok(match found {
            Ok(_) => CanaryResult::Answered,
            Err(failure) => {
                self.shared.canaries.failed(credential, &canary);
                CanaryResult::Failed(failure.kind)
            }
        })
    }

    /// A post of the instance that was answered of late, by whichever credential.
    async fn stored_canary(&self, ids: &[UpstreamId]) -> Result<Option<UpstreamId>, StoreError> {
        let instance = self.reader.credential.instance;
        let stored = self
            .shared
            .read(move |tx| due_last(tx, instance, CANARIES))
            .await?;
        Ok(stored
            .into_iter()
            .map(UpstreamId::new)
            .find(|id| !ids.contains(id)))
    }

    /// What the search came to.
    async fn end(mut self) -> Result<Outcome, StoreError> {
        if self.is_refused() {
            self.refuse().await?;
        }
        let works = self.search.is_known_to_work();
        let Blame {
            hidden,
            failed,
            suspects,
            is_cut_short,
        } = self.search.end();
        // Culprits that were found while others were answered are no trouble with the upstream.
        if works && !is_cut_short {
            let is_theirs = |failure: &Failure| may_blame_posts(failure.kind);
            self.failure = self.failure.filter(|failure| !is_theirs(failure));
        }
        let mut answers = self.answers;
        for (posts, answer) in [
            (hidden, Answer::Hidden),
            (failed, Answer::Nothing),
            (suspects, Answer::Suspect),
        ] {
            answers.extend(posts.into_iter().map(|due| Answered {
                what: due.what,
                answer: answer.clone(),
                asked_at_ms: now_ms(),
            }));
        }
        Ok(Outcome {
            answers,
            failure: self.failure,
        })
    }

    /// Whether 403 is about the credential, as far as can be told.
    fn is_refused(&self) -> bool {
        if self.search.is_known_to_be_refused() {
            return true;
        }
        let credential = self.reader.credential.id;
        let canaries = &self.shared.canaries;
        // A canary that could not be asked will be, with more quota or time.
        self.search.may_be_refused()
            && canaries.apart_from(credential, &[]).is_none()
            && (self.search.is_outage() || canaries.is_refused_again(credential))
    }

    /// The credential is not taken: it rests.
    async fn refuse(&mut self) -> Result<(), StoreError> {
        self.search.is_refused();
        if let Some(failure) = &mut self.failure {
            failure.kind = FailureKind::Unauthorized;
            self.shared.canaries.forget(self.reader.credential.id);
            self.reader.failed(self.shared, failure).await?;
        }
        Ok(())
    }
}

/// More failures than any batch can be halved.
const ALONE: u32 = 31;
/// One more than the posts of a request, so that one is another.
const CANARIES: u32 = 101;

fn id_of(due: &DuePost) -> UpstreamId {
    UpstreamId::from(due.upstream_id.as_str())
}

/// Each post with what was found of it; a post that the answer says nothing of is missing.
fn matched<'a>(part: &'a [&DuePost], found: LookUps) -> impl Iterator<Item = Answered> + 'a {
    let LookUps { findings, facts } = found;
    let AnswerHeaders { sent_at_ms, .. } = facts;
    let findings: HashMap<UpstreamId, Finding> = findings.into_iter().collect();
    part.iter().map(move |due| Answered {
        what: due.what,
        answer: match findings.get(&id_of(due)).cloned() {
            Some(Finding::Found(post)) => Answer::Found(post),
            Some(Finding::Gone) => Answer::Gone,
            Some(Finding::Hidden) => Answer::Hidden,
            Some(Finding::Missing) | None => Answer::Missing,
        },
        asked_at_ms: sent_at_ms,
    })
}
