//! The demo's result as a table.

use super::{
    scene::Scene,
    score::{Published, Score},
};
use crate::{
    duration::show_ms,
    table::{self, Column},
};

/// One line a poller, below a head; and what does not count.
pub(super) fn lines(
    published: &Published,
    scene: &Scene,
    scores: &[(&str, &Score)],
) -> Vec<String> {
    let ms = |ms: Option<i64>| ms.map_or_else(|| "-".to_owned(), show_ms);
    let caught: Vec<String> = scores
        .iter()
        .map(|(name, score)| format!("{name} {}", score.short_lived_stored))
        .collect();
    let short_lived = (!published.short_lived.is_empty()).then(|| {
        format!(
            "In addition, {} posts were deleted within {}, before a poller can be sure to see them; stored all the same: {}.",
            published.short_lived.len(),
            show_ms(scene.stay_ms()),
            caught.join(", ")
        )
    });
    let rows = scores.iter().map(|(name, score)| {
        [
            (*name).to_owned(),
            published.counted.len().to_string(),
            score.stored.to_string(),
            score.missed.to_string(),
            score.redundant.to_string(),
            score.requests.to_string(),
            ms(score.delay_p50_ms),
            ms(score.delay_p99_ms),
        ]
    });
    let mut lines = table::lines(COLUMNS, rows);
    lines.extend(short_lived);
    lines
}

const COLUMNS: [Column; 8] = [
    Column::Left(""),
    Column::Right("published"),
    Column::Right("stored"),
    Column::Right("missed"),
    Column::Right("duplicates"),
    Column::Right("requests"),
    Column::Right("delay p50"),
    Column::Right("delay p99"),
];
