//! Looks a claimed batch up with one credential.

use std::time::Duration;

use driftline_core::{
    answer::{AnswerFacts, Failure, FailureKind, Finding, LookUps},
    api::Api,
    refresh::{Bisection, Verdict},
    upstream_id::UpstreamId,
};
use driftline_store::{
    StoreError,
    credential::Credential,
    refresh::{Answer, Answered, Claim, DuePost},
};
use driftline_upstream::{Purpose as UpstreamPurpose, Upstream};
use metrics::counter;

use crate::{
    clock::now_ms,
    quotas::{Permit, Purpose, Quotas},
};

/// What looking a batch up brought.
pub(crate) struct Outcome {
    /// What was found; posts without an answer are due as they were.
    pub(crate) answers: Vec<Answered>,
    /// Why not all were answered, if so.
    pub(crate) failure: Option<Failure>,
}

/// Looks a claim's posts up; the first request is taken from the quota already. A batch that is
/// refused is halved, within the quota and the time, until what it is refused for stands alone. An
/// upstream that `is_suspicious`, because it failed before, has to answer something first.
pub(crate) async fn look_up(
    client: &Upstream,
    quotas: &Quotas,
    credential: &Credential,
    claim: &Claim,
    time: Duration,
    is_suspicious: bool,
    mut asks: impl FnMut(usize),
) -> Result<Outcome, StoreError> {
    let over_ms = now_ms().saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
    let scope = client.scope(UpstreamPurpose::LookUp);
    let mut bisection = Bisection::new(claim.posts.iter().collect::<Vec<&DuePost>>(), |due| {
        if due.freshness.missing {
            // A list without it may be a mistake: it is asked for alone before it counts as gone.
            ALONE
        } else {
            due.freshness.failures
        }
    });
    let mut answers = Vec::with_capacity(claim.posts.len());
    let mut failure = None;
    let mut is_first = true;
    while let Some(part) = bisection.part() {
        let posts = u32::try_from(part.len()).unwrap_or(u32::MAX);
        if !is_first {
            let permit = quotas
                .take(credential, scope, Purpose::Refresh, posts)
                .await?;
            if now_ms() >= over_ms || permit != Permit::Sent {
                break;
            }
        }
        is_first = false;
        let left = Duration::from_millis(u64::try_from(over_ms - now_ms()).unwrap_or(0));
        let ids: Vec<UpstreamId> = part
            .iter()
            .map(|due| UpstreamId::from(due.upstream_id.as_str()))
            .collect();
        asks(ids.len());
        match ask(client, &ids, left).await {
            Ok(found) => {
                quotas.answered(credential, scope, &found.facts).await?;
                let part = bisection.accepted();
                answers.extend(matched(&part, found));
            }
            Err(refused) => {
                quotas.failed(credential, scope, &refused).await?;
                counter!("driftline_refresh_failures_total", "kind" => refused.kind.name())
                    .increment(1);
                let is_theirs = blames_posts(refused.kind);
                failure = Some(refused);
                if !is_theirs {
                    break;
                }
                let is_sent = failure
                    .as_ref()
                    .is_some_and(|f| f.kind != FailureKind::BadId);
                bisection.refused();
                if is_sent && bisection.is_outage() {
                    break;
                }
            }
        }
    }
    let has_answers = bisection.has_answers();
    // An ID that cannot even be sent is at fault itself.
    let is_bad_id = failure
        .as_ref()
        .is_some_and(|failure| failure.kind == FailureKind::BadId);
    let is_outage = !is_bad_id && (bisection.is_outage() || (is_suspicious && !has_answers));
    let Verdict {
        culprits,
        suspects,
        unasked,
    } = bisection.end();
    // Culprits that were found among posts that were answered are no trouble with the upstream.
    if has_answers && unasked.is_empty() && suspects.is_empty() {
        failure = failure.filter(|failure| !blames_posts(failure.kind));
    }
    // In an outage nobody is to blame: all are due as they were.
    if !is_outage {
        answers.extend(culprits.iter().chain(&suspects).map(|due| Answered {
            what: due.what,
            answer: Answer::Nothing,
            asked_at_ms: now_ms(),
        }));
    }
    Ok(Outcome { answers, failure })
}

/// More failures than any batch can be halved.
const ALONE: u32 = 31;

async fn ask(client: &Upstream, ids: &[UpstreamId], time: Duration) -> Result<LookUps, Failure> {
    let asking = async {
        let mut found = client.look_up_many(ids).await?;
        if client.api() == Api::Mastodon {
            // It says of posts that are not for this reader that they do not exist.
            for (_, finding) in &mut found.findings {
                if *finding == Finding::Gone {
                    *finding = Finding::Missing;
                }
            }
        }
        Ok(found)
    };
    match tokio::time::timeout(time, asking).await {
        Ok(found) => found,
        Err(_) => Err(Failure::new(
            FailureKind::TimedOut,
            "a look-up took longer than its claim lasts; raise refresh.lease if the server is that slow",
        )),
    }
}

/// Each post with what was found of it; a post that the answer says nothing of is missing.
fn matched<'a>(part: &'a [&DuePost], found: LookUps) -> impl Iterator<Item = Answered> + 'a {
    let LookUps { findings, facts } = found;
    let AnswerFacts { sent_at_ms, .. } = facts;
    let findings: std::collections::HashMap<UpstreamId, Finding> = findings.into_iter().collect();
    part.iter().map(move |due| Answered {
        what: due.what,
        answer: match findings
            .get(&UpstreamId::from(due.upstream_id.as_str()))
            .cloned()
        {
            Some(Finding::Found(post)) => Answer::Found(post),
            Some(Finding::Gone) => Answer::Gone,
            Some(Finding::Hidden) => Answer::Hidden,
            Some(Finding::Missing) | None => Answer::Missing,
        },
        asked_at_ms: sent_at_ms,
    })
}

/// Whether a failure may be the fault of a post in the batch.
fn blames_posts(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Refused
            | FailureKind::ServerError
            | FailureKind::UnexpectedStatus
            | FailureKind::NotJson
            | FailureKind::BadJson
            | FailureKind::ErrorBody
            | FailureKind::TooLarge
            | FailureKind::BadId
    )
}
