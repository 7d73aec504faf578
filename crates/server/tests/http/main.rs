//! What is served, asked for over a socket.

#![allow(clippy::unwrap_used)]

mod attack;
mod connections;
mod description;
mod health;
mod lists;
mod mirror;
mod operator;
mod paging;
mod references;
mod requests;
mod returns;
mod shape;
mod statuses;
mod stream;
mod streaming;
mod track;
mod world;
