//! Asks others before a post counts as gone or hidden.
//!
//! One credential's word that a post is not to be had says little where an instance has several: a
//! follower sees what others do not. So before such a word changes how a post stands, it is asked for
//! with each other credential, within the same claim. What is known to be hidden is not asked for
//! again and again: only one credential asks for it at each refresh.

use std::collections::HashMap;

use driftline_core::{answer::FailureKind, refresh::Outcome as Became};
use driftline_store::{
    LocalId, SourceId, StoreError, entry,
    refresh::{Answer, Answered, Claim, DuePost, What, refresh_state},
    source::{self, TokenLocation},
};

use super::{
    Shared,
    keyring::Keyring,
    look_up::{Deadlines, look_up},
    reader::Reader,
};
use crate::{clock::now_ms, quotas::Permit};

/// The answers of a claim's look-up, once those that others have to confirm were asked for with
/// other credentials.
pub(super) async fn confirmed(
    shared: &Shared,
    keyring: &mut Keyring,
    first: &Reader,
    claim: &Claim,
    mut answers: Vec<Answered>,
    hours: Deadlines,
) -> Result<Vec<Answered>, StoreError> {
    let before = before(shared, claim, &answers).await?;
    let dues: HashMap<What, &DuePost> = claim.posts.iter().map(|due| (due.what, due)).collect();
    let mut doubted: Vec<&DuePost> = Vec::new();
    for answered in &mut answers {
        let Some(due) = dues.get(&answered.what) else {
            continue;
        };
        let before = before.get(&answered.what).copied();
        if is_known(&answered.answer, due.is_open, before) {
            answered.answer = Answer::Hidden;
        }
        if is_doubted(&answered.answer, due.freshness.missing, before) {
            doubted.push(due);
        }
    }
    if doubted.is_empty() {
        return Ok(answers);
    }
    let mut others = keyring.others(shared, first.credential.id).await?;
    sort_by_first_source(shared, claim, &doubted, &mut others).await?;
    let mut unheard: Vec<What> = Vec::new();
    for reader in &others {
        if doubted.is_empty() {
            break;
        }
        // Without the time to ask, no quota is taken: the others stay unheard.
        if hours.are_over() {
            unheard.extend(doubted.iter().map(|due| due.what));
            break;
        }
        // What was left out is asked for alone.
        let is_alone = doubted.first().is_some_and(|due| due.freshness.missing);
        let posts = if is_alone { 1 } else { doubted.len() };
        let charge = match reader.take(shared, posts).await? {
            Permit::Sent(charge) => charge,
            Permit::Until(free_ms) => {
                // Who has to wait for long is not waited for.
                if free_ms.saturating_sub(now_ms()) <= SOON_MS {
                    unheard.extend(doubted.iter().map(|due| due.what));
                }
                continue;
            }
        };
        let found = look_up(shared, reader, charge, &doubted, hours, 0).await?;
        let mut told: HashMap<What, Answered> = found
            .answers
            .into_iter()
            .filter(|answered| answered.answer.is_usable())
            .map(|answered| (answered.what, answered))
            .collect();
        if !told.is_empty() && reader.credential.quarantine.is_some() {
            shared.access.quotas.restore(&reader.credential).await?;
        }
        let is_refused = found
            .failure
            .is_some_and(|failure| failure.kind == FailureKind::Unauthorized);
        if is_refused {
            keyring.forget(reader.credential.id);
        }
        for answered in &mut answers {
            let Some(position) = doubted.iter().position(|due| due.what == answered.what) else {
                continue;
            };
            match told.remove(&answered.what) {
                Some(other) => {
                    if matches!(other.answer, Answer::Found(_)) {
                        doubted.remove(position);
                    }
                    *answered = better(answered.clone(), other);
                }
                None if !is_refused => unheard.push(answered.what),
                None => {}
            }
        }
    }
    // A tombstone waits until everyone was heard that can be.
    for answered in &mut answers {
        let is_final = matches!(answered.answer, Answer::Missing | Answer::Gone);
        if is_final && unheard.contains(&answered.what) {
            answered.answer = Answer::Nothing;
        }
    }
    Ok(answers)
}

/// What became of posts at their last look-up, of those that were not found now.
async fn before(
    shared: &Shared,
    claim: &Claim,
    answers: &[Answered],
) -> Result<HashMap<What, Became>, StoreError> {
    let posts: Vec<LocalId> = answers
        .iter()
        .filter(|answered| matches!(answered.answer, Answer::Hidden | Answer::Missing))
        .filter_map(|answered| match answered.what {
            What::Stored(post) => Some(post),
            What::Wanted { .. } => None,
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
                before.extend(outcome.map(|outcome| (What::Stored(*post), outcome)));
            }
            Ok(before)
        })
        .await
}

/// Whether an answer says no more of a post than what is known: that it is hidden. Where anyone may
/// see the post, being left out may mean more.
fn is_known(answer: &Answer, is_open: bool, before: Option<Became>) -> bool {
    *answer == Answer::Missing && !is_open && before == Some(Became::Hidden)
}

/// Whether an answer has to be confirmed by others. A post that is left out for the first time is
/// only asked for again.
fn is_doubted(answer: &Answer, was_left_out: bool, before: Option<Became>) -> bool {
    match answer {
        Answer::Missing => was_left_out,
        Answer::Hidden => before != Some(Became::Hidden),
        // Where an upstream tells this from what is hidden, it is so for everyone.
        Answer::Gone | Answer::Found(_) | Answer::Nothing | Answer::Suspect => false,
    }
}

/// What two answers of different readers come to.
fn better(one: Answered, other: Answered) -> Answered {
    let says = |answered: &Answered| match answered.answer {
        Answer::Found(_) => 4,
        // That it is hidden proves that it exists.
        Answer::Hidden => 3,
        Answer::Gone => 2,
        Answer::Missing => 1,
        Answer::Nothing | Answer::Suspect => 0,
    };
    if says(&other) > says(&one) {
        other
    } else {
        one
    }
}

/// Those come first whose sources showed most of the posts first: they are likeliest to see them.
async fn sort_by_first_source(
    shared: &Shared,
    claim: &Claim,
    posts: &[&DuePost],
    readers: &mut [Reader],
) -> Result<(), StoreError> {
    if readers.len() < 2 {
        return Ok(());
    }
    let instance = claim.instance;
    let stored: Vec<LocalId> = posts
        .iter()
        .filter_map(|due| match due.what {
            What::Stored(post) => Some(post),
            What::Wanted { .. } => None,
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
    readers.sort_by_cached_key(|reader| {
        let place = &reader.credential.place;
        std::cmp::Reverse(shown.iter().filter(|shown| *shown == place).count())
    });
    Ok(())
}

/// Who has no quota for longer is not waited for, ms: longer than the usual windows.
const SOON_MS: i64 = 20 * 60_000;

#[cfg(test)]
mod tests {
    use driftline_store::quota;

    use super::{super::testing::World, *};

    #[test]
    fn only_what_would_change_a_post_is_doubted() {
        let hidden = Some(Became::Hidden);
        let seen = Some(Became::Unchanged);
        assert!(is_doubted(&Answer::Hidden, false, seen));
        assert!(is_doubted(&Answer::Hidden, false, None));
        assert!(!is_doubted(&Answer::Hidden, false, hidden));
        assert!(!is_doubted(&Answer::Missing, false, seen));
        assert!(is_doubted(&Answer::Missing, true, Some(Became::Missing)));
        assert!(!is_doubted(&Answer::Gone, true, seen));
        assert!(!is_doubted(&Answer::Nothing, true, seen));
    }

    #[test]
    fn what_is_hidden_and_left_out_is_hidden_still_unless_anyone_could_see_it() {
        let hidden = Some(Became::Hidden);
        assert!(is_known(&Answer::Missing, false, hidden));
        assert!(!is_known(&Answer::Missing, true, hidden));
        assert!(!is_known(&Answer::Missing, false, Some(Became::Unchanged)));
        assert!(!is_known(&Answer::Gone, false, hidden));
    }

    #[tokio::test]
    async fn when_the_time_is_over_nobody_is_charged_and_nothing_is_final() {
        let world = World::new().await;
        let mut ids = Vec::new();
        for name in ["one", "two", "three"] {
            ids.push(world.credential(name).await);
        }
        world.name_posts(&["5", "6"]).await;
        let mut claim = world.claim().await;
        claim.posts[1].freshness.missing = true;
        let mut keyring = Keyring::new(&world.instance().await);
        let shared = &world.shared;
        let others = keyring.others(shared, ids[1]).await.unwrap();
        let first = others.first().expect("a reader");
        let answers: Vec<Answered> = claim
            .posts
            .iter()
            .zip([Answer::Hidden, Answer::Missing])
            .map(|(due, answer)| Answered {
                what: due.what,
                answer,
                asked_at_ms: 0,
            })
            .collect();
        let over = Deadlines {
            last_ms: 0,
            over_ms: 0,
        };
        let said = confirmed(shared, &mut keyring, first, &claim, answers, over).await;
        let said: Vec<Answer> = said.unwrap().into_iter().map(|said| said.answer).collect();
        assert_eq!(said, [Answer::Hidden, Answer::Nothing]);
        let ledgers = shared.store.read(quota::all).await.unwrap();
        assert!(ledgers.is_empty(), "{ledgers:?}");
    }

    #[test]
    fn the_best_answer_counts() {
        let answered = |answer| Answered {
            what: What::Stored(LocalId::from(1)),
            answer,
            asked_at_ms: 0,
        };
        let all = [
            Answer::Nothing,
            Answer::Missing,
            Answer::Gone,
            Answer::Hidden,
        ];
        for (at, worse) in all.iter().enumerate() {
            for best in &all[at..] {
                for (one, other) in [(worse, best), (best, worse)] {
                    let found = better(answered(one.clone()), answered(other.clone()));
                    assert_eq!(found.answer, *best);
                }
            }
        }
    }
}
