//! What the ledger says, and whether it makes sense.

use driftline_core::{timeline::GapLedger, upstream_id::Key};

use crate::laws::Violation;

/// Whether the ledger takes a place for complete.
pub(crate) fn is_covered(ledger: &GapLedger, key: &Key) -> bool {
    let (Some(origin), Some(frontier)) = (ledger.origin(), ledger.frontier()) else {
        return false;
    };
    origin <= key && key < frontier && !is_listed(ledger, key)
}

pub(crate) fn is_listed(ledger: &GapLedger, key: &Key) -> bool {
    ledger
        .gaps()
        .iter()
        .any(|gap| gap.low <= *key && *key < gap.high)
}

pub(crate) fn sound(ledger: &GapLedger) -> Result<(), Violation> {
    let mut below = Key::lowest();
    let wrong = |what: &str| Err(Violation::GapLedger(format!("{what}: {ledger:?}")));
    for gap in ledger.gaps() {
        if gap.low >= gap.high {
            return wrong("an empty range");
        }
        if gap.low < below {
            return wrong("ranges that overlap");
        }
        below = gap.high.clone();
        if gap
            .provisional()
            .is_some_and(|read| read.from_ms > read.until_ms)
        {
            return wrong("a range that ends before it begins");
        }
    }
    match ledger.frontier() {
        Some(frontier) if below > *frontier => wrong("a range beyond the frontier"),
        None if !ledger.gaps().is_empty() => wrong("a range before the first post"),
        _ => Ok(()),
    }
}
