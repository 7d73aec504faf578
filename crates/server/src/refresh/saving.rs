//! What becomes of answers.

use std::collections::HashMap;

use driftline_core::post::Post;
use driftline_store::{
    SourceId, StoreError,
    instance::Instance,
    refresh::{Answer, Answered, Claim, Found, Save, What, hydrate as hydrate_posts},
    source,
};
use metrics::counter;

use super::{Shared, Tally, teller};
use crate::clock::{chance, now_ms};

/// Saves what was found, schedules the posts again, and tells libraries.
pub(super) async fn save(
    shared: &Shared,
    instance: &Instance,
    claim: Claim,
    answers: Vec<Answered>,
) -> Result<(), StoreError> {
    hydrate(shared, instance, &answers).await?;
    let save = Save {
        claim,
        answers,
        policy: shared.access.policies.of(instance.id),
        keep_deleted: shared.access.keep_deleted,
        now_ms: now_ms(),
        chance: chance(),
    };
    let saved = match shared.claims.save(&shared.store, save).await {
        Ok(saved) => saved,
        Err(StoreError::LeaseLost) => {
            shared.count(instance.id, Tally::lost);
            tracing::info!(instance = %instance.origin, "a claim ended before its answers were saved; they are dropped");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    counter!("driftline_refresh_postponed_total").increment(saved.postponed);
    let policy = shared.access.policies.of(instance.id);
    shared.count(instance.id, |tally| {
        for (_, outcome) in &saved.outcomes {
            tally.saved(*outcome);
        }
        for (before, after) in &saved.grown {
            tally
                .lesson
                .answered(&policy, &before.facts(), after.refreshed_ms);
            let total = after.counts.total() as f64;
            let lesson = &mut tally.lesson;
            lesson.grew(&policy, &before.facts(), after.refreshed_ms, total);
        }
    });
    let news: Vec<_> = saved.news.iter().map(|(post, _)| *post).collect();
    teller::tell_of(shared, instance.id, &news).await
}

/// Stores posts that someone named and that were found; the save then finds their tickets gone.
async fn hydrate(
    shared: &Shared,
    instance: &Instance,
    answers: &[Answered],
) -> Result<(), StoreError> {
    let mut by_source: HashMap<SourceId, Vec<(i64, Box<Post>, i64)>> = HashMap::new();
    for answered in answers {
        if let (What::Wanted { ticket, source }, Answer::Found(post)) =
            (answered.what, &answered.answer)
        {
            let found = (ticket, post.clone(), answered.asked_at_ms);
            by_source.entry(source).or_default().push(found);
        }
    }
    for (source, posts) in by_source {
        let policy = shared.access.policies.of(instance.id);
        let stored = shared
            .store
            .write(source::root(source), move |tx| {
                let found: Vec<Found<'_>> = posts
                    .iter()
                    .map(|(ticket, post, asked_at_ms)| Found {
                        ticket: *ticket,
                        post,
                        asked_at_ms: *asked_at_ms,
                    })
                    .collect();
                hydrate_posts(tx, source, &found, &policy, now_ms())
            })
            .await;
        match stored {
            Ok(new) => counter!("driftline_posts_hydrated_total").increment(new),
            // Its source was removed: nobody wants it any more.
            Err(StoreError::NoSource) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
