use driftline_db::Tx;

use super::{
    source_chunk::{SourceLimits, SourceView},
    source_reading::SourceReading,
};
use crate::{error::StoreError, viewer::LazyReadableSources};

/// The number of shown entries among some of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownEntries {
    /// The entries that the reader is shown.
    pub shown: u64,
    /// The ID of the last entry that was looked at; `None` if no others follow.
    pub last: Option<i64>,
}

/// Counts the entries of a source that the viewer is shown, among the next 10,000 above an entry's ID. A post at two
/// places counts twice.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist, or the viewer is no such reader of it;
/// [`StoreError::Db`] if the database fails.
pub fn count_shown_entries(
    tx: &mut Tx<'_>,
    view: SourceView,
    sources: &LazyReadableSources,
    above: Option<i64>,
) -> Result<ShownEntries, StoreError> {
    let reading = SourceReading::begin(tx, view, sources, None, SourceLimits::new(1))?;
    reading.count(tx, above.unwrap_or(i64::MIN), MAX_COUNTED)
}

/// The number of entries that are looked at together.
const MAX_COUNTED: u32 = 10_000;
