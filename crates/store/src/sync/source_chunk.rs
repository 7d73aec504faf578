//! The entries of a source's library, in chunks for the replicas of one reader.
//!
//! A source has one sequence of USNs for all its entries. Its owner follows that sequence. Other
//! readers must not learn how many posts came that they may not see, so for them an entry counts at
//! one of two USNs: at its own while they are shown it, and else at the one under which it left
//! them ([`left_usns`]). Later changes of an entry that has left concern others, and move neither
//! the entry nor its tombstone in these readers' sequence.

use std::collections::{HashMap, HashSet};

use driftline_core::names::{
    audience::{Audience, Reader},
    object_uri::UriKey,
};
use driftline_db::{Column, DbError, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{LocalId, SourceKey, sql},
    library::{self, LibraryOwner},
    mirror::left_usns,
    posts::{
        object_uri,
        timeline::{self, Place, TimelinePost},
    },
    viewer::{ReadableSource, ReadableSources, Viewer},
};

/// A source's library, as one kind of reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceView {
    /// The source.
    pub key: SourceKey,
    /// The kind of reader.
    pub reader: Reader,
}

/// The largest size of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLimits {
    /// The largest number of entries and tombstones, at least 1.
    pub entries: u32,
    /// The largest number of rows to read in the order of the USNs, at least 1.
    pub rows: u32,
}

/// Part of a source's library. Entries and tombstones are each in the order of reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceChunk {
    /// The entries that the reader is shown now.
    pub entries: Vec<SourceEntry>,
    /// The entries that the reader may have a copy of and is not shown any more.
    pub gone: Vec<SourceTombstone>,
    /// The USN at which reading ended: everything between the start and this USN is in the chunk.
    pub end: i64,
    /// True if more may follow beyond `end`.
    pub more: bool,
}

/// An entry that a reader is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEntry {
    /// Its last USN.
    pub usn: i64,
    /// Its first USN. It counts entries that the reader may not see.
    pub first_usn: i64,
    /// Its place in the source's timeline.
    pub place: LocalId,
    /// The post's name in this source, which never changes: its `uri`, or `upstream:` and its
    /// upstream ID if it has none, or if another post of the instance has it.
    pub key: String,
    /// The post, as the source's timeline shows it to the viewer.
    pub post: TimelinePost,
}

/// An entry that a reader is not shown any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTombstone {
    /// As [`SourceEntry::key`].
    pub key: String,
    /// The USN of its end. For readers who do not own the source, the one under which it left them.
    pub usn: i64,
}

impl SourceLimits {
    /// Limits with this number of entries and tombstones, and the default number of rows.
    pub const fn new(entries: u32) -> SourceLimits {
        SourceLimits {
            entries,
            rows: MAX_ROWS,
        }
    }
}

/// The last USN of a source's library.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn source_update_count(tx: &mut Tx<'_>, source: SourceKey) -> Result<i64, StoreError> {
    let count = library::update_count(tx, LibraryOwner::Source(source))?;
    count.ok_or(StoreError::NoSource)
}

/// The changes of a source's library after a USN, by ascending USN: entries that the viewer is shown
/// now, and tombstones of those that a replica at that USN may have. There is no tombstone of a post
/// that the source shows the viewer at another place.
///
/// [`SourceChunk::end`] is the USN up to which all was read; the library's last one if nothing is left.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist, or the viewer is no such reader of it;
/// [`StoreError::Db`] if the database fails.
pub fn source_changes(
    tx: &mut Tx<'_>,
    view: SourceView,
    viewer: Viewer,
    after: i64,
    limits: SourceLimits,
) -> Result<SourceChunk, StoreError> {
    let reading = SourceReading::begin(tx, view, viewer, limits)?;
    let top = source_update_count(tx, view.key)?;
    let mut part = reading.read(tx, UsnStream::Changes { after }, after, top)?;
    if let Some(column) = left_usns::column(view.reader) {
        let departures = UsnStream::Departures { after, column };
        let left = reading.read(tx, departures, after, part.end)?;
        part.end = left.end;
        part.items.extend(left.items);
        part.items.retain(|item| item.usn() <= left.end);
        part.items.sort_by_key(SourceItem::usn);
    }
    Ok(part.into_chunk(limits, top))
}

/// Part of a full sync: the entries with USNs up to `top` and below `below` that the viewer is shown
/// now, by descending USN. [`SourceChunk::end`] is the next `below`. There are no tombstones: once
/// all parts were read, the changes after `top` follow ([`source_changes`]).
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist, or the viewer is no such reader of it;
/// [`StoreError::Db`] if the database fails.
pub fn source_newest(
    tx: &mut Tx<'_>,
    view: SourceView,
    viewer: Viewer,
    top: i64,
    below: i64,
    limits: SourceLimits,
) -> Result<SourceChunk, StoreError> {
    let reading = SourceReading::begin(tx, view, viewer, limits)?;
    let up_to = top.min(below.saturating_sub(1));
    let part = reading.read(tx, UsnStream::Newest, 0, up_to)?;
    Ok(part.into_chunk(limits, 0))
}

/// True if [`source_changes`] would return an entry or a tombstone. Also true if it could not find
/// out within [`SourceLimits::new`]'s number of rows.
///
/// # Errors
/// The same as those of [`source_changes`].
pub fn has_news(
    tx: &mut Tx<'_>,
    view: SourceView,
    viewer: Viewer,
    after: i64,
) -> Result<bool, StoreError> {
    if source_update_count(tx, view.key)? <= after {
        return Ok(false);
    }
    let chunk = source_changes(tx, view, viewer, after, SourceLimits::new(1))?;
    Ok(chunk.more || !chunk.entries.is_empty() || !chunk.gone.is_empty())
}

/// A sequence in which entries are read.
#[derive(Clone, Copy)]
enum UsnStream {
    /// Entries by ascending USN. To the owner, also those that have ended since they came.
    Changes { after: i64 },
    /// Entries that the reader is shown, by descending USN.
    Newest,
    /// Entries that have left the reader, by the USNs in this column.
    Departures { after: i64, column: &'static str },
}

impl UsnStream {
    fn column(self) -> &'static str {
        match self {
            UsnStream::Changes { .. } | UsnStream::Newest => "usn",
            UsnStream::Departures { column, .. } => column,
        }
    }

    fn is_upward(self) -> bool {
        !matches!(self, UsnStream::Newest)
    }
}

/// An entry, or what is left of it.
enum SourceItem {
    Entry(Box<SourceEntry>),
    Gone(SourceTombstone),
}

impl SourceItem {
    fn usn(&self) -> i64 {
        match self {
            SourceItem::Entry(entry) => entry.usn,
            SourceItem::Gone(tombstone) => tombstone.usn,
        }
    }
}

/// The items that were read, in their order, and the USN at which reading ended. One item more than
/// the limit shows that there are others.
struct ReadItems {
    items: Vec<SourceItem>,
    end: i64,
}

impl ReadItems {
    /// The chunk with at most the limit's number of items. `last` is the USN at which nothing is
    /// left.
    fn into_chunk(mut self, limits: SourceLimits, last: i64) -> SourceChunk {
        let limit = limits.entries.max(1) as usize;
        if self.items.len() > limit {
            self.items.truncate(limit);
            self.end = self.items.last().map_or(self.end, SourceItem::usn);
        }
        let mut chunk = SourceChunk {
            end: self.end,
            more: self.end != last,
            ..SourceChunk::default()
        };
        for item in self.items {
            match item {
                SourceItem::Entry(entry) => chunk.entries.push(*entry),
                SourceItem::Gone(tombstone) => chunk.gone.push(tombstone),
            }
        }
        chunk
    }
}

/// A row of `entry`, without its post.
#[derive(Clone, Copy)]
struct EntryRow {
    id: i64,
    post_id: i64,
    first_usn: i64,
    /// The USN at which the entry is in the stream that is read.
    at_usn: i64,
    visibility: i64,
    gone: bool,
    returns: i64,
}

impl EntryRow {
    /// The columns that [`EntryRow::from_row`] reads. `usn` is the stream's column.
    fn columns(usn: &str) -> String {
        format!("id, post_id, first_usn, {usn} as at_usn, visibility, gone, returns")
    }

    fn from_row(row: &Row<'_>) -> Result<EntryRow, DbError> {
        Ok(EntryRow {
            id: row.i64("id")?,
            post_id: row.i64("post_id")?,
            first_usn: row.i64("first_usn")?,
            at_usn: row.i64("at_usn")?,
            visibility: row.i64("visibility")?,
            gone: row.bool("gone")?,
            returns: row.i64("returns")?,
        })
    }
}

/// The facts about a post that its tombstone needs.
struct PostName {
    id: i64,
    upstream_id: String,
    uri: Option<String>,
    /// True if its server only claims to know it.
    claimed: bool,
}

impl PostName {
    fn uri_key(&self) -> Option<UriKey> {
        UriKey::new(self.uri.as_deref()?)
    }
}

/// The reading of a source's library for one viewer.
struct SourceReading {
    view: SourceView,
    viewer: Viewer,
    source: ReadableSource,
    limits: SourceLimits,
}

impl SourceReading {
    fn begin(
        tx: &mut Tx<'_>,
        view: SourceView,
        viewer: Viewer,
        limits: SourceLimits,
    ) -> Result<SourceReading, StoreError> {
        let readable = ReadableSources::load(tx, viewer)?.of(view.key.id);
        // Each kind of reader is shown the same posts in every source that it may read at all.
        let shows = Audience::Public.shows(view.reader);
        let is_reader =
            |source: &ReadableSource| source.key == view.key && Some(source.shows) == shows;
        Ok(SourceReading {
            view,
            viewer,
            source: readable.filter(is_reader).ok_or(StoreError::NoSource)?,
            limits,
        })
    }

    /// Reads a stream between two USNs, of which the first is excluded.
    fn read(
        &self,
        tx: &mut Tx<'_>,
        stream: UsnStream,
        above: i64,
        up_to: i64,
    ) -> Result<ReadItems, StoreError> {
        let (mut above, mut up_to) = (above, up_to);
        let wanted = self.limits.entries.max(1).saturating_add(1);
        let mut rows_left = self.limits.rows.max(1);
        let mut at_once = wanted.min(MAX_ROWS_AT_ONCE);
        let wanted = wanted as usize;
        let mut items = Vec::new();
        loop {
            let count = at_once.min(rows_left);
            let rows = self.rows(tx, stream, above, up_to, count)?;
            let last = rows.last().map(|row| row.at_usn);
            let is_all = rows.len() < count as usize;
            let candidates: Vec<EntryRow> = rows
                .into_iter()
                .filter(|row| self.may_be_item(stream, row))
                .collect();
            let mut rest = candidates.as_slice();
            while !rest.is_empty() && items.len() < wanted {
                let (next, later) = rest.split_at(rest.len().min(wanted - items.len()));
                items.extend(self.items(tx, stream, next)?);
                rest = later;
            }
            let last_item = items.last().map(SourceItem::usn);
            let end = match (stream.is_upward(), last_item, last) {
                (_, Some(usn), _) if items.len() >= wanted => usn,
                (true, _, _) if is_all => up_to,
                (false, _, _) if is_all => above,
                (_, _, Some(usn)) if rows_left == count => usn,
                (true, _, Some(usn)) => {
                    above = usn;
                    rows_left -= count;
                    at_once = at_once.saturating_mul(2).min(MAX_ROWS_AT_ONCE);
                    continue;
                }
                (false, _, Some(usn)) => {
                    up_to = usn - 1;
                    rows_left -= count;
                    at_once = at_once.saturating_mul(2).min(MAX_ROWS_AT_ONCE);
                    continue;
                }
                // A full batch has a last row.
                (_, _, None) => above,
            };
            return Ok(ReadItems { items, end });
        }
    }

    /// The next rows of a stream.
    fn rows(
        &self,
        tx: &mut Tx<'_>,
        stream: UsnStream,
        above: i64,
        up_to: i64,
        count: u32,
    ) -> Result<Vec<EntryRow>, DbError> {
        let key = self.view.key;
        let usn = stream.column();
        let order = match stream.is_upward() {
            true => "asc",
            false => "desc",
        };
        tx.query(
            &format!(
                "select {} from entry
                 where source_id = $1 and instance_id = $2 and {usn} > $3 and {usn} <= $4
                 order by {usn} {order} limit $5",
                EntryRow::columns(usn)
            ),
            &[&key.id(), &key.instance_id(), &above, &up_to, &count],
            EntryRow::from_row,
        )
    }

    /// True if the entry's own columns do not exclude that the viewer is shown it.
    fn is_there(&self, row: &EntryRow) -> bool {
        !row.gone && self.source.shows_post(row.visibility, false)
    }

    /// True if a replica may have the entry of which the stream reports the end.
    fn may_have_ended(&self, stream: UsnStream, row: &EntryRow) -> bool {
        match stream {
            UsnStream::Changes { after } => {
                self.view.reader == Reader::Owner && row.first_usn <= after
            }
            UsnStream::Departures { after, .. } => row.first_usn <= after,
            UsnStream::Newest => false,
        }
    }

    /// True if the row may become an item, according to its own columns.
    fn may_be_item(&self, stream: UsnStream, row: &EntryRow) -> bool {
        let may_be_shown = !matches!(stream, UsnStream::Departures { .. }) && self.is_there(row);
        may_be_shown || self.may_have_ended(stream, row)
    }

    /// The items at rows of a stream, in their order.
    fn items(
        &self,
        tx: &mut Tx<'_>,
        stream: UsnStream,
        rows: &[EntryRow],
    ) -> Result<Vec<SourceItem>, StoreError> {
        let mut entries = match stream {
            UsnStream::Departures { .. } => HashMap::new(),
            UsnStream::Changes { .. } | UsnStream::Newest => self.entries(tx, rows)?,
        };
        let ended = rows
            .iter()
            .copied()
            .filter(|row| !entries.contains_key(&row.id) && self.may_have_ended(stream, row));
        let ended: Vec<EntryRow> = ended.collect();
        let mut gone = self.tombstones(tx, &ended)?;
        let item = |row: &EntryRow| {
            let entry = entries.remove(&row.id).map(Box::new);
            let entry = entry.map(SourceItem::Entry);
            entry.or_else(|| gone.remove(&row.id).map(SourceItem::Gone))
        };
        Ok(rows.iter().filter_map(item).collect())
    }

    /// Those of some entries that the viewer is shown, by their IDs.
    fn entries(
        &self,
        tx: &mut Tx<'_>,
        rows: &[EntryRow],
    ) -> Result<HashMap<i64, SourceEntry>, StoreError> {
        let shown = self.shown(tx, rows)?;
        let names = shown.iter().map(|(_, post)| PostName {
            id: sql(post.post_id),
            upstream_id: post.upstream_id.clone(),
            uri: post.uri.clone(),
            claimed: false,
        });
        let keys = self.keys(tx, &names.collect::<Vec<_>>())?;
        let entry = |(row, post): (EntryRow, TimelinePost)| {
            let entry = SourceEntry {
                usn: row.at_usn,
                first_usn: row.first_usn,
                place: post.id,
                key: keys.get(&row.post_id)?.clone(),
                post,
            };
            Some((row.id, entry))
        };
        Ok(shown.into_iter().filter_map(entry).collect())
    }

    /// Those of some entries that the viewer is shown, with their posts.
    fn shown(
        &self,
        tx: &mut Tx<'_>,
        rows: &[EntryRow],
    ) -> Result<Vec<(EntryRow, TimelinePost)>, StoreError> {
        let there = rows.iter().copied().filter(|row| self.is_there(row));
        let there: Vec<EntryRow> = there.collect();
        let place = |row: &EntryRow| Place {
            id: row.id,
            post_id: row.post_id,
            instance_id: self.view.key.instance_id(),
            returns: row.returns,
        };
        let places: Vec<Place> = there.iter().map(place).collect();
        let posts = timeline::at_places_of_source(tx, self.source, self.viewer, &places)?;
        let shown = there.into_iter().zip(posts);
        Ok(shown.filter_map(|(row, post)| Some((row, post?))).collect())
    }

    /// The tombstones of entries that the viewer is not shown, by the entries' IDs. Posts that the
    /// viewer is shown at another place have none, and posts that it was never shown neither.
    fn tombstones(
        &self,
        tx: &mut Tx<'_>,
        rows: &[EntryRow],
    ) -> Result<HashMap<i64, SourceTombstone>, StoreError> {
        if rows.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<i64> = rows.iter().map(|row| row.post_id).collect();
        let elsewhere = self.shown_posts(tx, &ids)?;
        let mut names = tx.query(
            "select id, upstream_id, uri, claimed from post where id {in $1} and instance_id = $2",
            &[
                &Column::i64(ids.iter().copied()),
                &self.view.key.instance_id(),
            ],
            |row| {
                Ok(PostName {
                    id: row.i64("id")?,
                    upstream_id: row.text("upstream_id")?,
                    uri: row.opt_text("uri")?,
                    claimed: row.bool("claimed")?,
                })
            },
        )?;
        // A post is claimed or not for good.
        let is_published = self.source.is_published();
        names.retain(|post| !elsewhere.contains(&post.id) && !(is_published && post.claimed));
        let keys = self.keys(tx, &names)?;
        let tombstone = |row: &EntryRow| {
            let tombstone = SourceTombstone {
                key: keys.get(&row.post_id)?.clone(),
                usn: row.at_usn,
            };
            Some((row.id, tombstone))
        };
        Ok(rows.iter().filter_map(tombstone).collect())
    }

    /// Those of some posts that the source shows the viewer at any place.
    fn shown_posts(&self, tx: &mut Tx<'_>, post_ids: &[i64]) -> Result<HashSet<i64>, StoreError> {
        let key = self.view.key;
        let columns = EntryRow::columns("usn");
        let rows = tx.query(
            &format!(
                "select {columns} from entry
                 where source_id = $1 and instance_id = $2 and id {{in $3}} and id = post_id
                 union all
                 select {columns} from entry
                 where source_id = $1 and instance_id = $2 and post_id {{in $3}} and id <> post_id"
            ),
            &[
                &key.id(),
                &key.instance_id(),
                &Column::i64(post_ids.iter().copied()),
            ],
            EntryRow::from_row,
        )?;
        let shown = self.shown(tx, &rows)?;
        Ok(shown.into_iter().map(|(row, _)| row.post_id).collect())
    }

    /// The keys of posts, by their IDs. Of an instance's posts with one `uri`, such as a boost and
    /// the boosted post on some servers, the one that is found by it has it as its key. IDs of posts
    /// are no keys: they may be of entries in sources that the viewer may not read.
    fn keys(&self, tx: &mut Tx<'_>, posts: &[PostName]) -> Result<HashMap<i64, String>, DbError> {
        let uris: Vec<UriKey> = posts.iter().filter_map(PostName::uri_key).collect();
        let mut named: HashMap<UriKey, i64> = HashMap::new();
        if !uris.is_empty() {
            let instance_ids = [self.view.key.instance_id()];
            let found = object_uri::posts_named_later(tx, &uris, &instance_ids)?;
            let found = tx.rows(found)?.into_iter();
            named = found.map(|(key, post)| (key, post.post_id)).collect();
        }
        let key = |post: &PostName| {
            let is_named = |uri: UriKey| named.get(&uri) == Some(&post.id);
            match &post.uri {
                Some(uri) if post.uri_key().is_some_and(is_named) => uri.clone(),
                _ => format!("upstream:{}", post.upstream_id),
            }
        };
        Ok(posts.iter().map(|post| (post.id, key(post))).collect())
    }
}

/// The largest number of rows that are read for one chunk.
const MAX_ROWS: u32 = 20_000;
/// The largest number of rows that are read at once.
const MAX_ROWS_AT_ONCE: u32 = 1_000;
