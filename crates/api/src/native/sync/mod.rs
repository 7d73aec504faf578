//! The synchronization of accounts' libraries with devices: `docs/sync-protocol.md`.

mod bookmark_copy;
mod cursor_seal;
mod digest;
mod entry_forms;
mod events;
mod library_filter;
mod notified_usns;
pub(crate) mod open_streams;
mod pull;
mod push;
mod resolved;
mod source_digest;
mod source_library;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use driftline_store::{LocalAccountId, StoreError, Tx, lineage};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::App;

/// The routes.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(pull::pull))
        .routes(routes!(pull::libraries))
        .routes(routes!(push::push))
        .routes(routes!(digest::digest))
        .routes(routes!(events::events))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// The names of the server's store and of an account. A replica is bound to them.
fn names(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(String, String), StoreError> {
    Ok((lineage(tx)?, account.to_string()))
}

/// The name of an account's own library.
const ACCOUNT: &str = "account";
const MAX_BODY_BYTES: usize = 1_000_000;
