use std::time::Duration;

/// Limits on clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest frame in bytes, without its length.
    pub frame_bytes: usize,
    /// How long a client may be silent within a frame, or leave replies unread. Between frames it
    /// may be silent for ever.
    pub silence: Duration,
    /// The most connections; beyond, an idle one is evicted for each new one.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: 16 * 1_024,
            silence: Duration::from_secs(10),
            connections: 10_000,
        }
    }
}
