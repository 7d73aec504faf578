//! Saves the answers of look-ups.

use std::{collections::HashMap, sync::Arc};

use driftline_store::{
    SourceKey, StoreError,
    instance::Instance,
    refresh::{AnsweredLookup, Claim, LookupAnswer, LookupTarget, Save},
    source,
    tracked::hydrate as hydrate_posts,
};

use super::{RefreshStats, Shared};
use driftline_runtime::{
    metrics::{POSTS_HYDRATED, REFRESH_POSTPONED},
    now_ms, random,
};

/// Saves answers, schedules the posts again, others at the times that they are put off to, and notifies
/// libraries.
pub(super) async fn save(
    shared: &Shared,
    instance: &Instance,
    claim: Claim,
    (answers, put_off): (Vec<AnsweredLookup>, Vec<(LookupTarget, i64)>),
) -> Result<(), StoreError> {
    hydrate(shared, instance, &answers).await?;
    let policy = shared.access.policies.of(instance.id);
    let save = Save {
        claim,
        answers,
        put_off,
        policy: Arc::clone(&policy),
        keep_deleted: shared.access.keep_deleted,
        now_ms: now_ms(),
        random: random(),
    };
    let saved = match shared.access.claims.save(&shared.store, save).await {
        Ok(saved) => saved,
        Err(StoreError::LeaseLost) => {
            shared.count(instance.id, RefreshStats::lost);
            tracing::info!(instance = %instance.origin, "a claim ended before its answers were saved; they are dropped");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    REFRESH_POSTPONED.increment(saved.postponed);
    shared.count(instance.id, |refresh_stats| {
        for (_, outcome) in &saved.outcomes {
            refresh_stats.saved(*outcome);
        }
        for (before, after) in &saved.grown {
            let (history, at_ms) = (before.refresh_history(), after.refreshed_ms);
            let total = after.counts.total() as f64;
            let observation = &mut refresh_stats.observation;
            observation.answered(&policy, &history, at_ms);
            observation.grew(&history, at_ms, total);
        }
    });
    let news: Vec<_> = saved.news.iter().map(|(post, _)| *post).collect();
    let outbox_relay = &shared.access.outbox_relay;
    outbox_relay.relay(instance.id, &news).await
}

/// Stores found posts of pending look-ups. Their look-ups are gone when the save follows.
async fn hydrate(
    shared: &Shared,
    instance: &Instance,
    answers: &[AnsweredLookup],
) -> Result<(), StoreError> {
    let mut by_source: HashMap<SourceKey, Vec<AnsweredLookup>> = HashMap::new();
    for answered in answers {
        if let (LookupTarget::Pending { source, .. }, LookupAnswer::Found(_)) =
            (answered.what, &answered.answer)
        {
            by_source.entry(source).or_default().push(answered.clone());
        }
    }
    for (source, found) in by_source {
        let policy = shared.access.policies.of(instance.id);
        let stored = shared
            .store
            .write(source::root(source), move |tx| {
                hydrate_posts(tx, source, &found, &policy, now_ms())
            })
            .await;
        match stored {
            Ok(new) => POSTS_HYDRATED.increment(new),
            // The source was removed, so the post is dropped.
            Err(StoreError::NoSource) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
