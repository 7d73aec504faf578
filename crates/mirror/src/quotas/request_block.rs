//! Several requests taken at once, so that most need no transaction.

use driftline_core::quota::{Grant, QuotaLedger, RequestPriority, Unit};
use driftline_store::{CredentialId, StoreError, Tx, quota};

use super::{Charge, Charged, MONTH, capped};

/// The parameters of [`take_block`].
#[derive(Debug, Clone, Copy)]
pub(super) struct QuotaRequest {
    pub(super) id: CredentialId,
    pub(super) scope: &'static str,
    pub(super) priority: RequestPriority,
    pub(super) posts: u32,
    /// The most posts that may be read in a month.
    pub(super) cap: Option<i64>,
    /// The request is held already: only its posts are charged.
    pub(super) is_held: bool,
}

/// Takes a block of requests of a scope's ledger, and their posts of the month's cap.
pub(super) fn take_block(
    tx: &mut Tx<'_>,
    request: &QuotaRequest,
    now_ms: i64,
) -> Result<(Grant, QuotaLedger, Charge), StoreError> {
    let QuotaRequest {
        id,
        scope,
        priority,
        posts,
        ..
    } = *request;
    let mut ledger = quota::load(tx, id, scope)?;
    let mut capped = match request.cap {
        Some(cap) => Some(capped(quota::load(tx, id, MONTH)?, cap, now_ms)),
        None => None,
    };
    if let Some(capped) = &mut capped {
        let ahead = capped.clone().take(1, posts, priority, now_ms);
        if let Grant::Until(_) = ahead {
            return Ok((ahead, ledger, Charge::default()));
        }
    }
    // Under a cap, requests are taken one by one: a block would charge posts that are not read.
    let max = match &capped {
        Some(_) => 1,
        None => block_of(&ledger, priority),
    };
    let grant = if request.is_held {
        Grant::Requests(1)
    } else {
        ledger.take(max, posts, priority, now_ms)
    };
    let mut charge = Charge::default();
    if let Grant::Requests(granted) = grant {
        quota::store(tx, id, scope, &ledger)?;
        if let Some(mut capped) = capped {
            capped.take(granted, posts, priority, now_ms);
            quota::store(tx, id, MONTH, &capped)?;
            charge.of_month = capped.cap().map(|cap| Charged {
                posts,
                ends_at_ms: cap.reset_at_ms,
            });
        }
    }
    Ok((grant, ledger, charge))
}

/// How many requests to take at once: fewer as the window runs out, so that few are unused at its
/// end.
fn block_of(ledger: &QuotaLedger, priority: RequestPriority) -> u32 {
    let windows = ledger.windows().iter();
    let left = windows
        .filter(|w| {
            w.unit == Unit::Requests && (priority == RequestPriority::Poll || !w.pages_only)
        })
        .map(|w| w.remaining);
    (left.min().unwrap_or(0) / 32).clamp(1, MAX_BLOCK)
}

const MAX_BLOCK: u32 = 8;
