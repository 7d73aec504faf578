//! The server's time without a synchronised clock.

use crate::answer::AnswerHeaders;

/// The time of a read on the safe side of both clocks, in Unix ms:
/// `min(local send time, Date - round trip)`.
///
/// The sender rounds `Date` down to a second, and the read happened at most one round trip before
/// it. The server's clock was therefore not earlier than this at the read.
pub fn retrieved_at_ms(headers: &AnswerHeaders) -> i64 {
    headers.sent_at_ms.min(read_at_ms(headers))
}

/// The earliest possible time of a read, in Unix ms by the server's clock only. Ages are counted by
/// it. Without `Date` the local clock must be right.
pub(super) fn read_at_ms(headers: &AnswerHeaders) -> i64 {
    match headers.date_ms {
        Some(date_ms) => date_ms.saturating_sub(headers.round_trip_ms.max(0)),
        None => headers.sent_at_ms,
    }
}

/// A time that the server's clock had not passed when it answered, in Unix ms. IDs beyond it are
/// ahead of the server's time.
///
/// If there is a `Date`, it determines the time. It is rounded down to a second, and the local
/// clock may refine it within that second.
pub fn answered_by_ms(headers: &AnswerHeaders) -> i64 {
    match headers.date_ms {
        Some(date_ms) if headers.received_at_ms < date_ms => date_ms.saturating_add(999),
        Some(date_ms) => headers.received_at_ms.min(date_ms.saturating_add(999)),
        None => headers.received_at_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(sent: i64, received: i64, date: Option<i64>) -> AnswerHeaders {
        AnswerHeaders {
            sent_at_ms: sent,
            received_at_ms: received,
            round_trip_ms: received - sent,
            date_ms: date,
            ..AnswerHeaders::default()
        }
    }

    #[test]
    fn ages_are_counted_by_the_servers_clock_alone_and_polls_by_the_earlier_one() {
        for (date, read, retrieved) in [
            (Some(10_000), 9_900, 9_900),
            (Some(90_000), 89_900, 10_400),
            (None, 10_400, 10_400),
        ] {
            let headers = headers(10_400, 10_500, date);
            assert_eq!(read_at_ms(&headers), read);
            assert_eq!(retrieved_at_ms(&headers), retrieved);
        }
    }

    #[test]
    fn no_local_clock_moves_the_limit_of_the_future_past_the_servers_date() {
        for (sent, received, date, answered_by) in [
            (90_000, 90_100, Some(10_000), 10_999),
            (10_000, 10_100, Some(90_000), 90_999),
            (10_000, 10_400, Some(10_000), 10_400),
            (10_000, 10_400, None, 10_400),
        ] {
            assert_eq!(answered_by_ms(&headers(sent, received, date)), answered_by);
        }
    }
}
