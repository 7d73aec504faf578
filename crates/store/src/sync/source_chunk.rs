//! The entries of a source's library, in chunks for the replicas of one reader.
//!
//! A source has one sequence of USNs for all its entries. Its owner follows that sequence. Other
//! readers must not learn how many posts came that they may not see, so for them an entry counts at
//! one of two USNs: at its own while they are shown it, and else at the one under which it left
//! them ([`left_usns`]). Later changes of an entry that has left concern others, and move neither
//! the entry nor its tombstone in these readers' sequence.

use driftline_db::Tx;

use super::source_reading::{ReadItems, SourceItem, SourceReading, UsnStream};
use crate::{
    error::StoreError,
    id_types::{LocalId, SourceKey},
    library::{self, LibraryOwner},
    mirror::left_usns,
    posts::timeline::TimelinePost,
    viewer::LazyReadableSources,
};

/// The largest size of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLimits {
    /// The largest number of entries and tombstones, at least 1.
    pub entries: u32,
    /// The largest number of rows to read in the order of the USNs, at least 1.
    pub rows: u32,
    /// The number of posts to compare with a filter. The last ones are compared a hundred at once or more, so it may be exceeded.
    pub compared: u32,
}

/// The posts of which a replica has the entries; all of them without one. It depends on nothing but what the source shows
/// of the post: an entry is compared only when it takes a USN.
pub type SourceFilter<'a> = Option<&'a dyn Fn(&TimelinePost) -> bool>;

/// Part of a source's library. Entries and tombstones are each in the order of reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceChunk {
    /// The entries that the reader is shown now.
    pub entries: Vec<SourceEntry>,
    /// The entries that the reader may have a copy of and is not shown any more, or that do not match the filter.
    pub gone: Vec<SourceTombstone>,
    /// The USN at which reading ended: everything between the start and this USN is in the chunk.
    pub end: i64,
    /// True if more may follow beyond `end`.
    pub more: bool,
}

/// An entry that a reader is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEntry {
    /// Its last USN. If it comes instead of a tombstone, the USN of the other entry's end.
    pub usn: i64,
    /// The USN since which the post has changed only without an edit. It is `usn` if that is not known, if there is a filter,
    /// or if the source lists the post at several places.
    pub content_usn: i64,
    /// The USN under which the source last showed other names of the author than before; `None` if it has not.
    pub profile_usn: Option<i64>,
    /// Its place in the source's timeline.
    pub place: LocalId,
    /// The post's name in this source, which never changes: its `uri`, or `upstream:` and its
    /// upstream ID if it has none, or if another post of the instance has it. A post that the
    /// source lists several times has several entries; the one with the highest USN counts.
    pub key: String,
    /// The post, as the source's timeline shows it to the viewer.
    pub post: TimelinePost,
}

/// An entry that a reader is not shown any more, or that does not match the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTombstone {
    /// As [`SourceEntry::key`].
    pub key: String,
    /// The USN of its end. For readers who do not own the source, the one under which it left them.
    pub usn: i64,
}

impl SourceEntry {
    /// True if a replica that was complete at `held` ([`super::Cursor::held`]) lacks nothing but what changes without
    /// an edit, and the author's profile.
    pub fn is_content_held(&self, held: i64) -> bool {
        self.content_usn <= held
    }
}

impl SourceLimits {
    /// Limits with this number of entries and tombstones, and the default numbers of rows and posts.
    pub const fn new(entries: u32) -> SourceLimits {
        SourceLimits {
            entries,
            rows: MAX_ROWS,
            compared: MAX_COMPARED,
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
/// now, and tombstones of those that a replica at that USN may have. If an entry has ended and the
/// source shows the viewer the post at another place, that place comes instead of a tombstone. Instead
/// of an entry that does not match the filter, there is a tombstone if a replica may have it.
///
/// [`SourceChunk::end`] is the USN up to which all was read; the library's last one if nothing is left.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist, or the viewer may not read it;
/// [`StoreError::Db`] if the database fails.
pub fn source_changes(
    tx: &mut Tx<'_>,
    source: SourceKey,
    sources: &LazyReadableSources,
    filter: SourceFilter<'_>,
    after: i64,
    limits: SourceLimits,
) -> Result<SourceChunk, StoreError> {
    let reading = SourceReading::begin(tx, source, sources, filter, limits)?;
    let top = source_update_count(tx, source)?;
    changes(tx, &reading, (after, top), limits)
}

/// The changes after the first USN, up to the second one, which is the library's last.
fn changes(
    tx: &mut Tx<'_>,
    reading: &SourceReading<'_>,
    (after, top): (i64, i64),
    limits: SourceLimits,
) -> Result<SourceChunk, StoreError> {
    let mut part = reading.read(tx, UsnStream::Changes { after }, after, top)?;
    if let Some(column) = left_usns::column(reading.source.reader) {
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
/// now and that match the filter, by descending USN. [`SourceChunk::end`] is the next `below`. There
/// are no tombstones: once all parts were read, the changes after `top` follow ([`source_changes`]).
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist, or the viewer may not read it;
/// [`StoreError::Db`] if the database fails.
pub fn source_newest(
    tx: &mut Tx<'_>,
    source: SourceKey,
    sources: &LazyReadableSources,
    filter: SourceFilter<'_>,
    top: i64,
    below: i64,
    limits: SourceLimits,
) -> Result<SourceChunk, StoreError> {
    let reading = SourceReading::begin(tx, source, sources, filter, limits)?;
    let up_to = top.min(below.saturating_sub(1));
    let part = reading.read(tx, UsnStream::Newest { top }, 0, up_to)?;
    Ok(part.into_chunk(limits, 0))
}

/// True if [`source_changes`] without a filter would return an entry or a tombstone. Also true if it could not find
/// out within [`SourceLimits::new`]'s number of rows.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist, or has changed and the viewer may not
/// read it; [`StoreError::Db`] if the database fails.
pub fn has_news(
    tx: &mut Tx<'_>,
    source: SourceKey,
    sources: &LazyReadableSources,
    after: i64,
) -> Result<bool, StoreError> {
    let top = source_update_count(tx, source)?;
    if top <= after {
        return Ok(false);
    }
    let limits = SourceLimits::new(1);
    let reading = SourceReading::begin(tx, source, sources, None, limits)?;
    let chunk = changes(tx, &reading, (after, top), limits)?;
    Ok(chunk.more || !chunk.entries.is_empty() || !chunk.gone.is_empty())
}

/// Counts the entries of a source that the viewer is shown, among the next 10,000 above an entry's ID. Also returns the ID of the
/// last entry that was looked at; `None` if no others follow. A post at two places counts twice.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist, or the viewer may not read it; [`StoreError::Db`] if the database
/// fails.
pub fn count_shown_entries(
    tx: &mut Tx<'_>,
    source: SourceKey,
    sources: &LazyReadableSources,
    above: Option<i64>,
) -> Result<(u64, Option<i64>), StoreError> {
    let reading = SourceReading::begin(tx, source, sources, None, SourceLimits::new(1))?;
    reading.count(tx, above.unwrap_or(i64::MIN), MAX_COUNTED)
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

/// The number of entries that are looked at together to be counted.
const MAX_COUNTED: u32 = 10_000;
/// The largest number of rows that are read for one chunk.
const MAX_ROWS: u32 = 20_000;
/// The number of posts that are compared with a filter for one chunk.
const MAX_COMPARED: u32 = 2_000;
