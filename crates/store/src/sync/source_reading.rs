//! Reads the entries of a source that concern one reader.

use std::collections::{HashMap, HashSet};

use driftline_core::names::{audience::Reader, object_uri::UriKey};
use driftline_db::{Column, DbError, Tx};

use super::{
    entry_row::EntryRow,
    source_chunk::{SourceEntry, SourceFilter, SourceLimits, SourceTombstone},
};
use crate::{
    error::StoreError,
    id_types::{SourceKey, sql},
    posts::{
        account_profile,
        content_scope::ReadableScopes,
        object_uri,
        timeline::{self, Place, TimelinePost},
    },
    viewer::{LazyReadableSources, ReadableSource},
};

/// A sequence in which entries are read.
#[derive(Clone, Copy)]
pub(super) enum UsnStream {
    /// Entries by ascending USN. To the owner, also those that have ended since they came.
    Changes { after: i64 },
    /// Entries with USNs up to `top` that the reader is shown, by descending USN: of each post the one with the highest.
    Newest { top: i64 },
    /// Entries that have left the reader, by the USNs in this column.
    Departures { after: i64, column: &'static str },
}

impl UsnStream {
    fn column(self) -> &'static str {
        match self {
            UsnStream::Changes { .. } | UsnStream::Newest { .. } => "usn",
            UsnStream::Departures { column, .. } => column,
        }
    }

    fn is_upward(self) -> bool {
        !matches!(self, UsnStream::Newest { .. })
    }

    /// The USN up to which the replica has all changes; `None` in a full sync.
    fn after(self) -> Option<i64> {
        match self {
            UsnStream::Changes { after } | UsnStream::Departures { after, .. } => Some(after),
            UsnStream::Newest { .. } => None,
        }
    }
}

/// An entry, or what is left of it.
pub(super) enum SourceItem {
    Entry(Box<SourceEntry>),
    Gone(SourceTombstone),
}

impl SourceItem {
    pub(super) fn usn(&self) -> i64 {
        match self {
            SourceItem::Entry(entry) => entry.usn,
            SourceItem::Gone(tombstone) => tombstone.usn,
        }
    }
}

/// The items that were read, in their order, and the USN at which reading ended. Items beyond the limit show that there are
/// others.
pub(super) struct ReadItems {
    pub(super) items: Vec<SourceItem>,
    pub(super) end: i64,
}

/// The reading of a source's library for one viewer.
pub(super) struct SourceReading<'f> {
    filter: SourceFilter<'f>,
    pub(super) source: ReadableSource,
    limits: SourceLimits,
}

impl<'f> SourceReading<'f> {
    /// Begins a reading. Fails with [`StoreError::NoSource`] if the viewer may not read the source.
    pub(super) fn begin(
        tx: &mut Tx<'_>,
        key: SourceKey,
        sources: &LazyReadableSources,
        filter: SourceFilter<'f>,
        limits: SourceLimits,
    ) -> Result<SourceReading<'f>, StoreError> {
        let readable = sources.get(tx)?.of(key.id);
        let source = readable.filter(|source| source.key == key);
        Ok(SourceReading {
            filter,
            source: source.ok_or(StoreError::NoSource)?,
            limits,
        })
    }

    /// Reads a stream between two USNs, of which the first is excluded.
    pub(super) fn read(
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
        let mut compared = 0;
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
                let lacking = wanted - items.len();
                let next_count = match self.filter {
                    Some(_) => lacking.max(MIN_COMPARED_AT_ONCE),
                    None => lacking,
                };
                let (next, later) = rest.split_at(rest.len().min(next_count));
                items.extend(self.items(tx, stream, next)?);
                rest = later;
                compared += next.len();
                if self.filter.is_some()
                    && compared >= self.limits.compared as usize
                    && let Some(last) = next.last()
                {
                    let end = last.at_usn;
                    return Ok(ReadItems { items, end });
                }
            }
            let last_item = items.last().map(SourceItem::usn);
            let end = match (stream.is_upward(), last_item, last) {
                (_, Some(usn), _) if items.len() >= wanted => usn,
                (true, _, _) if is_all => up_to,
                (false, _, _) if is_all => above,
                (_, _, Some(usn)) if rows_left == count => usn,
                (is_upward, _, Some(usn)) => {
                    match is_upward {
                        true => above = usn,
                        false => up_to = usn - 1,
                    }
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

    /// Counts the entries that the viewer is shown among the next ones above an ID. Entries that others alone are shown change
    /// nothing. For the owner, who is shown all, the entries' own columns decide. A post that is narrowed meanwhile counts until
    /// the source's library is notified. Also returns the last ID that was looked at, if others may follow.
    pub(super) fn count(
        &self,
        tx: &mut Tx<'_>,
        above: i64,
        limit: u32,
    ) -> Result<(u64, Option<i64>), StoreError> {
        let key = self.source.key;
        let scope = self.source.scope;
        let (shown, looked_at, last) = tx.query_one(
            "select count(*) as looked_at, max(e.id) as last_id,
                 count(case when not e.gone and e.visibility <= $4 and ($5 or exists (
                     select 1 from post p
                     where p.id = e.post_id and p.instance_id = $2 and p.returns = e.returns
                         and p.deleted_at_ms is null and not (p.claimed and $6)
                         and (p.content_scope {in $7} or exists (select 1 from scoped_content c
                             where c.post_id = p.id and c.instance_id = $2 and c.scope = $8))
                 )) then 1 end) as shown
             from (
                 select id, post_id, gone, visibility, returns from entry
                 where source_id = $1 and instance_id = $2 and id > $3 order by id limit $9
             ) e",
            &[
                &key.id(),
                &key.instance_id(),
                &above,
                &self.source.shows.narrowness(),
                &(self.source.reader == Reader::Owner),
                &self.source.is_published(),
                &Column::i64(ReadableScopes::of_scope(scope).all()),
                &scope.sql(),
                &limit,
            ],
            |row| {
                let counts = (row.i64("shown")?, row.i64("looked_at")?);
                Ok((counts.0, counts.1, row.opt_i64("last_id")?))
            },
        )?;
        let last = last.filter(|_| looked_at >= i64::from(limit));
        Ok((shown.cast_unsigned(), last))
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
        let key = self.source.key;
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
                self.source.reader == Reader::Owner && row.first_usn <= after
            }
            UsnStream::Departures { after, .. } => row.first_usn <= after,
            UsnStream::Newest { .. } => false,
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
            UsnStream::Changes { after } => self.changed_entries(tx, rows, after)?,
            UsnStream::Newest { top } => self.last_entries(tx, rows, top)?,
        };
        let is_ended =
            |row: &EntryRow| !entries.contains_key(&row.id) && self.may_have_ended(stream, row);
        let ended: Vec<EntryRow> = rows.iter().copied().filter(is_ended).collect();
        let mut ends = self.ends(tx, &ended)?;
        let item = |row: &EntryRow| {
            let entry = entries.remove(&row.id).map(Box::new);
            let entry = entry.map(SourceItem::Entry);
            let item = entry.or_else(|| ends.remove(&row.id))?;
            self.filtered(stream, row, item)
        };
        Ok(rows.iter().filter_map(item).collect())
    }

    /// The item at a row as the filter changes it: an entry that does not match becomes a tombstone if a replica may have it,
    /// and else nothing. The post's match when the replica got it is not known, so its first USN decides.
    fn filtered(&self, stream: UsnStream, row: &EntryRow, item: SourceItem) -> Option<SourceItem> {
        let Some(is_match) = self.filter else {
            return Some(item);
        };
        match item {
            SourceItem::Entry(entry) if !is_match(&entry.post) => {
                stream.after().filter(|after| row.first_usn <= *after)?;
                let SourceEntry { usn, key, .. } = *entry;
                Some(SourceItem::Gone(SourceTombstone { key, usn }))
            }
            item => Some(item),
        }
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
                content_usn: row.content_usn(),
                profile_usn: None,
                place: post.id,
                key: keys.get(&row.post_id)?.clone(),
                post,
            };
            Some((row.id, entry))
        };
        Ok(shown.into_iter().filter_map(entry).collect())
    }

    /// Adds the USNs of the authors' profiles to entries.
    fn add_profiles(
        &self,
        tx: &mut Tx<'_>,
        entries: &mut HashMap<i64, SourceEntry>,
    ) -> Result<(), DbError> {
        let authors = entries.values().filter_map(|entry| entry.post.account);
        let authors: HashSet<i64> = authors.map(sql).collect();
        let renamed = account_profile::change_usns(tx, self.source.key, authors)?;
        for entry in entries.values_mut() {
            let author = entry.post.account.map(sql);
            entry.profile_usn = author.and_then(|author: i64| renamed.get(&author).copied());
        }
        Ok(())
    }

    /// [`SourceReading::entries`] with the USNs of their content and profiles, for replicas that have all changes up to
    /// `after`.
    fn changed_entries(
        &self,
        tx: &mut Tx<'_>,
        rows: &[EntryRow],
        after: i64,
    ) -> Result<HashMap<i64, SourceEntry>, StoreError> {
        let mut entries = self.entries(tx, rows)?;
        self.add_profiles(tx, &mut entries)?;
        // A replica has the place of the entry that came last, which need not be this one.
        let old = entries.values().filter(|entry| entry.content_usn <= after);
        let old: Vec<i64> = old.map(|entry| sql(entry.post.post_id)).collect();
        let mut places: HashMap<i64, usize> = HashMap::new();
        // A filter may select by what changes without a USN, so a replica with one need not have any post.
        if self.filter.is_none() && !old.is_empty() {
            for row in self.rows_of_posts(tx, &old)? {
                *places.entry(row.post_id).or_default() += 1;
            }
        }
        for entry in entries.values_mut() {
            if places.get(&sql(entry.post.post_id)) != Some(&1) {
                entry.content_usn = entry.usn;
            }
        }
        Ok(entries)
    }

    /// [`SourceReading::entries`] without those of posts of which the viewer is shown an entry with a higher USN, up to `top`.
    fn last_entries(
        &self,
        tx: &mut Tx<'_>,
        rows: &[EntryRow],
        top: i64,
    ) -> Result<HashMap<i64, SourceEntry>, StoreError> {
        let mut entries = self.entries(tx, rows)?;
        self.add_profiles(tx, &mut entries)?;
        let posts: Vec<i64> = rows.iter().map(|row| row.post_id).collect();
        let mut places = self.rows_of_posts(tx, &posts)?;
        places.retain(|row| row.at_usn <= top && self.is_there(row));
        let mut counts: HashMap<i64, u32> = HashMap::new();
        for row in &places {
            *counts.entry(row.post_id).or_default() += 1;
        }
        // Few posts have several places. Only theirs are read again.
        places.retain(|row| counts.get(&row.post_id).is_some_and(|count| *count > 1));
        let shown = self.shown(tx, &places)?;
        // In the order of their USNs, so that the last of each post stays.
        let last: HashMap<i64, i64> = shown.iter().map(|(row, _)| (row.post_id, row.id)).collect();
        entries.retain(|id, entry| {
            let last = last.get(&sql(entry.post.post_id));
            last.is_none_or(|last| last == id)
        });
        Ok(entries)
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
            instance_id: self.source.key.instance_id(),
            returns: row.returns,
        };
        let places: Vec<Place> = there.iter().map(place).collect();
        let posts = timeline::at_places_of_source(tx, self.source, &places)?;
        let shown = there.into_iter().zip(posts);
        let shown = shown.filter_map(|(row, post)| Some((row, post?)));
        Ok(shown.collect())
    }

    /// The items for the ends of entries, by the entries' IDs: a tombstone, or the entry at which the
    /// viewer is shown the post now. There is none if the viewer is shown the entry itself, since
    /// it came back, or was never shown the post.
    fn ends(
        &self,
        tx: &mut Tx<'_>,
        rows: &[EntryRow],
    ) -> Result<HashMap<i64, SourceItem>, StoreError> {
        if rows.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<i64> = rows.iter().map(|row| row.post_id).collect();
        let mut names = self.names(tx, &ids)?;
        // A post is claimed or not for good.
        let is_published = self.source.is_published();
        names.retain(|post| !(is_published && post.claimed));
        let keys = self.keys(tx, &names)?;
        let places = self.rows_of_posts(tx, &ids)?;
        let shown = self.shown(tx, &places)?;
        let still_shown: HashSet<i64> = shown.iter().map(|(row, _)| row.id).collect();
        // In the order of their USNs, so that the last of each post stays.
        let others = shown
            .into_iter()
            .map(|(row, post)| (row.post_id, (row, post)));
        let others: HashMap<i64, (EntryRow, TimelinePost)> = others.collect();
        let end = |row: &EntryRow| {
            let key = keys.get(&row.post_id)?.clone();
            let usn = row.at_usn;
            // An entry with a higher USN comes by itself: a tombstone now, since it may have ended by then.
            let other = others
                .get(&row.post_id)
                .filter(|(other, _)| other.at_usn < usn);
            let item = match other {
                Some((_, post)) => SourceItem::Entry(Box::new(SourceEntry {
                    usn,
                    content_usn: usn,
                    profile_usn: None,
                    place: post.id,
                    key,
                    post: post.clone(),
                })),
                None => SourceItem::Gone(SourceTombstone { key, usn }),
            };
            Some((row.id, item))
        };
        let ended = rows.iter().filter(|row| !still_shown.contains(&row.id));
        Ok(ended.filter_map(end).collect())
    }

    /// The names of posts.
    fn names(&self, tx: &mut Tx<'_>, post_ids: &[i64]) -> Result<Vec<PostName>, DbError> {
        tx.query(
            "select id, upstream_id, uri, claimed from post where id {in $1} and instance_id = $2",
            &[
                &Column::i64(post_ids.iter().copied()),
                &self.source.key.instance_id(),
            ],
            |row| {
                Ok(PostName {
                    id: row.i64("id")?,
                    upstream_id: row.text("upstream_id")?,
                    uri: row.opt_text("uri")?,
                    claimed: row.bool("claimed")?,
                })
            },
        )
    }

    /// The entries of posts by ascending USN, also those that have ended.
    fn rows_of_posts(&self, tx: &mut Tx<'_>, post_ids: &[i64]) -> Result<Vec<EntryRow>, DbError> {
        let key = self.source.key;
        let columns = EntryRow::columns("usn");
        let mut rows = tx.query(
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
        rows.sort_unstable_by_key(|row| row.at_usn);
        Ok(rows)
    }

    /// The keys of posts, by their IDs. Of an instance's posts with one `uri`, such as a boost and
    /// the boosted post on some servers, the one that is found by it has it as its key. IDs of posts
    /// are no keys: they may be of entries in sources that the viewer may not read.
    fn keys(&self, tx: &mut Tx<'_>, posts: &[PostName]) -> Result<HashMap<i64, String>, DbError> {
        let uris: Vec<UriKey> = posts.iter().filter_map(PostName::uri_key).collect();
        let mut named: HashMap<UriKey, i64> = HashMap::new();
        if !uris.is_empty() {
            let instance_ids = [self.source.key.instance_id()];
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

/// The largest number of rows that are read at once: those of the largest chunk, and one that shows that others follow.
const MAX_ROWS_AT_ONCE: u32 = 1_001;
/// The smallest number of posts that are read at once to be compared with a filter, if there are so many.
const MIN_COMPARED_AT_ONCE: usize = 100;
