//! When a look-up that brought nothing is made again.

use crate::timeline::backoff_ms;

/// The time until a post is looked up again after this many failures in a row, ms: from 5 s,
/// doubling up to five minutes, of which `chance` takes up to half away.
pub(super) fn retry_ms(failures: u32, chance: u64) -> i64 {
    backoff_ms(BASE_MS, failures, chance)
}

/// The time until a post that an answer left out is asked for once more, ms. Long enough for a
/// server's replicas to agree.
pub(super) const CONFIRM_MS: i64 = 60_000;

const BASE_MS: i64 = 5_000;
