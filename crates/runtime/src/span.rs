//! Durations as text.

use std::time::Duration;

/// Formats ms for people, without insignificant units.
pub fn show_ms(ms: i64) -> String {
    if ms < 0 {
        return format!("-{}", show_ms(ms.saturating_neg()));
    }
    let whole = match ms {
        ..10_000 => ms,
        10_000..600_000 => ms / 100 * 100,
        _ => ms / 1_000 * 1_000,
    };
    if whole == 0 {
        return "0ms".into();
    }
    let duration = Duration::from_millis(whole.unsigned_abs());
    let text = humantime::format_duration(duration).to_string();
    text.replace(' ', "")
}
