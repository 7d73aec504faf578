//! The service of 2010: Thrift, framed transport, binary protocol.

mod client;
mod connection;
mod connections;
mod message;
mod server;
mod wire;

pub use client::{Client, ClientError};
pub use message::{Call, Failure, LENGTH_BYTES, Request, parse_reply};
pub use server::{Limits, Server};
pub use wire::{DEEPEST, WireError};
