use std::time::Instant;

use driftline_core::sync::{DigestAnswer, LibraryDigest, ObjectKey};
use driftline_store::{
    StoreError, Tx,
    change_feed::FeedSource,
    sync::{Cursor, SourceFilter, SourceLimits, Start, source_newest, source_start},
};

use super::{
    library_filter::LibraryFilter,
    source_library::{KIND, SourceReader, label, post_filter},
};

impl SourceReader<'_> {
    /// The digest of the entries that the viewer is shown and that match a filter, from a cursor downward to where the time is
    /// over. `None` if the cursor is not from a digest of this view.
    pub(super) fn digest(
        &self,
        tx: &mut Tx<'_>,
        (server, account): (String, String),
        source: &FeedSource,
        filter: Option<&LibraryFilter>,
        cursor: Option<&str>,
    ) -> Result<Option<DigestAnswer>, StoreError> {
        let (key, viewer) = (source.key, self.view.viewer);
        let sealed_for = format!("digest {}", label(source, viewer, filter));
        let known = cursor.map(|text| self.seal.open(text, &sealed_for));
        if known == Some(None) {
            return Ok(None);
        }
        let start = source_start(tx, key, known.flatten().as_ref())?;
        let Start::Full { cursor } = start else {
            return Ok(None);
        };
        let is_match = post_filter(tx, source, filter)?;
        let filter: SourceFilter<'_> = is_match.as_deref();
        let mut digest = LibraryDigest::default();
        let mut below = cursor.below.unwrap_or(cursor.usn.saturating_add(1));
        let more = loop {
            let limits = SourceLimits::new(ENTRIES_AT_ONCE);
            let chunk = source_newest(tx, key, self.readable, filter, cursor.usn, below, limits)?;
            for entry in &chunk.entries {
                // As in the library: a name that is too long for a key is not synced.
                let Ok(key) = ObjectKey::parse(format!("{KIND}:{}", entry.key)) else {
                    continue;
                };
                let post = &entry.post;
                let place = entry.place.raw();
                digest.add_entry(key.as_str(), place, post.edited_at_ms, post.visibility);
            }
            below = chunk.end;
            if !chunk.more || Instant::now() >= self.until {
                break chunk.more;
            }
        };
        let cursor = Cursor {
            below: Some(below),
            ..cursor
        };
        Ok(Some(DigestAnswer {
            server,
            account,
            // Without random numbers the next part is refused.
            cursor: self.seal.seal(&cursor, &sealed_for).unwrap_or_default(),
            count: digest.count(),
            digest: digest.text(),
            more,
        }))
    }
}

const ENTRIES_AT_ONCE: u32 = 1_000;
