//! Commands that remove sources.

use driftline_runtime::CommandError;
use driftline_store::{
    Owner, Tx, credential, local_ids,
    source::{self, LastPosts, Removed},
};

use super::{
    Host, PauseSource, PlanRemoval, RemoveSource, RemovedSource, SourceContents, changeable, pause,
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
    let (key, name) = (source.key(), source.name);
    if keep_posts && source.owner != Owner::Operator {
        return Err(CommandError::usage(
            "what only an account's source has goes with it; leave --keep-posts out",
        ));
    }
    let paused = true;
    pause(
        host,
        PauseSource {
            name: name.clone(),
            paused,
        },
    )
    .await?;
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
    if let Owner::Account(account) = source.owner {
        let instance = key.instance;
        let unused = move |tx: &mut Tx<'_>| credential::remove_unused(tx, instance, account);
        host.store.write(local_ids::root(), unused).await?;
    }
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
