//! A place in a timeline.

use driftline_db::{DbError, Row};

/// Where a post stands in a timeline, or did.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) id: i64,
    pub(super) post_id: i64,
    pub(super) instance_id: i64,
    /// Of a source's entry: how often the post had returned when it took this place, or -1 once it has ended.
    /// After another return the source no longer shows it there.
    pub(super) returns: i64,
}

impl Place {
    pub(super) fn from_row(row: &Row<'_>) -> Result<Place, DbError> {
        Ok(Place {
            id: row.i64("place")?,
            post_id: row.i64("post_id")?,
            instance_id: row.i64("instance_id")?,
            returns: row.i64("returns")?,
        })
    }
}
