//! Confirms with other credentials that a post is gone or hidden.
//!
//! If an instance has several credentials, one answer that a post is not available proves little: a
//! follower sees posts that others do not. So before such an answer changes the state of a post, the
//! post is requested with each other credential, within the same claim. A post that is known to be
//! hidden is requested with only one credential at each refresh.

use std::collections::HashMap;

use driftline_core::{answer::FailureKind, refresh::LookupOutcome};
use driftline_runtime::now_ms;
use driftline_store::{
    LocalId, SourceId, StoreError, entry,
    refresh::{AnsweredLookup, Claim, DuePost, LookupAnswer, LookupTarget, refresh_state},
    source::{self, TokenLocation},
};

use super::{
    Shared,
    credential_pool::CredentialPool,
    look_up::{Deadlines, look_up},
    lookup_client::LookupClient,
};
use crate::quotas::Permit;

/// The answers of a claim's look-up, after the other credentials have confirmed or changed those that
/// need it.
pub(super) async fn confirm(
    shared: &Shared,
    credential_pool: &mut CredentialPool,
    first: &LookupClient,
    claim: &Claim,
    mut answers: Vec<AnsweredLookup>,
    deadlines: Deadlines,
) -> Result<Vec<AnsweredLookup>, StoreError> {
    let before = last_outcomes(shared, claim, &answers).await?;
    let dues: HashMap<LookupTarget, &DuePost> =
        claim.posts.iter().map(|due| (due.what, due)).collect();
    let mut unconfirmed: Vec<&DuePost> = Vec::new();
    for answered in &mut answers {
        let Some(due) = dues.get(&answered.what) else {
            continue;
        };
        let before = before.get(&answered.what).copied();
        if is_known(&answered.answer, due.is_open, before) {
            answered.answer = LookupAnswer::Hidden;
        }
        if is_unconfirmed(&answered.answer, due.freshness.missing, before) {
            unconfirmed.push(due);
        }
    }
    if unconfirmed.is_empty() {
        return Ok(answers);
    }
    let mut others = credential_pool.others(shared, first.credential.id).await?;
    sort_by_first_source(shared, claim, &unconfirmed, &mut others).await?;
    let mut unreached: Vec<LookupTarget> = Vec::new();
    for lookup_client in &others {
        if unconfirmed.is_empty() {
            break;
        }
        // Without time for a request, no quota is taken: the others stay unreached.
        if deadlines.have_passed() {
            unreached.extend(unconfirmed.iter().map(|due| due.what));
            break;
        }
        // A post that an answer left out is requested alone.
        let is_alone = unconfirmed.first().is_some_and(|due| due.freshness.missing);
        let posts = if is_alone { 1 } else { unconfirmed.len() };
        let charge = match lookup_client.take(shared, posts).await? {
            Permit::Sent(charge) => charge,
            Permit::Until(free_ms) => {
                // Credentials with a long wait are not waited for.
                if free_ms.saturating_sub(now_ms()) <= SOON_MS {
                    unreached.extend(unconfirmed.iter().map(|due| due.what));
                }
                continue;
            }
        };
        let found = look_up(shared, lookup_client, charge, &unconfirmed, deadlines, 0).await?;
        let mut usable: HashMap<LookupTarget, AnsweredLookup> = found
            .answers
            .into_iter()
            .filter(|answered| answered.answer.is_usable())
            .map(|answered| (answered.what, answered))
            .collect();
        if !usable.is_empty() && lookup_client.credential.quarantine.is_some() {
            shared
                .access
                .quotas
                .restore(&lookup_client.credential)
                .await?;
        }
        let is_refused = found
            .failure
            .is_some_and(|failure| failure.kind == FailureKind::Unauthorized);
        if is_refused {
            credential_pool.forget(lookup_client.credential.id);
        }
        for answered in &mut answers {
            let Some(position) = unconfirmed.iter().position(|due| due.what == answered.what)
            else {
                continue;
            };
            match usable.remove(&answered.what) {
                Some(other) => {
                    if matches!(other.answer, LookupAnswer::Found(_)) {
                        unconfirmed.remove(position);
                    }
                    *answered = stronger(answered.clone(), other);
                }
                None if !is_refused => unreached.push(answered.what),
                None => {}
            }
        }
    }
    // A tombstone waits until every available credential was asked.
    for answered in &mut answers {
        let is_final = matches!(answered.answer, LookupAnswer::Missing | LookupAnswer::Gone);
        if is_final && unreached.contains(&answered.what) {
            answered.answer = LookupAnswer::Nothing;
        }
    }
    Ok(answers)
}

/// The outcomes of the last look-ups of the posts that were not found now.
async fn last_outcomes(
    shared: &Shared,
    claim: &Claim,
    answers: &[AnsweredLookup],
) -> Result<HashMap<LookupTarget, LookupOutcome>, StoreError> {
    let posts: Vec<LocalId> = answers
        .iter()
        .filter(|answered| {
            matches!(
                answered.answer,
                LookupAnswer::Hidden | LookupAnswer::Missing
            )
        })
        .filter_map(|answered| match answered.what {
            LookupTarget::Stored(post) => Some(post),
            LookupTarget::Pending { .. } => None,
        })
        .collect();
    if posts.is_empty() || claim.posts.is_empty() {
        return Ok(HashMap::new());
    }
    shared
        .read(move |tx| {
            let mut before = HashMap::new();
            for post in &posts {
                let outcome =
                    refresh_state(tx, *post)?.and_then(|refresh_state| refresh_state.outcome);
                before.extend(outcome.map(|outcome| (LookupTarget::Stored(*post), outcome)));
            }
            Ok(before)
        })
        .await
}

/// Whether an answer only repeats that a post is hidden. For a post that anyone may see, being left out
/// may mean more.
fn is_known(answer: &LookupAnswer, is_open: bool, before: Option<LookupOutcome>) -> bool {
    *answer == LookupAnswer::Missing && !is_open && before == Some(LookupOutcome::Hidden)
}

/// Whether an answer has to be confirmed by others. A post that is left out for the first time is only
/// requested again.
fn is_unconfirmed(
    answer: &LookupAnswer,
    was_left_out: bool,
    before: Option<LookupOutcome>,
) -> bool {
    match answer {
        LookupAnswer::Missing => was_left_out,
        LookupAnswer::Hidden => before != Some(LookupOutcome::Hidden),
        // An upstream that distinguishes gone from hidden posts does so for all credentials.
        LookupAnswer::Gone
        | LookupAnswer::Found(_)
        | LookupAnswer::Nothing
        | LookupAnswer::Suspect => false,
    }
}

/// The stronger of two answers to different credentials.
fn stronger(one: AnsweredLookup, other: AnsweredLookup) -> AnsweredLookup {
    let strength = |answered: &AnsweredLookup| match answered.answer {
        LookupAnswer::Found(_) => 4,
        // A hidden post exists.
        LookupAnswer::Hidden => 3,
        LookupAnswer::Gone => 2,
        LookupAnswer::Missing => 1,
        LookupAnswer::Nothing | LookupAnswer::Suspect => 0,
    };
    if strength(&other) > strength(&one) {
        other
    } else {
        one
    }
}

/// Sorts the credentials whose sources were the first to show most of the posts to the front: they are
/// the likeliest to see them.
async fn sort_by_first_source(
    shared: &Shared,
    claim: &Claim,
    posts: &[&DuePost],
    lookup_clients: &mut [LookupClient],
) -> Result<(), StoreError> {
    if lookup_clients.len() < 2 {
        return Ok(());
    }
    let instance = claim.instance;
    let stored: Vec<LocalId> = posts
        .iter()
        .filter_map(|due| match due.what {
            LookupTarget::Stored(post) => Some(post),
            LookupTarget::Pending { .. } => None,
        })
        .collect();
    let shown: Vec<Option<TokenLocation>> = shared
        .read(move |tx| {
            let mut sources = source::list(tx)?;
            sources.retain(|source| source.instance.id == instance);
            let ids: Vec<SourceId> = sources.iter().map(|source| source.id).collect();
            let first = entry::first_sources(tx, &ids, &stored)?;
            let token = |id: &SourceId| {
                let source = sources.iter().find(|source| source.id == *id);
                source.and_then(|source| source.token.clone())
            };
            Ok::<_, StoreError>(first.values().map(token).collect())
        })
        .await?;
    lookup_clients.sort_by_cached_key(|lookup_client| {
        let place = &lookup_client.credential.place;
        std::cmp::Reverse(shown.iter().filter(|shown| *shown == place).count())
    });
    Ok(())
}

/// The longest wait for a quota, ms: longer than the windows of most upstreams.
const SOON_MS: i64 = 20 * 60_000;

#[cfg(test)]
mod tests {
    use driftline_store::quota;

    use super::{super::testing::World, *};

    #[test]
    fn only_answers_that_would_change_a_post_need_confirmation() {
        let hidden = Some(LookupOutcome::Hidden);
        let seen = Some(LookupOutcome::Unchanged);
        assert!(is_unconfirmed(&LookupAnswer::Hidden, false, seen));
        assert!(is_unconfirmed(&LookupAnswer::Hidden, false, None));
        assert!(!is_unconfirmed(&LookupAnswer::Hidden, false, hidden));
        assert!(!is_unconfirmed(&LookupAnswer::Missing, false, seen));
        assert!(is_unconfirmed(
            &LookupAnswer::Missing,
            true,
            Some(LookupOutcome::Missing)
        ));
        assert!(!is_unconfirmed(&LookupAnswer::Gone, true, seen));
        assert!(!is_unconfirmed(&LookupAnswer::Nothing, true, seen));
    }

    #[test]
    fn a_hidden_post_that_is_left_out_stays_hidden_unless_anyone_could_see_it() {
        let hidden = Some(LookupOutcome::Hidden);
        assert!(is_known(&LookupAnswer::Missing, false, hidden));
        assert!(!is_known(&LookupAnswer::Missing, true, hidden));
        assert!(!is_known(
            &LookupAnswer::Missing,
            false,
            Some(LookupOutcome::Unchanged)
        ));
        assert!(!is_known(&LookupAnswer::Gone, false, hidden));
    }

    #[tokio::test]
    async fn after_the_deadline_nothing_is_charged_and_nothing_is_final() {
        let world = World::new().await;
        let mut ids = Vec::new();
        for name in ["one", "two", "three"] {
            ids.push(world.credential(name).await);
        }
        world.name_posts(&["5", "6"]).await;
        let mut claim = world.claim().await;
        claim.posts[1].freshness.missing = true;
        let mut credential_pool = CredentialPool::new(&world.instance().await);
        let shared = &world.shared;
        let others = credential_pool.others(shared, ids[1]).await.unwrap();
        let first = others.first().expect("a look-up client");
        let answers: Vec<AnsweredLookup> = claim
            .posts
            .iter()
            .zip([LookupAnswer::Hidden, LookupAnswer::Missing])
            .map(|(due, answer)| AnsweredLookup {
                what: due.what,
                answer,
                asked_at_ms: 0,
            })
            .collect();
        let over = Deadlines {
            last_ms: 0,
            over_ms: 0,
        };
        let said = confirm(shared, &mut credential_pool, first, &claim, answers, over).await;
        let said: Vec<LookupAnswer> = said.unwrap().into_iter().map(|said| said.answer).collect();
        assert_eq!(said, [LookupAnswer::Hidden, LookupAnswer::Nothing]);
        let ledgers = shared.store.read(quota::all).await.unwrap();
        assert!(ledgers.is_empty(), "{ledgers:?}");
    }

    #[test]
    fn the_strongest_answer_counts() {
        let answered = |answer| AnsweredLookup {
            what: LookupTarget::Stored(LocalId::from(1)),
            answer,
            asked_at_ms: 0,
        };
        let all = [
            LookupAnswer::Nothing,
            LookupAnswer::Missing,
            LookupAnswer::Gone,
            LookupAnswer::Hidden,
        ];
        for (at, worse) in all.iter().enumerate() {
            for best in &all[at..] {
                for (one, other) in [(worse, best), (best, worse)] {
                    let found = stronger(answered(one.clone()), answered(other.clone()));
                    assert_eq!(found.answer, *best);
                }
            }
        }
    }
}
