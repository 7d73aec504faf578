//! When to try again sources whose sessions have failed, and which of them this process refuses.

use std::collections::{BTreeSet, HashMap};

use driftline_core::timeline::Settings;
use driftline_store::{
    SourceId,
    source::{Source, TokenLocation},
};

/// Sources whose sessions have failed. Times are by the process's monotonic clock, ms.
#[derive(Default)]
pub(super) struct Retries {
    by_source: HashMap<SourceId, Retry>,
}

struct Retry {
    failures: u32,
    due_ms: i64,
    /// Whether it counts in nobody's share on behalf of this process until a session has made a step:
    /// the fault is the source's own. An outage of the store is not.
    is_refused: bool,
    /// What it was read with.
    read_with: Option<ReadWith>,
}

/// What decides whether a source can be read.
#[derive(PartialEq)]
struct ReadWith {
    settings: Settings,
    token: Option<TokenLocation>,
    allow_private: bool,
}

impl ReadWith {
    fn of(source: &Source) -> Self {
        Self {
            settings: source.settings.clone(),
            token: source.token.clone(),
            allow_private: source.allow_private,
        }
    }
}

impl Retries {
    pub(super) fn is_due(&self, source: SourceId, now_ms: i64) -> bool {
        let retry = self.by_source.get(&source);
        retry.is_none_or(|retry| retry.due_ms <= now_ms)
    }

    pub(super) fn is_refused(&self, source: SourceId) -> bool {
        let retry = self.by_source.get(&source);
        retry.is_some_and(|retry| retry.is_refused)
    }

    /// The sources that this process cannot read.
    pub(super) fn refused(&self) -> BTreeSet<SourceId> {
        let refused = self.by_source.iter().filter(|(_, retry)| retry.is_refused);
        refused.map(|(source, _)| *source).collect()
    }

    /// When the first of those that are not due yet is.
    pub(super) fn next_due_ms(&self, now_ms: i64) -> Option<i64> {
        let due = self.by_source.values().map(|retry| retry.due_ms);
        due.filter(|due_ms| *due_ms > now_ms).min()
    }

    /// Each failure soon after the last try doubles the wait, up to `max_ms`.
    pub(super) fn failed(&mut self, source: SourceId, is_refused: bool, max_ms: i64, now_ms: i64) {
        let retry = self.by_source.entry(source).or_insert(Retry {
            failures: 0,
            due_ms: now_ms,
            is_refused,
            read_with: None,
        });
        if now_ms.saturating_sub(retry.due_ms) > STEADY_MS {
            retry.failures = 0;
        }
        let wait_ms = MIN_RETRY_MS << retry.failures.min(20);
        retry.failures += 1;
        retry.is_refused |= is_refused;
        retry.due_ms = now_ms.saturating_add(wait_ms.min(max_ms));
    }

    /// A session has made a step, or another process reads the source. `true` if it was refused.
    pub(super) fn succeeded(&mut self, source: SourceId) -> bool {
        let retry = self.by_source.get_mut(&source);
        retry.is_some_and(|retry| std::mem::replace(&mut retry.is_refused, false))
    }

    /// Forgets removed and paused sources; those with other settings or another token than those that
    /// failed are due now.
    pub(super) fn sync(&mut self, sources: &[Source], now_ms: i64) {
        if self.by_source.is_empty() {
            return;
        }
        let by_id: HashMap<SourceId, &Source> =
            sources.iter().map(|source| (source.id, source)).collect();
        self.by_source.retain(|id, retry| {
            let Some(source) = by_id.get(id).filter(|source| !source.paused) else {
                return false;
            };
            let read_with = Some(ReadWith::of(source));
            if retry.read_with != read_with {
                if retry.read_with.is_some() {
                    retry.due_ms = now_ms;
                    retry.failures = 0;
                }
                retry.read_with = read_with;
            }
            true
        });
    }
}

/// The longest wait after a fault of the source itself, so that a token that was added is found soon.
pub(super) const SOURCE_RETRY_MS: i64 = 10_000;
const MIN_RETRY_MS: i64 = 500;
/// A session that lived so long resets the backoff.
const STEADY_MS: i64 = 30_000;

#[cfg(test)]
mod tests {
    use super::*;
    use driftline_runtime::STORE_RETRY_MS;

    #[test]
    fn the_wait_of_a_failing_source_doubles_until_a_session_lasts() {
        let source = SourceId::new(7);
        let mut retries = Retries::default();
        assert!(retries.is_due(source, 0));
        let mut now_ms = 10_000;
        for wait_ms in [500, 1_000, 2_000, 4_000, 4_000] {
            retries.failed(source, false, STORE_RETRY_MS, now_ms);
            assert_eq!(retries.next_due_ms(now_ms), Some(now_ms + wait_ms));
            now_ms += wait_ms;
            assert!(!retries.is_due(source, now_ms - 1));
            assert!(retries.is_due(source, now_ms));
        }
        now_ms += STEADY_MS + 1;
        retries.failed(source, false, STORE_RETRY_MS, now_ms);
        assert!(retries.is_due(source, now_ms + 500));
    }

    #[test]
    fn a_fault_of_its_own_is_refused_until_a_session_works() {
        let source = SourceId::new(7);
        let mut retries = Retries::default();
        retries.failed(source, false, STORE_RETRY_MS, 0);
        assert!(!retries.is_refused(source));
        retries.failed(source, true, SOURCE_RETRY_MS, 0);
        // An outage besides does not end that.
        retries.failed(source, false, STORE_RETRY_MS, 0);
        assert_eq!(retries.refused(), BTreeSet::from([source]));
        assert!(retries.succeeded(source) && !retries.succeeded(source));
        assert!(retries.refused().is_empty());
    }
}
