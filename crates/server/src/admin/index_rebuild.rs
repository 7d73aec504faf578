//! Commands that rebuild the search index.

use driftline_mastodon::{TEXT_EXTRACTION, text_of_json};
use driftline_runtime::CommandError;
use driftline_store::{
    LocalId, Store, StoreError, Tx, instance,
    text_rebuild::{count_posts, next_portion, rebuild},
};

use super::{Host, IndexPlan, IndexPortion, PlanIndexRebuild, RebuildIndex};

/// The extent of a rebuild.
pub(super) async fn plan(
    host: &Host,
    _request: PlanIndexRebuild,
) -> Result<IndexPlan, CommandError> {
    let posts = host.store.read(count_posts).await?;
    Ok(IndexPlan { posts })
}

/// Rebuilds the texts of the next posts, in a transaction for each of their instances.
pub(super) async fn rebuild_next(
    host: &Host,
    request: RebuildIndex,
) -> Result<IndexPortion, CommandError> {
    Ok(rebuild_portion(&host.store, request.after).await?)
}

/// Rebuilds the texts of the next posts after one.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub(crate) async fn rebuild_portion(
    store: &Store,
    after: Option<LocalId>,
) -> Result<IndexPortion, StoreError> {
    let portion = store
        .read(move |tx| next_portion(tx, after, TEXT_EXTRACTION))
        .await?;
    let Some(portion) = portion else {
        return Ok(IndexPortion::default());
    };
    let mut texts = 0;
    for (id, posts) in portion.outdated {
        let write = move |tx: &mut Tx<'_>| rebuild(tx, id, &posts, text_of_json);
        texts += store.write(instance::root(id), write).await?;
    }
    Ok(IndexPortion {
        posts: portion.posts,
        texts,
        next: Some(portion.last),
    })
}
