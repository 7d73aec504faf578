//! Credentials for requests to upstreams, and what their quotas leave.

pub mod credential;
mod ledger;

pub use ledger::{all, load, store};
