//! `source list`.

use driftline_server::admin::SourceRow;

use crate::{
    duration::show_ms,
    error::CliError,
    output,
    table::{self, Column},
};

/// Prints a table of the sources.
pub(super) fn print(sources: &[SourceRow]) -> Result<(), CliError> {
    if sources.is_empty() {
        return output::line("no sources yet; `driftline source add URL` adds one");
    }
    let rows = sources.iter().map(|source| {
        [
            source.name.clone(),
            source.update_count.to_string(),
            show_ms(source.every_ms),
            format!("{} of {}", source.timeline, source.upstream),
            source.state_text.clone(),
        ]
    });
    table::lines(COLUMNS, rows)
        .iter()
        .try_for_each(|line| output::line(line))
}

/// What a source is doing comes last: why it fails may take some words.
const COLUMNS: [Column; 5] = [
    Column::Left("NAME"),
    Column::Right("UPDATES"),
    Column::Right("EVERY"),
    Column::Left("TIMELINE"),
    Column::Left("STATE"),
];
