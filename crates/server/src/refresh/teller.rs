//! Tells the libraries of sources what a refresh changed.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use driftline_store::{
    InstanceId, LocalId, Root, SourceId, StoreError,
    refresh::{Untold, forget_told, listed_in, tell, untold, untold_of},
    source,
};

use super::Shared;

/// Tells every source of the instance of what is noted about those posts. What one of them cannot
/// be told is noted still, and keeps nothing else from being told.
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

/// What was told to some sources while another could not be told: its note stays, and who has heard
/// it does not hear it twice.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<HashSet<(SourceId, LocalId, i64)>>);

impl Told {
    /// What of it the source has not heard.
    fn news(&self, source: SourceId, notes: &[Untold]) -> Vec<Untold> {
        let told = self.lock();
        let is_news = |note: &&Untold| !told.contains(&(source, note.post, note.since_ms));
        notes.iter().filter(is_news).copied().collect()
    }

    fn heard(&self, sources: &[SourceId], notes: &[Untold]) {
        let mut told = self.lock();
        for source in sources {
            told.extend(notes.iter().map(|note| (*source, note.post, note.since_ms)));
        }
    }

    /// What has been told to all, or was noted anew, is not asked about any more.
    fn forget(&self, notes: &[Untold]) {
        let mut told = self.lock();
        if !told.is_empty() {
            let over: HashSet<LocalId> = notes.iter().map(|note| note.post).collect();
            told.retain(|(_, post, _)| !over.contains(post));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(SourceId, LocalId, i64)>> {
        // The set is whole after each of its changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn tell_all(
    shared: &Shared,
    instance: InstanceId,
    notes: Vec<Untold>,
) -> Result<(), StoreError> {
    if notes.is_empty() {
        return Ok(());
    }
    let sources = shared.read(source::list).await?;
    let (mut heard, mut kept) = (Vec::new(), HashSet::new());
    for source in sources.into_iter().filter(|s| s.instance.id == instance) {
        let (id, news) = (source.id, Arc::new(shared.told.news(source.id, &notes)));
        if news.is_empty() {
            heard.push(id);
            continue;
        }
        let told = {
            let news = Arc::clone(&news);
            shared
                .store
                .write(source::root(id), move |tx| tell(tx, id, &news))
                .await
        };
        match told {
            Ok(_) => heard.push(id),
            // Removed meanwhile: there is no library to tell.
            Err(StoreError::NoSource) => {}
            Err(error) => {
                tracing::warn!(source = %source.name, %error, "its library could not be told what was refreshed; trying again");
                kept.extend(shared.read(move |tx| listed_in(tx, id, &news)).await?);
            }
        }
    }
    let (kept, told): (Vec<_>, Vec<_>) = notes
        .into_iter()
        .partition(|note| kept.contains(&note.post));
    shared.told.forget(&told);
    shared.told.heard(&heard, &kept);
    shared
        .store
        .write(Root::none(), move |tx| forget_told(tx, instance, &told))
        .await
}

const MOST: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_heard_a_note_does_not_hear_it_twice() {
        let note = |post: u64, since_ms| Untold {
            post: LocalId::from(post),
            counts: true,
            since_ms,
        };
        let (one, other) = (SourceId::from(1), SourceId::from(2));
        let told = Told::default();
        told.heard(&[one], &[note(7, 10)]);
        assert_eq!(told.news(one, &[note(7, 10), note(8, 10)]), [note(8, 10)]);
        assert_eq!(told.news(other, &[note(7, 10)]), [note(7, 10)]);
        assert_eq!(told.news(one, &[note(7, 11)]), [note(7, 11)], "noted anew");
        told.forget(&[note(7, 10)]);
        assert_eq!(told.news(one, &[note(7, 10)]), [note(7, 10)]);
    }
}
