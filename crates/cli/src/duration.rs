//! Durations as people write them, kept in ms.

use std::{str::FromStr, time::Duration};

pub use driftline_runtime::show_ms;
use serde::{Deserialize, Deserializer, de::Error as _};

/// Reads `500ms`, `90s`, `1h30m`, `1d`.
///
/// # Errors
/// A sentence that says how durations are written.
pub fn parse_ms(text: &str) -> Result<i64, String> {
    let too_long = || format!("{text:?} is too long; the longest duration is {MAX_YEARS} years");
    let duration = humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::NumberOverflow => too_long(),
        _ => {
            format!("invalid duration {text:?}: expected 500ms, 90s, 1h30m or 1d, for example")
        }
    })?;
    i64::try_from(duration.as_millis())
        .ok()
        .filter(|&ms| ms <= MAX_MS)
        .ok_or_else(too_long)
}

/// ms as a duration; a negative number is zero.
pub fn duration(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// The given duration, or a default, ms.
pub fn ms_or(given: Option<HumanMs>, default_ms: i64) -> i64 {
    given.map_or(default_ms, |HumanMs(ms)| ms)
}

/// The given duration, or a default.
pub fn duration_or(given: Option<HumanMs>, default: Duration) -> Duration {
    given.map_or(default, |HumanMs(ms)| duration(ms))
}

/// A duration in a configuration or a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanMs(pub i64);

impl FromStr for HumanMs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_ms(text).map(Self)
    }
}

impl<'de> Deserialize<'de> for HumanMs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// Sums with the time of day do not overflow.
const MAX_YEARS: i64 = 1_000;
const MAX_MS: i64 = MAX_YEARS * 366 * 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let read = ["500ms", "90s", "1h30m", "1h 30m", "1d"].map(|text| parse_ms(text).unwrap());
        assert_eq!(read, [500, 90_000, 5_400_000, 5_400_000, 86_400_000]);
        for text in ["", "5", "fast", "-1s"] {
            let refused = parse_ms(text).unwrap_err();
            assert!(refused.contains("invalid duration"), "{refused}");
        }
        for text in ["900000d", "9999999years", "99999999999999999999s"] {
            let refused = parse_ms(text).unwrap_err();
            assert!(refused.contains("is too long"), "{refused}");
        }
    }

    #[test]
    fn durations_are_shown_as_they_are_read() {
        let shown = [0, 1_234, 61_234, 5_400_000, -500].map(show_ms);
        assert_eq!(shown, ["0ms", "1s234ms", "1m1s200ms", "1h30m", "-500ms"]);
    }
}
