//! The timelines that are mirrored, and how.

use driftline_sim::{Lateness, SpanMs, WorldConfig, http::ServerConfig};

/// What is published in so many milliseconds from [`HISTORY_MS`] before the start.
///
/// Everything that happens to a post happens before the last look.
pub fn world(rate_per_s: f64, publish_for_ms: i64) -> ServerConfig {
    ServerConfig {
        world: WorldConfig {
            publish_for_ms: Some(publish_for_ms),
            lateness: Lateness {
                scale: 0.2,
                tail: 6.0,
            },
            deleted_share: 0.05,
            deleted_after_ms: SpanMs::new(100, 1_000),
            edited_share: 0.05,
            edited_after_ms: SpanMs::new(100, 1_000),
            boost_share: 0.1,
            rate_per_s,
            ..WorldConfig::default()
        },
        history_ms: HISTORY_MS,
        ..ServerConfig::default()
    }
}

/// How a source is read.
pub const SETTINGS: [&str; 10] = [
    "--backfill",
    "all",
    "--every",
    "300ms",
    "--spacing",
    "10ms",
    "--second-look",
    "1s",
    "--rung",
    "7s/1s",
];
/// How long before the start publishing began.
pub const HISTORY_MS: i64 = 10_000;
/// The longest lateness, a deletion or edit after it, and some.
pub const LATEST_MS: i64 = 5_000;
