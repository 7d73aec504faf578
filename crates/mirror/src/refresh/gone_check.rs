//! What being left out means for a post: deletion only where look-ups find posts like it.

use driftline_core::{api::Api, post::PostKind, upstream_id::UpstreamId};
use driftline_runtime::now_ms;
use driftline_store::{
    GoneProof, LocalId, SourceId, SourceKey, StoreError, Tx, absence,
    refresh::{AnsweredLookup, Claim, DuePost, LookupAnswer, LookupTarget},
    source::TokenLocation,
};

use super::{Shared, cross_check::Confirmed, look_up::Deadlines, lookup_client::LookupClient};
use crate::absence_proof::AbsenceProver;

/// The posts that look-ups with a credential may find, and answers for the others, which are stored
/// and of a kind that they are known not to find: those are not asked for.
pub(super) async fn findable<'c>(
    shared: &Shared,
    lookup_client: &LookupClient,
    claim: &'c Claim,
) -> Result<(Vec<&'c DuePost>, Vec<AnsweredLookup>), StoreError> {
    let mut unfindable = Vec::new();
    if lookup_client.client.api() == Api::Mastodon {
        for kind in [PostKind::Post, PostKind::Boost] {
            if claim.posts.iter().any(|due| due.kind == kind)
                && finds(shared, lookup_client, kind).await? == Some(false)
            {
                unfindable.push(kind);
            }
        }
    }
    let is_asked = |due: &&DuePost| {
        !unfindable.contains(&due.kind) || matches!(due.what, LookupTarget::Pending { .. })
    };
    let (asked, others): (Vec<_>, Vec<_>) = claim.posts.iter().partition(is_asked);
    let others = others.into_iter().map(|due| AnsweredLookup {
        what: due.what,
        answer: LookupAnswer::Unsupported,
        asked_at_ms: now_ms(),
    });
    Ok((asked, others.collect()))
}

/// Keeps which kinds of posts were found.
pub(super) async fn learn(
    shared: &Shared,
    lookup_client: &LookupClient,
    answers: &[AnsweredLookup],
) -> Result<(), StoreError> {
    if lookup_client.client.api() != Api::Mastodon {
        return Ok(());
    }
    for kind in [PostKind::Post, PostKind::Boost] {
        let mut found = answers
            .iter()
            .filter_map(|answered| match &answered.answer {
                LookupAnswer::Found(post) => Some(post.kind()),
                _ => None,
            });
        if found.any(|found| found == kind) {
            let (abilities, store) = (&shared.access.look_up_abilities, &shared.store);
            let credential = lookup_client.credential().key();
            abilities.learn(store, credential, kind, true).await?;
        }
    }
    Ok(())
}

/// Turns answers that would delete posts, and prove no deletion, into answers that hide them. So it
/// is while a source lists a post whose credential was not asked.
pub(super) async fn check(
    shared: &Shared,
    lookup_client: &LookupClient,
    claim: &Claim,
    Confirmed { answers, asked }: &mut Confirmed,
    deadlines: Deadlines,
) -> Result<(), StoreError> {
    if lookup_client.client.api() != Api::Mastodon {
        return Ok(());
    }
    for answered in answers {
        let due = claim.posts.iter().find(|due| due.what == answered.what);
        let Some(due) = due.filter(|due| is_final(due, &answered.answer)) else {
            continue;
        };
        if let LookupTarget::Stored(post) = due.what
            && is_listed_beyond(shared, lookup_client, asked, post).await?
        {
            answered.answer = LookupAnswer::Hidden;
            continue;
        }
        answered.answer = match proof(shared, lookup_client, due, deadlines).await? {
            Some(GoneProof::Deleted | GoneProof::DeletedForAll) => LookupAnswer::Missing,
            Some(GoneProof::Nothing)
                if finds(shared, lookup_client, due.kind).await? == Some(false) =>
            {
                LookupAnswer::Unsupported
            }
            Some(GoneProof::Hidden | GoneProof::Nothing) => LookupAnswer::Hidden,
            None => LookupAnswer::Nothing,
        };
    }
    Ok(())
}

/// Whether an answer would delete a stored post.
fn is_final(due: &DuePost, answer: &LookupAnswer) -> bool {
    *answer == LookupAnswer::Missing
        && due.freshness.missing
        && due.is_open
        && matches!(due.what, LookupTarget::Stored(_))
}

async fn is_listed_beyond(
    shared: &Shared,
    lookup_client: &LookupClient,
    asked: &[Option<TokenLocation>],
    post: LocalId,
) -> Result<bool, StoreError> {
    let (instance, asked) = (lookup_client.credential().instance, asked.to_vec());
    let read = move |tx: &mut Tx<'_>| absence::is_listed_beyond(tx, instance, &asked, post);
    shared.store.read(read).await
}

/// `None` if there was no time or no usable answer for a control look-up.
async fn proof(
    shared: &Shared,
    lookup_client: &LookupClient,
    due: &DuePost,
    deadlines: Deadlines,
) -> Result<Option<GoneProof>, StoreError> {
    let Some(id) = due.freshness.source.map(SourceId::from) else {
        return Ok(Some(GoneProof::Nothing));
    };
    let instance = lookup_client.credential().instance;
    let source = SourceKey { id, instance };
    if deadlines.have_passed() {
        return Ok(None);
    }
    let proof = AbsenceProver {
        store: &shared.store,
        client: &lookup_client.client,
        quota: &lookup_client.quota,
        abilities: &shared.access.look_up_abilities,
        source,
    };
    let id = UpstreamId::from(due.upstream_id.as_str());
    match tokio::time::timeout(deadlines.timeout(), proof.of(&id)).await {
        Ok(Ok(Ok(proof))) => Ok(Some(proof)),
        // The source was removed meanwhile.
        Ok(Err(StoreError::NoSource)) => Ok(Some(GoneProof::Nothing)),
        Ok(Err(error)) => Err(error),
        Ok(Ok(Err(_))) | Err(_) => Ok(None),
    }
}

async fn finds(
    shared: &Shared,
    lookup_client: &LookupClient,
    kind: PostKind,
) -> Result<Option<bool>, StoreError> {
    let (abilities, credential) = (
        &shared.access.look_up_abilities,
        lookup_client.credential().key(),
    );
    abilities.finds(&shared.store, credential, kind).await
}

#[cfg(test)]
mod tests {

    use driftline_core::refresh::BatchRule;
    use driftline_store::refresh::{ClaimRequest, Claimed, Shards};

    use super::{super::RefreshOptions, *};
    use crate::absence_proof::testing::{World, post};

    /// A claim of all of a world's posts, each of which was left out before.
    async fn claim(world: &World) -> Claim {
        let instance = world.credential.instance;
        let request = ClaimRequest {
            instance,
            batch_rule: BatchRule::new(100, 0),
            shard: 0,
            shards: Shards::ALL,
            holder: "test".into(),
            lease_ms: 30_000,
            now_ms: now_ms() + 600_000,
            policy: world.access.policies.of(instance),
        };
        let claimed = world.access.claims.claim(&world.store, request).await;
        let Ok(Claimed::Batch(mut claim)) = claimed else {
            panic!("{claimed:?}");
        };
        for due in &mut claim.posts {
            due.freshness.missing = true;
        }
        claim
    }

    fn shared(world: &World) -> (Shared, LookupClient) {
        let options = RefreshOptions::new("test");
        let token = world.credential.token.as_ref();
        let client = world.access.client(world.server(), token);
        (
            Shared::new(world.store.clone(), world.access.clone(), options),
            LookupClient::new(&world.access.quotas, &world.credential, client.unwrap()),
        )
    }

    fn soon() -> Deadlines {
        let over_ms = driftline_runtime::steady_ms() + 60_000;
        Deadlines {
            last_ms: over_ms,
            over_ms,
        }
    }

    fn missing<'a>(due: impl Iterator<Item = &'a DuePost>) -> Vec<AnsweredLookup> {
        let missing = due.map(|due| AnsweredLookup {
            what: due.what,
            answer: LookupAnswer::Missing,
            asked_at_ms: now_ms(),
        });
        missing.collect()
    }

    #[tokio::test]
    async fn boosts_that_no_look_up_finds_are_not_called_hidden_and_asked_for_no_more() {
        let boosts = (1..5).rev().map(|n| post(30 + n, n, Some(10)));
        let posts = [12, 11, 10].map(|id| post(id, 9, None));
        let world = World::new(boosts.chain(posts).collect(), true).await;
        world.finds([12, 10]);
        let (shared, lookup_client) = shared(&world);
        let claim = claim(&world).await;
        assert_eq!(claim.posts.len(), 7);
        let (asked, others) = findable(&shared, &lookup_client, &claim).await.unwrap();
        assert_eq!((asked.len(), others.len()), (7, 0), "nothing is known yet");

        let left_out = claim.posts.iter().filter(|due| due.upstream_id != "12");
        let mut confirmed = Confirmed {
            answers: missing(left_out),
            asked: vec![world.credential.token.clone()],
        };
        let checked = check(&shared, &lookup_client, &claim, &mut confirmed, soon());
        checked.await.unwrap();
        for answered in &confirmed.answers {
            let due = claim.posts.iter().find(|due| due.what == answered.what);
            let expected = match due.expect("a post").kind {
                PostKind::Boost => LookupAnswer::Unsupported,
                PostKind::Post => LookupAnswer::Missing,
            };
            assert_eq!(answered.answer, expected, "{due:?}");
        }
        // It is known now, without a single request.
        world.asked();
        let (asked, others) = findable(&shared, &lookup_client, &claim).await.unwrap();
        assert_eq!((asked.len(), others.len()), (3, 4));
        assert!(
            others
                .iter()
                .all(|of| of.answer == LookupAnswer::Unsupported)
        );
        assert_eq!(world.asked(), [0; 0]);

        // Where there is no time for a control, nothing is final.
        let over = Deadlines {
            last_ms: 0,
            over_ms: 0,
        };
        confirmed.answers.truncate(1);
        confirmed.answers[0].answer = LookupAnswer::Missing;
        let checked = check(&shared, &lookup_client, &claim, &mut confirmed, over);
        checked.await.unwrap();
        assert_eq!(confirmed.answers[0].answer, LookupAnswer::Nothing);
    }

    #[tokio::test]
    async fn what_a_credential_lists_that_was_not_asked_is_not_deleted() {
        let posts = || [12, 11].map(|id| post(id, 9, None)).to_vec();
        let world = World::new(posts(), true).await;
        let other = world.also_listed(posts()).await;
        world.finds([11]);
        let (shared, lookup_client) = shared(&world);
        let claim = claim(&world).await;
        let own = world.credential.token.clone();
        for (asked, expected) in [
            (vec![own.clone()], LookupAnswer::Hidden),
            (vec![own, other], LookupAnswer::Missing),
        ] {
            let left_out = claim.posts.iter().filter(|due| due.upstream_id == "12");
            let mut confirmed = Confirmed {
                answers: missing(left_out),
                asked,
            };
            let checked = check(&shared, &lookup_client, &claim, &mut confirmed, soon());
            checked.await.unwrap();
            assert_eq!(confirmed.answers[0].answer, expected);
        }
    }
}
