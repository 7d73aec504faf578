//! The knobs of streams.

use smart_default::SmartDefault;

use crate::span::SpanMs;

/// What goes wrong with streams. By default nothing does. Shares are of
/// events, between 0 and 1.
#[derive(Debug, Clone, PartialEq, SmartDefault)]
pub struct StreamsConfig {
    /// Whether connections are refused with 503. Default false.
    pub refused: bool,
    /// The connection breaks after so many events. Default never.
    pub drop_after_events: Option<u64>,
    /// Events that are never sent. Default 0.
    pub lost_share: f64,
    /// Events that are sent twice. Default 0.
    pub repeated_share: f64,
    /// How long after it happened an event is sent, by the server's clock;
    /// each is delayed by a time of its own, so that they come out of order.
    /// Default 0.
    pub delay_ms: SpanMs,
    /// From one `:thump` to the next, in real time. Default 15 s.
    #[default = 15_000]
    pub heartbeat_ms: i64,
}
