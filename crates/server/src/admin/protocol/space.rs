//! Requests about the room that the store takes.

use serde::{Deserialize, Serialize};

/// Show the room that the store takes, and what of it is free.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowSpace;

/// The room that the store takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "database", rename_all = "lowercase")]
pub enum StoreSpace {
    /// A file.
    Sqlite {
        /// Its size without the write-ahead log.
        bytes: u64,
        /// What of it holds nothing.
        free_bytes: u64,
        /// Whether free room can be given back by and by; else the file has to be rewritten.
        is_incremental: bool,
        /// The room that it takes, in the file's folder, to rewrite it.
        needed_bytes: u64,
    },
    /// Tables of a server.
    Postgresql {
        /// Those with the most bytes first.
        tables: Vec<TableSpace>,
    },
}

/// The room that a table of PostgreSQL takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSpace {
    /// Its name.
    pub name: String,
    /// The size of its rows and indexes.
    pub bytes: u64,
    /// About how many rows it has.
    pub live_rows: u64,
    /// About how many deleted rows take room until the next vacuum.
    pub dead_rows: u64,
    /// About how many bytes these take.
    pub reusable_bytes: u64,
    /// When it was vacuumed last, Unix ms.
    pub vacuumed_at_ms: Option<i64>,
}

/// Give free room of a SQLite store back to the file system.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Compact {
    /// Whether the file may be rewritten, where free room cannot be given back otherwise.
    pub may_rewrite: bool,
}

/// Free room was given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// The size of the file before.
    pub bytes_before: u64,
    /// Its size now.
    pub bytes: u64,
    /// Whether it was rewritten.
    pub rewritten: bool,
}
