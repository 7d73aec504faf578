//! Looks up posts of a claim with one credential.

use std::{collections::HashMap, time::Duration};

use driftline_core::{
    answer::{AnswerHeaders, Failure, FailureKind, Finding, LookUps},
    refresh::{Blame, CanaryResult, Next, Search, is_silence, may_blame_posts},
    upstream_id::UpstreamId,
};
use driftline_runtime::now_ms;
use driftline_store::{
    StoreError,
    refresh::{AnsweredLookup, DuePost, LookupAnswer, due_last},
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
}

/// The deadlines of a look-up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    /// No request is sent after this, Unix ms.
    pub(super) last_ms: i64,
    /// No answer is waited for after this, Unix ms.
    pub(super) over_ms: i64,
}

impl Deadlines {
    /// The timeout of one request: some time is left to find out whether the upstream or a post of the
    /// request causes a timeout.
    fn timeout(self) -> Duration {
        let left_ms = self.over_ms.saturating_sub(now_ms()).max(0) * 3 / 5;
        Duration::from_millis(left_ms.unsigned_abs())
    }

    /// Whether no more requests may be sent.
    pub(super) fn have_passed(self) -> bool {
        now_ms() >= self.last_ms
    }
}

/// Looks posts up. The first request is already taken from the quota, with that charge. A batch that is
/// refused is halved, within the quota and the deadlines, until its cause is alone. `silent` is the
/// number of turns in a row without an answer of the upstream.
pub(super) async fn look_up(
    shared: &Shared,
    lookup_client: &LookupClient,
    charge: Charge,
    posts: &[&DuePost],
    deadlines: Deadlines,
    silent: u32,
) -> Result<LookupAnswers, StoreError> {
    let failures = |due: &&DuePost| {
        if due.freshness.missing {
            // A list without the post may be a mistake: it is requested alone before it counts as gone.
            ALONE
        } else {
            due.freshness.failures
        }
    };
    let mut run = LookupRun {
        shared,
        lookup_client,
        deadlines,
        search: Search::new(posts.to_vec(), failures, silent),
        answers: Vec::with_capacity(posts.len()),
        failure: None,
    };
    run.run(charge).await?;
    run.end().await
}

/// A search and its results so far.
struct LookupRun<'a> {
    shared: &'a Shared,
    lookup_client: &'a LookupClient,
    deadlines: Deadlines,
    search: Search<&'a DuePost>,
    answers: Vec<AnsweredLookup>,
    failure: Option<Failure>,
}

impl<'a> LookupRun<'a> {
    async fn run(&mut self, first: Charge) -> Result<(), StoreError> {
        let mut first = Some(first);
        let mut asked = Vec::new();
        loop {
            let part = match self.search.next() {
                Next::Posts(part) => part,
                Next::Canary => {
                    let said = self.ask_canary(&asked).await?;
                    self.search.canary_checked(said);
                    continue;
                }
                Next::Nothing => break,
            };
            let ids: Vec<UpstreamId> = part.iter().map(|due| id_of(due)).collect();
            let charge = match first.take() {
                Some(charge) => charge,
                None if self.deadlines.have_passed() => break,
                None => match self.lookup_client.take(self.shared, ids.len()).await? {
                    Permit::Sent(charge) => charge,
                    Permit::Until(_) => break,
                },
            };
            let timeout = self.deadlines.timeout();
            match self
                .lookup_client
                .ask(self.shared, charge, &ids, timeout)
                .await?
            {
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
            Some(charge) => self.lookup_client.put_back(self.shared, charge).await,
            None => Ok(()),
        }
    }

    /// Requests a post that this credential was shown before, or another one of the instance, but none
    /// of these.
    async fn ask_canary(&self, ids: &[UpstreamId]) -> Result<CanaryResult, StoreError> {
        let credential = self.lookup_client.credential.id;
        let canary = match self.shared.canaries.apart_from(credential, ids) {
            Some(canary) => Some(canary),
            None => self.stored_canary(ids).await?,
        };
        let kind = self.failure.as_ref().map(|failure| failure.kind);
        // Without a canary, the other posts of the batch show whether requests work.
        let is_enough = canary.is_some() || kind.is_some_and(is_silence);
        if !is_enough || self.deadlines.timeout().is_zero() {
            return Ok(CanaryResult::Unasked);
        }
        let posts = usize::from(canary.is_some());
        let Permit::Sent(charge) = self.lookup_client.take(self.shared, posts).await? else {
            return Ok(CanaryResult::Unasked);
        };
        let timeout = self.deadlines.timeout();
        let Some(canary) = canary else {
            // Without a canary, any answer has to do.
            let asked = self.lookup_client.client.verify();
            return Ok(match tokio::time::timeout(timeout, asked).await {
                Err(_) => CanaryResult::Failed(FailureKind::TimedOut),
                Ok(Err(failure)) if !may_blame_posts(failure.kind) => CanaryResult::Answered,
                Ok(Err(failure)) => CanaryResult::Failed(failure.kind),
                Ok(Ok(_)) => CanaryResult::Answered,
            });
        };
        let asked = std::slice::from_ref(&canary);
        let found = self
            .lookup_client
            .ask(self.shared, charge, asked, timeout)
            .await?;
        Ok(match found {
            Ok(_) => CanaryResult::Answered,
            Err(failure) => {
                self.shared.canaries.failed(credential, &canary);
                CanaryResult::Failed(failure.kind)
            }
        })
    }

    /// A recently answered post of the instance, whichever credential it was.
    async fn stored_canary(&self, ids: &[UpstreamId]) -> Result<Option<UpstreamId>, StoreError> {
        let instance = self.lookup_client.credential.instance;
        let stored = self
            .shared
            .read(move |tx| due_last(tx, instance, CANARIES))
            .await?;
        Ok(stored
            .into_iter()
            .map(UpstreamId::new)
            .find(|id| !ids.contains(id)))
    }

    /// The result of the search.
    async fn end(mut self) -> Result<LookupAnswers, StoreError> {
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
        // Failures of single posts are no failure of the upstream if other posts were answered.
        if works && !is_cut_short {
            let is_theirs = |failure: &Failure| may_blame_posts(failure.kind);
            self.failure = self.failure.filter(|failure| !is_theirs(failure));
        }
        let mut answers = self.answers;
        for (posts, answer) in [
            (hidden, LookupAnswer::Hidden),
            (failed, LookupAnswer::Nothing),
            (suspects, LookupAnswer::Suspect),
        ] {
            answers.extend(posts.into_iter().map(|due| AnsweredLookup {
                what: due.what,
                answer: answer.clone(),
                asked_at_ms: now_ms(),
            }));
        }
        Ok(LookupAnswers {
            answers,
            failure: self.failure,
        })
    }

    /// Whether 403 probably concerns the credential.
    fn is_refused(&self) -> bool {
        if self.search.is_known_to_be_refused() {
            return true;
        }
        let credential = self.lookup_client.credential.id;
        let canaries = &self.shared.canaries;
        // A canary that could not be requested will be, with more quota or time.
        self.search.may_be_refused()
            && canaries.apart_from(credential, &[]).is_none()
            && (self.search.is_outage() || canaries.is_refused_again(credential))
    }

    /// Quarantines the credential, which the upstream rejects.
    async fn refuse(&mut self) -> Result<(), StoreError> {
        self.search.is_refused();
        if let Some(failure) = &mut self.failure {
            failure.kind = FailureKind::Unauthorized;
            self.shared
                .canaries
                .forget(self.lookup_client.credential.id);
            self.lookup_client.failed(self.shared, failure).await?;
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
