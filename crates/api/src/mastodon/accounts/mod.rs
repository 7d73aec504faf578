//! Accounts, and the relations between them.

pub(super) mod account_entities;
pub(super) mod own_account;
pub(super) mod profiles;
pub(super) mod related_accounts;
pub(super) mod relations;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use crate::App;

/// The routes of accounts.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .merge(own_account::routes())
        .merge(profiles::routes())
        .merge(relations::routes())
}
