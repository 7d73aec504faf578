//! Parts of a timeline: its places, and the posts there.

use std::collections::HashMap;

use driftline_db::{DbError, Tx};

use super::{
    copies::{self, Copies},
    first_places::FirstPlaces,
    place::Place,
    places::PlaceStream,
    rule::Rule,
    stored_post::{self, StoredPost},
    timeline_post::{Picks, Range, Stretch, TimelinePost},
    window::Window,
};
use crate::{
    error::StoreError,
    id_types::{from_sql, sql},
    reservation::Bound,
    viewer::ReadableSource,
};

/// The next places of all streams together, without repetitions.
fn merged(
    tx: &mut Tx<'_>,
    streams: &[PlaceStream<'_>],
    window: Window,
    count: i64,
) -> Result<Vec<Place>, DbError> {
    let mut all = Vec::new();
    for stream in streams {
        all.extend(stream.read(tx, window, count)?);
    }
    window.sort(&mut all, |place| place.id);
    all.dedup_by_key(|place| place.id);
    all.truncate(count as usize);
    Ok(all)
}

/// Reads places and their posts, until there are enough that may be shown: many places may belong
/// to posts that are gone or stand elsewhere, and a page that is short for that reason would look
/// like the end of the timeline. With `picks`, it stops after many places, because the client may
/// be gone, and others wait for the connection.
pub(super) fn read(
    tx: &mut Tx<'_>,
    range: &Range,
    bound: Bound,
    streams: &[PlaceStream<'_>],
    rule: &Rule<'_>,
    picks: Option<Picks<'_>>,
) -> Result<Stretch, StoreError> {
    let mut window = Window {
        above: range.since.max(range.min).map_or(i64::MIN, sql),
        below: range.max.map_or(i64::MAX, sql).min(bound.below),
        is_upward: range.min.is_some(),
    };
    let limit = usize::from(range.limit);
    let mut posts = Vec::with_capacity(limit);
    let mut places_left = picks.map_or(i64::MAX, |_| MAX_PICKED_FROM);
    let mut rest = None;
    let mut at_once = picks.map_or(0, |_| PLACES_AT_ONCE.min(limit as i64 * 2));
    while posts.len() < limit {
        let missing = (limit - posts.len()) as i64;
        let count = places_left.min(at_once).max(missing);
        // If many posts are gone, the next step reads more.
        at_once = PLACES_AT_ONCE.min(count * 2);
        let places = merged(tx, streams, window, count)?;
        let Some(last) = places.last() else { break };
        window = window.beyond(last.id);
        let at_places = AtPlaces::load(tx, &places, rule)?;
        let mut shown = places
            .iter()
            .filter_map(|place| at_places.at(place).transpose());
        while posts.len() < limit {
            let next = shown.by_ref().take(limit - posts.len());
            let next: Vec<TimelinePost> = next.collect::<Result<_, _>>()?;
            if next.is_empty() {
                break;
            }
            posts.extend(match picks {
                Some(picks) => picks.pick(tx, next)?,
                None => next,
            });
        }
        if (places.len() as i64) < count {
            break;
        }
        places_left -= count;
        if places_left <= 0 && posts.len() < limit {
            let stopped_at = Some(from_sql(last.id)?);
            let (min, max) = match window.is_upward {
                true => (stopped_at, range.max),
                false => (range.min, stopped_at),
            };
            let limit = range.limit - u16::try_from(posts.len()).unwrap_or(0);
            rest = Some(Range {
                min,
                max,
                limit,
                ..*range
            });
            break;
        }
    }
    if window.is_upward {
        posts.reverse();
    }
    Ok(Stretch { posts, rest })
}

/// The posts that a source's timeline shows at some of its places, in their order; `None` for a place at which it shows none.
pub(super) fn at_places(
    tx: &mut Tx<'_>,
    places: &[Place],
    source: ReadableSource,
) -> Result<Vec<Option<TimelinePost>>, StoreError> {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let rule = Rule::Source(source);
    let at_places = AtPlaces::load(tx, places, &rule)?;
    let posts = places.iter().map(|place| at_places.at(place));
    Ok(posts.collect::<Result<_, _>>()?)
}

/// The posts at some places of a timeline.
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
        let mut posts =
            stored_post::by_ids(tx, &post_ids, Some(&instance_ids), rule.content_reader())?;
        let (mut copies, mut first) = <(Copies, FirstPlaces)>::default();
        if let Some(readable) = rule.readable() {
            copies = Copies::load(tx, &mut posts, readable)?;
            first = FirstPlaces::load(tx, &posts, &copies, rule)?;
        }
        Ok(AtPlaces {
            rule,
            posts,
            copies,
            first,
        })
    }

    /// The post that the timeline shows at a place.
    fn at(&self, place: &Place) -> Result<Option<TimelinePost>, DbError> {
        let found = match self.rule {
            Rule::Source(source) => self.posts.get(&place.post_id).filter(|found| {
                let narrowness = found.post.visibility.narrowness();
                let is_shown = source.shows_post(narrowness, found.claimed);
                place.returns == found.returns && is_shown && found.is_alive()
            }),
            _ => {
                let content = self.first.content_at(place);
                content.and_then(|id| self.posts.get(&id))
            }
        };
        found
            .map(|found| copies::at_place(found, place.id, &self.posts, &self.copies))
            .transpose()
    }
}

/// The largest number of places from which a transaction picks.
const MAX_PICKED_FROM: i64 = 2_000;
/// The number of places that are read at once if more are looked at than shown.
const PLACES_AT_ONCE: i64 = 200;
