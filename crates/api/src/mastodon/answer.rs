use driftline_runtime::now_ms;
use driftline_store::{StoreError, Tx, instance, reference};

use super::local_references::Unmapped;
use crate::{App, transport::ApiError};

/// Reads an answer, of which `read` also says what it names without a local ID: that gets one, in a
/// write of its own for each instance, and the answer is read again. What a post names gets its IDs when the post is
/// stored, edited or recounted, so only posts that were stored before that need it, once.
pub(super) async fn read<T: Send + 'static>(
    app: &App,
    read: impl FnMut(&mut Tx<'_>) -> Result<(T, Unmapped), StoreError> + Clone + Send + 'static,
) -> Result<T, ApiError> {
    let (answer, unmapped) = app.store.read(read.clone()).await?;
    if unmapped.is_empty() {
        return Ok(answer);
    }
    for (instance, references) in unmapped {
        let map = move |tx: &mut Tx<'_>| reference::map(tx, instance, &references, now_ms());
        app.store.write(instance::root(instance), map).await?;
    }
    let (answer, _) = app.store.read(read).await?;
    Ok(answer)
}
