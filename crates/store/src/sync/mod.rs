//! The synchronization of accounts' libraries with devices, as `docs/sync-protocol.md` specifies it.
//!
//! A device pulls with [`chunk()`] and pushes with [`push()`] and [`device`]. Reads need one
//! snapshot, which each read of a store has. Writes happen below the account's root.

mod apply;
mod chunk;
mod cursor;
pub mod device;
mod push;
mod start;
mod values;

pub use chunk::{Chunk, StoredObject, chunk};
pub use cursor::{Cursor, CursorError, current_cursor};
pub use push::{Pushed, Resolved, push};
pub use start::{Start, require_full, start};
