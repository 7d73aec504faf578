//! Tells the libraries of sources what a refresh changed.

use std::sync::Arc;

use driftline_store::{
    InstanceId, LocalId, Root, StoreError,
    refresh::{Untold, forget_told, tell, untold, untold_of},
    source,
};

use super::Shared;

/// Tells every source of the instance of what is noted about those posts.
pub(crate) async fn tell_of(
    shared: &Shared,
    instance: InstanceId,
    posts: &[LocalId],
) -> Result<(), StoreError> {
    if posts.is_empty() {
        return Ok(());
    }
    let posts = posts.to_vec();
    let notes = shared
        .read(move |tx| untold_of(tx, instance, &posts))
        .await?;
    tell_all(shared, instance, notes).await
}

/// Tells what was noted before a time and nobody told.
pub(crate) async fn tell_what_is_left(
    shared: &Shared,
    instance: InstanceId,
    until_ms: i64,
) -> Result<(), StoreError> {
    let notes = shared
        .read(move |tx| untold(tx, instance, until_ms, MOST))
        .await?;
    tell_all(shared, instance, notes).await
}

async fn tell_all(
    shared: &Shared,
    instance: InstanceId,
    notes: Vec<Untold>,
) -> Result<(), StoreError> {
    if notes.is_empty() {
        return Ok(());
    }
    let notes = Arc::new(notes);
    let sources = shared.read(source::list).await?;
    for source in sources.into_iter().filter(|s| s.instance.id == instance) {
        let (id, notes) = (source.id, Arc::clone(&notes));
        let told = shared
            .store
            .write(source::root(id), move |tx| tell(tx, id, &notes))
            .await;
        match told {
            // Removed meanwhile: there is no library to tell.
            Ok(_) | Err(StoreError::NoSource) => {}
            Err(error) => return Err(error),
        }
    }
    shared
        .store
        .write(Root::none(), move |tx| forget_told(tx, instance, &notes))
        .await
}

const MOST: u32 = 1_000;
