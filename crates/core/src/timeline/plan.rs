//! The plan: overlap, poll interval and second look at the least cost for
//! what was measured.

use serde::Serialize;

use super::{
    ladder::{Ladder, Rung},
    lateness::Lateness,
    settings::{Overlap, Settings},
};

/// What a source does now, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The overlap `k`, ms.
    pub overlap_ms: i64,
    /// The time between two polls that the quota allows, ms.
    pub every_ms: i64,
    /// The rungs, the second look first.
    pub ladder: Ladder,
    /// Posts fetched per post stored to expect from polls and the second
    /// look, without faults.
    pub fetched_per_post: f64,
    /// Why, in sentences.
    pub reasons: Vec<String>,
}

/// What a plan is made of.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// The source's lateness.
    pub lateness: &'a Lateness,
    /// New posts a second.
    pub rate_per_s: f64,
    /// The most posts that one page holds.
    pub page_limit: u16,
    /// The time between two requests that the throttles leave, ms.
    pub throttle_spacing_ms: i64,
    /// Whether the source's IDs carry time.
    pub timed: bool,
}

/// Makes the plan; with `explain`, its reasons are written out.
///
/// Polls every `T` with overlap `k` fetch each post `1 + k/T` times. What `k`
/// does not cover is read once more by a second look, which costs one fetch a
/// post and an anchor a look; or `k` covers the longest lateness and no second
/// look is needed. The cheaper of the two is taken.
pub fn make(settings: &Settings, measured: Measured<'_>, explain: bool) -> Plan {
    let mut reasons = Reasons {
        wanted: explain,
        given: Vec::new(),
    };
    let every_ms = poll_interval_ms(settings, measured, &mut reasons);
    let second_look_ms = second_look_age_ms(settings, measured.lateness, &mut reasons);
    let period_ms = second_look_period_ms(settings, measured);

    let look_posts = (measured.rate_per_s * period_ms as f64 / 1000.0).max(1.0);
    let two_reads = |overlap_ms: i64| 2.0 + overlap_ms as f64 / every_ms as f64 + 1.0 / look_posts;
    let one_read = 1.0 + second_look_ms as f64 / every_ms as f64;

    let (overlap_ms, fetched_per_post) = match settings.overlap {
        Overlap::Fixed(ms) => {
            reasons.give(|| format!("The overlap of {ms} ms is set by the operator."));
            (ms, two_reads(ms))
        }
        Overlap::Adaptive if !measured.timed => {
            reasons.give(|| {
                "The IDs carry no known time: polls read from the newest ID, and the second look finds what comes late.".into()
            });
            (0, two_reads(0))
        }
        Overlap::Adaptive => {
            let small_ms =
                small_overlap_ms(measured.lateness, every_ms, second_look_ms, &mut reasons);
            if one_read < two_reads(small_ms) {
                reasons.give(|| format!(
                    "At {every_ms} ms between polls an overlap of {second_look_ms} ms reads each post {one_read:.2} times, less than a second look would ({:.2}).",
                    two_reads(small_ms)
                ));
                (second_look_ms, one_read)
            } else {
                reasons.give(|| format!(
                    "At {every_ms} ms between polls a second look reads each post {:.2} times, less than an overlap of {second_look_ms} ms would ({one_read:.2}).",
                    two_reads(small_ms)
                ));
                (small_ms, two_reads(small_ms))
            }
        }
    };

    let mut rungs = vec![Rung {
        age_ms: second_look_ms,
        period_ms,
    }];
    rungs.extend(
        settings
            .rungs
            .iter()
            .filter(|rung| rung.age_ms > second_look_ms),
    );
    Plan {
        overlap_ms,
        every_ms,
        ladder: Ladder::new(rungs),
        fetched_per_post,
        reasons: reasons.given,
    }
}

/// A plan is made at every step and explained only in reports.
struct Reasons {
    wanted: bool,
    given: Vec<String>,
}

impl Reasons {
    fn give(&mut self, reason: impl FnOnce() -> String) {
        if self.wanted {
            self.given.push(reason());
        }
    }
}

/// The quota binds on the interval first: a longer one costs delay, not posts.
fn poll_interval_ms(settings: &Settings, measured: Measured<'_>, reasons: &mut Reasons) -> i64 {
    let every_ms = settings.every_ms.max(1);
    if measured.throttle_spacing_ms <= settings.spacing_ms {
        return every_ms;
    }
    // Of the requests that are left, polls take what second looks do not.
    let period_s = second_look_period_ms(settings, measured) as f64 / 1000.0;
    let page = f64::from(measured.page_limit.max(1));
    let looks_per_s = measured.rate_per_s / page + 1.0 / period_s;
    let allowed_per_s = 1000.0 / measured.throttle_spacing_ms as f64;
    let for_polls_per_s = (allowed_per_s - looks_per_s).max(allowed_per_s / 2.0);
    let allowed_ms = (1000.0 / for_polls_per_s).ceil() as i64;
    if allowed_ms <= every_ms {
        return every_ms;
    }
    reasons.give(|| format!(
        "The quota leaves a poll every {allowed_ms} ms instead of every {every_ms} ms: posts are seen {} ms later at the median; none is missed by it.",
        (allowed_ms - every_ms) / 2
    ));
    allowed_ms
}

fn second_look_age_ms(settings: &Settings, lateness: &Lateness, reasons: &mut Reasons) -> i64 {
    let measured_ms = lateness.longest_soon_ms + lateness.longest_soon_ms / 4;
    // A second look gives the first rung above it room.
    let longest_ms = settings
        .rungs
        .first()
        .map_or(Lateness::SOON_MS, |rung| rung.age_ms / 2)
        .min(Lateness::SOON_MS)
        .max(settings.second_look_ms);
    let age_ms = measured_ms.clamp(settings.second_look_ms, longest_ms);
    reasons.give(|| format!(
        "The second look is taken at {age_ms} ms: the longest lateness that it can wait for was {} ms, its least age is {} ms.",
        lateness.longest_soon_ms, settings.second_look_ms
    ));
    age_ms
}

/// As long as it takes to fill a page, within reason: a look's anchor then
/// costs little.
fn second_look_period_ms(settings: &Settings, measured: Measured<'_>) -> i64 {
    let page_ms = if measured.rate_per_s > 0.0 {
        (f64::from(measured.page_limit) * 0.9 / measured.rate_per_s * 1000.0) as i64
    } else {
        i64::MAX
    };
    let least_ms = settings.second_look_period_ms.max(1);
    page_ms.clamp(least_ms, least_ms * MAX_SECOND_LOOK_PERIODS)
}

/// Near the p99 of what posts needed, but never as long as the interval: that
/// would cost another fetch a post. Later posts wait for the second look.
fn small_overlap_ms(
    lateness: &Lateness,
    every_ms: i64,
    second_look_ms: i64,
    reasons: &mut Reasons,
) -> i64 {
    let longest_ms = every_ms.min(second_look_ms).max(LEAST_OVERLAP_MS);
    let posts = lateness.needed.total();
    match lateness.needed.quantile_ms(0.99) {
        Some(p99_ms) if posts >= ENOUGH_POSTS => {
            let overlap_ms = (p99_ms + p99_ms / 4).clamp(LEAST_OVERLAP_MS, longest_ms);
            reasons.give(|| {
                format!(
                    "The overlap is {overlap_ms} ms: 99% of the last {posts} posts needed at most {p99_ms} ms, and more than the interval is not worth its price."
                )
            });
            overlap_ms
        }
        _ => {
            let overlap_ms = FIRST_OVERLAP_MS.min(longest_ms);
            reasons.give(|| {
                format!(
                    "The overlap is {overlap_ms} ms until the lateness of {ENOUGH_POSTS} posts is known ({posts} so far)."
                )
            });
            overlap_ms
        }
    }
}

/// The ID service's own promise, until something is measured.
const FIRST_OVERLAP_MS: i64 = 1_000;
const LEAST_OVERLAP_MS: i64 = 50;
const ENOUGH_POSTS: u64 = 200;
/// A slow source's second look waits for so many least periods at most.
const MAX_SECOND_LOOK_PERIODS: i64 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(lateness: &Lateness) -> Measured<'_> {
        Measured {
            lateness,
            rate_per_s: 11.6,
            page_limit: 40,
            throttle_spacing_ms: 0,
            timed: true,
        }
    }

    fn late_by(p99_ms: i64) -> Lateness {
        let mut lateness = Lateness::default();
        for n in 0..1000 {
            let ms = if n % 80 == 0 { p99_ms } else { 0 };
            lateness.add(ms, ms + 1000, ms);
        }
        lateness
    }

    fn every(ms: i64) -> Settings {
        Settings {
            every_ms: ms,
            ..Settings::default()
        }
    }

    #[test]
    fn short_intervals_take_the_second_look_and_long_ones_the_overlap() {
        let lateness = late_by(160);
        let busy = make(&every(1_000), measured(&lateness), true);
        assert!((160..=260).contains(&busy.overlap_ms), "{busy:?}");
        assert!(busy.fetched_per_post < 2.4, "{busy:?}");
        let slow = make(&every(60_000), measured(&lateness), true);
        assert_eq!(slow.overlap_ms, 15_000);
        assert!(slow.fetched_per_post < 1.3, "{slow:?}");
    }

    #[test]
    fn a_source_with_many_backdated_posts_leaves_them_to_the_second_look() {
        let mut lateness = late_by(160);
        for _ in 0..50 {
            lateness.add(15_000, 200_000, 15_000);
        }
        let plan = make(&every(3_000), measured(&lateness), true);
        assert_eq!(plan.overlap_ms, 3_000);
        assert!(plan.fetched_per_post < 3.1, "{plan:?}");
    }

    #[test]
    fn the_interval_grows_when_the_quota_binds_and_the_delay_is_told() {
        let lateness = late_by(160);
        let plan = make(
            &every(1_000),
            Measured {
                throttle_spacing_ms: 3_000,
                ..measured(&lateness)
            },
            true,
        );
        assert!(plan.every_ms > 3_000, "{plan:?}");
        assert!(
            plan.reasons
                .iter()
                .any(|reason| reason.contains("later at the median"))
        );
    }

    #[test]
    fn the_second_look_waits_for_the_longest_lateness_measured() {
        let lateness = late_by(40_000);
        assert_eq!(
            make(&every(1_000), measured(&lateness), true)
                .ladder
                .age_ms(0),
            Some(50_000)
        );
        let beyond = late_by(4_000_000);
        let plan = make(&every(1_000), measured(&beyond), true);
        assert_eq!(
            plan.ladder.age_ms(0),
            Some(15_000),
            "higher rungs do the rest"
        );
    }

    #[test]
    fn without_time_in_ids_there_is_no_overlap() {
        let lateness = Lateness::default();
        let plan = make(
            &every(1_000),
            Measured {
                timed: false,
                ..measured(&lateness)
            },
            true,
        );
        assert_eq!(plan.overlap_ms, 0);
    }

    #[test]
    fn a_fixed_overlap_is_kept() {
        let lateness = late_by(160);
        let settings = Settings {
            overlap: Overlap::Fixed(7_000),
            ..every(1_000)
        };
        assert_eq!(make(&settings, measured(&lateness), true).overlap_ms, 7_000);
    }
}
