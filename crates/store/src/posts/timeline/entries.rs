//! The entries of posts: every source that lists them.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use driftline_core::post::Visibility;
use driftline_db::{Column, DbError, Row, Tx};

use super::{Rule, places::Place, stored::StoredPost};
use crate::{error::StoreError, id_types::sql, viewer::ReadableSources};

/// The place that each post took first in a timeline of several sources, at which alone it is shown: what
/// is taken of it later never moves it.
pub(super) struct FirstPlaces(Option<HashMap<i64, i64>>);

impl FirstPlaces {
    /// Of those posts, as far as a timeline takes their entries.
    pub(super) fn load(
        tx: &mut Tx<'_>,
        posts: &HashMap<i64, StoredPost>,
        rule: &Rule<'_>,
    ) -> Result<FirstPlaces, StoreError> {
        let entries = match rule {
            Rule::Source(_) => return Ok(FirstPlaces(None)),
            Rule::Public(hidden) if hidden.is_empty() => {
                let listed = posts.iter().filter(|(_, found)| found.listed);
                let places = listed.map(|(id, found)| (*id, sql(found.post.public_id)));
                return Ok(FirstPlaces(Some(places.collect())));
            }
            _ => entries(tx, &posts.values())?,
        };
        let mut first: HashMap<i64, (bool, Standing)> = HashMap::new();
        let mut public: HashSet<i64> = HashSet::new();
        // A place in a timeline comes before one in a thread.
        let mut stands = |id: i64, is_of_threads: bool, standing: Standing| {
            let first = first.entry(id).or_insert((is_of_threads, standing));
            if (is_of_threads, standing.arrival) < (first.0, first.1.arrival) {
                *first = (is_of_threads, standing);
            }
        };
        for entry in &entries {
            if let Some(found) = posts.get(&entry.post_id)
                && entry.returns == found.returns
            {
                let is_public = rule.takes_public(entry, found);
                if is_public || rule.takes_entry(entry, found) {
                    stands(
                        entry.post_id,
                        rule.finds_in_threads(entry),
                        entry.standing(),
                    );
                }
                if is_public {
                    public.insert(entry.post_id);
                }
            }
        }
        if let Rule::Public(_) = rule {
            // An entry may have left its source since, which changes no place.
            let listed = posts.iter().filter(|(_, found)| found.listed);
            for (id, found) in listed.filter(|(id, _)| !public.contains(id)) {
                stands(*id, false, Standing::at(sql(found.post.public_id)));
            }
        }
        let places = first.into_iter();
        let places = places.map(|(id, (_, standing))| (id, standing.place));
        Ok(FirstPlaces(Some(places.collect())))
    }

    /// That of a post, if the timeline has it.
    pub(super) fn of(&self, post_id: i64) -> Option<i64> {
        self.0.as_ref()?.get(&post_id).copied()
    }

    /// Whether a post is shown at a place of its.
    pub(super) fn has(&self, place: &Place) -> bool {
        let first = self.0.as_ref();
        first.is_none_or(|first| first.get(&place.post_id) == Some(&place.id))
    }
}

/// Where a post stands, and what tells which of its places it took first.
#[derive(Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) place: i64,
    pub(crate) arrival: (i64, Reverse<i64>),
}

impl Standing {
    /// Of an entry with its ID and its post's. A post's first entry has its ID; history that came with one
    /// ID was given ever lower places.
    pub(crate) fn of((id, post_id): (i64, i64), place: i64, arrival_id: Option<i64>) -> Standing {
        let came = match id == post_id {
            true => i64::MIN,
            false => arrival_id.unwrap_or(id),
        };
        Standing {
            place,
            arrival: (came, Reverse(place)),
        }
    }

    /// Of what came when it was given this ID.
    fn at(id: i64) -> Standing {
        Standing {
            place: id,
            arrival: (id, Reverse(id)),
        }
    }
}

/// An entry of a post.
pub(super) struct PostEntry {
    pub(super) source_id: i64,
    post_id: i64,
    pub(super) id: i64,
    pub(super) place: i64,
    pub(super) visibility: i64,
    pub(super) author_id: Option<i64>,
    returns: i64,
    arrival_id: Option<i64>,
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
        })
    }
}

/// The entries of posts in all sources, but those that have left.
pub(super) fn entries<'p>(
    tx: &mut Tx<'_>,
    posts: &(impl Iterator<Item = &'p StoredPost> + Clone),
) -> Result<Vec<PostEntry>, DbError> {
    let ids = || posts.clone().map(|found| sql(found.post.post_id));
    let instance_ids = posts.clone().map(|found| sql(found.post.instance));
    let instance_ids: HashSet<i64> = instance_ids.collect();
    let columns = "source_id, post_id, id, coalesce(place_id, id) as place, visibility, account_id,
        returns, arrival_id";
    let instance_ids = Column::i64(instance_ids);
    let sources: HashSet<i64> = posts.clone().map(|found| found.first_source_id).collect();
    let first = tx.query_later(
        &format!(
            "select {columns} from entry
             where source_id {{in $3}} and instance_id {{in $2}} and id {{in $1}} and not gone"
        ),
        &[&Column::i64(ids()), &instance_ids, &Column::i64(sources)],
        PostEntry::from_row,
    )?;
    let others = tx.query_later(
        &format!(
            "select {columns} from entry
             where post_id {{in $1}} and instance_id {{in $2}} and id <> post_id and not gone"
        ),
        &[&Column::i64(ids()), &instance_ids],
        PostEntry::from_row,
    )?;
    let mut found = tx.rows(first)?;
    found.extend(tx.rows(others)?);
    Ok(found)
}

impl Rule<'_> {
    /// Whether the timeline takes an entry, as narrow as its post ever was since, or is now.
    fn takes_entry(&self, entry: &PostEntry, found: &StoredPost) -> bool {
        let visibility = entry.narrowness(found);
        match self {
            Rule::Public(hidden) => {
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
                let is_of_thread = readable
                    .of_raw(entry.source_id)
                    .is_some_and(|source| source.is_of_threads);
                !is_of_thread && entry.is_shown(readable, found) && (is_chosen || is_followed())
            }
            Rule::Source(shows) => visibility <= shows.narrowness(),
            Rule::Readable(readable) => entry.is_shown(readable, found),
        }
    }
}

impl Rule<'_> {
    /// Whether an entry is of a thread, where the rule takes such.
    fn finds_in_threads(&self, entry: &PostEntry) -> bool {
        let Rule::Readable(readable) = self else {
            return false;
        };
        let source = readable.of_raw(entry.source_id);
        source.is_some_and(|source| source.is_of_threads)
    }

    /// Whether it is the entry at which the public timeline of the world lists its post.
    fn takes_public(&self, entry: &PostEntry, found: &StoredPost) -> bool {
        matches!(self, Rule::Public(_)) && found.listed && entry.place == sql(found.post.public_id)
    }
}

impl PostEntry {
    fn narrowness(&self, found: &StoredPost) -> i64 {
        self.visibility.max(found.post.visibility.narrowness())
    }

    fn standing(&self) -> Standing {
        Standing::of((self.id, self.post_id), self.place, self.arrival_id)
    }

    /// Whether its source shows it to a viewer.
    pub(super) fn is_shown(&self, readable: &ReadableSources, found: &StoredPost) -> bool {
        let source = readable.of_raw(self.source_id);
        source.is_some_and(|source| self.narrowness(found) <= source.shows.narrowness())
    }
}
