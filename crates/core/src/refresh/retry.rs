//! The waits before repeated look-ups.

/// The wait before the next look-up of a post after this number of consecutive failures, in ms. It
/// starts at 5 s and doubles up to eight times `every_ms`, the time between its refreshes (at least
/// five minutes). A post that keeps failing is looked up alone, which costs as much as a whole
/// batch. `random` subtracts up to half.
pub(super) fn retry_ms(failures: u32, every_ms: i64, random: u64) -> i64 {
    let doublings = failures.saturating_sub(2).min(30);
    let max_ms = every_ms.max(MIN_EVERY_MS).saturating_mul(MAX_EVERIES);
    let whole_ms = BASE_MS.saturating_mul(1 << doublings).min(max_ms);
    whole_ms - (random % (whole_ms as u64 / 2 + 1)) as i64
}

/// The wait before the next look-up of a post that an answer omitted, in ms. It is long enough for
/// a server's replicas to agree.
pub(super) const CONFIRM_MS: i64 = 60_000;

const BASE_MS: i64 = 5_000;
const MIN_EVERY_MS: i64 = 300_000;
const MAX_EVERIES: i64 = 8;
