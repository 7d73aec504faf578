//! Calendar months, by which some upstreams cap what is read.

use jiff::{Timestamp, ToSpan as _, tz::TimeZone};

/// When the calendar month (UTC) of a time ends, and how long it is: Unix ms, ms.
pub(crate) fn of(now_ms: i64) -> (i64, i64) {
    let now = Timestamp::from_millisecond(now_ms).unwrap_or_default();
    let first = now.to_zoned(TimeZone::UTC).date().first_of_month();
    let next = first.saturating_add(1.month());
    let ms = |date: jiff::civil::Date| {
        date.to_zoned(TimeZone::UTC)
            .map_or(i64::MAX, |zoned| zoned.timestamp().as_millisecond())
    };
    (ms(next), ms(next).saturating_sub(ms(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_end_where_the_next_begins() {
        let day_ms = 86_400_000;
        let at = |text: &str| text.parse::<Timestamp>().expect(text).as_millisecond();
        let (end, length) = of(at("2026-02-14T12:00:00Z"));
        assert_eq!((end, length), (at("2026-03-01T00:00:00Z"), 28 * day_ms));
        let (end, length) = of(at("2026-12-31T23:59:59.999Z"));
        assert_eq!((end, length), (at("2027-01-01T00:00:00Z"), 31 * day_ms));
        assert_eq!(of(at("2027-01-01T00:00:00Z")).0, at("2027-02-01T00:00:00Z"));
    }
}
