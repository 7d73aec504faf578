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
    StoreError,
    instance::Instance,
    refresh::{AnsweredLookup, Claim, DuePost, LookupAnswer, LookupTarget},
    source::TokenLocation,
};

use super::{
    Shared,
    credential_pool::others,
    look_up::{Deadlines, look_up},
    lookup_client::LookupClient,
};
use crate::quotas::Permit;

/// The answers of a claim's look-up, after the other credentials have confirmed or changed those that
/// need it.
pub(super) struct Confirmed {
    pub(super) answers: Vec<AnsweredLookup>,
    /// The tokens of the credentials that were asked: some are passed over.
    pub(super) asked: Vec<Option<TokenLocation>>,
}

/// Has the other credentials confirm or change the answers of a claim's look-up that need it.
pub(super) async fn confirm(
    shared: &Shared,
    instance: &Instance,
    first: &LookupClient,
    claim: &Claim,
    mut answers: Vec<AnsweredLookup>,
    deadlines: Deadlines,
) -> Result<Confirmed, StoreError> {
    let mut asked = vec![first.credential().token.clone()];
    let mut unconfirmed: Vec<&DuePost> = Vec::new();
    for answered in &mut answers {
        let Some(due) = claim.posts.iter().find(|due| due.what == answered.what) else {
            continue;
        };
        if is_known(&answered.answer, due.is_open, due.last_outcome) {
            answered.answer = LookupAnswer::Hidden;
        }
        if is_unconfirmed(&answered.answer, due.freshness.missing, due.last_outcome) {
            unconfirmed.push(due);
        }
    }
    if unconfirmed.is_empty() {
        return Ok(Confirmed { answers, asked });
    }
    let mut unreached: Vec<LookupTarget> = Vec::new();
    for other in others(shared, instance, first.credential().id).await? {
        if unconfirmed.is_empty() {
            break;
        }
        let may_ask = |due: &&DuePost| due.access.admits_credential(other.credential());
        let admitted: Vec<&DuePost> = unconfirmed.iter().copied().filter(may_ask).collect();
        if admitted.is_empty() {
            continue;
        }
        let Some(mut usable) = ask(shared, &other, &admitted, deadlines).await? else {
            continue;
        };
        asked.push(other.credential().token.clone());
        unconfirmed.retain(|due| {
            if !may_ask(due) {
                return true;
            }
            let Some(said) = usable.remove(&due.what) else {
                unreached.push(due.what);
                return true;
            };
            let is_found = matches!(said.answer, LookupAnswer::Found(_));
            if let Some(answered) = answers.iter_mut().find(|of| of.what == due.what) {
                *answered = stronger(answered.clone(), said);
            }
            !is_found
        });
    }
    // A tombstone waits until every available credential was asked.
    for answered in &mut answers {
        let is_final = matches!(answered.answer, LookupAnswer::Missing | LookupAnswer::Gone);
        if is_final && unreached.contains(&answered.what) {
            answered.answer = LookupAnswer::Nothing;
        }
    }
    Ok(Confirmed { answers, asked })
}

/// The usable answers to another credential; `None` if it is passed over, because it is rejected or
/// has no quota for long.
async fn ask(
    shared: &Shared,
    other: &LookupClient,
    posts: &[&DuePost],
    deadlines: Deadlines,
) -> Result<Option<HashMap<LookupTarget, AnsweredLookup>>, StoreError> {
    // Without time for a request, no quota is taken.
    if deadlines.have_passed() {
        return Ok(Some(HashMap::new()));
    }
    // A post that an answer left out is requested alone.
    let is_alone = posts.first().is_some_and(|due| due.freshness.missing);
    let size = if is_alone { 1 } else { posts.len() };
    let charge = match other.take(size).await? {
        Permit::Sent(charge) => charge,
        Permit::Until(free_ms) => {
            let is_soon = free_ms.saturating_sub(now_ms()) <= SOON_MS;
            return Ok(is_soon.then(HashMap::new));
        }
    };
    let found = look_up(shared, other, charge, posts, deadlines, false).await?;
    let is_rejected = found.kind() == Some(FailureKind::Unauthorized);
    let usable = found.answers.into_iter();
    let usable = usable.filter(|answered| answered.answer.is_usable());
    let usable: HashMap<_, _> = usable.map(|answered| (answered.what, answered)).collect();
    Ok((!is_rejected || !usable.is_empty()).then_some(usable))
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
        // Another credential may find it.
        LookupAnswer::Unsupported => before != Some(LookupOutcome::Unsupported),
        // An upstream that distinguishes gone from hidden posts does so for all credentials.
        LookupAnswer::Gone
        | LookupAnswer::Found(_)
        | LookupAnswer::Nothing
        | LookupAnswer::Suspect
        | LookupAnswer::NoCredential => false,
    }
}

/// The stronger of two answers to different credentials.
fn stronger(one: AnsweredLookup, other: AnsweredLookup) -> AnsweredLookup {
    let strength = |answered: &AnsweredLookup| match answered.answer {
        LookupAnswer::Found(_) => 4,
        // A hidden post exists, and one that is not asked for may.
        LookupAnswer::Hidden | LookupAnswer::Unsupported => 3,
        LookupAnswer::Gone => 2,
        LookupAnswer::Missing => 1,
        LookupAnswer::Nothing | LookupAnswer::Suspect | LookupAnswer::NoCredential => 0,
    };
    if strength(&other) > strength(&one) {
        other
    } else {
        one
    }
}

/// The longest wait for a quota, ms: longer than the windows of most upstreams.
const SOON_MS: i64 = 20 * 60_000;

#[cfg(test)]
mod tests {
    use driftline_store::{LocalId, quota};

    use super::{super::testing::World, *};

    #[test]
    fn only_answers_that_would_change_a_post_need_confirmation() {
        let hidden = Some(LookupOutcome::Hidden);
        let seen = Some(LookupOutcome::Unchanged);
        assert!(is_unconfirmed(&LookupAnswer::Hidden, false, seen));
        assert!(is_unconfirmed(&LookupAnswer::Hidden, false, None));
        assert!(!is_unconfirmed(&LookupAnswer::Hidden, false, hidden));
        let unsupported = Some(LookupOutcome::Unsupported);
        assert!(is_unconfirmed(&LookupAnswer::Unsupported, false, seen));
        assert!(!is_unconfirmed(
            &LookupAnswer::Unsupported,
            false,
            unsupported
        ));
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
        let mut credentials = Vec::new();
        for name in ["one", "two", "three"] {
            credentials.push(world.credential(name).await);
        }
        world.name_posts(&["5", "6"]).await;
        let mut claim = world.claim().await;
        claim.posts[1].freshness.missing = true;
        let (shared, instance) = (&world.shared, world.instance().await);
        let others = others(shared, &instance, credentials[1].id).await.unwrap();
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
        let said = confirm(shared, &instance, first, &claim, answers, over).await;
        let said: Vec<LookupAnswer> = said
            .unwrap()
            .answers
            .into_iter()
            .map(|said| said.answer)
            .collect();
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
