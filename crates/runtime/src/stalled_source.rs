//! Sources that are not read.

/// A source that no process reads although it is not paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StalledSource {
    /// The source's name.
    pub name: String,
    /// Since when, Unix ms.
    pub since_ms: i64,
    /// The reason.
    pub reason: String,
}
