use driftline_db::{DbError, Row};

/// A row of `entry`, without its post.
#[derive(Clone, Copy)]
pub(super) struct EntryRow {
    pub(super) id: i64,
    pub(super) post_id: i64,
    pub(super) first_usn: i64,
    /// The USN of its last change that was not of counts alone; `None` if it has had none since it came.
    pub(super) change_usn: Option<i64>,
    /// The USN at which the entry is in the stream that is read.
    pub(super) at_usn: i64,
    pub(super) visibility: i64,
    pub(super) gone: bool,
    pub(super) returns: i64,
}

impl EntryRow {
    /// The columns that [`EntryRow::from_row`] reads. `usn` is the stream's column.
    pub(super) fn columns(usn: &str) -> String {
        format!("id, post_id, first_usn, change_usn, {usn} as at_usn, visibility, gone, returns")
    }

    /// The USN since which the content has not changed.
    pub(super) fn content_usn(&self) -> i64 {
        self.first_usn.max(self.change_usn.unwrap_or_default())
    }

    pub(super) fn from_row(row: &Row<'_>) -> Result<EntryRow, DbError> {
        Ok(EntryRow {
            id: row.i64("id")?,
            post_id: row.i64("post_id")?,
            first_usn: row.i64("first_usn")?,
            change_usn: row.opt_i64("change_usn")?,
            at_usn: row.i64("at_usn")?,
            visibility: row.i64("visibility")?,
            gone: row.bool("gone")?,
            returns: row.i64("returns")?,
        })
    }
}
