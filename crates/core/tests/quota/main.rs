//! The ledger of a credential's quotas.

mod clock_error;
mod clocks;
mod laws;
mod ledger;
