//! What is served, asked for over a socket.

#![allow(clippy::unwrap_used)]

mod account_statuses;
mod apps;
mod attack;
mod bells;
mod copies;
mod description;
mod filters;
mod health;
mod instances;
mod library;
mod linked_accounts;
mod lists;
mod lock_out;
mod log_ins;
mod mirror;
mod node_info;
mod nul;
mod oauth;
mod operator;
mod pages;
mod paging;
mod people;
mod reading;
mod references;
mod removals;
mod replica_search;
mod requests;
mod resolve;
mod resolve_accounts;
mod saved_timelines;
mod search;
mod shape;
mod sign_up;
mod sources;
mod statuses;
mod stream;
mod streaming;
mod sync;
mod threads;
mod threads_fetched;
mod threads_histories;
mod tokens;
mod track;
mod world;
