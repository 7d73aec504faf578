//! Driftline's own routes.

pub(crate) mod description;
mod docs_page;
pub(crate) mod health;
pub(crate) mod ids;
mod instances;
pub(crate) mod stream;
pub(crate) mod track;

use std::sync::Arc;

use crate::{App, transport::Routes};

/// The routes whose answers are compressed and which pages of other sites may ask for.
pub(crate) fn routes() -> Routes<Arc<App>> {
    Routes::new()
        .add(health::__path_live, health::live)
        .add(health::__path_metrics, health::metrics)
        .add(description::__path_described, description::described)
        .add(docs_page::__path_docs, docs_page::docs)
        .merge(instances::routes())
        .merge(stream::routes())
}
