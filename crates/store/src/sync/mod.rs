//! The synchronization of libraries with replicas: `docs/sync-protocol.md`.

mod source_chunk;
mod source_reading;

pub use source_chunk::{
    SourceChunk, SourceEntry, SourceLimits, SourceTombstone, SourceView, has_news, source_changes,
    source_newest, source_update_count,
};
