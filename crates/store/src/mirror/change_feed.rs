//! The feed of changes to the posts of sources, in the order of their USNs.
//!
//! A source's USNs become visible in their order, because a transaction that takes one locks the
//! source's row until its commit. So a reader that knows all changes up to a USN misses nothing
//! when it continues after it. Of several changes of one entry only the last is listed, with the
//! present state.

use driftline_core::{
    feed::{ChangeKind, FeedPosition},
    names::audience::Audience,
    post::Visibility,
};
use driftline_db::{Column, ToValue, Tx};

use crate::{
    error::StoreError,
    id_types::{SourceId, SourceKey, from_sql, sql},
    library,
    mirror::source_kind::IS_LISTED,
    posts::{
        export::{self, ExportEntry, ExportRow},
        timeline::PostKey,
    },
    viewer::{Owner, Viewer},
};

/// A change to a post in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its USN in the source.
    pub usn: i64,
    /// The kind of change.
    pub kind: ChangeKind,
    /// True if the entry is history: its post existed before the source was added, or was
    /// requested.
    pub is_history: bool,
    /// The present state of the entry with its post.
    pub row: ExportRow,
}

/// Consecutive changes of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangePage {
    /// The changes, by their USNs.
    pub changes: Vec<Change>,
    /// The USN up to which there are no others.
    pub end: i64,
    /// True if more changes are stored.
    pub has_more: bool,
}

/// The properties of a source for the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSource {
    /// The source.
    pub key: SourceKey,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: Owner,
    /// Its readers in addition to its owner.
    pub audience: Audience,
    /// Its last USN.
    pub update_count: i64,
}

impl FeedSource {
    /// The narrowest visibility of posts that a viewer sees; `None` if the viewer sees none.
    pub fn shows(&self, viewer: Viewer) -> Option<Visibility> {
        self.audience.shows(viewer.reader(self.owner))
    }
}

/// The sources, by their IDs, with their last USNs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn sources(tx: &mut Tx<'_>) -> Result<Vec<FeedSource>, StoreError> {
    select(tx, &format!("where s.{IS_LISTED}"), &[])
}

/// Those of [`sources`] that have one of these IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn sources_by_ids(tx: &mut Tx<'_>, ids: &[SourceId]) -> Result<Vec<FeedSource>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Column::i64(ids.iter().map(|id| sql(*id)));
    select(
        tx,
        &format!("where s.{IS_LISTED} and s.id {{in $1}}"),
        &[&ids],
    )
}

/// The sources, including those of threads, by their IDs, with their last USNs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn all_sources(tx: &mut Tx<'_>) -> Result<Vec<FeedSource>, StoreError> {
    select(tx, "", &[])
}

fn select(
    tx: &mut Tx<'_>,
    condition: &str,
    params: &[&dyn ToValue],
) -> Result<Vec<FeedSource>, StoreError> {
    let mut found = tx.query(
        &format!(
            "select s.id, s.instance_id, s.name, s.owner_id, s.audience, l.update_count
             from source s {} {condition}",
            library::OF_SOURCES
        ),
        params,
        |row| {
            Ok(FeedSource {
                key: SourceKey {
                    id: from_sql(row.i64("id")?)?,
                    instance: from_sql(row.i64("instance_id")?)?,
                },
                name: row.text("name")?,
                owner: Owner::of(row.i64("owner_id")?)?,
                audience: Audience::named_or_narrowest(row.str("audience")?),
                update_count: row.i64("update_count")?,
            })
        },
    )?;
    found.sort_by_key(|source| source.key.id);
    Ok(found)
}

/// The position after all stored changes.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn end(tx: &mut Tx<'_>) -> Result<FeedPosition, StoreError> {
    let sources = sources(tx)?;
    let known = |source: &FeedSource| (u64::from(source.key.id), source.update_count);
    Ok(sources.iter().map(known).collect())
}

/// The changes of a source after a USN, at most `limit` of them.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn after(
    tx: &mut Tx<'_>,
    source: SourceKey,
    usn: i64,
    limit: u32,
) -> Result<ChangePage, StoreError> {
    // One snapshot: changes above this count belong to the next page.
    let Some(update_count) = library::update_count(tx, library::LibraryOwner::Source(source))?
    else {
        return Ok(ChangePage::default());
    };
    let arrived = export::arrived_later(tx, source, usn, limit)?;
    let changed = export::changed_later(tx, source, usn, limit)?;
    let arrived = tx.rows(arrived)?;
    let changed = tx.rows(changed)?;
    let limit = limit as usize;
    let has_more =
        arrived.len().max(changed.len()) >= limit || arrived.len() + changed.len() > limit;
    let arrived = arrived
        .into_iter()
        .map(|entry| (entry.first_usn, ChangeKind::New, entry));
    let changed = changed
        .into_iter()
        .filter_map(|entry| Some((entry.change_usn?, kind(&entry), entry)));
    let mut found: Vec<(i64, ChangeKind, ExportEntry)> = arrived.chain(changed).collect();
    found.sort_by_key(|(usn, ..)| *usn);
    found.truncate(limit);
    let last = found.last().map(|(usn, ..)| *usn);
    let entries: Vec<ExportEntry> = found.iter().map(|(.., entry)| *entry).collect();
    let rows = export::with_posts(tx, source, &entries)?;
    let changes = found
        .into_iter()
        .zip(rows)
        .map(|((usn, kind, entry), row)| Change {
            usn,
            kind,
            is_history: entry.is_history,
            row,
        });
    Ok(ChangePage {
        changes: changes.collect(),
        end: match last {
            Some(last) if has_more => last,
            _ => update_count,
        },
        has_more,
    })
}

/// The posts of entries that came or changed after a USN of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedPosts {
    /// The posts. One may be there twice.
    pub posts: Vec<PostKey>,
    /// The USN up to which there are no others.
    pub end: i64,
    /// True if more changes are stored.
    pub has_more: bool,
}

/// The posts of the changes that [`after`] returns, which are not read. At most `limit` changes of
/// each kind. There are none if the source does not exist.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn posts_after(
    tx: &mut Tx<'_>,
    source: SourceKey,
    usn: i64,
    limit: u32,
) -> Result<ChangedPosts, StoreError> {
    let Some(update_count) = library::update_count(tx, library::LibraryOwner::Source(source))?
    else {
        return Ok(ChangedPosts::default());
    };
    let arrived = export::arrived_later(tx, source, usn, limit)?;
    let changed = export::changed_later(tx, source, usn, limit)?;
    let arrived = tx.rows(arrived)?;
    let changed = tx.rows(changed)?;
    // The last USN of a kind of which there may be more.
    let is_full = |found: &[ExportEntry]| found.len() >= limit as usize;
    let last_arrived = arrived.last().filter(|_| is_full(&arrived));
    let last_changed = changed.last().filter(|_| is_full(&changed));
    let ends = [
        last_arrived.map(|entry| entry.first_usn),
        last_changed.and_then(|entry| entry.change_usn),
    ];
    let end = ends.into_iter().flatten().min();
    let mut posts = Vec::with_capacity(arrived.len() + changed.len());
    for entry in arrived.iter().chain(&changed) {
        let post = from_sql(entry.post_id)?;
        let instance = source.instance;
        posts.push(PostKey { post, instance });
    }
    Ok(ChangedPosts {
        posts,
        end: end.unwrap_or(update_count),
        has_more: end.is_some(),
    })
}

/// The kind of an entry's last change, by its present state.
fn kind(entry: &ExportEntry) -> ChangeKind {
    match entry.left_at_ms {
        Some(_) => ChangeKind::Left,
        None if entry.gone => ChangeKind::Delete,
        None => ChangeKind::Edit,
    }
}
