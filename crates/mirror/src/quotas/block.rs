//! Several requests taken at once, so that most need no transaction.

use std::collections::HashMap;

use driftline_core::{
    clock::{ClockReading, MIN_STEP_MS},
    quota::{QuotaLedger, QuotaPurpose, Unit, WINDOW_EDGE_MS},
};
use driftline_store::CredentialId;

/// A credential, and the family of endpoints whose limits it counts against.
pub(super) type Scope = (CredentialId, &'static str);

/// The requests that this process has taken and not sent. Times are by its monotonic clock, ms.
#[derive(Default)]
pub(super) struct Blocks {
    blocks: HashMap<(Scope, QuotaPurpose), Block>,
    /// Where the upstream reports no limits, until when requests are free.
    free_until_ms: HashMap<Scope, i64>,
}

#[derive(Default)]
struct Block {
    left: u32,
    /// Requests that were taken in the window's last seconds and put back: the next window counts them
    /// too, so they may be sent in either.
    late: u32,
    until_ms: i64,
}

impl Block {
    fn count(&mut self, is_late: bool) -> &mut u32 {
        if is_late {
            &mut self.late
        } else {
            &mut self.left
        }
    }
}

impl Blocks {
    /// Takes a request. Returns whether it is a late one.
    pub(super) fn take(
        &mut self,
        scope: Scope,
        purpose: QuotaPurpose,
        now_ms: i64,
    ) -> Option<bool> {
        if self.is_free(scope, now_ms) {
            return Some(false);
        }
        let block = self.blocks.get_mut(&(scope, purpose))?;
        if now_ms >= block.until_ms {
            block.late = 0;
        }
        // Such a late request belongs to the next window too, which only the ledger can count.
        if is_late(block.until_ms, now_ms) {
            block.left = 0;
        }
        let is_late = block.left == 0;
        let left = block.count(is_late);
        *left = left.checked_sub(1)?;
        Some(is_late)
    }

    /// Adds requests that the ledger granted. Returns whether their window is about to end.
    pub(super) fn add(
        &mut self,
        scope: Scope,
        purpose: QuotaPurpose,
        granted: u32,
        ledger: &QuotaLedger,
        clocks: ClockReading,
    ) -> bool {
        let now_ms = clocks.steady_ms;
        let ends = ledger.windows().iter().map(|window| window.reset_at_ms);
        let until_ms = ends.min().map_or(i64::MAX, |ends_ms| {
            let left_ms = ends_ms.saturating_sub(clocks.wall_ms);
            now_ms.saturating_add(left_ms)
        });
        let block = self.blocks.entry((scope, purpose)).or_default();
        if block.until_ms.abs_diff(until_ms) > MIN_STEP_MS.unsigned_abs() {
            *block = Block {
                until_ms,
                ..Block::default()
            };
        }
        let is_late = is_late(until_ms, now_ms);
        *block.count(is_late) += granted;
        is_late
    }

    /// Puts a request back. It may be taken again until its window ends.
    pub(super) fn put_back(
        &mut self,
        scope: Scope,
        purpose: QuotaPurpose,
        is_late: bool,
        now_ms: i64,
    ) {
        if self.is_free(scope, now_ms) {
            return;
        }
        if let Some(block) = self.blocks.get_mut(&(scope, purpose))
            && now_ms < block.until_ms
        {
            *block.count(is_late) += 1;
        }
    }

    /// Makes requests free for a while.
    pub(super) fn free(&mut self, scope: Scope, now_ms: i64) {
        let until_ms = now_ms.saturating_add(FREE_MS);
        self.free_until_ms.insert(scope, until_ms);
    }

    /// Forgets what was taken: others must have used it.
    pub(super) fn clear(&mut self, scope: Scope) {
        self.free_until_ms.remove(&scope);
        self.blocks.retain(|(other, _), _| *other != scope);
    }

    fn is_free(&self, scope: Scope, now_ms: i64) -> bool {
        let until_ms = self.free_until_ms.get(&scope);
        until_ms.is_some_and(|until_ms| now_ms < *until_ms)
    }
}

/// How many requests to take at once: fewer as the window runs out, so that few are unused at its
/// end.
pub(super) fn block_of(ledger: &QuotaLedger, purpose: QuotaPurpose) -> u32 {
    let windows = ledger.windows().iter();
    let left = windows
        .filter(|w| w.unit == Unit::Requests && (purpose == QuotaPurpose::Poll || !w.pages_only))
        .map(|w| w.remaining);
    (left.min().unwrap_or(0) / 32).clamp(1, MAX_BLOCK)
}

/// Whether a window is about to end, so that the next one may count a request that is sent now.
fn is_late(until_ms: i64, now_ms: i64) -> bool {
    now_ms >= until_ms.saturating_sub(WINDOW_EDGE_MS)
}

/// How long requests are free after an answer without limits.
const FREE_MS: i64 = 10_000;
const MAX_BLOCK: u32 = 8;
