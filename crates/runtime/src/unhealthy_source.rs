//! Sources that are not read, or not read properly.

/// A source that no process reads although it is not paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StalledSource {
    /// The source's name.
    pub name: String,
    /// The time since when, in Unix ms.
    pub since_ms: i64,
    /// The reason.
    pub reason: String,
}

/// A source whose requests fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingSource {
    /// The source's name.
    pub name: String,
    /// The time since when, in Unix ms.
    pub since_ms: i64,
    /// The number of consecutive failed requests.
    pub count: u32,
    /// The reason.
    pub reason: String,
}
