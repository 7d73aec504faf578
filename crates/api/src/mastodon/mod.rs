//! Mastodon's API.

mod answer;
mod described;
mod instance;
mod lists;
mod local_references;
mod page_query;
mod status;
mod statuses;
mod streaming;
mod timelines;

use std::sync::Arc;

pub(crate) use instance::own_instance;
pub(crate) use streaming::StatusJson;

use crate::{App, transport::Routes};

/// The content type of every entity.
const JSON: &str = "application/json; charset=utf-8";

/// The routes that Mastodon documents.
pub(crate) fn routes() -> Routes<Arc<App>> {
    use described as at;
    Routes::new()
        .add(at::__path_public_timeline, timelines::public)
        .add(at::__path_list_timeline, timelines::list)
        .add(at::__path_lists, lists::all)
        .add(at::__path_list, lists::one)
        .add(at::__path_status, statuses::one)
        .add(at::__path_status_history, statuses::history)
        .add(at::__path_instance_v1, instance::v1)
        .add(at::__path_instance_v2, instance::v2)
        .merge(streaming::routes())
}
