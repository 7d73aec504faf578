//! Commands that remove sources.

use driftline_runtime::CommandError;
use driftline_store::{
    Owner, StoreError, Tx, credential, local_ids,
    source::{self, LastPosts, Removed, Source},
};

use super::{
    Host, PlanRemoval, RemoveSource, RemovedSource, SourceContents, changeable, set_paused,
    space::give_back_after_removal,
};

/// What goes with a source if it is removed now.
pub(super) async fn plan(
    host: &Host,
    request: PlanRemoval,
) -> Result<SourceContents, CommandError> {
    let source = changeable(host, &request.name).await?;
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
    let source = changeable(host, &name).await?;
    if keep_posts && source.owner != Owner::Operator {
        return Err(CommandError::usage(
            "what only an account's source has goes with it; leave --keep-posts out",
        ));
    }
    let last_posts = match keep_posts {
        true => LastPosts::Keep,
        false => LastPosts::Remove,
    };
    let removed = remove_source(host, &source, last_posts).await?;
    give_back_after_removal(host).await;
    Ok(RemovedSource {
        name: source.name,
        keep_posts,
        contents: contents(removed),
    })
}

/// Removes a source, whoever owns it.
pub(super) async fn remove_source(
    host: &Host,
    source: &Source,
    last_posts: LastPosts,
) -> Result<Removed, StoreError> {
    let key = source.key();
    set_paused(host, key, true).await?;
    let removed = host
        .store
        .write(source::root(key), move |tx| {
            source::remove(tx, key, last_posts)
        })
        .await?;
    if let Owner::Account(account) = source.owner {
        let instance = key.instance;
        let unused = move |tx: &mut Tx<'_>| credential::remove_unused(tx, instance, account);
        host.store.write(local_ids::root(), unused).await?;
    }
    Ok(removed)
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
