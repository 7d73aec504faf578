//! The open store: its schema, its connections, its distribution, and its backups.

pub mod backup;
pub mod database_clock;
pub(crate) mod directory;
pub mod distribution;
mod distribution_state;
pub(crate) mod schema;
pub(crate) mod store;
