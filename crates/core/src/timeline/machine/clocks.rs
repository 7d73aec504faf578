//! The local times in a machine, and steps of the clock from which they were read.
//!
//! Ages of posts are counted by the server's time, which does not step with the local clock. All
//! other times are past times by the local clock, or a [`Deadline`](crate::clock::Deadline), which
//! begins at one. Two rules are therefore enough: a step moves all of them, and none is in the
//! future.

use super::{Machine, Pace};

impl Machine {
    /// Applies a step of the wall clock while this machine was in use, in ms, positive if forward.
    /// All durations stay the same.
    pub fn clock_stepped(&mut self, step_ms: i64) {
        self.each_local_time(&mut |time_ms| *time_ms = time_ms.saturating_add(step_ms));
        self.clock_lead_ms = self.clock_lead_ms.saturating_add(step_ms);
    }

    /// Clamps past times to `now_ms`, in Unix ms by the local clock. Later ones come from a clock
    /// that was ahead.
    pub fn clamp_times(&mut self, now_ms: i64) {
        self.each_local_time(&mut |time_ms| *time_ms = (*time_ms).min(now_ms));
    }

    fn each_local_time(&mut self, visit: &mut impl FnMut(&mut i64)) {
        self.pace.each_local_time(visit);
        self.honoured.each_local_time(visit);
        self.errors.each_local_time(visit);
        self.polls.each_local_time(visit);
        visit(&mut self.ahead.read_at_ms);
        self.changes.values_mut().for_each(&mut *visit);
        for range in &mut self.empty_ranges {
            visit(&mut range.since_ms);
            visit(range.wait.from_mut());
        }
        for range in &mut self.stalled {
            visit(range.wait.from_mut());
        }
        for recheck in &mut self.rechecks {
            visit(&mut recheck.at_ms);
        }
        for suspect in &mut self.suspects {
            visit(suspect.wait.from_mut());
        }
        if let Some(decision) = &mut self.decision.0 {
            visit(&mut decision.at_ms);
        }
    }
}

impl Pace {
    fn each_local_time(&mut self, visit: &mut impl FnMut(&mut i64)) {
        let past = self
            .last_poll_ms
            .iter_mut()
            .chain(&mut self.last_request_ms);
        past.for_each(&mut *visit);
        for wait in [
            &mut self.blocked,
            &mut self.work_blocked,
            &mut self.look_ups_blocked,
        ] {
            visit(wait.from_mut());
        }
    }
}
