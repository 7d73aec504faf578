use driftline_core::predicate::Predicate;
use driftline_store::{
    LocalId, StoreError, Tx,
    social::list_entry::{self, ListEntry, ListKey},
    timeline::{self, Pick as _, Range, Stretch, TimelinePost, Viewer},
    viewer::ReadableSources,
};

use super::{Search, SearchError, selection::Selection};
use crate::transport::Address;

/// The timeline of a list with a predicate: the posts that the predicate selects, each at its entry in
/// the list if it has one, else at the viewer's place for it.
#[derive(Debug)]
pub struct SavedTimeline {
    search: Search,
    list: ListKey,
}

impl SavedTimeline {
    /// Prepares the timeline of a list, like [`Search::new`].
    ///
    /// # Errors
    /// [`SearchError::Usage`] if the predicate has a term that searches do not accept.
    pub fn new(
        list: ListKey,
        predicate: Predicate,
        address: &Address,
    ) -> Result<SavedTimeline, SearchError> {
        let mut search = Search::new(predicate, address)?;
        search.list = Some(list);
        Ok(SavedTimeline { search, list })
    }

    /// The search that reads the timeline.
    pub fn into_search(self) -> Search {
        self.search
    }

    /// Returns a post, or a copy of it, at its place in the list; `None` if it is not in the list.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub(crate) fn post(
        &self,
        tx: &mut Tx<'_>,
        post: LocalId,
        now_ms: i64,
    ) -> Result<Option<TimelinePost>, StoreError> {
        let viewer = self.viewer();
        let Some(found) = self.search.selected(tx, post, viewer, now_ms)? else {
            return Ok(None);
        };
        self.at_its_place(tx, found).map(Some)
    }

    /// Moves a post to its place in the list, which it has even if the predicate does not select it.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub(crate) fn at_its_place(
        &self,
        tx: &mut Tx<'_>,
        post: TimelinePost,
    ) -> Result<TimelinePost, StoreError> {
        let entries = list_entry::of_posts(tx, self.list, std::slice::from_ref(&post))?;
        let id = entries.get(&post.id).copied().unwrap_or(post.id);
        Ok(TimelinePost { id, ..post })
    }

    /// True if the predicate selected the last version of a post that an edit ended, or the owner
    /// was not shown it.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub(crate) fn selected_before_edit(
        &self,
        tx: &mut Tx<'_>,
        post: &TimelinePost,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let viewer = self.viewer();
        let selected = self
            .search
            .selected_before(tx, post, None, viewer, now_ms)?;
        Ok(selected.unwrap_or(true))
    }

    /// Returns the posts of entries that the predicate selects, each at its entry.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub(crate) fn entered(
        &self,
        tx: &mut Tx<'_>,
        entries: &[ListEntry],
        now_ms: i64,
    ) -> Result<Vec<TimelinePost>, StoreError> {
        let readable = ReadableSources::load(tx, self.viewer())?;
        let selection = self.search.selection(tx, &readable, now_ms)?;
        entered(tx, entries, &selection)
    }

    fn viewer(&self) -> Viewer {
        Viewer::Account(self.list.account)
    }
}

/// Adds the posts of a list's entries in a range to what was found at the viewer's places in it.
pub(super) fn with_entries(
    tx: &mut Tx<'_>,
    list: ListKey,
    range: &Range,
    found: Stretch,
    selection: &Selection<'_>,
) -> Result<Stretch, StoreError> {
    let entries = list_entry::page(tx, list, range)?;
    if entries.is_empty() {
        return Ok(found);
    }
    let posts = entered(tx, &entries, selection)?;
    Ok(merge(range, found, &entries, posts))
}

fn entered(
    tx: &mut Tx<'_>,
    entries: &[ListEntry],
    selection: &Selection<'_>,
) -> Result<Vec<TimelinePost>, StoreError> {
    let keys: Vec<_> = entries.iter().map(|entry| entry.key).collect();
    let mut found = timeline::by_post_ids(tx, &keys, selection.viewer())?;
    let posts = entries.iter().filter_map(|entry| {
        let post = found.remove(&entry.key.post)?;
        Some(TimelinePost {
            id: entry.id,
            ..post
        })
    });
    let posts: Vec<TimelinePost> = posts.collect();
    selection.pick(tx, posts)
}

/// Merges what was found at the viewer's places in a range with the selected posts of the first
/// entries in it.
fn merge(
    range: &Range,
    found: Stretch,
    entries: &[ListEntry],
    entered: Vec<TimelinePost>,
) -> Stretch {
    let is_upward = range.min.is_some();
    let limit = usize::from(range.limit);
    let last = |ids: &mut dyn Iterator<Item = LocalId>| match is_upward {
        true => ids.max(),
        false => ids.min(),
    };
    // Both were read up to some ID, or to the end of the range.
    let mut found_up_to = found.rest.and_then(|rest| match is_upward {
        true => rest.min,
        false => rest.max,
    });
    if found.posts.len() >= limit {
        found_up_to = last(&mut found.posts.iter().map(|post| post.id));
    }
    let mut entered_up_to = None;
    if entries.len() >= limit {
        entered_up_to = last(&mut entries.iter().map(|entry| entry.id));
    }
    let up_to = match (found_up_to, entered_up_to) {
        (Some(one), Some(other)) if is_upward => Some(one.min(other)),
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
    let is_read = |id: LocalId| {
        up_to.is_none_or(|end| match is_upward {
            true => id <= end,
            false => id >= end,
        })
    };
    let mut posts = found.posts;
    posts.extend(entered);
    posts.retain(|post| is_read(post.id));
    posts.sort_by_key(|post| std::cmp::Reverse(post.id));
    let surplus = posts.len().saturating_sub(limit);
    match is_upward {
        true => drop(posts.drain(..surplus)),
        false => posts.truncate(limit),
    }
    let rest = up_to.filter(|_| posts.len() < limit).map(|end| {
        let (min, max) = match is_upward {
            true => (Some(end), range.max),
            false => (range.min, Some(end)),
        };
        let missing = limit - posts.len();
        Range {
            min,
            max,
            limit: u16::try_from(missing).unwrap_or(range.limit),
            ..*range
        }
    });
    Stretch { posts, rest }
}

#[cfg(test)]
mod tests;
