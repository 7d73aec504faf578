//! Looks posts of a claim up with one credential.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use driftline_core::{
    answer::{AnswerFacts, Failure, FailureKind, Finding, LookUps},
    refresh::{Bisection, Verdict},
    upstream_id::UpstreamId,
};
use driftline_store::{
    StoreError,
    refresh::{Answer, Answered, DuePost, What},
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
pub(super) struct Hours {
    /// No request is sent after this, Unix ms.
    pub(super) last_ms: i64,
    /// No answer is waited for after this, Unix ms.
    pub(super) over_ms: i64,
}

impl Hours {
    /// How long one answer is waited for: something is left to find out whether the upstream or a
    /// post of the request is to blame for a silence.
    fn patience(self) -> Duration {
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
/// An upstream that `is_suspicious`, because it failed before, is asked for one post first.
pub(super) async fn look_up(
    shared: &Shared,
    reader: &Reader,
    charge: Charge,
    posts: &[&DuePost],
    hours: Hours,
    is_suspicious: bool,
) -> Result<Outcome, StoreError> {
    let failures = |due: &&DuePost| {
        if due.freshness.missing {
            // A list without it may be a mistake: it is asked for alone before it counts as gone.
            ALONE
        } else {
            due.freshness.failures
        }
    };
    let bisection = if is_suspicious {
        Bisection::with_probe(posts.to_vec(), failures)
    } else {
        Bisection::new(posts.to_vec(), failures)
    };
    let mut search = Search {
        shared,
        reader,
        hours,
        bisection,
        answers: Vec::with_capacity(posts.len()),
        failure: None,
        forbidden: HashSet::new(),
        standing: Standing::Unknown,
    };
    search.run(charge).await?;
    search.end().await
}

/// The search for what a batch is refused for.
struct Search<'a> {
    shared: &'a Shared,
    reader: &'a Reader,
    hours: Hours,
    bisection: Bisection<&'a DuePost>,
    answers: Vec<Answered>,
    failure: Option<Failure>,
    /// What was refused alone with 403.
    forbidden: HashSet<What>,
    standing: Standing,
}

/// What is known of the upstream, and of the credential, apart from the posts that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nothing yet.
    Unknown,
    /// Another post was asked for and answered: what fails is the fault of a post.
    Works,
    /// It was not: no post is to blame.
    Down,
    /// The upstream does not take the credential.
    Refused,
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blame {
    /// The upstream's or the credential's: nothing more is asked.
    Upstream,
    /// A post's, unless everything fails.
    Posts,
    /// A post's, if anything else is answered; else the upstream's or the credential's.
    Unclear,
}

impl<'a> Search<'a> {
    async fn run(&mut self, first: Charge) -> Result<(), StoreError> {
        let mut first = Some(first);
        while let Some(part) = self.bisection.part() {
            let ids: Vec<UpstreamId> = part.iter().map(|due| id_of(due)).collect();
            let charge = match first.take() {
                Some(charge) => charge,
                None if self.hours.are_over() => break,
                None => match self.reader.take(self.shared, ids.len()).await? {
                    Permit::Sent(charge) => charge,
                    Permit::Until(_) => break,
                },
            };
            let patience = self.hours.patience();
            match self.reader.ask(self.shared, charge, &ids, patience).await? {
                Ok(found) => {
                    let part = self.bisection.accepted();
                    self.answers.extend(matched(&part, found));
                }
                Err(failure) => {
                    if !self.goes_on(failure, &ids).await? {
                        break;
                    }
                }
            }
        }
        match first {
            Some(charge) => self.reader.put_back(self.shared, charge).await,
            None => Ok(()),
        }
    }

    /// Takes a failure in; whether anything else is to be asked.
    async fn goes_on(&mut self, failure: Failure, ids: &[UpstreamId]) -> Result<bool, StoreError> {
        let kind = failure.kind;
        self.failure = Some(failure);
        match blame(kind) {
            Blame::Upstream => return Ok(false),
            Blame::Posts => {}
            Blame::Unclear => {
                if !self.is_known_to_work() {
                    self.standing = self.ask_witness(kind, ids).await?;
                }
                if matches!(self.standing, Standing::Down | Standing::Refused) {
                    return Ok(false);
                }
                if let (FailureKind::Forbidden, Some([alone])) = (kind, self.bisection.part()) {
                    self.forbidden.insert(alone.what);
                }
            }
        }
        self.bisection.refused();
        // An ID that cannot even be sent is at fault itself.
        Ok(kind == FailureKind::BadId || !self.is_outage())
    }

    /// Asks for a post that this credential was shown before.
    async fn ask_witness(
        &mut self,
        kind: FailureKind,
        ids: &[UpstreamId],
    ) -> Result<Standing, StoreError> {
        let credential = self.reader.credential.id;
        let witness = self.shared.witnesses.apart_from(credential, ids);
        // Where nothing was shown yet, the other posts of the batch will tell, if there are any.
        let is_enough = witness.is_some() || ids.len() == 1 && is_silence(kind);
        if !is_enough || self.hours.patience().is_zero() {
            return Ok(Standing::Unknown);
        }
        let posts = usize::from(witness.is_some());
        let Permit::Sent(charge) = self.reader.take(self.shared, posts).await? else {
            return Ok(Standing::Unknown);
        };
        let patience = self.hours.patience();
        let Some(witness) = witness else {
            // There is none: whether it answers anything at all has to do. That reads no post.
            let who = tokio::time::timeout(patience, self.reader.client.verify()).await;
            return Ok(match who {
                Ok(Ok(_)) => Standing::Works,
                Ok(Err(_)) | Err(_) => Standing::Down,
            });
        };
        let asked = std::slice::from_ref(&witness);
        let found = self
            .reader
            .ask(self.shared, charge, asked, patience)
            .await?;
        if found.is_err() {
            self.shared.witnesses.failed(credential, &witness);
        }
        Ok(match (found, kind) {
            (Ok(_), _) => Standing::Works,
            (Err(failure), FailureKind::Forbidden) if is_refusal(failure.kind) => Standing::Refused,
            (Err(_), _) => Standing::Down,
        })
    }

    /// What the search came to.
    async fn end(mut self) -> Result<Outcome, StoreError> {
        let works = self.is_known_to_work();
        let kind = self.failure.as_ref().map(|failure| failure.kind);
        if kind == Some(FailureKind::Forbidden) && !works && self.is_refused() {
            self.refuse().await?;
        }
        let is_down = matches!(self.standing, Standing::Down | Standing::Refused);
        let is_silence = kind.is_some_and(is_silence) && !works;
        let is_outage =
            is_down || is_silence || kind != Some(FailureKind::BadId) && self.is_outage();
        // Unless the upstream is known to be down, a refused probe makes room for another one.
        let is_probe_refused = self.bisection.is_probe_refused() && !is_down;
        let Verdict {
            culprits,
            suspects,
            unasked,
        } = self.bisection.end();
        // Culprits that were found while others were answered are no trouble with the upstream.
        if works && unasked.is_empty() && suspects.is_empty() {
            let is_theirs = |failure: &Failure| blame(failure.kind) != Blame::Upstream;
            self.failure = self.failure.filter(|failure| !is_theirs(failure));
        }
        let (hidden, failed): (Vec<_>, Vec<_>) = culprits
            .into_iter()
            .partition(|due| works && self.forbidden.contains(&due.what));
        let answered = |answer: Answer| {
            move |due: &DuePost| Answered {
                what: due.what,
                answer: answer.clone(),
                asked_at_ms: now_ms(),
            }
        };
        let mut answers = self.answers;
        answers.extend(hidden.into_iter().map(answered(Answer::Hidden)));
        // In an outage nobody is to blame but a probe: all others are due as they were.
        if !is_outage || is_probe_refused {
            answers.extend(failed.into_iter().map(answered(Answer::Nothing)));
            answers.extend(suspects.into_iter().map(answered(Answer::Suspect)));
        }
        Ok(Outcome {
            answers,
            failure: self.failure,
        })
    }

    /// Whether a 403 is the credential's own, as far as can be told without a witness.
    fn is_refused(&self) -> bool {
        let credential = self.reader.credential.id;
        match self.standing {
            Standing::Refused => true,
            Standing::Down => false,
            Standing::Unknown | Standing::Works => {
                self.bisection.is_outage() || self.shared.witnesses.is_refused_again(credential)
            }
        }
    }

    /// The credential is not taken: it rests.
    async fn refuse(&mut self) -> Result<(), StoreError> {
        self.standing = Standing::Refused;
        if let Some(failure) = &mut self.failure {
            failure.kind = FailureKind::Unauthorized;
            self.shared.witnesses.forget(self.reader.credential.id);
            self.reader.failed(self.shared, failure).await?;
        }
        Ok(())
    }

    fn is_known_to_work(&self) -> bool {
        self.bisection.has_answers() || self.standing == Standing::Works
    }

    fn is_outage(&self) -> bool {
        let is_outage = self.bisection.is_outage() || self.bisection.is_probe_refused();
        is_outage && self.standing != Standing::Works
    }
}

/// More failures than any batch can be halved.
const ALONE: u32 = 31;

fn id_of(due: &DuePost) -> UpstreamId {
    UpstreamId::from(due.upstream_id.as_str())
}

/// Each post with what was found of it; a post that the answer says nothing of is missing.
fn matched<'a>(part: &'a [&DuePost], found: LookUps) -> impl Iterator<Item = Answered> + 'a {
    let LookUps { findings, facts } = found;
    let AnswerFacts { sent_at_ms, .. } = facts;
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

fn blame(kind: FailureKind) -> Blame {
    match kind {
        FailureKind::Refused
        | FailureKind::ServerError
        | FailureKind::UnexpectedStatus
        | FailureKind::NotJson
        | FailureKind::BadJson
        | FailureKind::ErrorBody
        | FailureKind::TooLarge
        | FailureKind::BadId => Blame::Posts,
        FailureKind::Forbidden => Blame::Unclear,
        kind if is_silence(kind) => Blame::Unclear,
        _ => Blame::Upstream,
    }
}

/// Whether a failure may be the fault of a post that was asked for.
pub(super) fn may_blame_posts(kind: FailureKind) -> bool {
    blame(kind) != Blame::Upstream
}

/// Whether no whole answer came.
fn is_silence(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::TimedOut | FailureKind::Truncated | FailureKind::Unreachable
    )
}

fn is_refusal(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Forbidden | FailureKind::Unauthorized)
}
