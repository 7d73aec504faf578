use std::sync::Arc;

use axum::{extract::FromRequestParts as _, http::request::Parts};
use driftline_store::{StoreError, Tx, timeline::Viewer};

use crate::{
    App,
    transport::{Address, ApiResult},
};

/// The server as a request reaches it, and whom the answer is for.
#[derive(Clone)]
pub(crate) struct RequestContext {
    pub(crate) app: Arc<App>,
    pub(crate) viewer: Viewer,
    pub(crate) address: Address,
}

impl RequestContext {
    pub(super) async fn new(parts: &mut Parts, app: &Arc<App>, viewer: Viewer) -> Self {
        let Ok(address) = Address::from_request_parts(parts, app).await;
        Self {
            app: Arc::clone(app),
            viewer,
            address,
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.app.people.now_ms()
    }

    /// Reads from the store.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> ApiResult<T> {
        Ok(self.app.store.read(read).await?)
    }

    /// Reads from the store what may take long, in the viewer's turn ([`LongReads`](crate::long_reads::LongReads)).
    pub(crate) async fn long_read<T: Send + 'static>(
        &self,
        mut read: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> ApiResult<T> {
        let turn = self.app.people.long_reads.turn(self.viewer).await?;
        let read = move |tx: &mut Tx<'_>| {
            // The turn ends with the reading, which a client that goes away does not end.
            let _turn = &turn;
            read(tx)
        };
        self.read(read).await
    }
}
