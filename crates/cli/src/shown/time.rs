//! Moments as people read and write them.

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use crate::duration::parse_ms;

/// Unix ms in UTC, to the ms.
pub fn time(unix_ms: i64) -> String {
    formatted(unix_ms, "%Y-%m-%d %H:%M:%S%.3fZ")
}

/// The day of Unix ms in UTC.
pub fn date(unix_ms: i64) -> String {
    formatted(unix_ms, "%Y-%m-%d")
}

fn formatted(unix_ms: i64, format: &str) -> String {
    Timestamp::from_millisecond(unix_ms).map_or_else(
        |_| format!("{unix_ms} ms"),
        |time| time.strftime(format).to_string(),
    )
}

/// An RFC 3339 time, a day, which begins in UTC, or a duration before now, as Unix ms.
///
/// # Errors
/// A sentence that says what can be written.
pub fn ago_or_time_ms(text: &str, now_ms: i64) -> Result<i64, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond());
    }
    if let Ok(day) = text.parse::<Date>() {
        let begins = day
            .to_zoned(TimeZone::UTC)
            .map_err(|error| error.to_string())?;
        return Ok(begins.timestamp().as_millisecond());
    }
    parse_ms(text).map(|ago_ms| now_ms - ago_ms).map_err(|_| {
        format!("invalid time {text:?}: expected 2026-03-01T12:00:00Z, a day such as 2026-03-01, or how long ago, such as 2h")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_or_durations_ago() {
        assert_eq!(ago_or_time_ms("1970-01-01T00:00:05Z", 9), Ok(5_000));
        assert_eq!(ago_or_time_ms("1970-01-02", 9), Ok(86_400_000));
        assert_eq!(ago_or_time_ms("2s", 9_000), Ok(7_000));
        assert!(ago_or_time_ms("yesterday", 0).is_err());
        assert_eq!(time(1_760_000_000_123), "2025-10-09 08:53:20.123Z");
        assert_eq!(date(1_760_000_000_123), "2025-10-09");
    }
}
