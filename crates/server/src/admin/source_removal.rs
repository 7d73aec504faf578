//! Commands that remove sources.

use driftline_runtime::CommandError;
use driftline_store::source::{self, LastPosts, Removed};

use super::{
    Host, PauseSource, PausedSource, PlanRemoval, RemoveSource, RemovedSource, SourceContents,
    find, pause, space::give_back_after_removal,
};

/// What goes with a source if it is removed now.
pub(super) async fn plan(
    host: &Host,
    request: PlanRemoval,
) -> Result<SourceContents, CommandError> {
    let source = find(&host.store, &request.name).await?;
    let key = source.key();
    let removed = host.store.read(move |tx| source::removal(tx, key)).await?;
    Ok(contents(removed))
}

/// Removes a source.
pub(super) async fn remove(
    host: &Host,
    request: RemoveSource,
) -> Result<RemovedSource, CommandError> {
    let RemoveSource { name, keep_posts } = request;
    let paused = true;
    let PausedSource { name, .. } = pause(host, PauseSource { name, paused }).await?;
    let key = find(&host.store, &name).await?.key();
    let last_posts = match keep_posts {
        true => LastPosts::Keep,
        false => LastPosts::Remove,
    };
    let removed = host
        .store
        .write(source::root(key), move |tx| {
            source::remove(tx, key, last_posts)
        })
        .await?;
    give_back_after_removal(host).await;
    Ok(RemovedSource {
        name,
        keep_posts,
        contents: contents(removed),
    })
}

fn contents(removed: Removed) -> SourceContents {
    SourceContents {
        entries: removed.entries,
        posts: removed.posts,
        gaps: removed.gaps,
        lookups: removed.lookups,
        unreadable: removed.unreadable,
    }
}
