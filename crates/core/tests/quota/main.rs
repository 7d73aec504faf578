//! The ledger of a credential's quotas.

mod laws;
mod ledger;
