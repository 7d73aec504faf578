//! The service of 2010: Thrift, framed transport, binary protocol.

mod calls;
mod client;
mod limits;
mod listener;
mod message;
mod open_connections;
mod wire;

pub use client::{Client, ClientError};
pub use limits::Limits;
pub use listener::Listener;
pub use message::{Call, Failure, LENGTH_BYTES, Request, parse_reply};
pub use wire::{MAX_DEPTH, WireError};
