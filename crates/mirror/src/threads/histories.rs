//! Edit histories of the posts of threads: versions from before any source showed the posts.

use driftline_core::names::audience::Audience;
use driftline_store::fetched_history::{self, HistoryReaders};

use super::{
    EarlierVersion, InstanceId, KnownRequest, Owner, Post, REMEMBERED_MS, Shared, Source, SourceId,
    StoreError, ThreadRequest, Threads, Tx, UpstreamId, Wanted, instance, now_ms, serves, source,
};

impl Threads {
    /// Fetches the edit histories that the store lacks of posts of a thread, one after the other and at most
    /// [`MAX_HISTORIES`]. One that was requested within an hour is not requested again.
    pub(super) async fn fetch_histories(
        &self,
        client: Owner,
        thread: &ThreadRequest,
        posts: Vec<UpstreamId>,
    ) {
        if posts.is_empty() {
            return;
        }
        let requests = match self.shared.history_requests(client, thread, posts).await {
            Ok(requests) => requests,
            Err(error) => {
                tracing::warn!(%error, "edit histories were not fetched: the store failed");
                return;
            }
        };
        let mut left = MAX_HISTORIES;
        for request in requests {
            let known = self.join_or_start(client, request, REMEMBERED_MS);
            if let KnownRequest::Running(mut running) = known {
                // An error means that the task was dropped with the runtime.
                let _ = running.wait_for(Option::is_some).await;
                left -= 1;
            }
            if left == 0 {
                break;
            }
        }
    }
}

impl Shared {
    /// The requests for the histories that the store lacks, in the order of the posts: each is sent as its post's content
    /// was requested, with a token of the client's own or without one.
    async fn history_requests(
        &self,
        client: Owner,
        thread: &ThreadRequest,
        posts: Vec<UpstreamId>,
    ) -> Result<Vec<ThreadRequest>, StoreError> {
        let (instance, owner) = (thread.instance, thread.owner);
        let find = move |tx: &mut Tx<'_>| {
            let own = source::owned(tx, client)?.into_iter();
            let own = own.filter(|source| serves(source, instance));
            let mut ways: Vec<(Option<SourceId>, Option<Owner>, HistoryReaders)> = own
                .map(|own| (Some(own.id), None, readers(Some(&own), None)))
                .collect();
            let without_token = [owner, None].map(|owner| (None, owner, readers(None, owner)));
            ways.extend(without_token);
            let mut found: Vec<Option<ThreadRequest>> = posts.iter().map(|_| None).collect();
            for (source, owner, readers) in ways {
                for post in fetched_history::lacking(tx, instance, &posts, readers)? {
                    let at = posts.iter().position(|other| *other == post);
                    let Some(slot) = at.and_then(|at| found.get_mut(at)) else {
                        continue;
                    };
                    slot.get_or_insert(ThreadRequest {
                        instance,
                        wanted: Wanted::History(post),
                        source,
                        owner,
                    });
                }
            }
            Ok(found.into_iter().flatten().collect())
        };
        self.store.read(find).await
    }

    /// Stores the earlier versions of a post for those readers.
    pub(super) async fn keep_history(
        &self,
        (id, post): (InstanceId, UpstreamId),
        versions: Vec<EarlierVersion>,
        readers: HistoryReaders,
    ) -> Result<usize, StoreError> {
        if versions.is_empty() {
            return Ok(0);
        }
        let store = move |tx: &mut Tx<'_>| {
            fetched_history::store(tx, id, (&post, &versions), readers, now_ms())
        };
        self.store.write(instance::root(id), store).await
    }
}

/// The people to whom a server shows what is requested with the token of an own source, or else without one.
pub(super) fn readers(own: Option<&Source>, owner: Option<Owner>) -> HistoryReaders {
    match (own, owner) {
        (Some(own), _) => HistoryReaders {
            owner: own.owner,
            audience: own.audience,
        },
        (None, Some(owner)) => HistoryReaders {
            owner,
            audience: Audience::Private,
        },
        (None, None) => HistoryReaders::WORLD,
    }
}

impl Wanted {
    /// The post of a thread that was requested, and the first edited ones of the answer.
    pub(super) fn may_be_edited(&self, answered: &[Post]) -> Vec<UpstreamId> {
        let Wanted::Thread(post) = self else {
            return Vec::new();
        };
        let edited = answered.iter().filter(|post| post.edited_at_ms.is_some());
        let edited = edited.map(|post| post.id.clone()).take(MAX_EDITED);
        std::iter::once(post.clone()).chain(edited).collect()
    }
}

/// Edit histories that are requested after a thread: the one of its post and a few others.
const MAX_HISTORIES: usize = 4;
/// Edited posts of an answer whose histories are looked for in the store.
const MAX_EDITED: usize = 40;
