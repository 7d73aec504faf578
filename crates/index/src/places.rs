//! Candidates, in the order of their places.

use driftline_db::{DbError, Dialect, Row, ToValue, Tx};

use crate::query::TermQuery;

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

/// Returns the first `count` places of a window that meet a query, in the window's order.
///
/// On PostgreSQL, whose index is not ordered, the next places are read first, whatever their terms.
/// If they contain too few matches, the terms are rare, and the index finds all their documents.
///
/// # Errors
/// [`DbError`] if the database fails.
pub fn places(
    tx: &mut Tx<'_>,
    query: &TermQuery,
    window: PlaceWindow,
    count: i64,
) -> Result<Vec<IndexedPlace>, DbError> {
    if *query == TermQuery::AnyOf(Vec::new()) {
        return Ok(Vec::new());
    }
    match tx.dialect() {
        Dialect::Sqlite => in_sqlite(tx, query, window, count),
        Dialect::Postgres => in_postgres(tx, query, window, count),
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

fn in_postgres(
    tx: &mut Tx<'_>,
    query: &TermQuery,
    window: PlaceWindow,
    count: i64,
) -> Result<Vec<IndexedPlace>, DbError> {
    let PlaceWindow { above, below, .. } = window;
    let order = window.order();
    let mut lists = Vec::new();
    let condition = query.array_condition(4, &mut lists);
    let lists: Vec<&dyn ToValue> = lists.iter().map(|list| list as &dyn ToValue).collect();
    let read = |tx: &mut Tx<'_>, sql: &str, limit: i64, above: i64, below: i64| {
        let mut params: Vec<&dyn ToValue> = vec![&above, &below, &limit];
        params.extend(&lists);
        tx.query(sql, &params, from_row)
    };
    // The last place that was walked comes along, marked by having no post.
    let last = if window.is_upward { "max" } else { "min" };
    let walked = read(
        tx,
        &format!(
            "with walked as materialized (
                 select place, post_id, instance_id, terms from indexed_place
                 where place > $1 and place < $2 order by place {order} limit $3
             )
             select place, post_id, instance_id from walked where {condition}
             union all
             select {last}(place), 0, count(*) from walked"
        ),
        WALK,
        above,
        below,
    )?;
    let (ends, mut found): (Vec<_>, Vec<_>) = walked.into_iter().partition(|p| p.post_id == 0);
    window.sort(&mut found);
    found.truncate(count as usize);
    let end = ends.first().filter(|end| end.instance_id == WALK);
    let Some(end) = end.filter(|_| (found.len() as i64) < count) else {
        return Ok(found);
    };
    let (above, below) = match window.is_upward {
        true => (end.place, below),
        false => (above, end.place),
    };
    // Without the order and the limit inside, PostgreSQL uses the index of terms.
    let rest = read(
        tx,
        &format!(
            "with found as materialized (
                 select place, post_id, instance_id from indexed_place
                 where place + 0 > $1 and place + 0 < $2 and {condition}
             )
             select place, post_id, instance_id from found order by place {order} limit $3"
        ),
        count - found.len() as i64,
        above,
        below,
    )?;
    found.extend(rest);
    Ok(found)
}

impl PlaceWindow {
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

/// The number of places that PostgreSQL reads before it uses the index of terms. A term in more
/// than 1 of 100 posts fills a page from them.
const WALK: i64 = 4_000;
