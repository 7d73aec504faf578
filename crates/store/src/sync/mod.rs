//! The synchronization of libraries with devices, as `docs/sync-protocol.md` specifies it.
//!
//! A device pulls an account's library with [`chunk_with_copies`] and pushes with [`push()`] and [`device`]. It pulls the
//! entries of a source with [`source_changes`] and [`source_newest`]. Reads need one snapshot, which each read of a store has. Writes
//! happen below the account's root.

mod apply;
mod chunk;
mod current_objects;
mod cursor;
pub mod device;
mod entry_row;
mod filter_change;
mod library_digest;
mod push;
mod relations;
mod source_chunk;
mod source_reading;
mod start;
mod values;

pub use chunk::{Chunk, chunk_with_copies, count_objects};
pub use current_objects::current_objects;
pub use cursor::{Cursor, CursorError, current_cursor, held_after, source_cursor};
pub use filter_change::{MAX_NEW_FILTER_POSTS, filter_post_names};
pub use library_digest::{DigestReading, library_digest};
pub use push::{Pushed, Resolved, push};
pub use source_chunk::{
    SourceChunk, SourceEntry, SourceFilter, SourceLimits, SourceTombstone, count_shown_entries,
    has_news, source_changes, source_newest, source_update_count,
};
pub use start::{Start, source_start, start};
pub use values::{CopyWriter, ShownPosts};

pub use crate::library::{
    history::require_full,
    object::{ObjectDigest, store_digests},
};
