//! A place in a timeline.

use driftline_db::{DbError, Row};

/// The place at which a post stands or stood in a timeline.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) id: i64,
    pub(crate) post_id: i64,
    pub(crate) instance_id: i64,
    /// For an entry of a source: the number of the post's returns when it took this place, or -1
    /// once the entry has ended. After another return the source no longer shows it there. Only
    /// the timeline of one source uses it.
    pub(crate) returns: i64,
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
