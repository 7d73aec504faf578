use super::ServiceError;

/// Does work that may block on a thread of its own.
///
/// # Errors
/// [`ServiceError::Died`] if the work panicked.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ServiceError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| ServiceError::Died)
}
