//! Credentials for requests to upstreams, and what their quotas leave.

pub mod credential;
mod ledger;
pub mod look_up_ability;

pub use ledger::{all, load, store};
