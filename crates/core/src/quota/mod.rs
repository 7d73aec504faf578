//! The ledger of a credential's quotas. All limits of an upstream are obeyed together.
//!
//! A request is taken from the ledger before it is sent, and the ledger is stored before the
//! request leaves. Processes with one store therefore never exceed a limit together. The remaining
//! quota determines the pace of reading timelines.

mod ledger;
mod window;

pub use ledger::{Grant, LedgerAge, QuotaLedger, QuotaPurpose, QuotaView};
pub use window::{Unit, WINDOW_EDGE_MS, Window};
