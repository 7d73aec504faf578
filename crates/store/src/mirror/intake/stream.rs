use std::{collections::BTreeMap, sync::Arc};

use driftline_core::{
    answer::Event,
    post::{Post, PostKind},
    refresh::Policy,
    timeline::{IdScheme, session::PageCommit},
    upstream_id::{Key, UpstreamId},
};
use driftline_db::Tx;

use crate::{
    error::StoreError,
    id_types::SourceKey,
    mirror::{
        CommitSummary, absence,
        deletion::{self, Gone},
        entry,
        machine::LockedSource,
        observation::{IntakeContext, PostObservation},
        post_intake,
    },
    posts::post,
};

/// An event of a stream, with the time of its arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedEvent {
    /// The event.
    pub event: Event,
    /// The time of its arrival, in Unix ms by the local clock.
    pub received_at_ms: i64,
}

/// Events to commit, in the order of their arrival.
#[derive(Clone, Copy, Debug)]
pub struct CommitEvents<'a> {
    /// The source; the write's root is [`crate::mirror::source::root`] of it.
    pub source: SourceKey,
    /// The lease's fencing number, if there is a lease.
    pub fence: Option<i64>,
    /// The order of the source's IDs.
    pub scheme: &'a IdScheme,
    /// The events.
    pub events: &'a [ReceivedEvent],
    /// The policy for refreshing posts from now on.
    pub policy: &'a Policy,
    /// True if a deleted post's content is kept in its history; otherwise it is erased.
    pub keep_deleted: bool,
    /// The present time in Unix ms.
    pub now_ms: i64,
}

/// Commits a stream's events. Their posts are stored with their entries at once, but they prove
/// nothing. The machine and its ledger stay unchanged, and to both a post is new until a page shows
/// it.
///
/// Edits and deletions of posts that the source does not have are ignored, because pages bring
/// missing posts. No event revives a post, because events may arrive out of order; a page does.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::LeaseLost`] if another
/// worker has taken over the source; [`StoreError::Unreadable`] if a stored value cannot be read;
/// [`StoreError::Db`] if the database fails.
pub fn commit_events(
    tx: &mut Tx<'_>,
    commit: &CommitEvents<'_>,
) -> Result<CommitSummary, StoreError> {
    let mut source = LockedSource::load(tx, commit.source, commit.fence)?;
    let mut summary = CommitSummary::default();
    let mut shown: Vec<ShownPost<'_>> = Vec::new();
    let (policy, now_ms) = (commit.policy, commit.now_ms);
    let take_in = |tx: &mut Tx<'_>, source: &mut _, shown: &mut Vec<_>, summary: &mut _| {
        let context = IntakeContext::answered(asked_at_ms(shown), now_ms, policy);
        let shown = std::mem::take(shown);
        take_in(tx, source, commit.scheme, &shown, context, summary)
    };
    for arrived in commit.events {
        let (post, how) = match &arrived.event {
            Event::Posted(post) => (post, ShownPost::New),
            Event::Edited(post) => (post, ShownPost::Edited),
            Event::Deleted(id) => {
                take_in(tx, &mut source, &mut shown, &mut summary)?;
                let ended = delete(tx, &mut source, commit, id, arrived.received_at_ms)?;
                summary.deleted += ended.deleted;
                summary.left += ended.left;
                continue;
            }
        };
        let Ok(key) = commit.scheme.key(&post.id) else {
            continue;
        };
        if shown.iter().any(|other| other.key == key) {
            take_in(tx, &mut source, &mut shown, &mut summary)?;
        }
        shown.push(ShownPost {
            key,
            post,
            how,
            asked_at_ms: arrived.received_at_ms,
        });
    }
    take_in(tx, &mut source, &mut shown, &mut summary)?;
    source.library.save(tx)?;
    summary.update_count = source.library.update_count;
    Ok(summary)
}

/// Posts of pages to store before the pages are committed.
#[derive(Clone, Copy, Debug)]
pub struct StorePosts<'a> {
    /// The source; the write's root is [`crate::mirror::source::root`] of it.
    pub source: SourceKey,
    /// The lease's fencing number, if there is a lease.
    pub fence: Option<i64>,
    /// The order of the source's IDs.
    pub scheme: &'a IdScheme,
    /// The pages, in the order of their answers.
    pub pages: &'a [Arc<PageCommit>],
    /// The policy for refreshing posts from now on.
    pub policy: &'a Policy,
    /// The present time in Unix ms.
    pub now_ms: i64,
}

/// Stores the posts of pages that the source does not have, the oldest first, like a stream's
/// posts: they prove nothing, and to the machine each is new until its page is committed.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::LeaseLost`] if another
/// worker has taken over the source; [`StoreError::Unreadable`] if a stored value cannot be read;
/// [`StoreError::Db`] if the database fails.
pub fn store_posts(tx: &mut Tx<'_>, store: &StorePosts<'_>) -> Result<CommitSummary, StoreError> {
    let mut source = LockedSource::load(tx, store.source, store.fence)?;
    let mut posts: BTreeMap<&Key, ShownPost<'_>> = BTreeMap::new();
    for PageCommit { reading, page, .. } in store.pages.iter().map(|page| &**page) {
        let listed = reading.keys.iter().zip(&page.listed);
        posts.extend(listed.map(|(key, listed)| {
            let shown = ShownPost {
                key: key.clone(),
                post: &listed.post,
                how: ShownPost::New,
                asked_at_ms: page.headers.sent_at_ms,
            };
            (key, shown)
        }));
    }
    let shown: Vec<ShownPost<'_>> = posts.into_values().collect();
    let context = IntakeContext::answered(asked_at_ms(&shown), store.now_ms, store.policy);
    let mut summary = CommitSummary::default();
    take_in(tx, &mut source, store.scheme, &shown, context, &mut summary)?;
    source.library.save(tx)?;
    summary.update_count = source.library.update_count;
    Ok(summary)
}

/// A post shown by an event or a page.
struct ShownPost<'a> {
    key: Key,
    post: &'a Post,
    how: ShownPost,
    /// The time of its arrival, or of its page's request, in Unix ms.
    asked_at_ms: i64,
}

/// The way in which a post is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShownPost {
    /// The post appeared, or a page lists it. It is stored only if the source does not have it. An
    /// event may arrive late, after a newer version in the source; a page's commit does the rest.
    New,
    /// The post was edited. It is stored only if the source has it.
    Edited,
}

/// The earliest of their times.
fn asked_at_ms(shown: &[ShownPost<'_>]) -> i64 {
    let times = shown.iter().map(|shown| shown.asked_at_ms);
    times.min().unwrap_or(i64::MIN)
}

fn take_in(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    scheme: &IdScheme,
    shown: &[ShownPost<'_>],
    context: IntakeContext<'_>,
    summary: &mut CommitSummary,
) -> Result<(), StoreError> {
    if shown.is_empty() {
        return Ok(());
    }
    let positions: Vec<&str> = shown.iter().map(|shown| shown.key.as_str()).collect();
    let mut entries = entry::at(tx, source.key, &positions)?;
    let observations: Vec<PostObservation<'_>> = shown
        .iter()
        .filter_map(|shown| {
            let position = shown.key.as_str();
            let entry = entries.remove(position);
            let is_taken = match shown.how {
                ShownPost::New => entry.is_none(),
                ShownPost::Edited => entry.is_some(),
            };
            // Only a page shows that the source lists it again.
            let unlisted = entry
                .as_ref()
                .and_then(entry::KnownEntry::unlisted_since_ms);
            if !is_taken || unlisted.is_some() {
                return None;
            }
            let position_ms = scheme.time_ms(&shown.key);
            Some(PostObservation::new(
                shown.post,
                position,
                position_ms,
                entry,
            ))
        })
        .filter(PostObservation::may_be_news)
        .collect();
    let context = IntakeContext {
        streamed: true,
        ..context
    };
    let taken = post_intake::take_in(tx, source, &observations, context)?;
    summary.new += taken.new;
    summary.edited += taken.edited;
    summary.revived += taken.revived;
    Ok(())
}

fn delete(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    commit: &CommitEvents<'_>,
    id: &UpstreamId,
    received_at_ms: i64,
) -> Result<CommitSummary, StoreError> {
    let mut ended = CommitSummary::default();
    let Ok(key) = commit.scheme.key(id) else {
        return Ok(ended);
    };
    let Some(entry) = entry::at(tx, source.key, &[key.as_str()])?.remove(key.as_str()) else {
        return Ok(ended);
    };
    // An unboost is not a deletion.
    let posts = post::by_ids(tx, (source.instance_id, source.scope), &[entry.post_id])?;
    if posts.values().any(|post| post.kind == PostKind::Boost) {
        if !entry.gone {
            absence::end(tx, source, &[entry.id], received_at_ms)?;
            ended.left = 1;
        }
        return Ok(ended);
    }
    let gone = Gone {
        id,
        asked_at_ms: received_at_ms,
        received_at_ms,
        keep: commit.keep_deleted,
        now_ms: commit.now_ms,
    };
    ended.deleted = deletion::take_in(tx, source, gone)?;
    Ok(ended)
}
