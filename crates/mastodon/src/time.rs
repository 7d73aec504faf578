use jiff::{Timestamp, civil, tz::TimeZone};

/// A time in ISO 8601, in UTC, to the millisecond. A time outside of the years -9999 to 9999
/// becomes the Unix epoch.
pub fn iso_8601(unix_ms: i64) -> String {
    let time = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

/// Parses a time in ISO 8601 to Unix ms. A time without an offset is in UTC. `None` if the text is
/// not a time.
pub fn parse_time_ms(text: &str) -> Option<i64> {
    let time = text.parse::<Timestamp>().or_else(|_| {
        let civil: civil::DateTime = text.parse()?;
        TimeZone::UTC.to_timestamp(civil)
    });
    time.ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for ms in [0, -1, 1_755_456_415_745, -62_135_596_800_000] {
            assert_eq!(parse_time_ms(&iso_8601(ms)), Some(ms));
        }
        assert_eq!(iso_8601(1_755_456_415_000), "2025-08-17T18:46:55.000Z");
        assert_eq!(iso_8601(i64::MAX), iso_8601(0));
    }
}
