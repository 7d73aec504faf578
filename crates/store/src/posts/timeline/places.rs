//! The places of a timeline, read from one stream or merged from several.

use std::collections::HashMap;

use driftline_core::post::Visibility;
use driftline_db::{Column, DbError, Dialect, Row, ToValue, Tx};

use super::{
    Picks, Range, Rule, Stretch, TimelinePost,
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
    fn from_row(row: &Row<'_>) -> Result<Place, DbError> {
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
struct Window {
    above: i64,
    below: i64,
    is_upward: bool,
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
                read_authors(tx, authors, sources, window, count)
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

/// The next places of several authors. The nearest entry of each is found first: of the authors whose nearest
/// is among the first `count`, no others can have one there. A distributed database looks at no index once for
/// each author: there the places of all are sorted by each node.
fn read_authors(
    tx: &mut Tx<'_>,
    authors: &[AccountId],
    sources: &[ReadableSource],
    window: Window,
    count: i64,
) -> Result<Vec<Place>, DbError> {
    let sources = SourcesByVisibility::of(sources);
    if tx.is_distributed() {
        let sql = AUTHOR_ENTRIES.replace("= AUTHOR", "{in $6}");
        let authors = Column::i64(authors.iter().map(|id| self::sql(*id)));
        let mut params = sources.params(&window).to_vec();
        params.extend([&authors as &dyn ToValue, &count]);
        let sql = format!("{sql} {} limit $7", window.by_place());
        return tx.query(&sql, &params, Place::from_row);
    }
    let mut nearest = nearest_of_authors(tx, authors, &sources, window)?;
    sort(&mut nearest, window.is_upward, |(place, _)| *place);
    nearest.truncate(count as usize);
    // The nearest of so many authors fill the page: nothing beyond them is in it.
    let window = match nearest.get(count as usize - 1) {
        Some((last, _)) => window.up_to(*last),
        None => window,
    };
    let sql = AUTHOR_ENTRIES.replace("AUTHOR", "$6");
    let sql = format!("{sql} {} limit $7", window.by_place());
    let mut asked = Vec::with_capacity(nearest.len());
    for (_, author) in &nearest {
        let mut params = sources.params(&window).to_vec();
        params.extend([author as &dyn ToValue, &count]);
        asked.push(tx.query_later(&sql, &params, Place::from_row)?);
    }
    let mut places = Vec::new();
    for rows in asked {
        places.extend(tx.rows(rows)?);
    }
    sort(&mut places, window.is_upward, |place| place.id);
    places.truncate(count as usize);
    Ok(places)
}

/// The nearest place of each author that has one, with the author.
fn nearest_of_authors(
    tx: &mut Tx<'_>,
    authors: &[AccountId],
    sources: &SourcesByVisibility,
    window: Window,
) -> Result<Vec<(i64, i64)>, DbError> {
    let authors = Column::i64(authors.iter().map(|id| self::sql(*id)));
    let place = |row: &Row<'_>| Ok((row.i64("place")?, row.i64("account_id")?));
    if tx.dialect() == Dialect::Sqlite {
        // Running a statement for each author takes several times as long as the look-up of one who is silent. The
        // limit keeps the look-up from being done once more for the condition on its outcome.
        let nearest = AUTHOR_ENTRIES
            .replace(PLACE_COLUMNS, "coalesce(place_id, id)")
            .replace("AUTHOR", "author.value");
        let sql = format!(
            "select account_id, place from (
                 select author.value as account_id, ({nearest} {} limit 1) as place
                 from rarray($6) author limit -1
             ) where place is not null",
            window.by_place()
        );
        let mut params = sources.params(&window).to_vec();
        params.push(&authors);
        return tx.query(&sql, &params, place);
    }
    let sql = AUTHOR_ENTRIES.replace("AUTHOR", "{row 1}");
    tx.query_each(
        &format!("{sql} {}", window.by_place()),
        &sources.params(&window),
        &[authors],
        place,
    )
}

/// Which of those authors wrote anything that these sources show.
pub(super) fn authors_of(
    tx: &mut Tx<'_>,
    authors: &[AccountId],
    sources: &[ReadableSource],
) -> Result<Vec<i64>, DbError> {
    let window = Window {
        above: i64::MIN,
        below: i64::MAX,
        is_upward: false,
    };
    let sources = SourcesByVisibility::of(sources);
    let authors = Column::i64(authors.iter().map(|id| self::sql(*id)));
    if tx.is_distributed() {
        let entries = AUTHOR_ENTRIES.replace("= AUTHOR", "{in $6}");
        let sql = format!("select distinct account_id from ({entries} and not gone) written");
        let mut params = sources.params(&window).to_vec();
        params.push(&authors);
        return tx.query(&sql, &params, |row| row.i64("account_id"));
    }
    let sql = AUTHOR_ENTRIES.replace("AUTHOR", "{row 1}");
    tx.query_each(
        &format!("{sql} and not gone {}", window.by_place()),
        &sources.params(&window),
        &[authors],
        |row| row.i64("account_id"),
    )
}

/// The sources of which posts of each visibility are shown.
struct SourcesByVisibility {
    public: Column<'static>,
    unlisted: Column<'static>,
    all: Column<'static>,
}

impl SourcesByVisibility {
    fn of(sources: &[ReadableSource]) -> SourcesByVisibility {
        let with = |shows: Visibility| {
            let shows = shows.narrowness();
            let sources = sources
                .iter()
                .filter(|source| source.shows.narrowness() >= shows);
            Column::i64(sources.map(|source| source.key.id()))
        };
        SourcesByVisibility {
            public: with(Visibility::Public),
            unlisted: with(Visibility::Unlisted),
            all: with(Visibility::Direct),
        }
    }

    fn params<'v>(&'v self, window: &'v Window) -> [&'v dyn ToValue; 5] {
        [
            &window.above,
            &window.below,
            &self.public,
            &self.unlisted,
            &self.all,
        ]
    }
}

const PLACE_COLUMNS: &str =
    "account_id, coalesce(place_id, id) as place, post_id, instance_id, returns";
const AUTHOR_ENTRIES: &str =
    "select account_id, coalesce(place_id, id) as place, post_id, instance_id, returns from entry
     where account_id = AUTHOR
         and coalesce(place_id, id) > $1 and coalesce(place_id, id) < $2
         and (visibility = 0 and source_id {in $3} or visibility = 1 and source_id {in $4}
             or visibility > 1 and source_id {in $5})";

impl Window {
    /// Its part up to a place, which is in it.
    fn up_to(self, place: i64) -> Window {
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

    fn by_place(self) -> &'static str {
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

fn sort<T>(all: &mut [T], is_upward: bool, id: impl Fn(&T) -> i64) {
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
