//! When a look-up that brought nothing is made again.

/// The time until a post is looked up again after this many failures in a row, ms: from 5 s,
/// doubling up to eight times `every_ms`, the time between its refreshes (five minutes at least):
/// what keeps failing is asked for alone, and so costs as much as a batch of what answers. `random`
/// takes up to half away.
pub(super) fn retry_ms(failures: u32, every_ms: i64, random: u64) -> i64 {
    let doublings = failures.saturating_sub(2).min(30);
    let max_ms = every_ms.max(MIN_EVERY_MS).saturating_mul(MAX_EVERIES);
    let whole_ms = BASE_MS.saturating_mul(1 << doublings).min(max_ms);
    whole_ms - (random % (whole_ms as u64 / 2 + 1)) as i64
}

/// The time until a post that an answer left out is asked for once more, ms. Long enough for a
/// server's replicas to agree.
pub(super) const CONFIRM_MS: i64 = 60_000;

const BASE_MS: i64 = 5_000;
const MIN_EVERY_MS: i64 = 300_000;
const MAX_EVERIES: i64 = 8;
