//! When a look-up that brought nothing is made again.

use crate::timeline::backoff_ms;

/// The time until a post is looked up again after this many failures in a row, ms: from 5 s,
/// doubling up to five minutes, or to `every_ms`, the time between its refreshes, where that is
/// longer: what keeps failing costs no more than what answers. `chance` takes up to half away.
pub(super) fn retry_ms(failures: u32, every_ms: i64, chance: u64) -> i64 {
    let doublings = failures.saturating_sub(2).min(30);
    let grown_ms = BASE_MS.saturating_mul(1 << doublings);
    if grown_ms <= LONGEST_BACKOFF_MS || every_ms <= LONGEST_BACKOFF_MS {
        return backoff_ms(BASE_MS, failures, chance);
    }
    let whole_ms = grown_ms.min(every_ms);
    whole_ms - (chance % (whole_ms as u64 / 2 + 1)) as i64
}

/// The time until a post that an answer left out is asked for once more, ms. Long enough for a
/// server's replicas to agree.
pub(super) const CONFIRM_MS: i64 = 60_000;

const BASE_MS: i64 = 5_000;
const LONGEST_BACKOFF_MS: i64 = 300_000;
