//! A source's settings.

use driftline_id::Layout;
use serde::{Deserialize, Serialize};

use super::ladder::Rung;
use crate::upstream_id::IdOrder;

/// A source's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The time between two polls in ms. It grows when the quota is short.
    pub every_ms: i64,
    /// The limit for the time between two polls while a stream shows the same posts, in ms.
    pub streamed_every_ms: i64,
    /// The shortest time between two requests of any kind, in ms.
    pub spacing_ms: i64,
    /// The distance below the newest ID at which a poll begins to read.
    pub overlap: Overlap,
    /// The history that the source begins with.
    pub backfill: Backfill,
    /// True if gaps are filled without a request.
    pub fill_gaps: bool,
    /// The second look's smallest age in ms. The look is taken after the longest measured lateness,
    /// but never earlier than this.
    pub second_look_ms: i64,
    /// The shortest time span that one second look covers, in ms. On a slow source it covers up to
    /// twelve times as much.
    pub second_look_period_ms: i64,
    /// The rungs above the second look.
    pub rungs: Vec<Rung>,
    /// The budget: posts fetched for each post stored, in percent (250 means 2.5 fetches). It
    /// limits polls, looks and probes once less than every rung is proven to be enough.
    pub fetches_percent: u32,
    /// True if refreshing finds edits and deletions of stored posts, so that no rung is kept for
    /// them.
    pub refreshed: bool,
    /// The share of all requests for rungs above the second look while the quota is short, in
    /// percent.
    pub rung_share_percent: u32,
    /// The order of IDs, if it is not to be detected.
    pub id_order: Option<IdOrder>,
    /// The layout of IDs by name, if it is not to be detected; `none` for IDs without time.
    pub id_layout: Option<String>,
    /// The way of following the upstream's stream, if it has one.
    pub stream: Streaming,
}

impl Settings {
    /// The configured layout: `None` to detect one, `Some(None)` for IDs without time.
    pub fn named_layout(&self) -> Option<Option<Layout>> {
        self.id_layout.as_deref().map(Layout::named)
    }
}

impl Default for Settings {
    fn default() -> Self {
        let rung = |age_ms, period_ms| Rung { age_ms, period_ms };
        Self {
            every_ms: 3_000,
            streamed_every_ms: 15_000,
            spacing_ms: 200,
            overlap: Overlap::Adaptive,
            backfill: Backfill::Duration(DAY_MS),
            fill_gaps: true,
            second_look_ms: 15_000,
            second_look_period_ms: 5_000,
            rungs: vec![
                rung(10 * MINUTE_MS, 5 * MINUTE_MS),
                rung(120 * MINUTE_MS, 60 * MINUTE_MS),
                rung(DAY_MS, DAY_MS / 4),
            ],
            fetches_percent: 250,
            refreshed: false,
            rung_share_percent: 25,
            id_order: None,
            id_layout: None,
            stream: Streaming::Auto,
        }
    }
}

named_enum! {
    /// The way of following an upstream's stream. A stream shows posts sooner; only polls prove that
    /// none is missing.
    #[derive(Default)]
    pub enum Streaming: "lowercase" {
        /// As server-sent events, or over a WebSocket if the server has none.
        #[default]
        Auto,
        /// As server-sent events.
        Sse,
        /// Over a WebSocket.
        WebSocket,
        /// Not at all.
        Off,
    }
}

/// The distance below the newest ID at which a poll begins to read (`k`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Near the measured p99 of lateness.
    Adaptive,
    /// A fixed distance in ms.
    Fixed(i64),
}

/// The history that a source begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backfill {
    /// The contents of the first page.
    None,
    /// About this number of posts: whole pages until this number is stored.
    Count(u64),
    /// The posts of the last ms of this number.
    Duration(i64),
    /// All posts that the upstream still shows.
    All,
}

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
