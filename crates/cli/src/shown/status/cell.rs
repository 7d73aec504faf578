//! Texts in the cells of tables.

use crate::duration::show_ms;

/// A duration in at most two units.
pub(super) fn short(ms: i64) -> String {
    const SECOND: i64 = 1_000;
    const MINUTE: i64 = 60 * SECOND;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let unit = match ms.abs() {
        ..SECOND => 1,
        SECOND..10_000 => 100,
        10_000..HOUR => SECOND,
        HOUR..DAY => MINUTE,
        DAY..2_592_000_000 => HOUR,
        _ => DAY,
    };
    show_ms(ms / unit * unit)
}

/// A text cut to its width, in characters.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    kept.trim_end().to_owned() + "…"
}
