//! The places of posts by author.

use driftline_core::post::Visibility;
use driftline_db::{Column, DbError, Dialect, Row, ToValue, Tx};

use super::{place::Place, window::Window};
use crate::{
    id_types::{AccountId, sql},
    viewer::ReadableSource,
};

/// The next `count` places of several authors in these sources.
///
/// If there are many authors, those who write much are found among the next entries of everybody;
/// the entries of the others are looked up for each of them.
pub(super) fn read(
    tx: &mut Tx<'_>,
    authors: &[AccountId],
    sources: &[ReadableSource],
    window: Window,
    count: i64,
) -> Result<Vec<Place>, DbError> {
    let sources = SourcesByVisibility::of(sources);
    let ids = Column::i64(authors.iter().map(|id| sql(*id)));
    if tx.is_distributed() {
        return read_from_all_nodes(tx, &ids, &sources, window, count);
    }
    let (mut places, rest) = match authors.len() {
        ..MIN_AUTHORS_TO_WALK => (Vec::new(), Some(window)),
        authors => walk(tx, authors, &ids, &sources, window, count)?,
    };
    if let Some(rest) = rest {
        let missing = count - places.len() as i64;
        places.extend(read_each(tx, ids, &sources, rest, missing)?);
    }
    window.sort(&mut places, |place| place.id);
    places.truncate(count as usize);
    Ok(places)
}

/// Reads from a distributed database, which does not look at an index once for each author: each
/// node sorts the places of all of them.
fn read_from_all_nodes(
    tx: &mut Tx<'_>,
    authors: &Column<'_>,
    sources: &SourcesByVisibility,
    window: Window,
    count: i64,
) -> Result<Vec<Place>, DbError> {
    let sql = entries_of("{in $6}");
    let mut params = sources.params(&window).to_vec();
    params.extend([authors as &dyn ToValue, &count]);
    let sql = format!("{sql} order by id {} limit $7", window.order());
    tx.query(&sql, &params, Place::from_row)
}

/// The places of authors among the next entries of all sources, and the part of the window that was
/// not read, unless there are enough places. It continues as long as fewer entries than authors are
/// likely to be enough.
fn walk(
    tx: &mut Tx<'_>,
    authors: usize,
    ids: &Column<'_>,
    sources: &SourcesByVisibility,
    mut window: Window,
    count: i64,
) -> Result<(Vec<Place>, Option<Window>), DbError> {
    let mut places = Vec::new();
    let (mut walked, mut at_once) = (0, MIN_ENTRIES_AT_ONCE);
    for _ in 0..MAX_WALKS {
        let last = walk_once(tx, ids, sources, window, at_once, &mut places)?;
        let found = places.len() as i64;
        let Some(last) = last.filter(|_| found < count) else {
            return Ok((places, None));
        };
        window = window.beyond(last);
        walked += at_once;
        let expected = (count - found).saturating_mul(walked) / found.max(1);
        if found == 0 || expected > authors as i64 {
            break;
        }
        at_once = expected.max(MIN_ENTRIES_AT_ONCE);
    }
    Ok((places, Some(window)))
}

/// Adds the places of authors among the next `at_once` entries of a window, and returns the place
/// of the last one unless there are no more.
fn walk_once(
    tx: &mut Tx<'_>,
    authors: &Column<'_>,
    sources: &SourcesByVisibility,
    window: Window,
    at_once: i64,
    places: &mut Vec<Place>,
) -> Result<Option<i64>, DbError> {
    let last = match window.is_upward {
        true => "max",
        false => "min",
    };
    let sql = format!(
        "with walked as materialized (
             select account_id, id as place, post_id, instance_id, returns, visibility, source_id
             from entry
             where id > $1 and id < $2
             order by id {} limit $7
         )
         select place, post_id, instance_id, returns, cast(null as {{i64}}) as entries from walked
         where account_id {{in_long $6}} and {SHOWN}
         union all
         select {last}(place), 0, 0, 0, count(*) from walked",
        window.order()
    );
    let mut params = sources.params(&window).to_vec();
    params.extend([authors as &dyn ToValue, &at_once]);
    let mut end = None;
    let rows = tx.query(&sql, &params, |row| {
        let Some(entries) = row.opt_i64("entries")? else {
            return Ok(Some(Place::from_row(row)?));
        };
        if entries == at_once {
            end = Some(row.i64("place")?);
        }
        Ok(None)
    })?;
    places.extend(rows.into_iter().flatten());
    Ok(end)
}

/// The next places of authors, with a look-up for each. The nearest entry of each is found first:
/// only authors whose nearest entry is among the first `count` can have places there.
fn read_each(
    tx: &mut Tx<'_>,
    authors: Column<'_>,
    sources: &SourcesByVisibility,
    window: Window,
    count: i64,
) -> Result<Vec<Place>, DbError> {
    let mut nearest = nearest_of_authors(tx, authors, sources, window)?;
    window.sort(&mut nearest, |(place, _)| *place);
    nearest.truncate(count as usize);
    // The nearest entries of these authors fill the page, so nothing beyond them is on it.
    let window = match nearest.get(count as usize - 1) {
        Some((last, _)) => window.up_to(*last),
        None => window,
    };
    let sql = entries_of("= $6");
    let sql = format!("{sql} order by id {} limit $7", window.order());
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
    Ok(places)
}

/// The nearest place of each author that has one, with the author.
fn nearest_of_authors(
    tx: &mut Tx<'_>,
    authors: Column<'_>,
    sources: &SourcesByVisibility,
    window: Window,
) -> Result<Vec<(i64, i64)>, DbError> {
    let place = |row: &Row<'_>| Ok((row.i64("place")?, row.i64("account_id")?));
    if tx.dialect() == Dialect::Sqlite {
        // Running a statement for each author takes several times as long as the look-up of one who
        // is silent. The limit prevents a second look-up for the condition on the result.
        let nearest = entries_of("= author.value").replace(PLACE_COLUMNS, "id");
        let sql = format!(
            "select account_id, place from (
                 select author.value as account_id, ({nearest} order by id {} limit 1) as place
                 from rarray($6) author limit -1
             ) where place is not null",
            window.order()
        );
        let mut params = sources.params(&window).to_vec();
        params.push(&authors);
        return tx.query(&sql, &params, place);
    }
    let sql = entries_of("= {row 1}");
    tx.query_each(
        &format!("{sql} order by id {}", window.order()),
        &sources.params(&window),
        &[authors],
        place,
    )
}

/// Those of these authors who wrote anything that these sources show.
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
        let entries = entries_of("{in $6}");
        let sql = format!("select distinct account_id from ({entries} and not gone) written");
        let mut params = sources.params(&window).to_vec();
        params.push(&authors);
        return tx.query(&sql, &params, |row| row.i64("account_id"));
    }
    let sql = entries_of("= {row 1}");
    tx.query_each(
        &format!("{sql} and not gone order by id {}", window.order()),
        &sources.params(&window),
        &[authors],
        |row| row.i64("account_id"),
    )
}

/// The sources whose posts of each visibility are shown.
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

const PLACE_COLUMNS: &str = "account_id, id as place, post_id, instance_id, returns";

/// The entries within a window by the authors that a condition selects, from the sources that show
/// them.
fn entries_of(authors: &str) -> String {
    format!(
        "select {PLACE_COLUMNS} from entry
         where account_id {authors}
             and id > $1 and id < $2 and {SHOWN}"
    )
}

/// True if a source shows an entry.
const SHOWN: &str = "(visibility = 0 and source_id {in $3} or visibility = 1 and source_id {in $4}
             or visibility > 1 and source_id {in $5})";
/// The number of authors from which on the entries of all sources are read first. With fewer
/// authors the look-ups cost less.
const MIN_AUTHORS_TO_WALK: usize = 100;
/// The smallest number of entries that are read at once.
const MIN_ENTRIES_AT_ONCE: i64 = 512;
/// The largest number of times that reading continues.
const MAX_WALKS: usize = 3;
