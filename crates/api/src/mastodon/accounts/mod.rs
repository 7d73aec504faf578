//! Accounts, and the relations between them.

pub(super) mod account_entities;
mod by_id;
pub(crate) mod find;
mod ids_query;
pub(super) mod linked_accounts;
mod own_account;
mod related_accounts;
mod relations;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use crate::App;

/// The routes of accounts.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .merge(own_account::routes())
        .merge(find::routes())
        .merge(by_id::routes())
        .merge(relations::routes())
}
