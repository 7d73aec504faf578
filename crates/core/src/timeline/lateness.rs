//! The lateness of posts: an estimate from posts that reads did and did not show.
//!
//! Polling measures a post's lateness only as an interval. If a range is read at one age and again
//! at another, the second read shows which of its posts were not visible at the first. Reads
//! without a find count as much as those with one. The estimate is Turnbull's self-consistent one
//! for censored and truncated data (JRSS B 38, 1976) over bins of half an octave. Expectation
//! maximisation finds the hazards in reversed time: for each bin the share, of the posts visible by
//! its end, that became visible in it.

use serde::{Deserialize, Serialize};

use super::{
    age_bins::{BINS, edge_ms, middle_ms, nearest},
    evidence::{MAX_AGE_MS, PAGE_FULL},
};

/// A source's lateness as measured by its reads. Old reads fade by half in twelve hours, but a slow
/// source keeps the number that it needs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lateness {
    /// By the bins of both ages.
    reads: Vec<Reads>,
    faded_at_ms: i64,
    /// The number of posts whose ID was ahead of the server's time when they were read.
    pub ahead: u64,
    /// The time of the newest ID minus the server's time at the last read with a new ID, in ms.
    pub newest_ahead_ms: i64,
    /// The recent share of new posts whose ID was ahead of the server's time by more than the
    /// tolerance.
    pub(super) ahead_share: f32,
    /// The largest proven lateness of a post, in ms: the age at which its range was read without
    /// it.
    pub longest_ms: i64,
    latest: Latest,
}

/// The latest find that later reads have not outweighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Latest {
    /// An upper bound of the post's lateness, in ms.
    ms: i64,
    /// The time of the find, in Unix ms by the server's clock.
    at_ms: i64,
    /// The number of posts that were read again at that age or later since, all of them known.
    posts_again: u64,
}

/// Ranges that were read at one age and again at another. They are stored as tuples, because a
/// source has a hundred of them and they are written with each page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(u8, u8, f32, f32)", into = "(u8, u8, f32, f32)")]
struct Reads {
    /// The bin of the age at the previous read.
    before: u8,
    /// The bin of the age at this read.
    age: u8,
    /// The number of posts that this read showed.
    posts: f32,
    /// The number of these that the previous read had not shown.
    found: f32,
}

impl From<(u8, u8, f32, f32)> for Reads {
    fn from((before, age, posts, found): (u8, u8, f32, f32)) -> Self {
        // A bin outside the grid could not be counted.
        let last = (BINS - 1) as u8;
        Self {
            before: before.min(last),
            age: age.min(last),
            posts,
            found,
        }
    }
}

impl From<Reads> for (u8, u8, f32, f32) {
    fn from(reads: Reads) -> Self {
        (reads.before, reads.age, reads.posts, reads.found)
    }
}

/// The estimated distribution of lateness.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    shares: Vec<f64>,
    /// The number of posts on which it is based, after fading.
    pub posts: f64,
}

impl Lateness {
    /// Counts a range that was read at `before_ms` (a lower bound) and again at `age_ms` (an upper
    /// bound). This read showed `posts` posts, of which the previous one had not shown `found`.
    pub fn read_again(&mut self, before_ms: i64, age_ms: i64, posts: u64, found: u64) {
        let (before, age) = (nearest(before_ms) as u8, nearest(age_ms) as u8);
        if found > 0 {
            self.longest_ms = self.longest_ms.max(before_ms);
        }
        if posts == 0 || before >= age {
            return;
        }
        let at = self
            .reads
            .binary_search_by_key(&(before, age), |reads| (reads.before, reads.age));
        let index = at.unwrap_or_else(|index| {
            self.reads.insert(index, (before, age, 0.0, 0.0).into());
            index
        });
        let reads = &mut self.reads[index];
        reads.posts += posts as f32;
        reads.found += found as f32;
    }

    /// The lateness of posts by recent finds, in ms. A look at this age does not show that no later
    /// posts exist.
    pub fn latest_ms(&self) -> i64 {
        self.latest.ms
    }

    /// Counts a post that was found with a lateness of up to `ms`.
    pub(super) fn found_late(&mut self, ms: i64, now_ms: i64) {
        let latest = &mut self.latest;
        if ms > latest.ms / 2 {
            *latest = Latest {
                ms: ms.max(latest.ms),
                at_ms: now_ms,
                posts_again: 0,
            };
        }
    }

    /// Counts posts that were read again at an age, all of them known. Enough of them at the age of
    /// the latest find make it irrelevant.
    pub(super) fn found_none(&mut self, age_ms: i64, posts: u64) {
        let latest = &mut self.latest;
        if age_ms >= latest.ms {
            latest.posts_again = latest.posts_again.saturating_add(posts);
            if latest.posts_again >= FORGOTTEN_PAGE_FULLS * PAGE_FULL {
                *latest = Latest::default();
            }
        }
    }

    /// Fades older counts. `now_ms` is in Unix ms.
    pub fn fade(&mut self, now_ms: i64) {
        if now_ms - self.latest.at_ms >= MAX_AGE_MS {
            self.latest = Latest::default();
        }
        let since_ms = now_ms - self.faded_at_ms;
        if self.faded_at_ms == 0 || since_ms < 0 {
            self.faded_at_ms = now_ms;
            return;
        }
        if since_ms < FADE_EVERY_MS {
            return;
        }
        self.faded_at_ms = now_ms;
        let all = self.posts();
        let by_time = 0.5_f64.powf(since_ms as f64 / HALF_LIFE_MS) as f32;
        let kept = by_time.max(KEPT_POSTS / all.max(1.0)).min(1.0);
        for reads in &mut self.reads {
            reads.posts *= kept;
            reads.found *= kept;
        }
        self.reads.retain(|reads| reads.posts >= 0.5);
    }

    /// This lateness as a prior for another source of the same instance, with the weight of `posts`
    /// posts. It influences a plan and is never part of a proof.
    #[must_use]
    pub fn as_prior(&self, posts: f32) -> Self {
        let all = self.posts();
        let share = if all > posts { posts / all } else { 1.0 };
        let scaled = |reads: &Reads| Reads {
            posts: reads.posts * share,
            found: reads.found * share,
            ..*reads
        };
        Self {
            reads: self.reads.iter().map(scaled).collect(),
            ..Self::default()
        }
    }

    fn posts(&self) -> f32 {
        self.reads.iter().map(|reads| reads.posts).sum()
    }

    /// True if no read has been counted yet.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// The estimate; `None` until a range is read twice.
    ///
    /// It covers only the posts that reads could show. Its shares refer to the posts visible by the
    /// largest age that was read.
    pub fn distribution(&self) -> Option<Distribution> {
        let oldest = self
            .reads
            .iter()
            .map(|reads| usize::from(reads.age))
            .max()?;
        let mut hazards = vec![FIRST_HAZARD; oldest + 1];
        let mut up_to = product(&hazards);
        for _ in 0..ROUNDS {
            let next = self.hazards(&up_to);
            let moved: f64 = hazards.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum();
            hazards = next;
            up_to = product(&hazards);
            if moved < CONVERGED {
                break;
            }
        }
        let mut shares: Vec<f64> = up_to
            .iter()
            .scan(0.0, |below, up_to| {
                Some(up_to - std::mem::replace(below, *up_to))
            })
            .collect();
        shares.resize(BINS, 0.0);
        let posts = self.reads.iter().map(|reads| f64::from(reads.posts)).sum();
        Some(Distribution { shares, posts })
    }

    /// For each bin, the expected share of the posts visible by its end that belong to it, given
    /// the shares `up_to` that are visible by each bin's end.
    ///
    /// A find belongs to one of the bins between its two ages, in proportion to their shares. A
    /// post that is only shown again was visible before them all. So no assumption is needed about
    /// posts that no read could show yet.
    fn hazards(&self, up_to: &[f64]) -> Vec<f64> {
        let mut events = vec![0.0; up_to.len()];
        let mut exposed = vec![0.0; up_to.len()];
        for reads in &self.reads {
            let (before, age) = (usize::from(reads.before), usize::from(reads.age));
            let (posts, found) = (f64::from(reads.posts), f64::from(reads.found));
            let between = (up_to[age] - up_to[before]).max(TINY);
            let again = (posts - found).max(0.0);
            for bin in before + 1..=age {
                let part = |from: usize| (up_to[bin] - up_to[from]) / between * found;
                events[bin] += part(bin - 1);
                exposed[bin] += again + part(before);
            }
        }
        let hazard = |(events, exposed): (&f64, &f64)| {
            if *exposed > TINY {
                (events / exposed).clamp(0.0, 1.0 - TINY)
            } else {
                0.0
            }
        };
        events.iter().zip(&exposed).map(hazard).collect()
    }
}

/// The share that is visible by each bin's end. By the end of the last one, it is 1.
fn product(hazards: &[f64]) -> Vec<f64> {
    let mut up_to = vec![1.0; hazards.len()];
    for bin in (1..hazards.len()).rev() {
        up_to[bin - 1] = up_to[bin] * (1.0 - hazards[bin]);
    }
    up_to
}

impl Distribution {
    /// The share of posts in a bin.
    pub(super) fn share(&self, bin: usize) -> f64 {
        self.shares.get(bin).copied().unwrap_or(0.0)
    }

    /// The share of posts whose lateness exceeds `ms`.
    pub fn later_than(&self, ms: i64) -> f64 {
        let bin = nearest(ms);
        self.shares.iter().skip(bin + 1).sum()
    }

    /// The lateness that this share of the posts does not exceed, in ms: the upper edge of the
    /// quantile's bin.
    pub fn quantile_ms(&self, share: f64) -> i64 {
        let mut sum = 0.0;
        let last = self.shares.iter().rposition(|share| *share > TINY);
        for (bin, of_bin) in self.shares.iter().enumerate() {
            sum += of_bin;
            if sum >= share - TINY || Some(bin) == last {
                return edge_ms(bin);
            }
        }
        edge_ms(BINS - 1)
    }

    /// The upper edge in ms and the share of each bin that is not empty.
    pub fn bins(&self) -> impl Iterator<Item = (i64, f64)> + '_ {
        let held = |(_, share): &(usize, &f64)| **share > 1e-9;
        let bins = self.shares.iter().enumerate().filter(held);
        bins.map(|(bin, &share)| (edge_ms(bin), share))
    }

    /// The delay in ms of the posts between two bins (the first excluded) that are stored at an
    /// age, times their share.
    pub(super) fn delay_ms(&self, after: Option<usize>, to: usize, stored_at_ms: f64) -> f64 {
        let from = after.map_or(0, |bin| bin + 1);
        (from..=to)
            .map(|bin| self.share(bin) * (stored_at_ms - middle_ms(bin)).max(0.0))
            .sum()
    }
}

const FIRST_HAZARD: f64 = 0.01;
const ROUNDS: usize = 100;
const CONVERGED: f64 = 1e-6;
const TINY: f64 = 1e-12;
const HALF_LIFE_MS: f64 = 12.0 * 3_600_000.0;
/// The number of posts to which a slow source's reads do not fade.
const KEPT_POSTS: f32 = 20_000.0;
const FADE_EVERY_MS: i64 = 15 * 60_000;
/// After this number of page-fulls without another find, at most 3 in 100 have one (95%).
const FORGOTTEN_PAGE_FULLS: u64 = 100;

#[cfg(test)]
impl Lateness {
    /// Reads of `posts` posts at each of these ages in turn, in a world in which this share of them
    /// is visible by each age.
    pub(super) fn of_reads(ages_ms: &[i64], visible: impl Fn(i64) -> f64, posts: f64) -> Self {
        let mut lateness = Self::default();
        for pair in ages_ms.windows(2) {
            let (before, now) = (visible(pair[0]), visible(pair[1]));
            let found = ((now - before) * posts) as u64;
            lateness.read_again(pair[0], pair[1], (now * posts) as u64, found);
        }
        lateness
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_what_each_age_adds() {
        // 90% by 1 s, 9% more by 16 s, 1% more by 512 s.
        let visible = |age_ms| match age_ms {
            ..16_000 => 0.90,
            16_000..512_000 => 0.99,
            _ => 1.0,
        };
        let lateness = Lateness::of_reads(&[1_000, 16_000, 512_000, 8_192_000], visible, 100_000.0);
        let shares = lateness.distribution().expect("read");
        assert!((shares.later_than(1_000) - 0.10).abs() < 1e-3, "{shares:?}");
        assert!((shares.later_than(16_000) - 0.01).abs() < 1e-3);
        assert!(shares.later_than(512_000) < 1e-6);
        assert_eq!(lateness.longest_ms, 16_000);
    }

    #[test]
    fn what_a_read_could_not_show_yet_is_made_up_for() {
        // Most ranges are read at 1 and 16 s only. Few are read also at 512 s, which shows another
        // 2%.
        let mut lateness = Lateness::default();
        lateness.read_again(1_000, 16_000, 98_000, 0);
        lateness.read_again(16_000, 512_000, 1_000, 20);
        let shares = lateness.distribution().expect("read");
        assert!(
            (shares.later_than(16_000) - 0.02).abs() < 2e-3,
            "{shares:?}"
        );
    }

    #[test]
    fn a_read_without_result_between_two_ages_narrows_an_interval() {
        let mut lateness = Lateness::default();
        // Some ranges: read at 16 s, then at 512 s.
        lateness.read_again(16_000, 512_000, 10_000, 200);
        assert!(lateness.distribution().expect("read").later_than(128_000) > 0.005);
        // Others: read at 16 s, at 128 s with all of the finds, at 512 s with none.
        lateness.read_again(16_000, 128_000, 10_000, 200);
        lateness.read_again(128_000, 512_000, 10_000, 0);
        let shares = lateness.distribution().expect("read");
        assert!(shares.later_than(128_000) < 1e-4, "{shares:?}");
        assert!((shares.later_than(16_000) - 0.02).abs() < 1e-3);
    }

    #[test]
    fn old_reads_fade_and_a_prior_weighs_little() {
        let mut lateness = Lateness::default();
        lateness.fade(1_000);
        lateness.read_again(1_000, 16_000, 100_000, 50_000);
        lateness.fade(1_000 + 5 * 86_400_000);
        lateness.read_again(1_000, 16_000, 100_000, 0);
        let shares = lateness.distribution().expect("read");
        assert!(shares.later_than(1_000) < 0.1, "{shares:?}");
        let mut other = Lateness::default();
        other.read_again(1_000, 16_000, 1_000_000, 500_000);
        let mut ours = other.as_prior(200.0);
        assert!(ours.distribution().expect("prior").later_than(1_000) > 0.45);
        ours.read_again(1_000, 16_000, 20_000, 0);
        assert!(ours.distribution().expect("read").later_than(1_000) < 0.01);
    }

    #[test]
    fn the_latest_find_is_forgotten_once_enough_was_read_again_at_its_age() {
        let mut lateness = Lateness::default();
        lateness.found_late(90_000, 1_000);
        lateness.found_none(60_000, 10_000);
        lateness.found_none(90_000, 3_999);
        assert_eq!(lateness.latest_ms(), 90_000, "too few, or too early");
        lateness.found_late(80_000, 2_000);
        lateness.found_none(90_000, 3_999);
        assert_eq!(
            lateness.latest_ms(),
            90_000,
            "another of much that lateness"
        );
        lateness.found_none(90_000, 1);
        assert_eq!(lateness.latest_ms(), 0);
        lateness.found_late(90_000, 3_000);
        lateness.fade(3_000 + 30 * 86_400_000);
        assert_eq!(lateness.latest_ms(), 0, "thirty days ago");
    }

    #[test]
    fn it_round_trips_through_json() {
        let mut lateness = Lateness::default();
        lateness.read_again(1_000, 16_000, 1_000, 7);
        lateness.read_again(16_000, 600_000, 40, 0);
        let text = serde_json::to_string(&lateness).expect("text");
        assert!(text.contains("[10,18,1000.0,7.0]"), "{text}");
        let back: Lateness = serde_json::from_str(&text).expect("the same");
        assert_eq!(back, lateness);
    }

    #[test]
    fn nothing_read_again_is_no_estimate() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.distribution(), None);
        lateness.read_again(-5_000, 10, 40, 40);
        assert_eq!(lateness.distribution(), None, "the same bin");
    }
}
