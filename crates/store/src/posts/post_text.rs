//! The searchable texts of posts.
//!
//! Each version that somebody may be shown has one text, which is found by the version's content
//! hash: the post's own content, unless the post is deleted, and the content of each narrower
//! scope. Versions with one hash share their text, so content that moves between scopes takes its
//! text along. All of a post's texts are protected by the row of its instance.

use std::borrow::Cow;

use driftline_core::post_text::PostText;
use driftline_db::{Column, DbError, Row, Tx};

use crate::{new_ids::TakenIds, posts::post::PostVersion, text::without_nul};

/// The text of a version of a post.
pub(crate) struct VersionText<'a> {
    pub(crate) post_id: i64,
    pub(crate) content_hash: i64,
    pub(crate) text: &'a PostText,
}

impl<'a> From<&PostVersion<'a>> for VersionText<'a> {
    fn from(version: &PostVersion<'a>) -> VersionText<'a> {
        VersionText {
            post_id: version.id,
            content_hash: version.post.hashes.content,
            text: &version.post.text,
        }
    }
}

/// Stores the texts of versions, each of which must be there once. The posts' IDs may be from
/// `ids`. The instance must be held.
pub(crate) fn store(
    tx: &mut Tx<'_>,
    instance_id: i64,
    texts: &[VersionText<'_>],
    ids: &TakenIds,
) -> Result<(), DbError> {
    let column = |field: fn(&PostText) -> &str| -> Vec<Cow<'_, str>> {
        let texts = texts.iter().map(|version| without_nul(field(version.text)));
        texts.collect()
    };
    let (joined, labels) = (column(|text| &text.joined), column(|text| &text.labels));
    tx.execute_many_later(
        "insert into post_text (post_id, instance_id, content_hash, extraction, text, labels) {rows}
         on conflict ({key post_id, content_hash + instance_id}) do update
         set extraction = excluded.extraction, text = excluded.text, labels = excluded.labels",
        &[],
        &[
            ids.column(texts.iter().map(|of| of.post_id)),
            Column::i64(texts.iter().map(|_| instance_id)),
            Column::i64(texts.iter().map(|of| of.content_hash)),
            Column::i64(texts.iter().map(|of| of.text.extraction)),
            Column::text(joined.iter().map(|text| &**text)),
            Column::text(labels.iter().map(|text| &**text)),
        ],
    )
}

/// Reads the columns of a text.
pub(crate) fn from_row(row: &Row<'_>) -> Result<PostText, DbError> {
    Ok(PostText {
        extraction: row.i64("extraction")?,
        joined: row.text("text")?,
        labels: row.text("labels")?,
    })
}

/// Removes the texts of versions that posts no longer have. The instance must be held.
pub(crate) fn remove_unused(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: &[i64],
) -> Result<(), DbError> {
    if posts.is_empty() {
        return Ok(());
    }
    tx.execute_later(
        "delete from post_text where post_id {in $1} and instance_id = $2
             and not exists (select 1 from post p
                 where p.id = post_text.post_id and p.instance_id = $2
                     and p.content_hash = post_text.content_hash and p.deleted_at_ms is null)
             and not exists (select 1 from scoped_content c
                 where c.post_id = post_text.post_id and c.instance_id = $2
                     and c.content_hash = post_text.content_hash)",
        &[&Column::i64(posts.iter().copied()), &instance_id],
    )
}
