//! The ledger of a credential's quotas.

mod clocks;
mod laws;
mod ledger;
