//! Candidates, in the order of their places.

use std::cell::RefCell;

use driftline_db::{Column, DbError, Dialect, Row, ToValue, Tx};

use crate::query::{ConditionUse, TermQuery};

/// A place of which the document meets a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedPlace {
    /// The place.
    pub place: i64,
    /// The post that has the place.
    pub post_id: i64,
    /// The instance of that post.
    pub instance_id: i64,
}

/// The places that are read, and their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceWindow {
    /// Only places above this one.
    pub above: i64,
    /// Only places below this one.
    pub below: i64,
    /// True if the lowest places come first.
    pub is_upward: bool,
}

/// Reads the places that meet a query, part by part.
///
/// PostgreSQL's index of terms has no order, so each use of it finds all documents that meet the query. The
/// reader therefore first walks the places themselves, and uses the index of terms only if the walk shows that
/// matches are rare. What it then finds beyond the part is kept for the next part.
#[derive(Debug)]
pub struct PlaceReader<'q> {
    terms: &'q TermQuery,
    readers: &'q TermQuery,
    ahead: RefCell<Option<ReadAhead>>,
}

/// The first places of a window, in its order.
#[derive(Debug)]
struct ReadAhead {
    window: PlaceWindow,
    places: Vec<IndexedPlace>,
    /// True if the window has no more places.
    is_whole: bool,
}

impl<'q> PlaceReader<'q> {
    /// A reader for the places that meet both queries. The index of terms is asked for `terms`, unless they are
    /// [`TermQuery::Any`]: most places meet `readers`.
    pub fn new(terms: &'q TermQuery, readers: &'q TermQuery) -> PlaceReader<'q> {
        PlaceReader {
            terms,
            readers,
            ahead: RefCell::default(),
        }
    }

    /// Returns the first `count` places of a window, in the window's order. All calls must be in one
    /// transaction.
    ///
    /// # Errors
    /// [`DbError`] if the database fails.
    pub fn read(
        &self,
        tx: &mut Tx<'_>,
        window: PlaceWindow,
        count: i64,
    ) -> Result<Vec<IndexedPlace>, DbError> {
        if *self.terms == TermQuery::AnyOf(Vec::new()) {
            return Ok(Vec::new());
        }
        if tx.dialect() == Dialect::Sqlite {
            return self.in_sqlite(tx, window, count);
        }
        let mut ahead = self.ahead.borrow_mut();
        if let Some(known) = ahead.as_ref().and_then(|ahead| ahead.part(window, count)) {
            return Ok(known);
        }
        let (mut found, is_whole) = self.in_postgres(tx, window, count)?;
        if is_whole || found.len() as i64 > count {
            *ahead = Some(ReadAhead {
                window,
                places: found.clone(),
                is_whole,
            });
        }
        found.truncate(count as usize);
        Ok(found)
    }

    /// The first `count` places. FTS5 opens a list for each term, so many authors are first looked for among the
    /// newest places.
    fn in_sqlite(
        &self,
        tx: &mut Tx<'_>,
        window: PlaceWindow,
        count: i64,
    ) -> Result<Vec<IndexedPlace>, DbError> {
        let shown = |terms: &TermQuery| {
            TermQuery::All(vec![terms.clone(), self.readers.clone()]).simplified()
        };
        if let Some(split) = self.terms.split_authors()
            && let Some(mut found) =
                walked_in_sqlite(tx, &split.rows, &shown(&split.besides), window, count)?
        {
            found.extend(in_sqlite(tx, &shown(&split.others), window, count)?);
            window.sort(&mut found);
            found.dedup();
            found.truncate(count as usize);
            return Ok(found);
        }
        in_sqlite(tx, &shown(self.terms), window, count)
    }

    /// The first places, at least `count` of them unless there are fewer, and whether these are all.
    fn in_postgres(
        &self,
        tx: &mut Tx<'_>,
        window: PlaceWindow,
        count: i64,
    ) -> Result<(Vec<IndexedPlace>, bool), DbError> {
        let order = window.order();
        let read =
            |tx: &mut Tx<'_>, sql: &str, lists: &[String], limit: i64, window: PlaceWindow| {
                let mut params: Vec<&dyn ToValue> = vec![&window.above, &window.below, &limit];
                params.extend(lists.iter().map(|list| list as &dyn ToValue));
                tx.query(sql, &params, from_row)
            };
        let mut lists = Vec::new();
        let in_walk = self
            .terms
            .array_condition(ConditionUse::Walk, FIRST_LIST, &mut lists);
        let is_shown = self
            .readers
            .array_condition(ConditionUse::Walk, FIRST_LIST, &mut lists);
        // The last place of the walk comes along, marked by having no post.
        let last = if window.is_upward { "max" } else { "min" };
        let walk = format!(
            "with walked as materialized (
                 select place, post_id, instance_id, terms, row_terms from indexed_place
                 where place > $1 and place < $2 order by place {order} limit $3
             )
             select place, post_id, instance_id from walked where {in_walk} and {is_shown}
             union all
             select {last}(place), 0, count(*) from walked"
        );
        let mut found: Vec<IndexedPlace> = Vec::new();
        let (mut rest, mut walked, mut step) = (window, 0, FIRST_STEP);
        while walked + step <= MAX_WALK {
            let rows = read(tx, &walk, &lists, step, rest)?;
            let (ends, mut matches): (Vec<_>, Vec<_>) =
                rows.into_iter().partition(|p| p.post_id == 0);
            window.sort(&mut matches);
            found.extend(matches);
            let end = ends.first().filter(|end| end.instance_id == step);
            let Some(end) = end else {
                return Ok((found, true));
            };
            if found.len() as i64 >= count {
                return Ok((found, false));
            }
            rest = rest.beyond(end.place);
            walked += step;
            let missing = count - found.len() as i64;
            // The missing matches are expected in so many places, if matches go on as they were. Upward, few
            // places are left as a rule, so they are all walked.
            let expected = (missing * walked * 5 / 4).checked_div(found.len() as i64);
            step = match expected {
                Some(expected) => expected.max(FIRST_STEP),
                None if window.is_upward || walked < MAX_WALK_IN_VAIN => walked,
                None => MAX_WALK,
            };
            if window.is_upward {
                step = step.min(MAX_WALK - walked).max(1);
            }
        }
        let limit = READ_AHEAD.max(count);
        let (found_by_index, lists) = self.found_by_index();
        let sql = format!(
            "with found as materialized ({found_by_index})
             select place, post_id, instance_id from found order by place {order} limit $3"
        );
        let more = read(tx, &sql, &lists, limit, rest)?;
        let is_whole = (more.len() as i64) < limit;
        found.extend(more);
        Ok((found, is_whole))
    }

    /// A statement that finds all places between `$1` and `$2` by the index of terms, and the parameters from
    /// `$4` on. The place is part of an expression, and so PostgreSQL asks no other index.
    fn found_by_index(&self) -> (String, Vec<String>) {
        let mut lists = Vec::new();
        let (many, others) = self.terms.split_many();
        let readers_in = match self.terms {
            TermQuery::Any => ConditionUse::Index,
            _ => ConditionUse::Walk,
        };
        let terms = others.array_condition(ConditionUse::Index, FIRST_LIST, &mut lists);
        let readers = self
            .readers
            .array_condition(readers_in, FIRST_LIST, &mut lists);
        let mut sql = format!(
            "select place, post_id, instance_id from indexed_place
             where place + 0 > $1 and place + 0 < $2 and {terms} and {readers}"
        );
        if !many.is_empty() {
            // PostgreSQL expects that many terms are in most rows, and would compare all rows with all of them. A
            // volatile column makes it look the terms up one by one, on a distributed database too, which refuses an
            // `offset` here.
            let readers = self
                .readers
                .array_condition(ConditionUse::Walk, FIRST_LIST, &mut lists);
            let list = FIRST_LIST + lists.len();
            lists.push(many.join(" "));
            sql.push_str(&format!(
                " union
                 select place, post_id, instance_id
                 from unnest(string_to_array(${list}, ' ')::int[]) as many(term)
                 cross join lateral (
                     select place, post_id, instance_id, row_terms, random() as barrier from indexed_place
                     where row_terms @> array[many.term]
                 ) as found_by_one
                 where place + 0 > $1 and place + 0 < $2 and {readers}"
            ));
        }
        (sql, lists)
    }
}

impl ReadAhead {
    /// The first `count` places of a later part of the window; `None` if they are not known.
    fn part(&self, window: PlaceWindow, count: i64) -> Option<Vec<IndexedPlace>> {
        let PlaceWindow { above, below, .. } = self.window;
        let is_later = window.is_upward == self.window.is_upward
            && match window.is_upward {
                true => window.above >= above && window.below == below,
                false => window.below <= below && window.above == above,
            };
        if !is_later {
            return None;
        }
        let mut places = self.places.clone();
        places.retain(|place| window.above < place.place && place.place < window.below);
        let is_enough = self.is_whole || places.len() as i64 >= count;
        places.truncate(count as usize);
        is_enough.then_some(places)
    }
}

fn in_sqlite(
    tx: &mut Tx<'_>,
    query: &TermQuery,
    window: PlaceWindow,
    count: i64,
) -> Result<Vec<IndexedPlace>, DbError> {
    let PlaceWindow { above, below, .. } = window;
    let order = window.order();
    if *query == TermQuery::AnyOf(Vec::new()) {
        return Ok(Vec::new());
    }
    let Some(query) = query.fts5() else {
        return tx.query(
            &format!(
                "select place, post_id, instance_id from indexed_place
                 where place > $1 and place < $2 order by place {order} limit $3"
            ),
            &[&above, &below, &count],
            from_row,
        );
    };
    tx.query(
        &format!(
            "select p.place, p.post_id, p.instance_id
             from place_terms f cross join indexed_place p on p.place = f.rowid
             where f.place_terms match $4 and f.rowid > $1 and f.rowid < $2
             order by f.rowid {order} limit $3"
        ),
        &[&above, &below, &count, &query],
        from_row,
    )
}

/// The first `count` places of posts of authors among those that meet a query, or all of them; `None` if many places
/// would have to be read.
fn walked_in_sqlite(
    tx: &mut Tx<'_>,
    authors: &[i64],
    query: &TermQuery,
    mut window: PlaceWindow,
    count: i64,
) -> Result<Option<Vec<IndexedPlace>>, DbError> {
    let Some(query) = query.fts5() else {
        return Ok(None);
    };
    let rows = Column::i64(authors.iter().copied());
    let (order, last) = match window.is_upward {
        true => ("asc", "max"),
        false => ("desc", "min"),
    };
    // The last place of the walk comes along, marked by having no post.
    let sql = format!(
        "with walked as materialized (
             select rowid as place from place_terms
             where place_terms match $4 and rowid > $1 and rowid < $2 order by rowid {order} limit $3
         )
         select p.place, p.post_id, p.instance_id
         from walked w cross join indexed_place p on p.place = w.place where p.author_row is null or p.author_row {{in_long $5}}
         union all
         select {last}(place), 0, count(*) from walked"
    );
    let mut found: Vec<IndexedPlace> = Vec::new();
    let mut left = PLACES_PER_AUTHOR * authors.len() as i64;
    let (mut walked, mut step) = (0, FIRST_STEP.min(left));
    while step > 0 {
        let PlaceWindow { above, below, .. } = window;
        let places = tx.query(&sql, &[&above, &below, &step, &query, &rows], from_row)?;
        let (ends, places): (Vec<_>, Vec<_>) = places.into_iter().partition(|p| p.post_id == 0);
        found.extend(places);
        let end = ends.first().filter(|end| end.instance_id == step);
        let Some(end) = end.filter(|_| (found.len() as i64) < count) else {
            window.sort(&mut found);
            found.truncate(count as usize);
            return Ok(Some(found));
        };
        window = window.beyond(end.place);
        walked += step;
        left -= step;
        let missing = count - found.len() as i64;
        let expected = (missing * walked * 5 / 4).checked_div(found.len() as i64);
        step = expected.unwrap_or(walked).max(FIRST_STEP).min(left);
    }
    Ok(None)
}

impl PlaceWindow {
    /// The part beyond a place, without that place.
    fn beyond(self, place: i64) -> PlaceWindow {
        match self.is_upward {
            true => PlaceWindow {
                above: place,
                ..self
            },
            false => PlaceWindow {
                below: place,
                ..self
            },
        }
    }

    fn order(self) -> &'static str {
        match self.is_upward {
            true => "asc",
            false => "desc",
        }
    }

    fn sort(self, places: &mut [IndexedPlace]) {
        places.sort_unstable_by_key(|place| match self.is_upward {
            true => place.place,
            false => -place.place,
        });
    }
}

fn from_row(row: &Row<'_>) -> Result<IndexedPlace, DbError> {
    Ok(IndexedPlace {
        place: row.opt_i64("place")?.unwrap_or_default(),
        post_id: row.i64("post_id")?,
        instance_id: row.i64("instance_id")?,
    })
}

/// The number of places that are walked instead of opening the lists of an author, which takes twice the time.
const PLACES_PER_AUTHOR: i64 = 16;
/// The number of the first parameter that is a list of terms.
const FIRST_LIST: usize = 4;
/// The number of places of the first step of a walk.
const FIRST_STEP: i64 = 500;
/// The number of places that are walked downward without a match.
const MAX_WALK_IN_VAIN: i64 = 2_000;
/// The number of places that are walked for one part. Reading the documents of so many rare matches costs as
/// much by the index of terms.
const MAX_WALK: i64 = 8_000;
/// The number of places that are read at once by the index of terms.
const READ_AHEAD: i64 = 2_000;
