//! What being left out means for a post: deletion only where look-ups find posts like it.

use driftline_core::{api::Api, post::PostKind, upstream_id::UpstreamId};
use driftline_runtime::now_ms;
use driftline_store::{
    GoneProof, SourceId, StoreError,
    refresh::{AnsweredLookup, Claim, DuePost, LookupAnswer, LookupTarget},
};

use super::{Shared, look_up::Deadlines, lookup_client::LookupClient};
use crate::absence_proof::AbsenceProof;

/// The posts that look-ups with a credential may find, and answers for the others, which are stored
/// and of a kind that they are known not to find: nobody asks for those.
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
        answer: LookupAnswer::Hidden,
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
            let credential = lookup_client.credential().id;
            abilities.learn(store, credential, kind, true).await?;
        }
    }
    Ok(())
}

/// Turns answers that would delete posts, and prove no deletion, into answers that hide them.
pub(super) async fn check(
    shared: &Shared,
    lookup_client: &LookupClient,
    claim: &Claim,
    answers: &mut [AnsweredLookup],
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
        answered.answer = match proof(shared, lookup_client, due, deadlines).await? {
            Some(GoneProof::Deleted | GoneProof::DeletedForAll) => LookupAnswer::Missing,
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

/// `None` if there was no time or no usable answer for a control look-up.
async fn proof(
    shared: &Shared,
    lookup_client: &LookupClient,
    due: &DuePost,
    deadlines: Deadlines,
) -> Result<Option<GoneProof>, StoreError> {
    let Some(source) = due.freshness.source.map(SourceId::from) else {
        return Ok(Some(GoneProof::Nothing));
    };
    if deadlines.have_passed() {
        return Ok(None);
    }
    let proof = AbsenceProof {
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
        lookup_client.credential().id,
    );
    abilities.finds(&shared.store, credential, kind).await
}
