//! The places of a timeline, read from one stream or merged from several.

use std::collections::HashMap;

use driftline_core::post::Visibility;
use driftline_db::{DbError, Row, ToValue, Tx};

use super::{
    Picks, Range, Rule, Stretch, TimelinePost, authors,
    copies::Copies,
    first_places::FirstPlaces,
    stored::{self, StoredPost},
};
use crate::{
    error::StoreError,
    id_types::{AccountId, SourceKey, from_sql, sql},
    reservation::Bound,
    viewer::ReadableSource,
};

/// A run of places in their order.
pub(super) enum PlaceStream<'a> {
    /// The world's public timeline.
    World,
    /// A source's entries up to this visibility, where timelines of several sources list them.
    Source(SourceKey, Visibility),
    /// A source's entries up to this visibility, at their IDs.
    Entries(SourceKey, Visibility),
    /// What authors wrote, in these sources.
    Authors(&'a [AccountId], &'a [ReadableSource]),
}

/// Where a post stands in a timeline.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) id: i64,
    pub(super) post_id: i64,
    instance_id: i64,
    /// Of an entry: how often the post had returned when it took this place. After another return
    /// it is no longer shown there.
    returns: Option<i64>,
}

impl Place {
    pub(super) fn from_row(row: &Row<'_>) -> Result<Place, DbError> {
        Ok(Place {
            id: row.i64("place")?,
            post_id: row.i64("post_id")?,
            instance_id: row.i64("instance_id")?,
            returns: row.opt_i64("returns")?,
        })
    }
}

/// The bounds within which places are read, both exclusive, and the direction.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) above: i64,
    pub(super) below: i64,
    pub(super) is_upward: bool,
}

impl PlaceStream<'_> {
    /// The next `count` places of a window.
    fn read(&self, tx: &mut Tx<'_>, window: Window, count: i64) -> Result<Vec<Place>, DbError> {
        let Window { above, below, .. } = window;
        let order = window.order();
        match self {
            PlaceStream::World => tx.query(
                &format!(
                    "select coalesce(public_id, id) as place, id as post_id, instance_id,
                         cast(null as {{i64}}) as returns
                     from post
                     where (listed or deleted_at_ms is not null and in_public and visibility = 'public')
                         and coalesce(public_id, id) > $1 and coalesce(public_id, id) < $2
                     order by coalesce(public_id, id) {order} limit $3"
                ),
                &[&above, &below, &count],
                Place::from_row,
            ),
            PlaceStream::Source(key, shows) => tx.query(
                &format!(
                    "select coalesce(place_id, id) as place, post_id, instance_id, returns from entry
                     where source_id = $4 and instance_id = $5 and visibility <= $6
                         and coalesce(place_id, id) > $1 and coalesce(place_id, id) < $2
                     order by coalesce(place_id, id) {order} limit $3"
                ),
                &source_params(&above, &below, &count, &key.id(), &key.instance_id(), &shows.narrowness()),
                Place::from_row,
            ),
            PlaceStream::Entries(key, shows) => tx.query(
                &format!(
                    "select id as place, post_id, instance_id, returns from entry
                     where source_id = $4 and instance_id = $5 and not gone and visibility <= $6
                         and id > $1 and id < $2
                     order by id {order} limit $3"
                ),
                &source_params(&above, &below, &count, &key.id(), &key.instance_id(), &shows.narrowness()),
                Place::from_row,
            ),
            PlaceStream::Authors(authors, sources) => {
                authors::read(tx, authors, sources, window, count)
            }
        }
    }
}

fn source_params<'v>(
    above: &'v i64,
    below: &'v i64,
    count: &'v i64,
    source: &'v i64,
    instance: &'v i64,
    shows: &'v i64,
) -> [&'v dyn ToValue; 6] {
    [above, below, count, source, instance, shows]
}

impl Window {
    /// Its part beyond a place, which is not in it.
    pub(super) fn beyond(self, place: i64) -> Window {
        match self.is_upward {
            true => Window {
                above: place,
                ..self
            },
            false => Window {
                below: place,
                ..self
            },
        }
    }

    /// Its part up to a place, which is in it.
    pub(super) fn up_to(self, place: i64) -> Window {
        match self.is_upward {
            true => Window {
                below: place.saturating_add(1),
                ..self
            },
            false => Window {
                above: place.saturating_sub(1),
                ..self
            },
        }
    }

    pub(super) fn by_place(self) -> &'static str {
        match self.is_upward {
            true => "order by coalesce(place_id, id) asc",
            false => "order by coalesce(place_id, id) desc",
        }
    }

    fn order(self) -> &'static str {
        match self.is_upward {
            true => "asc",
            false => "desc",
        }
    }
}

pub(super) fn sort<T>(all: &mut [T], is_upward: bool, id: impl Fn(&T) -> i64) {
    match is_upward {
        true => all.sort_by_key(id),
        false => all.sort_by_key(|one| std::cmp::Reverse(id(one))),
    }
}

/// The next places of all streams together, each once.
fn merged(
    tx: &mut Tx<'_>,
    streams: &[PlaceStream<'_>],
    window: Window,
    count: i64,
) -> Result<Vec<Place>, DbError> {
    if let [only] = streams {
        return only.read(tx, window, count);
    }
    let mut all = Vec::new();
    for stream in streams {
        all.extend(stream.read(tx, window, count)?);
    }
    sort(&mut all, window.is_upward, |place| place.id);
    all.dedup_by_key(|place| place.id);
    all.truncate(count as usize);
    Ok(all)
}

/// Reads places and their posts, until there are enough that may be shown: many places may be of posts that
/// are gone or stand elsewhere, and a page that is short for that reason would look like the timeline's end.
/// Where posts are picked, it stops after many places, since whoever waits may be gone, and others wait for
/// the connection.
pub(super) fn read(
    tx: &mut Tx<'_>,
    range: &Range,
    bound: Bound,
    streams: &[PlaceStream<'_>],
    rule: &Rule<'_>,
    picks: Option<Picks<'_>>,
) -> Result<Stretch, StoreError> {
    let above = range.since.max(range.min).map_or(i64::MIN, sql);
    let mut window = Window {
        above: above.max(bound.from.saturating_sub(1)),
        below: range.max.map_or(i64::MAX, sql).min(bound.below),
        is_upward: range.min.is_some(),
    };
    let limit = usize::from(range.limit);
    let mut shown = Vec::with_capacity(limit);
    let mut places_left = picks.map(|_| MAX_PICKED_FROM);
    let mut rest = None;
    let mut at_once = match picks {
        Some(_) => PLACES_AT_ONCE,
        None => 0,
    };
    while shown.len() < limit {
        let missing = (limit - shown.len()) as i64;
        let count = match places_left {
            Some(left) => left.min(at_once).max(missing),
            None => missing.max(at_once),
        };
        // Where many posts are gone, the next look reads more.
        at_once = PLACES_AT_ONCE.min(count * 2);
        let places = merged(tx, streams, window, count)?;
        let Some(last) = places.last() else { break };
        *(if window.is_upward {
            &mut window.above
        } else {
            &mut window.below
        }) = last.id;
        let at_places = AtPlaces::load(tx, &places, rule)?;
        for place in &places {
            if shown.len() < limit
                && let Some(post) = at_places.at(place)?
                && picks.is_none_or(|picks| picks(&post))
            {
                shown.push(post);
            }
        }
        if (places.len() as i64) < count {
            break;
        }
        places_left = places_left.map(|left| left - count);
        if places_left.is_some_and(|left| left <= 0) && shown.len() < limit {
            let (mut next, stopped_at) = (*range, Some(from_sql(last.id)?));
            *(if window.is_upward {
                &mut next.min
            } else {
                &mut next.max
            }) = stopped_at;
            next.limit -= u16::try_from(shown.len()).unwrap_or(next.limit);
            rest = Some(next);
            break;
        }
    }
    if window.is_upward {
        shown.reverse();
    }
    Ok(Stretch { posts: shown, rest })
}

/// What stands at some places of a timeline.
struct AtPlaces<'r> {
    rule: &'r Rule<'r>,
    posts: HashMap<i64, StoredPost>,
    copies: Copies,
    first: FirstPlaces,
}

impl<'r> AtPlaces<'r> {
    fn load(
        tx: &mut Tx<'_>,
        places: &[Place],
        rule: &'r Rule<'r>,
    ) -> Result<AtPlaces<'r>, StoreError> {
        let post_ids: Vec<i64> = places.iter().map(|place| place.post_id).collect();
        let mut instance_ids: Vec<i64> = places.iter().map(|place| place.instance_id).collect();
        instance_ids.sort_unstable();
        instance_ids.dedup();
        let mut posts = stored::by_ids(tx, &post_ids, Some(&instance_ids))?;
        let copies = match rule.readable() {
            Some(readable) => Copies::load(tx, &mut posts, readable)?,
            None => Copies::default(),
        };
        let first = FirstPlaces::load(tx, &posts, &copies, rule)?;
        Ok(AtPlaces {
            rule,
            posts,
            copies,
            first,
        })
    }

    /// The post that the timeline shows at a place.
    fn at(&self, place: &Place) -> Result<Option<TimelinePost>, DbError> {
        let content = match self.rule {
            Rule::Source(shows) => self.posts.get(&place.post_id).filter(|found| {
                let is_there = place.returns == Some(found.returns) && found.is_alive();
                is_there && found.post.visibility.narrowness() <= shows.narrowness()
            }),
            _ => {
                let content = self.first.content_at(place);
                content.and_then(|id| self.posts.get(&id))
            }
        };
        content
            .map(|found| stored::at_place(found, place.id, &self.posts, &self.copies))
            .transpose()
    }
}

/// How many places a transaction picks from.
const MAX_PICKED_FROM: i64 = 2_000;
/// How many places are read at once, where more are looked at than shown.
const PLACES_AT_ONCE: i64 = 200;
