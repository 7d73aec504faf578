//! Entries: the posts of a source, each at its position.

use std::collections::HashMap;

use driftline_core::{
    post::Visibility,
    timeline::{Anchor, AnchorQuery},
    upstream_id::{Key, UpstreamId},
};
use driftline_db::{Column, DbError, PendingRows, Row, Tx};

use crate::{
    error::StoreError,
    id_types::SourceKey,
    mirror::left_usns,
    new_ids::TakenIds,
    posts::{alias, post},
    refresh::Look,
};

/// The stored post at which a request may end. It is the newest after those to skip, among the
/// entries at or below a position that a page has shown and that are not known to be deleted. Posts
/// that only a stream has shown do not count, because pages need not show them.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn anchor(
    tx: &mut Tx<'_>,
    source: SourceKey,
    query: &AnchorQuery,
) -> Result<Option<Anchor>, StoreError> {
    match query {
        AnchorQuery::Newest { at_most, skip } => {
            nearest(tx, source, ("<=", at_most), "desc", *skip)
        }
        AnchorQuery::Oldest { at_least, skip } => {
            nearest(tx, source, (">=", at_least), "asc", *skip)
        }
        AnchorQuery::Drawn {
            low,
            high,
            per_million,
        } => drawn(tx, source, (low, high), *per_million),
    }
}

fn nearest(
    tx: &mut Tx<'_>,
    source: SourceKey,
    (side, bound): (&str, &Key),
    order: &str,
    skip: u32,
) -> Result<Option<Anchor>, StoreError> {
    let found = nearest_later(tx, source, (side, bound), order, skip)?;
    Ok(first(tx.rows(found)?))
}

fn nearest_later(
    tx: &mut Tx<'_>,
    source: SourceKey,
    (side, bound): (&str, &Key),
    order: &str,
    skip: u32,
) -> Result<PendingRows<'static, Key>, DbError> {
    tx.query_later(
        &format!(
            "select position from entry
             where source_id = $1 and instance_id = $4 and position {side} $2
                 and not gone and not streamed
             order by position {order} limit 2 offset $3"
        ),
        &[&source.id(), &bound.as_str(), &skip, &source.instance_id()],
        position,
    )
}

fn first(positions: Vec<Key>) -> Option<Anchor> {
    let mut positions = positions.into_iter();
    positions.next().map(|key| Anchor {
        key,
        before: positions.next(),
    })
}

/// The newest live position below another, requested together with the next query.
pub(crate) struct PendingBelow<'k>(&'k Key, PendingRows<'static, Key>);

impl<'k> PendingBelow<'k> {
    pub(crate) fn ask(
        tx: &mut Tx<'_>,
        source: SourceKey,
        high: &'k Key,
    ) -> Result<PendingBelow<'k>, DbError> {
        let found = nearest_later(tx, source, ("<=", high), "desc", 0)?;
        Ok(PendingBelow(high, found))
    }

    pub(crate) fn read(self, tx: &mut Tx<'_>) -> Result<Option<Key>, DbError> {
        Ok(first(tx.rows(self.1)?).and_then(|anchor| anchor.below(self.0)))
    }
}

/// An entry of a range, by the share of the range's entries below it. All are equally likely.
fn drawn(
    tx: &mut Tx<'_>,
    source: SourceKey,
    (low, high): (&Key, &Key),
    per_million: u32,
) -> Result<Option<Anchor>, StoreError> {
    let range = "from entry
         where source_id = $1 and instance_id = $4 and position >= $2 and position < $3
             and not gone and not streamed";
    let (id, instance_id) = (source.id(), source.instance_id());
    let (low, high) = (low.as_str(), high.as_str());
    let count = tx.query_one(
        &format!("select count(*) as entries {range}"),
        &[&id, &low, &high, &instance_id],
        |row| row.i64("entries"),
    )?;
    let below = count * i64::from(per_million) / 1_000_000;
    let found = tx.query_opt(
        &format!("select position {range} order by position limit 1 offset $5"),
        &[&id, &low, &high, &instance_id, &below],
        position,
    )?;
    Ok(found.map(|key| Anchor { key, before: None }))
}

/// The positions of stored posts in the source, as IDs in text order. The newest entry of each post
/// counts.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn positions(
    tx: &mut Tx<'_>,
    source: SourceKey,
    posts: &[UpstreamId],
) -> Result<HashMap<UpstreamId, UpstreamId>, StoreError> {
    let upstream_ids: Vec<&str> = posts.iter().map(UpstreamId::as_str).collect();
    let known = post::known(tx, source.instance_id(), &upstream_ids)?.into_values();
    let names: HashMap<i64, String> = known.map(|post| (post.id, post.upstream_id)).collect();
    let ids: Vec<i64> = names.keys().copied().collect();
    let entries = of_posts(tx, source, &ids)?.into_iter();
    let position = |entry: KnownEntry| {
        let name = names.get(&entry.post_id)?;
        Some((name.as_str().into(), entry.position.as_str().into()))
    };
    Ok(entries.filter_map(position).collect())
}

/// The highest position of a source's entries, requested together with the next query. One row.
pub(crate) fn newest_position_later(
    tx: &mut Tx<'_>,
    source: SourceKey,
) -> Result<PendingRows<'static, Option<String>>, DbError> {
    tx.query_later(
        "select max(position) as newest from entry
         where source_id = $1 and instance_id = $2",
        &[&source.id(), &source.instance_id()],
        |row| row.opt_text("newest"),
    )
}

/// The parts of a stored entry that an observation of its post can change.
#[derive(Clone, Debug)]
pub(crate) struct KnownEntry {
    pub(crate) id: i64,
    pub(crate) post_id: i64,
    pub(crate) position: String,
    /// The version of the post that this source's library last reported.
    pub(crate) content_hash: i64,
    /// True if the source no longer shows its post.
    pub(crate) gone: bool,
    /// The time since which the source does not list it, in Unix ms, if the post is not known to be
    /// deleted: see [`super::absence`].
    pub(crate) left_at_ms: Option<i64>,
    /// The value of `left_at_ms` before the post was deleted.
    pub(crate) left_before_ms: Option<i64>,
    /// True if a page that should list it did not, and no page has shown it since.
    pub(crate) is_absent: bool,
    /// The number of times that it has left.
    pub(crate) times_left: i64,
    /// True if only a stream has shown it.
    pub(crate) streamed: bool,
    /// The number of returns of its post when it took its ID.
    pub(crate) returns: i64,
    /// True if its post was deleted or has returned and this source has not noticed it yet. The
    /// entry is then not shown at its ID.
    pub(crate) stale: bool,
    /// Its post's last look-up, if that was requested.
    pub(crate) look: Option<Look>,
}

/// The entries at these positions, by position.
pub(crate) fn at(
    tx: &mut Tx<'_>,
    source: SourceKey,
    positions: &[&str],
) -> Result<HashMap<String, KnownEntry>, DbError> {
    let entries = at_later(tx, source, positions)?;
    Ok(by_position(tx.rows(entries)?))
}

/// The entries at these positions, requested together with the next query.
pub(crate) fn at_later(
    tx: &mut Tx<'_>,
    source: SourceKey,
    positions: &[&str],
) -> Result<PendingRows<'static, KnownEntry>, DbError> {
    tx.query_each_later(
        &format!(
            "select {}, {}
             from entry e
             left join freshness f on f.post_id = e.post_id and f.instance_id = e.instance_id
             where e.source_id = $1 and e.instance_id = $2 and e.position = {{row 1}}",
            columns("$2"),
            Look::COLUMNS
        ),
        &[&source.id(), &source.instance_id()],
        &[Column::text(positions.iter().copied())],
        |row| {
            Ok(KnownEntry {
                look: Look::from_row(row)?,
                ..from_row(row)?
            })
        },
    )
}

pub(crate) fn by_position(entries: Vec<KnownEntry>) -> HashMap<String, KnownEntry> {
    let entries = entries.into_iter();
    entries
        .map(|entry| (entry.position.clone(), entry))
        .collect()
}

/// The entries of posts in a source, in order of their IDs. A post that the source lists more than
/// once has several.
pub(crate) fn of_posts(
    tx: &mut Tx<'_>,
    source: SourceKey,
    post_ids: &[i64],
) -> Result<Vec<KnownEntry>, DbError> {
    let ids = Column::i64(post_ids.iter().copied());
    let columns = columns("$3");
    tx.query(
        &format!(
            "select {columns} from entry e
             where e.source_id = $1 and e.instance_id = $3 and e.id {{in $2}}
                 and e.id = e.post_id
             union all
             select {columns} from entry e
             where e.source_id = $1 and e.instance_id = $3 and e.post_id {{in $2}}
                 and e.id <> e.post_id
             order by 1"
        ),
        &[&source.id(), &ids, &source.instance_id()],
        from_row,
    )
}

/// The written part of an entry that follows from its post.
pub(crate) struct EntryState {
    pub(crate) id: i64,
    pub(crate) post_id: i64,
    usn: i64,
    content_hash: i64,
    gone: bool,
    visibility: Visibility,
    returns: i64,
}

impl EntryState {
    pub(crate) fn of(post: &post::KnownPost, id: i64, usn: i64) -> EntryState {
        EntryState {
            id,
            post_id: post.id,
            usn,
            content_hash: post.content_hash,
            gone: post.is_gone(),
            visibility: post.visibility,
            returns: post.returns,
        }
    }
}

/// An entry to store.
pub(crate) struct NewEntry<'a> {
    pub(crate) state: EntryState,
    pub(crate) position: &'a str,
    pub(crate) streamed: bool,
    /// The ID of its post's author; `None` if the upstream omitted the author.
    pub(crate) author_id: Option<i64>,
    /// The time of arrival of history, as an ID. The entry's own ID has its post's time.
    pub(crate) arrival_id: Option<i64>,
}

/// Stores new entries, whose IDs may be from `ids`.
pub(crate) fn insert(
    tx: &mut Tx<'_>,
    source: SourceKey,
    arrived_at_ms: i64,
    new: &[NewEntry<'_>],
    ids: &TakenIds,
) -> Result<(), DbError> {
    let states = || new.iter().map(|new| &new.state);
    tx.execute_many_later(
        "insert into entry (source_id, instance_id, id, post_id, position, first_usn, usn, arrived_at_ms,
             content_hash, gone, visibility, streamed, returns, account_id, arrival_id) {rows}",
        &[],
        &[
            Column::i64(new.iter().map(|_| source.id())),
            Column::i64(new.iter().map(|_| source.instance_id())),
            ids.column(states().map(|state| state.id)),
            ids.column(states().map(|state| state.post_id)),
            Column::text(new.iter().map(|d| d.position)),
            Column::i64(states().map(|state| state.usn)),
            Column::i64(states().map(|state| state.usn)),
            Column::i64(new.iter().map(|_| arrived_at_ms)),
            Column::i64(states().map(|state| state.content_hash)),
            Column::bool(states().map(|state| state.gone)),
            Column::i64(states().map(|state| state.visibility.narrowness())),
            Column::bool(new.iter().map(|d| d.streamed)),
            Column::i64(states().map(|state| state.returns)),
            Column::i64(new.iter().map(|new| new.author_id)),
            Column::i64(new.iter().map(|new| new.arrival_id)),
        ],
    )?;
    add_aliases(tx, source, new.iter().map(|new| &new.state), ids)
}

/// Adds the IDs of entries as aliases of their posts.
fn add_aliases<'a>(
    tx: &mut Tx<'_>,
    source: SourceKey,
    entries: impl Iterator<Item = &'a EntryState>,
    ids: &TakenIds,
) -> Result<(), DbError> {
    let aliases = entries.filter(|entry| entry.id != entry.post_id);
    let aliases: Vec<_> = aliases
        .map(|entry| (entry.id, Some(entry.post_id)))
        .collect();
    alias::add(tx, (source.instance_id(), Some(source.id())), &aliases, ids)
}

/// A change of a stored entry, which moves if its ID changes.
pub(crate) struct Change {
    pub(crate) id: i64,
    pub(crate) new: EntryState,
    /// True if only counts differ, which is not an event of the feed.
    pub(crate) is_of_counts: bool,
}

impl Change {
    /// The post, if the entry moves to another ID.
    pub(crate) fn moved_post(&self) -> Option<i64> {
        (self.id != self.new.id).then_some(self.new.post_id)
    }
}

impl KnownEntry {
    /// True if its post has returned, so that it moves to a new ID, because readers have passed its
    /// old one.
    pub(crate) fn moves(&self, post: &post::KnownPost) -> bool {
        !post.is_gone() && (self.gone || self.returns != post.returns)
    }

    /// True if the source does not list its post any more, but that is not known to be deleted.
    pub(crate) fn is_left(&self) -> bool {
        self.left_at_ms.is_some()
    }

    /// The time since which the source does not list its post, in Unix ms, even if the post was
    /// deleted later.
    pub(crate) fn unlisted_since_ms(&self) -> Option<i64> {
        self.left_at_ms.or(self.left_before_ms)
    }

    /// True if its library was not notified about its post's state.
    pub(crate) fn differs(&self, post: &post::KnownPost) -> bool {
        !post.is_version(self.content_hash)
            || self.gone != post.is_gone()
            || self.is_left() && post.is_gone()
    }

    /// The change by which it ends.
    pub(crate) fn end(&self, post: &post::KnownPost, usn: i64) -> Change {
        let mut change = self.change(post, None, usn);
        change.new.gone = true;
        change.is_of_counts = false;
        change
    }

    /// The change to its post's state, with its new ID if it moves.
    pub(crate) fn change(&self, post: &post::KnownPost, new_id: Option<i64>, usn: i64) -> Change {
        Change {
            id: self.id,
            new: EntryState::of(post, new_id.unwrap_or(self.id), usn),
            is_of_counts: new_id.is_none() && !self.differs(post),
        }
    }
}

/// Notifies a source's library about new versions of its posts. The IDs to which they move may be
/// from `ids`.
pub(crate) fn change(
    tx: &mut Tx<'_>,
    source: SourceKey,
    changes: &[Change],
    ids: &TakenIds,
) -> Result<(), DbError> {
    let (moved, stay): (Vec<_>, Vec<_>) = changes.iter().partition(|c| c.moved_post().is_some());
    let narrowed = "{greatest}(entry.visibility, r.visibility)";
    tx.execute_many_later(
        &format!(
            "update entry set usn = r.usn, change_usn = coalesce(r.change_usn, entry.change_usn),
                 content_hash = r.content_hash, gone = r.gone, visibility = {narrowed}, left_at_ms = null,
                 left_before_ms = case when r.gone then coalesce(left_at_ms, left_before_ms) end, {}
             from {{rows as r(id, usn, change_usn, content_hash, gone, visibility)}}
             where entry.source_id = $1 and entry.instance_id = $2 and entry.id = r.id",
            left_usns::assignments("r.gone", narrowed)
        ),
        &[&source.id(), &source.instance_id()],
        &[
            Column::i64(stay.iter().map(|c| c.id)),
            Column::i64(stay.iter().map(|c| c.new.usn)),
            Column::i64(stay.iter().map(|c| (!c.is_of_counts).then_some(c.new.usn))),
            Column::i64(stay.iter().map(|c| c.new.content_hash)),
            Column::bool(stay.iter().map(|c| c.new.gone)),
            Column::i64(stay.iter().map(|c| c.new.visibility.narrowness())),
        ],
    )?;
    tx.execute_many_later(
        &format!(
            "update entry set id = r.new_id, usn = r.usn, change_usn = r.usn, content_hash = r.content_hash,
                 gone = r.gone, visibility = r.visibility, arrival_id = null, returns = r.returns,
                 left_at_ms = null, left_before_ms = null, absent_at_ms = null, {}
             from {{rows as r(id, new_id, usn, content_hash, gone, visibility, returns)}}
             where entry.source_id = $1 and entry.instance_id = $2 and entry.id = r.id",
            left_usns::assignments("r.gone", "r.visibility")
        ),
        &[&source.id(), &source.instance_id()],
        &[
            Column::i64(moved.iter().map(|c| c.id)),
            ids.column(moved.iter().map(|c| c.new.id)),
            Column::i64(moved.iter().map(|c| c.new.usn)),
            Column::i64(moved.iter().map(|c| c.new.content_hash)),
            Column::bool(moved.iter().map(|c| c.new.gone)),
            Column::i64(moved.iter().map(|c| c.new.visibility.narrowness())),
            Column::i64(moved.iter().map(|c| c.new.returns)),
        ],
    )?;
    add_aliases(tx, source, moved.iter().map(|change| &change.new), ids)
}

/// Notifies a source's library that deleted posts have returned whose entries had left before. They
/// have left again. Each entry comes with its USN.
pub(crate) fn leave_as_before(
    tx: &mut Tx<'_>,
    source: SourceKey,
    entries: &[(i64, i64)],
) -> Result<(), DbError> {
    tx.execute_many_later(
        "update entry set usn = r.usn, change_usn = r.usn, left_at_ms = left_before_ms, left_before_ms = null
         from {rows as r(id, usn)}
         where entry.source_id = $1 and entry.instance_id = $2 and entry.id = r.id",
        &[&source.id(), &source.instance_id()],
        &[
            Column::i64(entries.iter().map(|(id, _)| *id)),
            Column::i64(entries.iter().map(|(_, usn)| *usn)),
        ],
    )
}

/// Gives entries USNs for changes of their authors' profiles, each by its entry's ID. They are no events of the feed.
pub(crate) fn give_usns(
    tx: &mut Tx<'_>,
    source: SourceKey,
    usns: &[(i64, i64)],
) -> Result<(), DbError> {
    tx.execute_many_later(
        "update entry set usn = r.usn from {rows as r(id, usn)}
         where entry.source_id = $1 and entry.instance_id = $2 and entry.id = r.id",
        &[&source.id(), &source.instance_id()],
        &[
            Column::i64(usns.iter().map(|(id, _)| *id)),
            Column::i64(usns.iter().map(|(_, usn)| *usn)),
        ],
    )
}

/// Stores the hashes of entries that had an earlier form, each by its entry's ID.
pub(crate) fn set_hashes(
    tx: &mut Tx<'_>,
    source: SourceKey,
    hashes: &[(i64, i64)],
) -> Result<(), DbError> {
    tx.execute_many_later(
        "update entry set content_hash = r.content_hash from {rows as r(id, content_hash)}
         where entry.source_id = $1 and entry.instance_id = $2 and entry.id = r.id",
        &[&source.id(), &source.instance_id()],
        &[
            Column::i64(hashes.iter().map(|(id, _)| *id)),
            Column::i64(hashes.iter().map(|(_, hash)| *hash)),
        ],
    )
}

/// Records that a page has shown entries that only a stream had shown before, or that were missing
/// from a page.
pub(crate) fn mark_shown(tx: &mut Tx<'_>, source: SourceKey, ids: &[i64]) -> Result<(), DbError> {
    tx.execute_many_later(
        "update entry set streamed = false, absent_at_ms = null from {rows as r(id)}
         where entry.source_id = $1 and entry.instance_id = $2 and entry.id = r.id",
        &[&source.id(), &source.instance_id()],
        &[Column::i64(ids.iter().copied())],
    )
}

fn position(row: &Row<'_>) -> Result<Key, DbError> {
    Ok(Key::from_stored(row.str("position")?))
}

fn from_row(row: &Row<'_>) -> Result<KnownEntry, DbError> {
    Ok(KnownEntry {
        id: row.i64("id")?,
        post_id: row.i64("post_id")?,
        position: row.text("position")?,
        content_hash: row.i64("content_hash")?,
        gone: row.bool("gone")?,
        left_at_ms: row.opt_i64("left_at_ms")?,
        left_before_ms: row.opt_i64("left_before_ms")?,
        is_absent: row.opt_i64("absent_at_ms")?.is_some(),
        times_left: row.i64("times_left")?,
        streamed: row.bool("streamed")?,
        returns: row.i64("returns")?,
        stale: row.bool("stale")?,
        look: None,
    })
}

/// The columns of `entry e` that [`from_row`] reads. `instance` is the parameter with its instance.
/// Few posts are deleted or ever return, and their index is small.
fn columns(instance: &str) -> String {
    format!(
        "e.id, e.post_id, e.position, e.content_hash, e.gone, e.streamed, e.returns,
         e.left_at_ms, e.left_before_ms, e.absent_at_ms, e.times_left,
         case when e.gone then -1 else e.returns end <> coalesce(
             (select case when p.deleted_at_ms is null then p.returns else -1 end from post p
              where p.id = e.post_id and p.instance_id = {instance}
                  and (p.returns > 0 or p.deleted_at_ms is not null)), 0) as stale"
    )
}
