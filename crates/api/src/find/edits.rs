use driftline_store::{
    StoreError, Tx,
    edited_post::EditedPost,
    history,
    timeline::{self, Pick as _, TimelinePost, Viewer},
    viewer::ReadableSources,
};

use super::Search;

impl Search {
    /// Returns those of some edited posts that the predicate selects for a viewer and did not select
    /// before the edit, each at the viewer's place for it, the newest first. An edit of a copy that
    /// the viewer is not shown changes nothing.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub fn selected_by_edits(
        &self,
        tx: &mut Tx<'_>,
        edited: &[EditedPost],
        viewer: Viewer,
        now_ms: i64,
    ) -> Result<Vec<TimelinePost>, StoreError> {
        let keys: Vec<_> = edited.iter().map(|post| post.key).collect();
        let mut shown = timeline::by_post_ids(tx, &keys, viewer)?;
        shown.retain(|requested, post| post.post_id == *requested);
        let mut posts: Vec<TimelinePost> = shown.into_values().collect();
        posts.sort_by_key(|post| std::cmp::Reverse(post.id));
        let readable = ReadableSources::load(tx, viewer)?;
        let selected = self.selection(tx, &readable, now_ms)?.pick(tx, posts)?;
        let mut entering = Vec::new();
        for post in selected {
            let edit = edited.iter().find(|edit| edit.key.post == post.post_id);
            let since_seq = edit.map(|edit| edit.seq);
            let before = self.selected_before(tx, &post, since_seq, viewer, now_ms)?;
            if before == Some(false) {
                entering.push(post);
            }
        }
        Ok(entering)
    }

    /// Returns true if the predicate selects the version of a post that an edit ended: the first one
    /// from `since_seq` on, or the last one. `None` if the viewer was not shown that version.
    pub(super) fn selected_before(
        &self,
        tx: &mut Tx<'_>,
        post: &TimelinePost,
        since_seq: Option<i64>,
        viewer: Viewer,
        now_ms: i64,
    ) -> Result<Option<bool>, StoreError> {
        let Some(raw) = history::before_edit(tx, post.key(), since_seq, viewer)? else {
            return Ok(None);
        };
        let before = TimelinePost {
            raw,
            ..post.clone()
        };
        let readable = ReadableSources::load(tx, viewer)?;
        let selection = self.selection(tx, &readable, now_ms)?;
        let selected = selection.selected(tx, &[before])?;
        Ok(selected.first().copied())
    }
}
