//! The service of 2010: Thrift, framed transport, binary protocol.

mod calls;
mod client;
mod listener;
mod message;
mod open_connections;
mod wire;

pub use client::{Client, ClientError};
pub use listener::{Limits, Listener};
pub use message::{Call, Failure, LENGTH_BYTES, Request, parse_reply};
pub use wire::{MAX_DEPTH, WireError};
