//! Probes: page-fulls that are read again although the plan passes over them. They are drawn at
//! random from the parts that are old enough.

use serde::{Deserialize, Serialize};

use super::plan::Probe;
use crate::rng::Rng;

/// The pending probes of each age, and the time up to which each age was drawn.
///
/// The machine has its own random number generator, whose state is stored with it. The machine
/// therefore stays a function of its inputs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Probes {
    rng: Rng,
    ages: Vec<Owed>,
}

/// The pending probes of one age.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Owed {
    age_ms: i64,
    page_fulls: f32,
    /// The number of pending page-fulls at which the next is drawn. It is random, so that draws do
    /// not coincide with a period of the timeline.
    due_at: f32,
    /// The time of the timeline up to which pages were drawn, in Unix ms by the server's clock.
    until_ms: i64,
}

/// A stretch of the timeline from which a page-full is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Draw {
    /// The age at which it is read, in ms.
    pub(super) age_ms: i64,
    /// The time of its lowest ID, in Unix ms by the server's clock.
    pub(super) from_ms: i64,
    /// The time of its end, not included.
    pub(super) until_ms: i64,
    /// The position of the post above the page-full, as a share of the number of posts from 0 to 1.
    pub(super) share: f64,
}

impl Probes {
    /// Mixes a number into the seed, so that two sources draw differently.
    pub(super) fn stir(&mut self, entropy: u64) {
        self.rng.stir(entropy);
    }

    /// Counts new posts. Each adds its share of a page-full to each age.
    pub(super) fn came(&mut self, probes: &[Probe], posts: u64, page_full: u64, now_ms: i64) {
        self.ages
            .retain(|owed| probes.iter().any(|probe| probe.age_ms == owed.age_ms));
        for probe in probes {
            let known = self
                .ages
                .iter_mut()
                .find(|owed| owed.age_ms == probe.age_ms);
            let more = posts as f64 / page_full as f64 * probe.share;
            match known {
                // Probes that a quota does not allow accumulate only up to a limit.
                Some(owed) => {
                    owed.page_fulls = (owed.page_fulls + more as f32).min(MAX_OWED);
                }
                None => {
                    self.ages.push(Owed {
                        age_ms: probe.age_ms,
                        page_fulls: 0.0,
                        due_at: self.rng.share() as f32,
                        until_ms: now_ms - probe.age_ms,
                    });
                }
            }
        }
    }

    /// The next pending draw, of `last_ms` only or of any other age, the oldest first.
    pub(super) fn next(&mut self, last_ms: i64, last_only: bool, now_ms: i64) -> Option<Draw> {
        // Probes at the last age are drawn from all parts that are old enough. Probes that place
        // the looks must have their age.
        let from_ms = |owed: &Owed| {
            let min_ms = now_ms - owed.age_ms - (owed.age_ms / AGE_PARTS).max(MIN_DRAW_MS);
            if owed.age_ms >= last_ms {
                owed.until_ms
            } else {
                owed.until_ms.max(min_ms)
            }
        };
        let due = |owed: &&Owed| {
            owed.page_fulls >= owed.due_at
                && (owed.age_ms >= last_ms) == last_only
                && owed.until_ms < now_ms - owed.age_ms
        };
        let owed = self
            .ages
            .iter()
            .filter(due)
            .max_by(|a, b| a.page_fulls.total_cmp(&b.page_fulls))
            .copied()?;
        Some(Draw {
            age_ms: owed.age_ms,
            from_ms: from_ms(&owed),
            until_ms: now_ms - owed.age_ms,
            share: self.rng.share(),
        })
    }

    /// Records that a probe was answered. Its range is not drawn from again.
    pub(super) fn drawn(&mut self, age_ms: i64, until_ms: i64) {
        let next = self.rng.share() as f32;
        if let Some(owed) = self.ages.iter_mut().find(|owed| owed.age_ms == age_ms) {
            owed.page_fulls -= 1.0;
            owed.due_at = next;
            owed.until_ms = owed.until_ms.max(until_ms);
        }
    }
}

const MAX_OWED: f32 = 50.0;
/// A draw at an age reaches back by this part of it, but at least by the minimum.
const AGE_PARTS: i64 = 8;
const MIN_DRAW_MS: i64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(age_ms: i64, share: f64) -> Probe {
        Probe { age_ms, share }
    }

    #[test]
    fn each_age_gets_its_share_and_draws_spread_over_all_that_came_of_age() {
        let plan = [probe(30_000, 0.02), probe(86_400_000, 0.1)];
        let mut probes = Probes::default();
        let mut drawn = [0_u32; 2];
        let mut shares = Vec::new();
        let mut until_ms = [0_i64; 2];
        for n in 0..10_000 {
            let now_ms = 200_000_000 + n * 2_000;
            probes.came(&plan, 40, 40, now_ms);
            for (index, last_only) in [(0, false), (1, true)] {
                if let Some(draw) = probes.next(86_400_000, last_only, now_ms) {
                    assert_eq!(draw.age_ms, plan[index].age_ms);
                    assert!(draw.from_ms < draw.until_ms);
                    assert!(draw.from_ms >= until_ms[index], "drawn from twice");
                    until_ms[index] = draw.until_ms;
                    probes.drawn(draw.age_ms, draw.until_ms);
                    drawn[index] += 1;
                    shares.push(draw.share);
                }
            }
        }
        assert!((195..=201).contains(&drawn[0]), "{drawn:?}");
        assert!((995..=1_001).contains(&drawn[1]), "{drawn:?}");
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((mean - 0.5).abs() < 0.03, "{mean}");
        let newest = shares.iter().filter(|share| **share > 0.9).count();
        assert!(newest < shares.len() / 7, "not at the newest end only");
    }

    #[test]
    fn what_the_plan_no_longer_asks_for_is_forgotten() {
        let mut probes = Probes::default();
        probes.came(&[probe(1_000, 1.0)], 40, 40, 10_000);
        probes.came(&[probe(1_000, 1.0)], 400, 40, 20_000);
        assert!(probes.next(86_400_000, false, 30_000).is_some());
        probes.came(&[probe(2_000, 1.0)], 40, 40, 30_000);
        assert!(probes.next(86_400_000, false, 30_000).is_none());
    }
}
