use driftline_store::{StoreError, Tx};

use crate::{App, transport::ApiError};

/// Reads an answer from the store.
pub(crate) async fn read<T: Send + 'static>(
    app: &App,
    read: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, ApiError> {
    Ok(app.store.read(read).await?)
}
