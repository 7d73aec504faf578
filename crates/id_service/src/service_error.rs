use driftline_id::StartError;

use super::{HeldNodeError, SanityError};

/// The reason why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No node is available.
    #[error("{0}")]
    Node(#[from] HeldNodeError),
    /// The layout cannot express the time of the clock.
    #[error("{0}")]
    Start(#[from] StartError),
    /// The service and its peers conflict.
    #[error("{0}")]
    Sanity(#[from] SanityError),
    /// It was stopped before it had started.
    #[error("the service was stopped before it had started")]
    Stopped,
    /// A thread panicked.
    #[error("a thread of the service panicked")]
    Died,
}
