//! The plan: overlap, poll interval, looks and probes, and the reasons for each.

use serde::{Deserialize, Serialize};

use super::{
    evidence::{MAX_AGE_MS, PAGE_FULL, PROVEN_PAGE_FULLS, bound_of},
    ladder::{Ladder, Rung},
    lateness::Distribution,
    overlap::{self, Basis, Choice, Measured, YOUNG_PROBES},
    settings::{Overlap, Settings},
};

/// The current plan of a source, with its reasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The overlap `k`, ms.
    pub overlap_ms: i64,
    /// The time between two polls that the quota allows, in ms.
    pub every_ms: i64,
    /// The looks that read every range, the second look first.
    pub ladder: Ladder,
    /// Probes: page-fulls that are read again although no look reads them.
    pub probes: Vec<Probe>,
    /// The proof by repeated reads.
    pub proof: Proof,
    /// The expected posts fetched per post stored, without faults.
    pub fetched_per_post: f64,
    /// The average time from visible to stored, in ms; `None` while nothing is measured.
    pub delay_ms: Option<f64>,
    /// The reasons, in sentences.
    pub reasons: Vec<String>,
}

/// The number of page-fulls that are drawn and read at an age.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The age in ms.
    pub age_ms: i64,
    /// The page-fulls read for each new page-full, which equals the posts fetched per post.
    pub share: f64,
}

/// The result of repeated reads, at 95%: at most the share `bound` of the page-fulls lacks a post
/// that arrived later than `above_ms` and was visible at `up_to_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// True if later looks are unnecessary.
    pub is_enough: bool,
    /// The age of the last look that reads everything, not counting the last rung, in ms.
    pub above_ms: i64,
    /// The last rung's age, in ms.
    pub up_to_ms: i64,
    /// The page-fulls of 40 posts that were read again since the last find, within thirty days.
    pub page_fulls: u64,
    /// The resulting upper bound, from 0 to 1.
    pub bound: f64,
}

/// Chooses overlap and looks. The rest of a plan follows from them.
pub(super) fn choose(settings: &Settings, measured: Measured<'_>) -> Choice {
    let second_look = second_look(settings, measured);
    let mut rungs = settings.rungs.clone();
    rungs.retain(|rung| rung.age_ms > settings.second_look_ms);
    if rungs.is_empty() {
        rungs.push(last_rung(settings, measured));
    }
    rungs.sort_unstable_by_key(|rung| rung.age_ms);
    overlap::choose(&Basis {
        measured,
        lateness: enough(measured).as_ref(),
        every_ms: interval_ms(settings, measured),
        overlap_ms: match settings.overlap {
            Overlap::Fixed(ms) => Some(ms),
            Overlap::Adaptive if !measured.timed => Some(0),
            Overlap::Adaptive => None,
        },
        // Gaps have anchors, and some requests fail.
        budget: f64::from(settings.fetches_percent) / 100.0 * SPENT,
        upkeep: upkeep(measured),
        second_look,
        rungs: &rungs,
    })
}

/// The plan of a choice, with its reasons if `explain`.
pub(super) fn of_choice(
    settings: &Settings,
    measured: Measured<'_>,
    choice: &Choice,
    explain: bool,
) -> Plan {
    let every_ms = interval_ms(settings, measured);
    let last = last_rung(settings, measured);
    let is_full = |rung: &&Rung| rung.age_ms < last.age_ms;
    // A short quota is not spent on placing looks, because each probe also splits a look.
    let quota_binds = measured.quota_spacing_ms > settings.spacing_ms;
    let full = || choice.looks.iter().filter(is_full).map(|rung| rung.age_ms);
    let above_ms = full().max().unwrap_or(choice.overlap_ms);
    let page_fulls = measured
        .evidence
        .page_fulls(above_ms, last.age_ms, measured.now_ms);
    let mut plan = Plan {
        overlap_ms: choice.overlap_ms,
        every_ms,
        ladder: Ladder::new(choice.looks.clone(), last.age_ms),
        probes: match (choice.is_proven, upkeep(measured), full().next()) {
            (true, Some(upkeep), _) => {
                let mut all = Vec::new();
                if !quota_binds {
                    all = young(settings.second_look_ms, above_ms, last.age_ms * 2 / 3);
                }
                all.push(Probe {
                    age_ms: last.age_ms,
                    share: upkeep,
                });
                all
            }
            // Places the second look.
            (false, Some(_), Some(second_look_ms)) if !quota_binds => {
                let next_ms = full().nth(1).unwrap_or(second_look_ms);
                young(FIRST_PROBE_MS, second_look_ms, next_ms * 9 / 10)
            }
            _ => Vec::new(),
        },
        proof: Proof {
            is_enough: choice.is_proven,
            above_ms,
            up_to_ms: last.age_ms,
            page_fulls,
            bound: bound_of(page_fulls),
        },
        fetched_per_post: choice.fetches + unpaid(choice),
        delay_ms: choice.delay_ms,
        reasons: Vec::new(),
    };
    plan.ladder = plan.ladder.probed(!plan.probes.is_empty());
    if explain {
        plan.reasons = reasons(settings, measured, choice, &plan);
    }
    plan
}

/// Makes the plan from the measurements, with its reasons if `explain`.
///
/// Polls every `T` with overlap `k` fetch each post `1 + k/T` times, and each look fetches it once
/// more. The plan uses the overlap and looks within the budget that store posts soonest on average.
/// Until it is proven that no post arrives later than the last of these looks, every rung reads
/// everything.
pub(super) fn make(settings: &Settings, measured: Measured<'_>, explain: bool) -> Plan {
    of_choice(settings, measured, &choose(settings, measured), explain)
}

/// The cost of the rungs that are read until the bound is proven. It is not part of the budget.
fn unpaid(choice: &Choice) -> f64 {
    if choice.is_proven {
        return 0.0;
    }
    choice.looks.len().saturating_sub(1) as f64
}

/// The last rung. Ranges read at its age are complete.
fn last_rung(settings: &Settings, measured: Measured<'_>) -> Rung {
    let second_look = second_look(settings, measured);
    let rungs = settings.rungs.iter().copied().chain([second_look]);
    rungs.max_by_key(|rung| rung.age_ms).unwrap_or(second_look)
}

/// The fetches per post of the probes that renew the proof in time. `None` if the posts of thirty
/// days are too few for a proof, or more than half of them would be read again.
fn upkeep(measured: Measured<'_>) -> Option<f64> {
    let page_fulls_per_ms = measured.daily_rate_per_s / 1000.0 / PAGE_FULL as f64;
    let came = page_fulls_per_ms * MAX_AGE_MS as f64 * UPKEEP_MARGIN;
    let share = PROVEN_PAGE_FULLS as f64 / came.max(1.0);
    (measured.timed && share <= MAX_UPKEEP).then_some(share.max(MIN_UPKEEP))
}

/// Probes at ages about a factor of two apart, and one just below the look, where a shorter look
/// may be enough. A probe above the look shows all posts with a lateness below its age, but only at
/// that age. Most probes are made where they show a growing tail within minutes.
fn young(from_ms: i64, look_ms: i64, until_ms: i64) -> Vec<Probe> {
    let twice = |age_ms: &i64| Some(age_ms * 2);
    let above = std::iter::successors(Some(look_ms.max(1_000) * 2), twice);
    let above: Vec<i64> = above.take_while(|age_ms| *age_ms < until_ms).collect();
    // From the shortest possible look on.
    let below = std::iter::successors(Some(from_ms.max(1)), twice);
    let below = below.take_while(|age_ms| *age_ms <= look_ms / 2);
    let nearest_below = Some(look_ms * 1000 / 1414).filter(|age_ms| *age_ms >= from_ms);
    let below: Vec<i64> = below.chain(nearest_below).collect();
    let parts = if below.is_empty() { 1.0 } else { 2.0 };
    let mut all = Vec::new();
    for (ages, first) in [(below, &[][..]), (above, &ABOVE_WEIGHTS[..])] {
        let weight = |index: usize| first.get(index).copied().unwrap_or(1.0);
        let sum: f64 = (0..ages.len()).map(weight).sum();
        all.extend(ages.into_iter().enumerate().map(|(index, age_ms)| Probe {
            age_ms,
            share: YOUNG_PROBES / parts * weight(index) / sum,
        }));
    }
    all
}

/// The estimate, once it is based on enough posts.
fn enough(measured: Measured<'_>) -> Option<Distribution> {
    let distribution = measured.lateness.distribution()?;
    (distribution.posts >= ENOUGH_POSTS).then_some(distribution)
}

/// The time between two polls, in ms. If the quota is short, it grows first, which costs delay and
/// no posts.
pub(super) fn interval_ms(settings: &Settings, measured: Measured<'_>) -> i64 {
    let every_ms = settings.every_ms.max(1);
    if measured.quota_spacing_ms <= settings.spacing_ms {
        return every_ms;
    }
    // Polls use the remaining requests that second looks do not use.
    let period_s = second_look_period_ms(settings, measured) as f64 / 1000.0;
    let page = f64::from(measured.page_limit.max(1));
    let looks_per_s = measured.rate_per_s / page + 1.0 / period_s;
    let allowed_per_s = 1000.0 / measured.quota_spacing_ms as f64;
    let for_polls_per_s = (allowed_per_s - looks_per_s).max(allowed_per_s / 2.0);
    every_ms.max((1000.0 / for_polls_per_s).ceil() as i64)
}

/// The second look at its minimum age. Until the rate of posts is known, it covers the shortest
/// time span. On a busy source that fills a page, and the first late posts do not wait.
fn second_look(settings: &Settings, measured: Measured<'_>) -> Rung {
    Rung {
        age_ms: settings.second_look_ms,
        period_ms: match measured.is_rate_known {
            true => second_look_period_ms(settings, measured),
            false => settings.second_look_period_ms.max(1),
        },
    }
}

/// The time span of the timeline that fills a page, in ms, within limits. The anchor of a look then
/// costs little.
fn second_look_period_ms(settings: &Settings, measured: Measured<'_>) -> i64 {
    let page_ms = if measured.rate_per_s > 0.0 {
        (f64::from(measured.page_limit) * 0.9 / measured.rate_per_s * 1000.0) as i64
    } else {
        i64::MAX
    };
    let min_ms = settings.second_look_period_ms.max(1);
    page_ms.clamp(min_ms, min_ms * MAX_SECOND_LOOK_PERIODS)
}

fn reasons(
    settings: &Settings,
    measured: Measured<'_>,
    choice: &Choice,
    plan: &Plan,
) -> Vec<String> {
    let mut reasons = Vec::new();
    if plan.every_ms > settings.every_ms.max(1) {
        reasons.push(format!(
            "The quota allows one poll every {} ms instead of every {} ms: posts are seen {} ms later at the median, but none is missed.",
            plan.every_ms,
            settings.every_ms,
            (plan.every_ms - settings.every_ms) / 2
        ));
    }
    if let Some((needed, allowed)) = overload(measured, choice) {
        reasons.push(format!(
            "This quota cannot keep up: it allows one request every {} ms, but reading {:.1} posts/s as planned takes one every {} ms. Polls and the second look come first. What later looks leave out is listed as passed over, and what no poll reaches in time as a gap.",
            (1000.0 / allowed) as i64,
            measured.rate_per_s,
            (1000.0 / needed) as i64
        ));
    }
    reasons.push(overlap_reason(settings, measured, plan));
    if let Some(look) = choice.looks.first() {
        reasons.push(match plan.delay_ms {
            Some(delay_ms) => format!(
                "With the second look at {} ms, a post is stored {delay_ms:.0} ms after it becomes visible on average, the least for {:.2} fetches per post.",
                look.age_ms, plan.fetched_per_post
            ),
            None => format!(
                "The second look is taken at {} ms, its minimum age, until more is measured.",
                look.age_ms
            ),
        });
    }
    let budget = f64::from(settings.fetches_percent) / 100.0;
    if choice.is_proven && choice.fetches > budget {
        reasons.push(format!(
            "Keeping the bound takes {:.2} fetches per post, more than the budget of {budget:.2}: the bound wins.",
            choice.fetches
        ));
    }
    if let Some(trial_ms) = choice.trial_ms {
        reasons.push(format!(
            "A look at {trial_ms} ms may be enough: it is taken in addition to the one at {} ms until {PROVEN_PAGE_FULLS} pages have confirmed it.",
            plan.proof.above_ms
        ));
    }
    if !measured.kept_ms.is_empty() && choice.is_proven {
        reasons.push(
            "Rungs that find edits and deletions which refreshing does not cover are kept.".into(),
        );
    }
    if !choice.is_proven {
        reasons.push(unproven_reason(measured, plan));
    }
    reasons
}

fn overlap_reason(settings: &Settings, measured: Measured<'_>, plan: &Plan) -> String {
    let overlap_ms = plan.overlap_ms;
    match (settings.overlap, enough(measured)) {
        (Overlap::Fixed(ms), _) => format!("The operator has set the overlap to {ms} ms."),
        (Overlap::Adaptive, _) if !measured.timed => {
            "The IDs carry no known time: polls start at the newest ID, and the second look finds late posts.".into()
        }
        (Overlap::Adaptive, Some(lateness)) => format!(
            "The overlap is {overlap_ms} ms: an estimated {:.2}% of the posts come later than that and wait for a look. The budget is {:.2} fetches per post.",
            lateness.later_than(overlap_ms) * 100.0,
            f64::from(settings.fetches_percent) / 100.0
        ),
        (Overlap::Adaptive, None) => format!(
            "The overlap is {overlap_ms} ms until {ENOUGH_POSTS} posts have been read again."
        ),
    }
}

fn unproven_reason(measured: Measured<'_>, plan: &Plan) -> String {
    match upkeep(measured) {
        None if measured.timed => format!(
            "Every rung reads everything: thirty days bring too few posts to prove that less is enough ({PROVEN_PAGE_FULLS} pages read again without result)."
        ),
        None => {
            "Every rung reads everything: without time in IDs, lateness cannot be measured.".into()
        }
        Some(_) => format!(
            "Every rung reads everything until {PROVEN_PAGE_FULLS} pages have been read again without result; {} so far.",
            plan.proof.page_fulls
        ),
    }
}

/// The requests per second of the plan and those that the throttles allow, if they are fewer.
fn overload(measured: Measured<'_>, choice: &Choice) -> Option<(f64, f64)> {
    if measured.quota_spacing_ms <= 0 {
        return None;
    }
    let fetches = choice.fetches + unpaid(choice);
    let needed = measured.rate_per_s * fetches / f64::from(measured.page_limit.max(1));
    let allowed = 1000.0 / measured.quota_spacing_ms as f64;
    (needed > allowed).then_some((needed, allowed))
}

const ENOUGH_POSTS: f64 = 200.0;
/// The share of the budget that is planned.
const SPENT: f64 = 0.97;
/// The largest number of minimum periods in a second look of a slow source.
const MAX_SECOND_LOOK_PERIODS: i64 = 12;
/// Evidence is renewed when a fifth of its lifetime is left.
const UPKEEP_MARGIN: f64 = 0.8;
/// The weights of the first ages above a look. Others have the weight 1.
const ABOVE_WEIGHTS: [f64; 5] = [12.0, 16.0, 24.0, 40.0, 24.0];
const MIN_UPKEEP: f64 = 0.01;
/// The youngest age that is probed, ms.
const FIRST_PROBE_MS: i64 = 4_000;
/// Above this share, a rung may as well read everything.
const MAX_UPKEEP: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::{
        super::{evidence::Evidence, lateness::Lateness, trials::Trials},
        *,
    };

    const DAY_MS: i64 = 86_400_000;

    /// The plan with default settings for a source with 20 posts per second, after the change.
    fn plan(lateness: &Lateness, evidence: &Evidence, change: impl Fn(&mut Measured<'_>)) -> Plan {
        let trials = Trials::default();
        let mut measured = Measured::example(lateness, evidence, &trials);
        change(&mut measured);
        make(&Settings::default(), measured, true)
    }

    fn tweets() -> Lateness {
        let mut lateness = Lateness::default();
        lateness.read_again(250, 3_000, 100_000, 900);
        lateness.read_again(3_000, 16_000, 100_000, 100);
        lateness.read_again(16_000, DAY_MS, 100_000, 0);
        lateness
    }

    fn proven() -> Evidence {
        let mut evidence = Evidence::default();
        evidence.read_again(15_000, DAY_MS, PROVEN_PAGE_FULLS * PAGE_FULL, 0);
        evidence
    }

    #[test]
    fn the_interval_grows_when_the_quota_binds_and_the_delay_is_reported() {
        let plan = plan(&tweets(), &Evidence::default(), |measured| {
            measured.quota_spacing_ms = 3_000;
        });
        assert!(plan.every_ms > 3_000, "{plan:?}");
        let says = |text: &str| plan.reasons.iter().any(|reason| reason.contains(text));
        assert!(
            says("later at the median") && says("cannot keep up"),
            "{plan:?}"
        );
    }

    #[test]
    fn a_proven_plan_probes_the_last_age_most_and_ages_two_apart() {
        let plan = plan(&tweets(), &proven(), |_| ());
        assert!(plan.proof.is_enough && plan.proof.bound <= 1e-4, "{plan:?}");
        assert!(plan.fetched_per_post <= 2.5, "{plan:?}");
        let last = plan.probes.last().expect("probes");
        assert_eq!(last.age_ms, DAY_MS);
        let pages_a_month = 20.0 * 30.0 * 86_400.0 / 40.0;
        assert!(
            last.share * pages_a_month > PROVEN_PAGE_FULLS as f64 * 1.2,
            "{last:?}"
        );
        let young = &plan.probes[..plan.probes.len() - 1];
        assert_eq!(young[0].age_ms, 30_000, "just above the last look");
        for pair in young.windows(2) {
            assert_eq!(pair[1].age_ms, pair[0].age_ms * 2);
        }
        let shares: f64 = young.iter().map(|probe| probe.share).sum();
        assert!(shares <= YOUNG_PROBES + 1e-9);
    }

    #[test]
    fn a_quiet_source_reads_everything_for_ever() {
        let plan = plan(&tweets(), &proven(), |measured| {
            measured.rate_per_s = 100.0 / 86_400.0;
            measured.daily_rate_per_s = 100.0 / 86_400.0;
        });
        assert!(!plan.proof.is_enough && plan.probes.is_empty());
        assert_eq!(plan.ladder.len(), 4, "{plan:?}");
    }

    #[test]
    fn without_time_in_ids_there_is_no_overlap() {
        let plan = plan(&Lateness::default(), &Evidence::default(), |measured| {
            measured.timed = false;
        });
        assert_eq!(plan.overlap_ms, 0);
        assert_eq!(plan.ladder.age_ms(0), Some(15_000));
    }
}
