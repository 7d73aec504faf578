//! The entries of posts: every source that lists them.

use std::{cmp::Reverse, collections::HashSet};

use driftline_core::post::Visibility;
use driftline_db::{Column, DbError, Row, Tx};

use super::{Rule, stored::StoredPost};
use crate::{id_types::sql, viewer::ReadableSources};

/// Where a post stands, and what tells which of its places it took first.
#[derive(Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) place: i64,
    /// In the order in which entries came.
    pub(crate) came: (i64, Reverse<i64>),
}

impl Standing {
    /// Of an entry with its ID. What came with one ID is history, and was given ever lower places.
    pub(crate) fn of(id: i64, place: i64, arrival_id: Option<i64>) -> Standing {
        Standing {
            place,
            came: (arrival_id.unwrap_or(id), Reverse(place)),
        }
    }
}

/// An entry of a post.
pub(super) struct PostEntry {
    pub(super) source_id: i64,
    pub(super) post_id: i64,
    pub(super) id: i64,
    pub(super) place: i64,
    pub(super) visibility: i64,
    pub(super) author_id: Option<i64>,
    pub(super) returns: i64,
    arrival_id: Option<i64>,
    pub(super) arrived_at_ms: i64,
    /// Its source lists it no more, or it is deleted.
    pub(super) gone: bool,
    pub(super) left_at_ms: Option<i64>,
}

impl PostEntry {
    fn from_row(row: &Row<'_>) -> Result<PostEntry, DbError> {
        Ok(PostEntry {
            source_id: row.i64("source_id")?,
            post_id: row.i64("post_id")?,
            id: row.i64("id")?,
            place: row.i64("place")?,
            visibility: row.i64("visibility")?,
            author_id: row.opt_i64("account_id")?,
            returns: row.i64("returns")?,
            arrival_id: row.opt_i64("arrival_id")?,
            arrived_at_ms: row.i64("arrived_at_ms")?,
            gone: row.bool("gone")?,
            left_at_ms: row.opt_i64("left_at_ms")?,
        })
    }
}

/// The entries of posts in all sources, also those that have left.
pub(super) fn entries<'p>(
    tx: &mut Tx<'_>,
    posts: &(impl Iterator<Item = &'p StoredPost> + Clone),
) -> Result<Vec<PostEntry>, DbError> {
    if posts.clone().next().is_none() {
        return Ok(Vec::new());
    }
    let ids = || posts.clone().map(|found| sql(found.post.post_id));
    let instance_ids = posts.clone().map(|found| sql(found.post.instance));
    let instance_ids: HashSet<i64> = instance_ids.collect();
    let columns = "source_id, post_id, id, coalesce(place_id, id) as place, visibility, account_id,
        returns, arrival_id, arrived_at_ms, gone, coalesce(left_at_ms, left_before_ms) as left_at_ms";
    let instance_ids = Column::i64(instance_ids);
    let sources: HashSet<i64> = posts.clone().map(|found| found.first_source_id).collect();
    let first = tx.query_later(
        &format!(
            "select {columns} from entry
             where source_id {{in $3}} and instance_id {{in $2}} and id {{in $1}}"
        ),
        &[&Column::i64(ids()), &instance_ids, &Column::i64(sources)],
        PostEntry::from_row,
    )?;
    let others = tx.query_later(
        &format!(
            "select {columns} from entry
             where post_id {{in $1}} and instance_id {{in $2}} and id <> post_id"
        ),
        &[&Column::i64(ids()), &instance_ids],
        PostEntry::from_row,
    )?;
    let mut found = tx.rows(first)?;
    found.extend(tx.rows(others)?);
    Ok(found)
}

impl Rule<'_> {
    /// Whether the timeline takes an entry, as narrow as its post ever was since, or is now; also one that has
    /// ended.
    pub(super) fn takes_entry(&self, entry: &PostEntry, found: &StoredPost) -> bool {
        let visibility = entry.narrowness(found);
        match self {
            Rule::World(_) => false,
            Rule::Public(hidden, _) => {
                let public = Visibility::Public.narrowness();
                visibility == public && hidden.iter().any(|id| sql(*id) == entry.source_id)
            }
            Rule::Home(takes, readable) => {
                let is_chosen = takes.sources.iter().any(|id| sql(*id) == entry.source_id);
                let is_followed = || {
                    let mut authors = takes.authors.iter();
                    entry
                        .author_id
                        .is_some_and(|author| authors.any(|id| sql(*id) == author))
                };
                !self.is_of_threads(entry)
                    && entry.is_readable(readable, found)
                    && (is_chosen || is_followed())
            }
            Rule::Source(shows) => visibility <= shows.narrowness(),
            Rule::Readable(readable) => entry.is_readable(readable, found),
        }
    }

    /// Whether a viewer of the timeline may read a post by an entry, now.
    pub(super) fn shows(&self, entry: &PostEntry, found: &StoredPost) -> bool {
        let readable = self.readable();
        readable.is_some_and(|readable| entry.is_shown(readable, found))
    }

    /// What the timeline's viewer may read; `None` of a source's own timeline, which takes no others.
    pub(super) fn readable(&self) -> Option<&ReadableSources> {
        match self {
            Rule::World(readable)
            | Rule::Public(_, readable)
            | Rule::Home(_, readable)
            | Rule::Readable(readable) => Some(readable),
            Rule::Source(_) => None,
        }
    }

    /// Whether an entry is of a thread, where the rule takes such.
    pub(super) fn finds_in_threads(&self, entry: &PostEntry) -> bool {
        matches!(self, Rule::Readable(_)) && self.is_of_threads(entry)
    }

    /// Whether an entry is of a thread.
    pub(super) fn is_of_threads(&self, entry: &PostEntry) -> bool {
        let source = self
            .readable()
            .and_then(|readable| readable.of_raw(entry.source_id));
        source.is_some_and(|source| source.is_of_threads)
    }

    /// Whether it is the entry at which the public timeline of the world lists its post, or did until that
    /// was deleted.
    pub(super) fn takes_public(&self, entry: &PostEntry, found: &StoredPost) -> bool {
        // Of a deleted post it is not stored whether it was listed: that follows from the entry.
        let was_listed = || {
            let source = self.readable().and_then(|all| all.of_raw(entry.source_id));
            let is_public = source.is_some_and(|source| source.is_public);
            is_public && entry.narrowness(found) == Visibility::Public.narrowness()
        };
        matches!(self, Rule::Public(..) | Rule::World(_))
            && found.has_public_place
            && entry.place == sql(found.post.public_id)
            && (found.listed || was_listed())
    }
}

impl PostEntry {
    fn narrowness(&self, found: &StoredPost) -> i64 {
        self.visibility.max(found.post.visibility.narrowness())
    }

    pub(super) fn standing(&self) -> Standing {
        Standing::of(self.id, self.place, self.arrival_id)
    }

    /// Whether a viewer may read its source, as far as that showed it; also of one that has ended.
    pub(super) fn is_readable(&self, readable: &ReadableSources, found: &StoredPost) -> bool {
        let source = readable.of_raw(self.source_id);
        source.is_some_and(|source| self.narrowness(found) <= source.shows.narrowness())
    }

    /// Whether its source shows it to a viewer.
    pub(super) fn is_shown(&self, readable: &ReadableSources, found: &StoredPost) -> bool {
        !self.gone && found.is_alive() && self.is_readable(readable, found)
    }
}
