//! The service of IDs: its codec, its order of service, its Thrift and HTTP sides.
#![allow(clippy::unwrap_used)]

mod codec;
mod http;
mod issuer;
mod sanity;
mod service;
mod support;
mod thrift;
