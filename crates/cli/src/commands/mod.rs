//! The commands, one file each.

pub mod account;
pub mod backup;
pub mod compact;
pub mod completions;
pub mod config;
pub mod credential;
pub mod demo;
pub mod export;
pub mod find;
pub mod history;
pub mod id;
pub mod index;
pub mod instance;
pub mod man;
pub mod migrate;
pub mod mirror;
pub mod node;
pub mod refresh;
pub mod restore;
pub mod serve;
pub mod simulate;
pub mod source;
pub mod status;
pub mod tail;
pub mod track;
pub mod why;
