//! What an answer's headers say.

use std::time::{SystemTime, UNIX_EPOCH};

use driftline_core::answer::{AnswerHeaders, LookUps, Throttle};
use driftline_net::Answer;
use http::header::{DATE, HeaderMap, RETRY_AFTER};
use jiff::Timestamp;

/// The local wall clock, Unix ms.
pub(crate) fn now_ms() -> i64 {
    unix_ms(SystemTime::now()).unwrap_or(0)
}

/// What a look-up of no posts finds, without a request.
pub(crate) fn nothing_asked() -> LookUps {
    let now_ms = now_ms();
    LookUps {
        findings: Vec::new(),
        headers: AnswerHeaders {
            sent_at_ms: now_ms,
            received_at_ms: now_ms,
            ..AnswerHeaders::default()
        },
    }
}

/// What an answer says apart from its body.
pub(crate) fn metadata(answer: &Answer) -> AnswerHeaders {
    AnswerHeaders {
        sent_at_ms: answer.sent_at_ms,
        received_at_ms: answer.received_at_ms,
        round_trip_ms: answer.round_trip_ms,
        date_ms: date_ms(&answer.headers),
        throttle: throttle(
            &answer.headers,
            answer.sent_at_ms.saturating_add(answer.round_trip_ms),
            answer.round_trip_ms,
        ),
        body_bytes: answer.body.len() as u64,
        limit: None,
    }
}

/// The `Date` header, Unix ms.
fn date_ms(headers: &HeaderMap) -> Option<i64> {
    unix_ms(httpdate::parse_http_date(text(headers, DATE.as_str())?).ok()?)
}

/// The throttle that the headers report: Mastodon's spelling or X's, with a
/// reset in ISO 8601 or in epoch seconds. The reset is moved from the sender's
/// clock to the local one, which showed `received_at_ms` when the headers had
/// come, at most `took_ms` after they were written.
pub(crate) fn throttle(headers: &HeaderMap, received_at_ms: i64, took_ms: i64) -> Option<Throttle> {
    let lead = date_ms(headers).map(|date_ms| {
        let lead_ms = received_at_ms.saturating_sub(date_ms);
        (lead_ms, took_ms.saturating_add(DATE_STEP_MS))
    });
    let (lead_ms, error_ms) = lead.unwrap_or_default();
    ["x-ratelimit", "x-rate-limit"].iter().find_map(|prefix| {
        let header = |name: &str| text(headers, &format!("{prefix}-{name}"));
        Some(Throttle {
            limit: header("limit")?.parse().ok()?,
            remaining: header("remaining")?.parse().ok()?,
            reset_at_ms: reset_at_ms(header("reset")?)?.saturating_add(lead_ms),
            error_ms,
        })
    })
}

/// `Retry-After`, ms: seconds, or a date against the sender's own clock if it
/// sent one, else against `now_ms`.
pub(crate) fn retry_after_ms(headers: &HeaderMap, now_ms: i64) -> Option<i64> {
    let value = text(headers, RETRY_AFTER.as_str())?;
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return Some(
            value
                .parse()
                .map_or(i64::MAX, |seconds: i64| seconds.saturating_mul(1000)),
        );
    }
    let at = unix_ms(httpdate::parse_http_date(value).ok()?)?;
    Some((at - date_ms(headers).unwrap_or(now_ms)).max(0))
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}

fn reset_at_ms(value: &str) -> Option<i64> {
    if let Ok(seconds) = value.parse::<i64>() {
        // A small number is some server's count of seconds left, not a time.
        return EPOCH_SECONDS
            .contains(&seconds)
            .then(|| seconds.saturating_mul(1000));
    }
    value
        .parse::<Timestamp>()
        .ok()
        .map(Timestamp::as_millisecond)
}

fn unix_ms(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// A `Date` is floored to a second by its sender.
const DATE_STEP_MS: i64 = 1_000;
/// 2001 to 9999.
const EPOCH_SECONDS: std::ops::RangeInclusive<i64> = 1_000_000_000..=253_402_300_799;

#[cfg(test)]
mod tests {
    use http::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    name.parse::<HeaderName>().expect("a name"),
                    HeaderValue::from_bytes(value.as_bytes()).expect("a value"),
                )
            })
            .collect()
    }

    #[test]
    fn both_forms_of_reset() {
        let mastodon = headers(&[
            ("X-RateLimit-Limit", "300"),
            ("X-RateLimit-Remaining", "213"),
            ("X-RateLimit-Reset", "2025-08-17T21:00:00.777630Z"),
        ]);
        let expected = Throttle {
            limit: 300,
            remaining: 213,
            reset_at_ms: 1_755_464_400_777,
            error_ms: 0,
        };
        assert_eq!(throttle(&mastodon, 0, 0), Some(expected));
        let x = headers(&[
            ("x-rate-limit-limit", "300"),
            ("x-rate-limit-remaining", " 213 "),
            ("x-rate-limit-reset", "1755464400"),
        ]);
        let expected = Throttle {
            reset_at_ms: 1_755_464_400_000,
            ..expected
        };
        assert_eq!(throttle(&x, 0, 0), Some(expected));
    }

    #[test]
    fn malformed_throttles_are_ignored() {
        for (limit, remaining, reset) in [
            ("", "1", "1755464400"),
            ("-1", "1", "1755464400"),
            ("99999999999999999999", "1", "1755464400"),
            ("1", "one", "1755464400"),
            ("1", "1", ""),
            ("1", "1", "60"),
            ("1", "1", "99999999999999999999"),
            ("1", "1", "9223372036854775807"),
            ("1", "1", "tomorrow"),
            ("1", "1", "2025-13-45T00:00:00Z"),
            ("1", "1", "é"),
        ] {
            let headers = headers(&[
                ("x-ratelimit-limit", limit),
                ("x-ratelimit-remaining", remaining),
                ("x-ratelimit-reset", reset),
            ]);
            assert_eq!(
                throttle(&headers, 0, 0),
                None,
                "{limit} {remaining} {reset}"
            );
        }
    }

    #[test]
    fn retry_after_in_both_forms() {
        let after = |value| retry_after_ms(&headers(&[("retry-after", value)]), 784_111_767_000);
        assert_eq!(after("0"), Some(0));
        assert_eq!(after("120"), Some(120_000));
        assert_eq!(after("99999999999999999999"), Some(i64::MAX));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(10_000));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:17 GMT"), Some(0));
        for bad in ["", "-5", "1.5", "soon", "+3"] {
            assert_eq!(after(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_date_to_retry_at_is_read_by_the_senders_clock() {
        let headers = headers(&[
            ("date", "Sun, 06 Nov 1994 08:49:30 GMT"),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ]);
        assert_eq!(date_ms(&headers), Some(784_111_770_000));
        assert_eq!(retry_after_ms(&headers, 0), Some(7000));
    }

    #[test]
    fn a_malformed_date_is_ignored() {
        for bad in ["", "yesterday", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            assert_eq!(date_ms(&headers(&[("date", bad)])), None, "{bad}");
        }
    }
}
