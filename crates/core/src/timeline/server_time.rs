//! Server time without a synchronised clock.

use crate::answer::AnswerHeaders;

/// The time of a read on the safe side of both clocks, Unix ms:
/// `min(local send time, Date - round trip)`.
///
/// `Date` is floored to a second by its sender, and the read happened at most
/// one round trip before it, so the server's clock did not stand earlier than
/// this when it read.
pub fn retrieved_at_ms(headers: &AnswerHeaders) -> i64 {
    headers.sent_at_ms.min(read_at_ms(headers))
}

/// When a page was read at the earliest, Unix ms by the server's clock alone: ages are counted by
/// it. Without `Date` the local clock has to be right.
pub(super) fn read_at_ms(headers: &AnswerHeaders) -> i64 {
    match headers.date_ms {
        Some(date_ms) => date_ms.saturating_sub(headers.round_trip_ms.max(0)),
        None => headers.sent_at_ms,
    }
}

/// A time that the server's clock had not passed when it answered, Unix ms:
/// IDs beyond it are ahead of server time.
///
/// By `Date` alone where there is one: `Date` is floored to a second; the local clock may
/// refine it within that second.
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
