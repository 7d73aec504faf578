//! Credentials for requests to upstreams, and their remaining quotas.

pub mod credential;
mod ledger;
pub mod look_up_ability;

pub use ledger::{all, load, store};
