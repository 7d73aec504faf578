//! The health of the sources that this process reads: which fail, and which are stalled.

mod fault;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use driftline_core::timeline::Machine;
use driftline_runtime::{
    FailingSource, FaultLog, StalledSource, Weight,
    metrics::{SOURCE_FAILING, SOURCE_LAST_SUCCESS, SOURCE_STALLED, SOURCE_STANDING_STILL},
    show_ms,
};
use driftline_store::SourceId;
use parking_lot::Mutex;

use crate::session::Done;

pub use fault::SourceFault;

/// The health of the sources that this process is to read. Clones share it.
///
/// The pollers report it and it is kept in memory, so that it is available during an outage of the
/// store.
#[derive(Debug, Clone, Default)]
pub struct SourceHealth(Arc<Mutex<BTreeMap<SourceId, Record>>>);

#[derive(Debug, Clone, Default)]
struct Record {
    name: String,
    /// Since when no session reads it, Unix ms; `None` while one does.
    idle_since_ms: Option<i64>,
    /// Since when its session is at the current step, Unix ms; `None` between steps.
    busy_since_ms: Option<i64>,
    /// When a request last had a usable answer, Unix ms.
    succeeded_at_ms: Option<i64>,
    /// When an answer last changed the store, Unix ms.
    stored_at_ms: Option<i64>,
    fault: Option<SourceFault>,
    log: FaultLog,
}

impl SourceHealth {
    /// The fault of a source; `None` if it has none or another process reads it.
    pub fn fault(&self, source: SourceId) -> Option<SourceFault> {
        self.0.lock().get(&source)?.fault.clone()
    }

    /// Why a source is stalled at this time, Unix ms, though a session has it.
    pub fn stalled(&self, source: SourceId, now_ms: i64) -> Option<SourceFault> {
        let records = self.0.lock();
        let record = records.get(&source)?;
        let stalled = record.stalled(now_ms)?;
        record.idle_since_ms.is_none().then(|| SourceFault {
            since_ms: Some(stalled.since_ms),
            ..SourceFault::new("stalled", &stalled.reason)
        })
    }

    /// Whether this process reads a source; `None` if it is not to read it.
    pub fn is_read(&self, source: SourceId) -> Option<bool> {
        let records = self.0.lock();
        Some(records.get(&source)?.idle_since_ms.is_none())
    }

    /// The stalled sources at this time, Unix ms, by name.
    pub fn stalled_sources(&self, now_ms: i64) -> Vec<StalledSource> {
        let mut all: Vec<_> = self
            .0
            .lock()
            .values()
            .filter_map(|record| record.stalled(now_ms))
            .collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// The sources whose requests have failed for a while at this time, Unix ms, by name. An outage of
    /// the store is not theirs.
    pub fn failing_sources(&self, now_ms: i64) -> Vec<FailingSource> {
        let records = self.0.lock();
        let failing = records.values().filter_map(|record| {
            let fault = record.fault.as_ref()?;
            let since_ms = fault.since_ms?;
            let lasts = now_ms.saturating_sub(since_ms) >= IDLE_TIMEOUT_MS;
            let is_its_own = fault.kind != SourceFault::STORE && record.stalled(now_ms).is_none();
            (lasts && is_its_own).then(|| FailingSource {
                name: record.name.clone(),
                since_ms,
                count: fault.count,
                reason: fault.message.clone(),
            })
        });
        let mut all: Vec<_> = failing.collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// The error of a store that fails every commit of a source. A disk that is nearly full may accept
    /// a probe and no page, which only sources notice.
    pub fn store_fails(&self) -> Option<String> {
        let records = self.0.lock();
        let halted = records.values().filter_map(|record| {
            let fault = record.fault.as_ref();
            fault.filter(|fault| fault.kind == SourceFault::STORE)
        });
        let last = halted.max_by_key(|fault| fault.since_ms)?;
        let stored_ms = records.values().filter_map(|record| record.stored_at_ms);
        let is_over = stored_ms.max() > last.since_ms;
        (!is_over).then(|| last.message.clone())
    }

    /// Sets the sources that this process is to read.
    pub(crate) fn watch(&self, sources: &[(SourceId, &str)], now_ms: i64) {
        let mut records = self.0.lock();
        let watched: HashSet<SourceId> = sources.iter().map(|(id, _)| *id).collect();
        records.retain(|id, record| {
            let stays = watched.contains(id);
            if !stays {
                record.hide();
            }
            stays
        });
        for (id, name) in sources {
            let record = records.entry(*id).or_insert_with(|| Record {
                name: (*name).to_owned(),
                idle_since_ms: Some(now_ms),
                ..Record::default()
            });
            if record.name != *name {
                record.hide();
                record.name = (*name).to_owned();
            }
        }
    }

    /// A session has started to read the source.
    pub(crate) fn begun(&self, source: SourceId) {
        self.change(source, |record| {
            record.idle_since_ms = None;
            record.busy_since_ms = None;
        });
    }

    /// Its session begins a step.
    pub(crate) fn step_begins(&self, source: SourceId, now_ms: i64) {
        self.change(source, |record| record.busy_since_ms = Some(now_ms));
    }

    /// A step has ended with this machine.
    pub(crate) fn step_ended(&self, source: SourceId, machine: &Machine, done: &Done, now_ms: i64) {
        let error = machine.ongoing_error();
        self.change(source, |record| {
            record.busy_since_ms = None;
            match done {
                Done::Read(read) => {
                    record.succeeded_at_ms = Some(now_ms);
                    if read.new + read.edited + read.deleted + read.recounted > 0 {
                        record.stored_at_ms = Some(now_ms);
                    }
                }
                Done::Failed(_) | Done::Wait { .. } => {}
            }
            let Some(error) = error else {
                return record.works(now_ms);
            };
            let fault = SourceFault::of_error(error);
            let before = record.fault.as_ref();
            // A look-up that fails leaves the error as it was.
            let is_new = before.is_none_or(|before| !before.is_same_failure(&fault));
            if matches!(done, Done::Failed(_)) && is_new {
                record.fails(fault, Some(fault::weight(error)), now_ms);
            } else {
                record.fault = Some(fault);
            }
        });
    }

    /// No session reads the source, because of this fault. Without a weight the fault is not logged
    /// here, since it is logged elsewhere.
    pub(crate) fn halted(
        &self,
        source: SourceId,
        fault: SourceFault,
        weight: Option<Weight>,
        now_ms: i64,
    ) {
        self.change(source, |record| {
            record.idles(now_ms);
            record.fails(fault, weight, now_ms);
        });
    }

    /// No session reads the source any more, without a fault.
    pub(crate) fn ended(&self, source: SourceId, now_ms: i64) {
        self.change(source, |record| record.idles(now_ms));
    }

    /// Exports the health as metrics. To be called every second: a clock that was set back since would otherwise
    /// hide what stands still.
    pub(crate) fn show(&self, now_ms: i64) {
        for record in self.0.lock().values_mut() {
            record.clamp(now_ms);
            let is_stalled = record.stalled(now_ms).is_some();
            record.show(record.fault.is_some() || is_stalled, is_stalled);
        }
    }

    fn change(&self, source: SourceId, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.0.lock().get_mut(&source) {
            change(record);
        }
    }
}

impl Record {
    fn idles(&mut self, now_ms: i64) {
        self.idle_since_ms.get_or_insert(now_ms);
        self.busy_since_ms = None;
    }

    fn fails(&mut self, mut fault: SourceFault, weight: Option<Weight>, now_ms: i64) {
        if weight.is_some_and(|weight| self.log.failed(weight, now_ms)) {
            tracing::warn!(source = %self.name, kind = &*fault.kind, "fails: {}", fault.message);
        }
        if fault.since_ms.is_none() {
            let before = self
                .fault
                .as_ref()
                .filter(|before| before.kind == fault.kind);
            let before_ms = before.and_then(|before| before.since_ms);
            fault.since_ms = self.log.since_ms().or(before_ms).or(Some(now_ms));
            fault.count = before.map_or(0, |before| before.count).saturating_add(1);
        }
        self.fault = Some(fault);
    }

    fn works(&mut self, now_ms: i64) {
        self.fault = None;
        if let Some(failed_ms) = self.log.succeeded(now_ms) {
            tracing::warn!(source = %self.name, "is read again, after {}", show_ms(failed_ms));
        }
    }

    /// Lets no time lie ahead of now, Unix ms.
    fn clamp(&mut self, now_ms: i64) {
        let fault_since_ms = self.fault.as_mut().map(|fault| &mut fault.since_ms);
        let times = [
            Some(&mut self.idle_since_ms),
            Some(&mut self.busy_since_ms),
            Some(&mut self.succeeded_at_ms),
            Some(&mut self.stored_at_ms),
            fault_since_ms,
        ];
        for at_ms in times.into_iter().flatten().flatten() {
            *at_ms = now_ms.min(*at_ms);
        }
    }

    fn stalled(&self, now_ms: i64) -> Option<StalledSource> {
        let (since_ms, timeout_ms, reason) = match (self.idle_since_ms, self.busy_since_ms) {
            (Some(idle_ms), _) => (idle_ms, IDLE_TIMEOUT_MS, NOT_CLAIMED),
            (None, Some(busy_ms)) => (busy_ms, STEP_TIMEOUT_MS, NO_END),
            (None, None) => return None,
        };
        let reason = match &self.fault {
            Some(fault) if self.idle_since_ms.is_some() => &fault.message,
            _ => reason,
        };
        (now_ms.saturating_sub(since_ms) >= timeout_ms).then(|| StalledSource {
            name: self.name.clone(),
            since_ms,
            reason: reason.to_owned(),
        })
    }

    fn show(&self, fails: bool, is_stalled: bool) {
        let name = || [self.name.clone()];
        let number = |is_so: bool| f64::from(u8::from(is_so));
        SOURCE_FAILING.with(name()).set(number(fails));
        SOURCE_STALLED.with(name()).set(number(is_stalled));
        SOURCE_STANDING_STILL.with(name()).set(number(is_stalled));
        if let Some(at_ms) = self.succeeded_at_ms {
            SOURCE_LAST_SUCCESS.with(name()).set(at_ms as f64 / 1e3);
        }
    }

    /// Resets the metrics, which cannot be removed. Comparisons with NaN are false, so that no alert
    /// fires for a source that another process reads.
    fn hide(&self) {
        self.show(false, false);
        SOURCE_LAST_SUCCESS.with([self.name.clone()]).set(f64::NAN);
    }
}

/// The lease of a dead process ends well within this.
const IDLE_TIMEOUT_MS: i64 = 15_000;
/// A request ends within its time, a minute by default, and a commit soon after.
const STEP_TIMEOUT_MS: i64 = 180_000;
const NOT_CLAIMED: &str = "no process has claimed it";
const NO_END: &str = "its last step does not end";

#[cfg(test)]
mod tests {
    use driftline_core::answer::{Failure, FailureKind};
    use driftline_core::timeline::{RequestPurpose, Settings};

    use super::*;

    const ID: SourceId = SourceId::new(7);

    fn failing(machine: &mut Machine, kind: FailureKind) -> Done {
        let failure = Failure::new(kind, "https://a.example: no");
        let poll = &RequestPurpose::Poll;
        machine.failed(&Settings::default(), poll, &failure, 5, 0);
        Done::Failed(kind)
    }

    #[test]
    fn a_source_is_stalled_when_no_session_reads_it_and_not_when_its_upstream_fails() {
        let health = SourceHealth::default();
        health.watch(&[(ID, "a")], 0);
        assert_eq!(health.stalled_sources(14_999), []);
        let still = health.stalled_sources(15_000);
        assert_eq!((&*still[0].name, still[0].since_ms), ("a", 0));
        health.begun(ID);
        assert_eq!(health.stalled_sources(1_000_000), []);
        let mut machine = Machine::default();
        health.step_begins(ID, 1_000_000);
        let done = failing(&mut machine, FailureKind::Unreachable);
        health.step_ended(ID, &machine, &done, 1_000_001);
        assert_eq!(health.fault(ID).unwrap().kind, "unreachable");
        assert_eq!(health.fault(ID).unwrap().since_ms, Some(5));
        assert_eq!(health.stalled_sources(9_000_000), []);
        health.step_begins(ID, 9_000_000);
        assert_eq!(health.stalled_sources(9_179_999), []);
        assert_eq!(health.stalled_sources(9_180_000).len(), 1);
        health.watch(&[], 9_200_000);
        assert_eq!(health.stalled_sources(10_000_000), []);
        assert_eq!(health.fault(ID), None);
    }

    #[test]
    fn a_clock_that_is_set_back_hides_no_stall() {
        let health = SourceHealth::default();
        health.watch(&[(ID, "a")], 7_200_000);
        health.show(1_000);
        assert_eq!(health.stalled_sources(15_999), []);
        assert_eq!(health.stalled_sources(16_000).len(), 1);
        health.begun(ID);
        health.step_begins(ID, 7_200_000);
        health.show(1_000);
        assert_eq!(health.stalled_sources(181_000).len(), 1);
    }

    #[test]
    fn a_fault_lasts_until_a_step_of_a_new_session_ends() {
        let health = SourceHealth::default();
        health.watch(&[(ID, "a")], 0);
        health.begun(ID);
        let fault = SourceFault::new(SourceFault::STORE, &"database or disk is full");
        health.halted(ID, fault.clone(), None, 1_000);
        health.halted(ID, fault, None, 5_000);
        let still = health.stalled_sources(16_000);
        assert_eq!(still[0].reason, "database or disk is full");
        assert_eq!(still[0].since_ms, 1_000);
        assert_eq!(health.is_read(ID), Some(false));
        health.begun(ID);
        assert_eq!(health.fault(ID).unwrap().since_ms, Some(1_000));
        let done = Done::Wait { until_ms: 0 };
        health.step_ended(ID, &Machine::default(), &done, 17_000);
        assert_eq!(health.fault(ID), None);
    }

    #[test]
    fn a_store_that_accepts_commits_of_one_source_does_not_fail() {
        let health = SourceHealth::default();
        let other = SourceId::new(8);
        health.watch(&[(ID, "a"), (other, "b")], 0);
        assert_eq!(health.store_fails(), None);
        let fault = SourceFault::new(SourceFault::STORE, &"full");
        let weight = Some(Weight::Lasting);
        health.halted(ID, SourceFault::new("stored", &"too long"), weight, 500);
        assert_eq!(health.store_fails(), None, "it is that source's fault");
        health.halted(ID, fault.clone(), None, 1_000);
        assert_eq!(health.store_fails().as_deref(), Some("full"));
        let read = |new| {
            Done::Read(driftline_store::CommitSummary {
                new,
                ..Default::default()
            })
        };
        health.step_ended(other, &Machine::default(), &read(0), 2_000);
        assert!(health.store_fails().is_some(), "nothing was stored");
        health.step_ended(other, &Machine::default(), &read(1), 3_000);
        assert_eq!(health.store_fails(), None);
        health.halted(other, fault, None, 4_000);
        assert!(health.store_fails().is_some(), "it has failed since");
    }
}
