//! The searchable texts of posts.
//!
//! Each version that somebody may be shown has one text, which is found by the version's content
//! hash: the post's own content, unless the post is deleted, and the content of each narrower
//! scope. Versions with one hash share their text, so content that moves between scopes takes its
//! text along. All of a post's texts are protected by the row of its instance.
//!
//! A server may change mentions, a preview and other things with labels without an edit, so versions with one hash may
//! differ in labels. Their text then has the labels of all, and keeps those that the server takes away.

use std::borrow::Cow;

use driftline_core::post_text::PostText;
use driftline_db::{Column, DbError, Row, Tx};

use crate::{
    new_ids::TakenIds,
    posts::{index_pending, post::PostVersion},
    text::without_nul,
};

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
///
/// A text that is there gets the labels, too.
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
    let both = labels_of_both("post_text.labels", "excluded.labels");
    tx.execute_many_later(
        &format!(
            "insert into post_text (post_id, instance_id, content_hash, extraction, text, labels) {{rows}}
             on conflict ({{key post_id, content_hash + instance_id}}) do update
             set extraction = excluded.extraction, text = excluded.text, labels = {both}"
        ),
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

/// Adds the labels of versions to their texts, and the posts whose texts lacked some to those that the search index
/// has still to read. The posts must be different ones, and all be stored. The instance need not be held, because labels
/// are only added.
pub(crate) fn add_labels(
    tx: &mut Tx<'_>,
    instance_id: i64,
    versions: &[PostVersion<'_>],
) -> Result<(), DbError> {
    // All writes lock rows in one order.
    let mut texts: Vec<VersionText<'_>> = versions.iter().map(VersionText::from).collect();
    texts.sort_unstable_by_key(|version| version.post_id);
    let labels: Vec<_> = texts
        .iter()
        .map(|version| without_nul(&version.text.labels))
        .collect();
    let columns = [
        Column::i64(texts.iter().map(|of| of.post_id)),
        Column::i64(texts.iter().map(|of| of.content_hash)),
        Column::text(labels.iter().map(|text| &**text)),
    ];
    let lacks = lacks_labels("t.labels", "r.labels");
    let is_changed = format!(
        "exists (select 1 from post_text t where t.post_id = r.post_id and t.content_hash = r.content_hash
             and t.instance_id = $1 and {lacks})"
    );
    index_pending::add_where(
        tx,
        instance_id,
        "r(post_id, content_hash, labels)",
        &is_changed,
        &columns,
    )?;
    let lacks = lacks_labels("post_text.labels", "r.labels");
    let both = labels_of_both("post_text.labels", "r.labels");
    tx.execute_many_later(
        &format!(
            "update post_text set labels = {both} from {{rows as r(post_id, content_hash, labels)}}
             where post_text.post_id = r.post_id and post_text.content_hash = r.content_hash
                 and post_text.instance_id = $1 and {lacks}"
        ),
        &[&instance_id],
        &columns,
    )
}

/// True if labels are not among others in this order.
fn lacks_labels(known: &str, new: &str) -> String {
    format!("{new} <> '' and not ({})", contains_labels(known, new))
}

fn contains_labels(known: &str, new: &str) -> String {
    let end = PostText::SEPARATOR;
    let known = format!("'{end}' || {known} || '{end}'");
    format!("replace({known}, '{end}' || {new} || '{end}', '') <> {known}")
}

/// The labels of two texts, some of which may be there twice.
fn labels_of_both(known: &str, new: &str) -> String {
    let end = PostText::SEPARATOR;
    format!(
        "case when {new} = '' or {} then {known} when {known} = '' or {} then {new}
             else {new} || '{end}' || {known} end",
        contains_labels(known, new),
        contains_labels(new, known),
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
