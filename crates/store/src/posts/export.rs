//! Exports stored posts in the order of their arrival.

use std::collections::HashMap;

use driftline_core::post::Visibility;
use driftline_db::{Column, DbError, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{LocalId, SourceKey, from_sql, sql},
    posts::find,
};

/// An entry with its post, to export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRow {
    /// Its ID.
    pub id: LocalId,
    /// Its post's ID.
    pub post_id: LocalId,
    /// Its number in the order of arrival: the next export goes on after it.
    pub first_usn: i64,
    /// Its last USN.
    pub usn: i64,
    /// When it was stored, Unix ms.
    pub arrived_at_ms: i64,
    /// Since when the source lists its post no more, which is not known to be deleted, Unix ms.
    pub left_at_ms: Option<i64>,
    /// The post.
    pub post: ExportPost,
}

/// A stored post, to export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportPost {
    /// Its ID at the upstream.
    pub upstream_id: String,
    /// Its name across servers.
    pub uri: Option<String>,
    /// Its address for people.
    pub url: Option<String>,
    /// When its author says that it was written, Unix ms.
    pub created_at_ms: Option<i64>,
    /// When it was last edited, Unix ms.
    pub edited_at_ms: Option<i64>,
    /// When its deletion was noticed, Unix ms.
    pub deleted_at_ms: Option<i64>,
    /// Who may see it at the upstream.
    pub visibility: Visibility,
    /// The post as it came, JSON; `None` for a tombstone.
    pub raw: Option<String>,
}

/// A stored post; a deleted one as its tombstone.
pub fn post(tx: &mut Tx<'_>, id: LocalId) -> Result<Option<ExportPost>, StoreError> {
    let Some(instance) = find::instance_of(tx, id)? else {
        return Ok(None);
    };
    let found = tx.query_opt(
        &format!("select {COLUMNS} from post where id = $1 and instance_id = $2"),
        &[&sql(id), &sql(instance)],
        from_row,
    )?;
    Ok(found.map(|(_, post)| post))
}

/// Entries of a source that arrived after `after_first_usn`, in order of arrival.
pub fn rows(
    tx: &mut Tx<'_>,
    source: SourceKey,
    after_first_usn: i64,
    limit: u32,
) -> Result<Vec<ExportRow>, StoreError> {
    let entries = tx.query(
        "select id, post_id, first_usn, usn, arrived_at_ms, left_at_ms from entry
         where source_id = $1 and instance_id = $4 and first_usn > $2
         order by first_usn limit $3",
        &[
            &source.id(),
            &after_first_usn,
            &limit,
            &source.instance_id(),
        ],
        |row| {
            Ok((
                from_sql(row.i64("id")?)?,
                row.i64("post_id")?,
                row.i64("first_usn")?,
                row.i64("usn")?,
                row.i64("arrived_at_ms")?,
                row.opt_i64("left_at_ms")?,
            ))
        },
    )?;
    let ids = Column::i64(entries.iter().map(|(_, post_id, ..)| *post_id));
    let posts: HashMap<i64, ExportPost> = tx
        .query(
            &format!("select {COLUMNS} from post where id {{in $1}} and instance_id = $2"),
            &[&ids, &source.instance_id()],
            from_row,
        )?
        .into_iter()
        .collect();
    entries
        .into_iter()
        .map(|(id, post_id, first_usn, usn, arrived_at_ms, left_at_ms)| {
            let post = posts
                .get(&post_id)
                .cloned()
                .ok_or_else(|| StoreError::unreadable("an entry", &"its post is missing"))?;
            Ok(ExportRow {
                id,
                post_id: from_sql(post_id)?,
                first_usn,
                usn,
                arrived_at_ms,
                left_at_ms,
                post,
            })
        })
        .collect()
}

/// The columns that [`from_row`] reads.
const COLUMNS: &str = "id, upstream_id, uri, url, created_at_ms, edited_at_ms, deleted_at_ms,
    visibility, raw";

fn from_row(row: &Row<'_>) -> Result<(i64, ExportPost), DbError> {
    let post = ExportPost {
        upstream_id: row.text("upstream_id")?,
        uri: row.opt_text("uri")?,
        url: row.opt_text("url")?,
        created_at_ms: row.opt_i64("created_at_ms")?,
        edited_at_ms: row.opt_i64("edited_at_ms")?,
        deleted_at_ms: row.opt_i64("deleted_at_ms")?,
        visibility: Visibility::named_or_narrowest(row.str("visibility")?),
        raw: row.opt_text("raw")?,
    };
    Ok((row.i64("id")?, post))
}
