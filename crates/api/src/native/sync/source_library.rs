use std::time::{Duration, Instant};

use driftline_core::sync::{LibraryNews, LibraryState, ObjectKey, SyncedObject, Tombstone, Usn};
use driftline_store::{
    SourceId, StoreError, Tx, Viewer,
    change_feed::FeedSource,
    instance,
    sync::{
        Cursor, SourceChunk, SourceFilter, SourceLimits, Start, count_shown_entries, has_news,
        held_after, source_changes, source_cursor, source_newest, source_start,
        source_update_count,
    },
    timeline::TimelinePost,
    viewer::LazyReadableSources,
};

use super::{
    cursor_seal::CursorSeal, entry_forms::EntryForms, library_filter::LibraryFilter, pull::Limits,
};
use crate::mastodon::{page::Page, view::View};

/// A reader of sources' libraries.
pub(super) struct SourceReader<'a> {
    pub(super) view: &'a View,
    /// The sources that its viewer may read.
    pub(super) readable: &'a LazyReadableSources,
    pub(super) seal: &'a CursorSeal,
    /// True if each library answers with a cursor, whatever is new.
    pub(super) moves_cursor: bool,
    /// The time up to which reading goes on while nothing is found: each chunk without objects would tell the reader of as
    /// many changes that it may not see.
    pub(super) until: Instant,
}

impl SourceReader<'_> {
    /// The entries and tombstones that a replica with this filter and cursor lacks of a source that the viewer may read; `None`
    /// if it lacks nothing.
    pub(super) fn news(
        &self,
        tx: &mut Tx<'_>,
        source: &FeedSource,
        filter: Option<&LibraryFilter>,
        cursor: Option<&str>,
        limits: Limits,
    ) -> Result<Option<LibraryNews>, StoreError> {
        let (key, viewer) = (source.key, self.view.viewer);
        let sealed_for = label(source, viewer, filter);
        let is_match = post_filter(tx, source, filter)?;
        let filter: SourceFilter<'_> = is_match.as_deref();
        // A cursor of another view, or of the time before a restore, begins again.
        let mut known = cursor.and_then(|text| self.seal.open(text, &sealed_for));
        let mut start = source_start(tx, key, known.as_ref())?;
        if start == Start::Diverged {
            // A replica changes nothing in a source, so nothing of it can be lost here.
            known = None;
            start = source_start(tx, key, None)?;
        }
        let is_first = known.as_ref().is_none_or(|cursor| cursor.below.is_none());
        let mut most = SourceLimits::new(limits.entries);
        if Instant::now() >= self.until {
            // The libraries before this one have taken the time. This one proceeds a little.
            most.compared = 1;
        }
        let mut total = None;
        let (news, cursor) = match (start, known) {
            (Start::Full { cursor }, _) => {
                // Posts that do not fit into the chunk would be read and written for nothing.
                let fits = u32::try_from(limits.bytes / MIN_STATUS_BYTES).unwrap_or(u32::MAX);
                most.entries = most.entries.min(fits.max(1));
                let mut below = cursor.below.unwrap_or(cursor.usn.saturating_add(1));
                let chunk = loop {
                    let chunk =
                        source_newest(tx, key, self.readable, filter, cursor.usn, below, most)?;
                    if !self.goes_on(&chunk) {
                        break chunk;
                    }
                    below = chunk.end;
                };
                let part = (LibraryState::Full, chunk);
                let (news, end) = self.part(tx, source, part, limits, None)?;
                if is_first && news.more && filter.is_none() {
                    total = self.count(tx, source)?;
                }
                let below = news.more.then_some(end);
                // Not by the update count, which tells of changes that the viewer may not see.
                let has_more = news.more || has_news(tx, key, self.readable, cursor.usn)?;
                let held = held_after(None, cursor.usn, has_more);
                let cursor = Cursor {
                    below,
                    held,
                    ..cursor
                };
                (news, cursor)
            }
            (Start::Changes, Some(known)) => {
                let fits = u32::try_from(limits.bytes / MIN_CHANGE_BYTES).unwrap_or(u32::MAX);
                most.entries = most.entries.min(fits.max(1));
                let mut after = known.position();
                let chunk = loop {
                    let chunk = source_changes(tx, key, self.readable, filter, after, most)?;
                    if !self.goes_on(&chunk) {
                        break chunk;
                    }
                    after = chunk.end;
                };
                let part = (LibraryState::Changes, chunk);
                let (news, end) = self.part(tx, source, part, limits, known.held)?;
                let is_empty = news.objects.is_empty() && news.gone.is_empty() && !news.more;
                // A fresh cursor at random times tells nothing of changes that the viewer may not see, and ends reading
                // them again. After many of them it does not wait for that.
                if is_empty && !self.moves_cursor && after == known.position() {
                    return Ok(None);
                }
                // The end of what was read: another look may see more on a distributed store.
                let count = match news.more {
                    true => source_update_count(tx, source.key)?,
                    false => end,
                };
                let cursor = Cursor {
                    after: news.more.then_some(end),
                    held: held_after(known.held, count, news.more),
                    ..source_cursor(tx, key, count)?
                };
                (news, cursor)
            }
            (Start::Current, Some(known)) if self.moves_cursor => {
                // A distributed store may show fewer changes at this moment than the replica has.
                let count = source_update_count(tx, source.key)?;
                let held = held_after(known.held, count, known.position() != count);
                let cursor = Cursor { held, ..known };
                let news = LibraryNews::empty(&name(source), LibraryState::Changes);
                (news, cursor)
            }
            _ => return Ok(None),
        };
        Ok(Some(LibraryNews {
            cursor: self.seal.seal(&cursor, &sealed_for),
            first: is_first && news.state == LibraryState::Full,
            count: total,
            ..news
        }))
    }

    /// The number of entries that the viewer is shown; `None` if they are too many to be counted quickly.
    fn count(&self, tx: &mut Tx<'_>, source: &FeedSource) -> Result<Option<u64>, StoreError> {
        let until = self.until.min(Instant::now() + TIME_TO_COUNT);
        let (mut count, mut above) = (0, None);
        while Instant::now() < until {
            let (shown, last) = count_shown_entries(tx, source.key, self.readable, above)?;
            count += shown;
            above = last;
            if above.is_none() {
                return Ok(Some(count));
            }
        }
        Ok(None)
    }

    /// True if nothing was found up to the chunk's end, and there is time to look further.
    fn goes_on(&self, chunk: &SourceChunk) -> bool {
        let is_empty = chunk.entries.is_empty() && chunk.gone.is_empty();
        is_empty && chunk.more && Instant::now() < self.until
    }

    /// The objects of a chunk, as many as fit into the limit of bytes, and at least one, with the USN at which they end. Entries
    /// that a replica held at the USN `held` come with their update alone.
    fn part(
        &self,
        tx: &mut Tx<'_>,
        source: &FeedSource,
        (state, mut chunk): (LibraryState, SourceChunk),
        limits: Limits,
        held: Option<i64>,
    ) -> Result<(LibraryNews, i64), StoreError> {
        let posts = chunk.entries.iter().map(|entry| &entry.post);
        let statuses = Page::entities(tx, posts, self.view)?;
        let forms = EntryForms::load(tx, source.key, &chunk.entries, held, self.view)?;
        let mut news = LibraryNews {
            more: chunk.more,
            ..LibraryNews::empty(&name(source), state)
        };
        let (mut bytes, mut end, mut last_usn) = (0, chunk.end, chunk.end);
        for entry in &chunk.entries {
            let Some(status) = statuses.get(&entry.post.id) else {
                continue;
            };
            let Ok(value) = forms.value(entry, status) else {
                continue;
            };
            bytes += entry.key.len() + value.get().len() + ENTRY_BYTES;
            if bytes > limits.bytes && !news.objects.is_empty() {
                (news.more, end) = (true, last_usn);
                // Without tombstones in a full sync, which goes downward.
                chunk.gone.retain(|gone| gone.usn <= last_usn);
                break;
            }
            last_usn = entry.usn;
            // A post whose name is too long for a key cannot be synced.
            let Ok(key) = ObjectKey::parse(format!("{KIND}:{}", entry.key)) else {
                continue;
            };
            news.objects.push(SyncedObject {
                key,
                usn: Usn::NONE,
                value,
            });
        }
        let gone = chunk.gone.into_iter().filter_map(|gone| {
            let key = ObjectKey::parse(format!("{KIND}:{}", gone.key)).ok()?;
            let usn = Usn::NONE;
            Some(Tombstone { key, usn })
        });
        news.gone = gone.collect();
        Ok((news, end))
    }
}

/// The name of a source's library.
pub(super) fn name(source: &FeedSource) -> String {
    format!("{PREFIX}{}", source.key.id)
}

/// The ID in the name of a source's library. Other texts than [`name`] gives may have one, too.
pub(super) fn source_id(name: &str) -> Option<SourceId> {
    let id = name.strip_prefix(PREFIX)?.parse().ok()?;
    Some(SourceId::new(id))
}

/// The source that has a library of this name, if the viewer may read it.
pub(super) fn find<'s>(
    sources: &'s [FeedSource],
    library: &str,
    viewer: Viewer,
) -> Option<&'s FeedSource> {
    let mut readable = sources
        .iter()
        .filter(|source| source.shows(viewer).is_some());
    readable.find(|source| name(source) == library)
}

/// The view that a cursor is sealed for: another audience or filter shows other entries, so the replica begins again.
pub(super) fn label(source: &FeedSource, viewer: Viewer, filter: Option<&LibraryFilter>) -> String {
    let reader = viewer.reader(source.owner);
    let filter = filter.map_or("", LibraryFilter::json);
    let (name, audience) = (name(source), source.audience.name());
    format!("{name} {audience} {reader:?} {filter}")
}

/// A filter of the posts of a source, as its server shows them.
pub(super) fn post_filter<'f>(
    tx: &mut Tx<'_>,
    source: &FeedSource,
    filter: Option<&'f LibraryFilter>,
) -> Result<Option<PostFilter<'f>>, StoreError> {
    let Some(filter) = filter else {
        return Ok(None);
    };
    let instance = instance::by_id(tx, source.key.instance)?;
    let origin = instance.map(|of| of.origin).unwrap_or_default();
    Ok(Some(Box::new(move |post: &TimelinePost| {
        filter.matches(post, &origin)
    })))
}

/// True for the posts that a filter selects.
type PostFilter<'f> = Box<dyn Fn(&TimelinePost) -> bool + 'f>;

/// The kind of the objects of sources. It is not one of an account's library.
pub(super) const KIND: &str = "post";
/// The beginning of the names of sources' libraries.
const PREFIX: &str = "source:";
/// The size of an object without its key and status, in bytes.
const ENTRY_BYTES: usize = 80;
/// Few statuses are smaller, so few chunks have room for more posts.
const MIN_STATUS_BYTES: usize = 800;
/// Few partial objects are smaller, so few chunks have room for more changes.
const MIN_CHANGE_BYTES: usize = 250;
/// The time for which entries are counted. A library without a number tells as little as a chunk without objects.
const TIME_TO_COUNT: Duration = Duration::from_millis(200);
