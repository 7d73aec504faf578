//! The PostgreSQL driver: pools of threads, each of which uses a connection alone.
//!
//! Each connection drives a private async runtime, so it must be made, used and dropped on plain
//! threads, such as this crate's. The async client is used because it pipelines: see [`Session`].

mod address;
mod error;
mod param;
mod pool;
mod pooler;
mod server;
mod session;
mod statement;
mod tls;
mod wire;

pub(crate) use address::client_environment;
pub(crate) use pool::Pool;
pub(crate) use server::Server;
pub(crate) use session::Session;

/// The purpose of a pool's transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionPurpose {
    Write,
    Read,
    Migrate,
}
