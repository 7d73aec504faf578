//! The ledger of a credential's quotas: every limit that an upstream sets, obeyed at once.
//!
//! A request is taken from the ledger before it is sent, and the ledger is stored before the
//! request leaves: processes that share a store so never overrun a limit together. What is left
//! paces the reading of timelines.

mod ledger;
mod window;

pub use ledger::{Grant, LedgerAge, QuotaLedger, QuotaPurpose, QuotaView};
pub use window::{Unit, WINDOW_EDGE_MS, Window};
