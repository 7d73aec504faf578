//! Decides when a fault of a retried operation is logged.

use std::{collections::HashMap, hash::Hash};

use parking_lot::Mutex;

/// Logs a fault once at its beginning and once at its end, and each at most once a minute.
#[derive(Debug, Clone, Default)]
pub struct FaultLog {
    since_ms: Option<i64>,
    /// The number of consecutive failures.
    failures: u32,
    logged: Option<Weight>,
    logged_at_ms: Option<i64>,
}

/// The seriousness of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The next retry may succeed, so a single failure is not logged.
    Passing,
    /// The operator must fix the fault.
    Lasting,
}

impl FaultLog {
    /// Records a failure at `now_ms`, in Unix ms. Returns true if it must be logged.
    pub fn failed(&mut self, weight: Weight, now_ms: i64) -> bool {
        self.since_ms.get_or_insert(now_ms);
        self.failures = self.failures.saturating_add(1);
        let is_logged = match self.logged {
            None => false,
            Some(Weight::Passing) => weight == Weight::Passing,
            Some(Weight::Lasting) => true,
        };
        let is_sure = weight == Weight::Lasting || self.failures >= SURE_FAILURES;
        if is_logged || !is_sure || self.is_too_soon(now_ms) {
            return false;
        }
        self.logged = Some(weight);
        self.logged_at_ms = Some(now_ms);
        true
    }

    /// Records a success. Returns the duration of the fault in ms if its end must be logged.
    pub fn succeeded(&mut self, now_ms: i64) -> Option<i64> {
        let since_ms = self.since_ms.take();
        self.failures = 0;
        self.logged.take()?;
        self.logged_at_ms = Some(now_ms);
        Some(now_ms.saturating_sub(since_ms?).max(0))
    }

    /// The time since which the operation fails, in Unix ms.
    pub fn since_ms(&self) -> Option<i64> {
        self.since_ms
    }

    fn is_too_soon(&self, now_ms: i64) -> bool {
        self.logged_at_ms
            .is_some_and(|logged_at_ms| (0..MIN_MS).contains(&(now_ms - logged_at_ms)))
    }
}

/// The fault logs of several operations, by key.
#[derive(Debug)]
pub struct FaultLogs<K>(Mutex<HashMap<K, FaultLog>>);

impl<K> Default for FaultLogs<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> FaultLogs<K> {
    /// [`FaultLog::failed`] for one operation.
    pub fn failed(&self, of: K, weight: Weight, now_ms: i64) -> bool {
        self.0.lock().entry(of).or_default().failed(weight, now_ms)
    }

    /// [`FaultLog::succeeded`] for one operation.
    pub fn succeeded(&self, of: &K, now_ms: i64) -> Option<i64> {
        self.0.lock().get_mut(of)?.succeeded(now_ms)
    }
}

/// Most faults of a single request end with the next request.
const SURE_FAILURES: u32 = 2;
const MIN_MS: i64 = 60_000;

#[cfg(test)]
mod tests {
    use super::{Weight::*, *};

    #[test]
    fn a_fault_is_logged_once_when_it_begins_and_once_when_it_is_over() {
        let mut log = FaultLog::default();
        assert!(!log.failed(Passing, 0), "one failure alone");
        assert!(log.failed(Passing, 3_000));
        for minutes in 1..60 {
            assert!(!log.failed(Passing, minutes * 60_000));
        }
        assert_eq!(log.succeeded(3_600_000), Some(3_600_000));
        assert_eq!(log.succeeded(3_603_000), None);
    }

    #[test]
    fn a_single_failure_is_not_logged() {
        let mut log = FaultLog::default();
        for turn in 0..10 {
            assert!(!log.failed(Passing, turn * 120_000));
            assert_eq!(log.succeeded(turn * 120_000 + 3_000), None);
        }
    }

    #[test]
    fn a_lasting_fault_is_logged_at_once_even_after_a_passing_one() {
        let mut log = FaultLog::default();
        assert!(log.failed(Lasting, 0));
        assert!(!log.failed(Lasting, 120_000));
        assert!(log.succeeded(120_001).is_some());
        let mut log = FaultLog::default();
        log.failed(Passing, 0);
        assert!(log.failed(Passing, 1_000));
        assert!(!log.failed(Lasting, 2_000), "within the minute");
        assert!(log.failed(Lasting, 61_000));
        assert!(!log.failed(Passing, 200_000));
        assert!(log.succeeded(201_000).is_some());
        assert!(!log.failed(Lasting, 202_000), "within the minute");
        assert_eq!(log.since_ms(), Some(202_000));
        assert!(log.failed(Lasting, 261_000));
        assert_eq!(log.succeeded(262_000), Some(60_000));
    }

    #[test]
    fn no_line_is_logged_twice_a_minute() {
        let (mut begun, mut over) = (Vec::new(), Vec::new());
        let mut log = FaultLog::default();
        for now_ms in (0..600_000).step_by(700) {
            if now_ms % 4_900 < 2_800 {
                begun.extend(log.failed(Lasting, now_ms).then_some(now_ms));
            } else {
                over.extend(log.succeeded(now_ms).map(|_| now_ms));
            }
        }
        assert!((5..=10).contains(&begun.len()), "{begun:?}");
        assert_eq!(begun.len(), over.len());
        for logged in [begun, over] {
            let gaps = logged.windows(2).map(|two| two[1] - two[0]);
            assert!(gaps.min() >= Some(60_000), "{logged:?}");
        }
    }

    #[test]
    fn each_key_has_a_log_of_its_own() {
        let logs = FaultLogs::default();
        assert!(logs.failed(1, Lasting, 0));
        assert!(logs.failed(2, Lasting, 0));
        assert!(!logs.failed(1, Lasting, 1));
        assert_eq!(logs.succeeded(&1, 5), Some(5));
        assert_eq!(logs.succeeded(&1, 6), None);
        assert_eq!(logs.succeeded(&3, 6), None);
        assert!(!logs.failed(1, Lasting, 7), "within the minute");
    }
}
