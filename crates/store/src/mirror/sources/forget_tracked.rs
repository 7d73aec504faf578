//! The removal of tracked posts that are not requested any more.

use driftline_core::upstream_id::UpstreamId;
use driftline_db::Tx;

use crate::mirror::{
    machine::LockedSource,
    source,
    source_removal::{lookups_of, next_posts},
};
use crate::{
    error::StoreError,
    id_types::SourceKey,
    posts::{instance, post},
    refresh::{self, pending_lookup},
    text::without_nul,
};

/// The tracked posts to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// All tracked posts of the source.
    All,
    /// The tracked posts with these upstream IDs.
    Ids(Vec<String>),
}

/// The numbers of removed tracked posts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForgottenCounts {
    /// The number of look-ups, pending or failed. Their IDs are forgotten.
    pub lookups: u64,
    /// The number of stored posts that are not refreshed any more.
    pub posts: u64,
    /// The number of stored posts that another source keeps fresh.
    pub kept: u64,
    /// The number of stored posts that another process is looking up, which stay unchanged.
    pub in_work: u64,
}

/// The tracked posts of a source that [`forget`] would remove.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn forgettable(
    tx: &mut Tx<'_>,
    source: SourceKey,
    which: &Forgotten,
) -> Result<ForgottenCounts, StoreError> {
    let chosen = Chosen::read(tx, source, which)?;
    let mut counts = chosen.counts();
    let states = refresh::states(tx, source.instance_id(), &chosen.post_ids)?;
    counts.posts = states.values().filter(|it| it.due_at_ms.is_some()).count() as u64;
    Ok(counts)
}

/// Removes tracked posts. Posts that were not found yet are not looked up, and stored ones are not
/// refreshed unless another source keeps them fresh. No stored post is deleted. Must be written
/// below [`crate::mirror::source::root`] of the source.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Unreadable`] if a stored
/// value cannot be read; [`StoreError::Db`] if the database fails.
pub fn forget(
    tx: &mut Tx<'_>,
    source: SourceKey,
    which: &Forgotten,
) -> Result<ForgottenCounts, StoreError> {
    let held = LockedSource::load(tx, source, None)?;
    instance::hold(tx, held.instance_id)?;
    let chosen = Chosen::read(tx, source, which)?;
    let mut counts = chosen.counts();
    // A save of a running look-up then finds nothing to save.
    refresh::unschedule(tx, held.instance_id, &chosen.lookup_ids)?;
    pending_lookup::remove(tx, held.instance_id, &chosen.lookup_ids)?;
    (counts.posts, counts.in_work) = refresh::retire(tx, held.instance_id, &chosen.post_ids)?;
    Ok(counts)
}

struct Chosen {
    lookup_ids: Vec<i64>,
    /// The posts that no other source keeps fresh.
    post_ids: Vec<i64>,
    kept: u64,
}

impl Chosen {
    fn read(tx: &mut Tx<'_>, source: SourceKey, which: &Forgotten) -> Result<Self, StoreError> {
        let (instance_id, key) = (source.instance_id(), (source.id(), source.instance_id()));
        let (lookup_ids, mut post_ids) = match which {
            Forgotten::All => {
                let (mut post_ids, mut after) = (Vec::new(), i64::MIN);
                while let Some(next) = next_posts(tx, source, &mut after)? {
                    post_ids.extend(next);
                }
                (lookups_of(tx, source)?, post_ids)
            }
            Forgotten::Ids(ids) => {
                let stable = |id: &String| UpstreamId::from(&*without_nul(id)).stable();
                let ids: Vec<UpstreamId> = ids.iter().map(stable).collect();
                let mut ids: Vec<&str> = ids.iter().map(UpstreamId::as_str).collect();
                ids.sort_unstable();
                ids.dedup();
                let stored = post::known(tx, instance_id, &ids)?;
                let stored: Vec<i64> = stored.values().map(|post| post.id).collect();
                let lookups = pending_lookup::ids(tx, instance_id, &ids)?;
                (lookups, refresh::held_by(tx, key, &stored)?)
            }
        };
        post_ids.sort_unstable();
        post_ids.dedup();
        let all = post_ids.len();
        for other in source::list(tx)? {
            let is_of_it = other.instance.id == source.instance && other.id != source.id;
            if is_of_it && other.refreshing && other.kind.is_polled() {
                let other = other.key();
                let other = (other.id(), other.instance_id());
                let theirs = refresh::held_by(tx, other, &post_ids)?;
                post_ids.retain(|id| !theirs.contains(id));
            }
        }
        Ok(Self {
            lookup_ids,
            kept: (all - post_ids.len()) as u64,
            post_ids,
        })
    }

    fn counts(&self) -> ForgottenCounts {
        ForgottenCounts {
            lookups: self.lookup_ids.len() as u64,
            kept: self.kept,
            ..ForgottenCounts::default()
        }
    }
}
