//! Measurements of lateness, and of posts that reads omit.

use super::{Machine, TOLERANCE_MS, answers::Answer};
use crate::timeline::{
    age_bins::nearest, ladder::Rung, plan::Plan, reading::Reading, request::RequestPurpose,
};

impl Machine {
    /// Measures lateness with a page: the ranges that were read before, their age then, and the
    /// posts that only this read shows.
    pub(super) fn measure(&mut self, answer: &Answer<'_>) {
        let Answer {
            plan,
            request,
            reading,
            stored,
            ..
        } = *answer;
        let Some(scheme) = self.scheme else { return };
        if reading.disorder.is_some() {
            return;
        }
        self.lateness.fade(reading.read_at_ms);
        let times = reading.keys.iter().map(|key| scheme.time_ms(key));
        let times: Option<Vec<i64>> = times.collect();
        let is_new = |index: usize| stored.new.get(index).copied().unwrap_or(false);
        match request.purpose {
            RequestPurpose::Poll => {
                if let Some(latest) = self.ledger.frontier() {
                    let below = reading.keys.iter().enumerate();
                    let caught = below.filter(|(index, key)| is_new(*index) && *key < latest);
                    self.counters.caught_by_overlap += caught.count() as u64;
                }
                if let Some(times) = times {
                    self.measure_poll(reading, &times, &is_new, request.ceiling.is_some());
                }
            }
            RequestPurpose::Look { rung, .. } => {
                self.counters.caught_by_rescan += answer.new;
                if let (Some(rung), true) = (plan.ladder.rungs().get(rung), times.is_some()) {
                    self.measure_look(answer, Some(rung));
                }
            }
            RequestPurpose::Probe { .. } => {
                self.counters.caught_by_rescan += answer.new;
                self.measure_look(answer, None);
            }
            RequestPurpose::Fill { .. }
            | RequestPurpose::Recheck { .. }
            | RequestPurpose::Ahead => {}
        }
    }

    /// Measures with a poll, which reads its overlap again.
    fn measure_poll(
        &mut self,
        reading: &Reading,
        times: &[i64],
        is_new: &impl Fn(usize) -> bool,
        left_out: bool,
    ) {
        let tolerated_ms = reading.answered_by_ms + self.tolerance_ms();
        let ahead = times.iter().filter(|ms| **ms > tolerated_ms).count();
        for index in (0..times.len()).filter(|index| is_new(*index)) {
            let is_ahead = if times[index] > reading.answered_by_ms + TOLERANCE_MS {
                1.0
            } else {
                0.0
            };
            self.lateness.ahead_share += AHEAD_WEIGHT * (is_ahead - self.lateness.ahead_share);
        }
        self.lateness.ahead += (0..ahead.max(reading.ahead)).filter(|i| is_new(*i)).count() as u64;
        self.ahead.polled(left_out, ahead, reading.answered_by_ms);
        // If most new posts are ahead, the server's clocks are.
        let newest = if self.lateness.ahead_share > 0.5 {
            times.first()
        } else {
            times.get(ahead)
        };
        if let Some(newest_ms) = newest {
            self.lateness.newest_ahead_ms = newest_ms - reading.answered_by_ms;
        }
        let (Some(before_ms), Some(latest)) = (self.polled_at_ms, self.ledger.frontier()) else {
            return;
        };
        // Above the lower end of the previous poll, it read the same range.
        let reached = self.polled_from.as_ref().unwrap_or(latest);
        for (index, (key, time_ms)) in reading.keys.iter().zip(times).enumerate() {
            if key < reached {
                continue;
            }
            let found = u64::from(is_new(index));
            let (before_ms, age_ms) = (before_ms - time_ms, reading.answered_by_ms - time_ms);
            if before_ms > 0 {
                self.lateness.read_again(before_ms, age_ms, 1, found);
                if found > 0 {
                    // Polls may have been hours apart.
                    self.lateness.found_late(before_ms, reading.read_at_ms);
                }
            }
        }
    }

    /// Measures with a look or a probe, which reads a range again that the ledger lists with an
    /// earlier age.
    fn measure_look(&mut self, answer: &Answer<'_>, look: Option<&Rung>) {
        let new = answer.new;
        let (Some(scheme), Some(mut stretch)) =
            (self.scheme, self.stretch(answer.request, answer.reading))
        else {
            return;
        };
        // The page of a look ends at an anchor below its range.
        if let RequestPurpose::Look { low, .. } = &answer.request.purpose
            && stretch.low < *low
        {
            stretch.low = low.clone();
        }
        let Some(read_age_ms) = self.ledger.read_age_ms(&stretch.low, &stretch.high) else {
            return;
        };
        let Some(youngest_ms) = scheme.time_ms(&stretch.high) else {
            return;
        };
        // Polls continue to read their overlap, which a joined range does not record.
        let by_polls_ms = match answer.request.purpose {
            RequestPurpose::Look { rung: 0, .. } => answer.plan.overlap_ms,
            _ => 0,
        };
        let before_ms = read_age_ms.max(by_polls_ms);
        let mut age_ms = stretch.at_ms - youngest_ms;
        if let Some(rung) = look
            && (rung.age_ms..rung.age_ms + rung.in_time_ms()).contains(&age_ms)
        {
            age_ms = rung.age_ms;
        }
        let posts = answer.reading.keys.len() as u64;
        self.lateness.read_again(before_ms, age_ms, posts, new);
        match new {
            0 => self.lateness.found_none(age_ms, posts),
            _ => self.lateness.found_late(age_ms, stretch.at_ms),
        }
        // In a range without an earlier look, a find may have any lateness. It neither proves nor
        // contradicts that a look is enough.
        if nearest(before_ms) < nearest(answer.second_look_ms) {
            return;
        }
        // A range that waits for a delayed look, or one that is new in the plan, is no evidence
        // about the plan's omissions.
        let ladder = &answer.plan.ladder;
        let next = ladder.next(read_age_ms);
        let awaited = ladder.rungs().get(next);
        let late_ms = |rung: &Rung| if look.is_some() { rung.in_time_ms() } else { 0 };
        if awaited.is_some_and(|rung| age_ms > rung.age_ms + late_ms(rung)) {
            return;
        }
        self.trials.read_again(before_ms, posts, new > 0);
        if new == 0 {
            self.evidence
                .read_again(before_ms, age_ms, posts, stretch.at_ms);
            return;
        }
        // The found post is older than the range's youngest ID, and its lateness may equal its age.
        let oldest_ms = scheme.time_ms(&stretch.low).unwrap_or(youngest_ms);
        let found_age_ms = match look {
            Some(rung) if age_ms == rung.age_ms => rung.age_ms,
            _ => stretch.at_ms - oldest_ms,
        };
        self.evidence.found(before_ms, found_age_ms);
        let is_beyond = age_ms > answer.plan.proof.above_ms || next > 0;
        self.refute(is_beyond);
    }

    /// The lateness of posts that may arrive after the last look of a plan, in ms. Ranges that it
    /// has read may then lack some. `None` if the last look is later than all recent finds, or if
    /// its omissions are proven to be few.
    pub fn later_than_looks_ms(&self, plan: &Plan) -> Option<i64> {
        let latest_ms = self.lateness.latest_ms();
        let is_seen = latest_ms > 0 && latest_ms >= plan.ladder.complete_ms();
        (is_seen && !plan.proof.is_enough).then_some(latest_ms)
    }

    /// A find that a proven choice would have omitted refutes the choice.
    fn refute(&mut self, is_left_out: bool) {
        if let Some(decision) = &mut self.decision.0 {
            decision.is_refuted |= decision.choice.is_proven && is_left_out;
        }
    }
}

const AHEAD_WEIGHT: f32 = 0.02;
