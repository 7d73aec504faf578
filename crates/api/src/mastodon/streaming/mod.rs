//! Mastodon's streams: what comes into the public timeline and into lists, as server-sent events and
//! over WebSockets. They tell nothing that was stored before they began: a client that was away
//! pages up by `min_id`.

mod channel;
mod message;
mod sse;
mod web_socket;

use std::sync::Arc;

pub(crate) use message::StatusJson;

use crate::{App, mastodon::described, transport::Routes};

/// The routes that Mastodon documents.
pub(super) fn routes() -> Routes<Arc<App>> {
    Routes::new()
        .add(described::__path_streaming, web_socket::connect)
        .add(described::__path_streaming_health, async || "OK")
        .add(described::__path_streaming_public, sse::public)
        .add(described::__path_streaming_local, sse::local)
        .add(described::__path_streaming_remote, sse::public)
        .add(described::__path_streaming_list, sse::list)
}
