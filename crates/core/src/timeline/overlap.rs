//! The choice of the overlap and looks that store posts soonest for a budget of fetches, within the
//! bound.

use super::{
    age_bins::{edge_ms, nearest},
    evidence::{Evidence, PROVEN_PAGE_FULLS},
    ladder::Rung,
    lateness::{Distribution, Lateness},
    trials::Trials,
};

/// The inputs of a plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured<'a> {
    /// The source's lateness.
    pub(super) lateness: &'a Lateness,
    /// The evidence from repeated reads without result.
    pub(super) evidence: &'a Evidence,
    /// The ages of rungs that have found edits or deletions in the last 30 days, in ms. They are
    /// kept.
    pub(super) kept_ms: &'a [i64],
    /// The candidates for shorter last looks.
    pub(super) trials: &'a Trials,
    /// The age of the look on trial, in ms. The trial continues until the look is proven or
    /// refuted.
    pub(super) trial_ms: Option<i64>,
    /// The recent number of new posts per second.
    pub(super) rate_per_s: f64,
    /// True if polls have shown the rate for long enough to plan with it.
    pub(super) is_rate_known: bool,
    /// The number of new posts per second, averaged over a day. It determines the speed of
    /// collecting evidence.
    pub(super) daily_rate_per_s: f64,
    /// The largest number of posts in one page.
    pub(super) page_limit: u16,
    /// The time between two requests that the throttles allow, in ms.
    pub(super) quota_spacing_ms: i64,
    /// True if the source's IDs contain time.
    pub(super) timed: bool,
    /// The present time in Unix ms.
    pub(super) now_ms: i64,
}

/// The inputs of a choice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Basis<'a> {
    /// All measurements.
    pub(super) measured: Measured<'a>,
    /// The estimate of lateness, once it is based on enough posts.
    pub(super) lateness: Option<&'a Distribution>,
    /// The time between two polls, in ms.
    pub(super) every_ms: i64,
    /// An overlap set by the operator, in ms.
    pub(super) overlap_ms: Option<i64>,
    /// The largest number of fetches per post for polls, looks and probes together.
    pub(super) budget: f64,
    /// The fetches per post of the probes at the last age that maintain the proof; `None` if there
    /// are too few posts for any proof.
    pub(super) upkeep: Option<f64>,
    /// The second look's minimum age, and the time span of the timeline that one such look covers.
    pub(super) second_look: Rung,
    /// The rungs above the second look, including the last one.
    pub(super) rungs: &'a [Rung],
}

/// The chosen overlap and looks, and their cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The overlap in ms.
    pub overlap_ms: i64,
    /// The looks that read every range.
    pub looks: Vec<Rung>,
    /// True if repeated reads have proven that later looks are unnecessary.
    pub is_proven: bool,
    /// The age of an additional look on trial, in ms, to find out if it is enough.
    pub trial_ms: Option<i64>,
    /// The fetches per post for polls, looks and probes, without faults.
    pub fetches: f64,
    /// The average time from visible to stored, in ms; `None` without an estimate.
    pub delay_ms: Option<f64>,
}

/// The choice with the least delay within the budget. Until the bound is proven, every rung reads
/// everything. If the budget is too small for the bound, the bound has priority.
pub(super) fn choose(basis: &Basis<'_>) -> Choice {
    match proven(basis) {
        Some(choice) if !is_nearly_proven_shorter(basis, &choice) => choice,
        _ => unproven(basis),
    }
}

/// True if the best second look, while every rung reads everything, will soon be proven enough by
/// itself. By chance, the proof of a longer look can come a little earlier. With that longer look
/// only, a shorter one would never be proven.
fn is_nearly_proven_shorter(basis: &Basis<'_>, choice: &Choice) -> bool {
    let (Some(longest), Some(last)) = (choice.looks.last(), basis.rungs.last()) else {
        return false;
    };
    let unproven = unproven(basis);
    let second_look_ms = unproven.looks.first().map_or(i64::MAX, |look| look.age_ms);
    let page_fulls = basis.page_fulls(second_look_ms, last);
    let is_near = page_fulls * 10 >= PROVEN_PAGE_FULLS * 8 && page_fulls < PROVEN_PAGE_FULLS;
    choice.trial_ms.is_none() && second_look_ms < longest.age_ms && is_near
}

/// The choice while every rung reads everything: only the overlap and the second look's age are
/// chosen.
fn unproven(basis: &Basis<'_>) -> Choice {
    let min_ms = basis.second_look.age_ms;
    let first_rung = basis.rungs.first().filter(|_| basis.lateness.is_some());
    // Keeps some distance from the first rung.
    let max_ms = first_rung.map_or(min_ms, |rung| rung.age_ms / 2);
    let choice = |age_ms: i64| {
        let mut looks = vec![basis.look(age_ms)];
        looks.extend(basis.rungs.iter().filter(|rung| rung.age_ms > age_ms));
        // The rungs are not part of the budget, because the bound has priority.
        let cost = 1.0 + basis.look_cost(&looks[0]);
        basis.with_overlap(looks, cost)
    };
    let choices = ages_from(min_ms, max_ms).into_iter().map(choice);
    best_within(basis.budget, choices.collect()).unwrap_or_else(|| choice(min_ms))
}

/// The best plan whose bound is proven, if there is one.
fn proven(basis: &Basis<'_>) -> Option<Choice> {
    let (upkeep, last) = (basis.upkeep?, basis.rungs.last()?);
    basis.lateness?;
    let is_enough = |age_ms: &i64| basis.page_fulls(*age_ms, last) >= PROVEN_PAGE_FULLS;
    let ages = look_ages(basis, last);
    // If shorter looks are proven, longer ones are, too.
    let least = ages.iter().position(is_enough)?;
    let without_looks = 1.0 + upkeep + YOUNG_PROBES;
    let mut choices = Vec::new();
    for (index, &last_ms) in ages.iter().enumerate().skip(least) {
        choices.extend(basis.with_looks(&[last_ms], without_looks));
        for (second, &before_ms) in ages[..index].iter().enumerate() {
            choices.extend(basis.with_looks(&[before_ms, last_ms], without_looks));
            for &first_ms in &ages[..second] {
                let looks_ms = [first_ms, before_ms, last_ms];
                choices.extend(basis.with_looks(&looks_ms, without_looks));
            }
        }
    }
    // With long intervals, an overlap that is proven by itself may cost less than any look.
    if basis.overlap_ms.is_none() && basis.measured.kept_ms.is_empty() {
        let overlaps = ages_from(MIN_OVERLAP_MS, last.age_ms - 1);
        let alone = overlaps.into_iter().filter(is_enough);
        choices.extend(alone.map(|ms| basis.costed(ms, Vec::new(), without_looks)));
    }
    let choice = Choice {
        is_proven: true,
        ..best_within(basis.budget, choices)?
    };
    Some(tried(basis, choice, &ages))
}

/// The possible ages of a look below the last rung's, in ms: those of the rungs and of the grid. A
/// rung replaces the adjacent age of the grid.
fn look_ages(basis: &Basis<'_>, last: &Rung) -> Vec<i64> {
    let mut ages: Vec<i64> = basis.rungs.iter().map(|rung| rung.age_ms).collect();
    let mut grid = ages_from(basis.second_look.age_ms, last.age_ms - 1);
    grid.retain(|age_ms| ages.iter().all(|ms| nearest(*ms) != nearest(*age_ms)));
    ages.extend(grid);
    ages.retain(|age_ms| *age_ms < last.age_ms);
    ages.sort_unstable();
    ages
}

/// The choice with an additional shorter look, if probes suggest that it is enough. The longer look
/// reads the posts that the shorter one misses, until one of them is proven. Such a trial is not
/// limited by the budget. A trial of a shorter look replaces it, because that also proves the
/// longer one.
fn tried(basis: &Basis<'_>, choice: Choice, ages_ms: &[i64]) -> Choice {
    let (Some(longest), [_]) = (choice.looks.last(), &choice.looks[..]) else {
        return choice;
    };
    let mut shorter = ages_ms.iter().filter(|age_ms| **age_ms < longest.age_ms);
    let (trials, trial_ms) = (basis.measured.trials, basis.measured.trial_ms);
    let is_on = |age_ms: i64| trial_ms == Some(age_ms) && trials.goes_on(age_ms);
    let is_worth_it = |age_ms: &&i64| is_on(**age_ms) || trials.may_be_enough(**age_ms);
    let Some(&trial_ms) = shorter.find(is_worth_it) else {
        return choice;
    };
    let look = basis.look(trial_ms);
    let alone_ms = basis.delay_ms(choice.overlap_ms, &[look]);
    let gains = alone_ms < choice.delay_ms.map(|ms| ms * TRIAL_GAIN);
    if !gains && !is_on(trial_ms) {
        return choice;
    }
    let mut looks = choice.looks.clone();
    looks.insert(0, look);
    Choice {
        trial_ms: Some(trial_ms),
        fetches: choice.fetches + 1.0,
        delay_ms: basis.delay_ms(choice.overlap_ms, &looks),
        looks,
        ..choice
    }
}

/// The best of the choices within the budget or, if there is none, of the cheapest.
fn best_within(budget: f64, mut choices: Vec<Choice>) -> Option<Choice> {
    let least = least(&choices, |choice| choice.fetches);
    let max = if least <= budget {
        budget
    } else {
        least + CHEAP
    };
    choices.retain(|choice| choice.fetches <= max);
    best(choices, WORTH)
}

/// The cheapest of the choices whose delay is within this share of the least one. Among choices of
/// a similar cost, the one that looks first. If no post has been late, every plan has the same
/// delay, and the first late post should not have to wait.
fn best(mut choices: Vec<Choice>, margin: f64) -> Option<Choice> {
    let delay = |choice: &Choice| choice.delay_ms.unwrap_or(0.0);
    let max_ms = least(&choices, delay) * (1.0 + margin) + 0.5;
    choices.retain(|choice| delay(choice) <= max_ms);
    let max = least(&choices, |choice| choice.fetches) + CHEAP;
    choices.retain(|choice| choice.fetches <= max);
    choices.into_iter().min_by(|a, b| {
        let first_ms = |choice: &Choice| choice.looks.first().map(|look| look.age_ms);
        first_ms(a)
            .cmp(&first_ms(b))
            .then(a.fetches.total_cmp(&b.fetches))
    })
}

fn least(choices: &[Choice], of: impl Fn(&Choice) -> f64) -> f64 {
    choices.iter().map(of).fold(f64::INFINITY, f64::min)
}

impl Basis<'_> {
    /// A look at this age. A rung set by the operator keeps its period.
    fn look(&self, age_ms: i64) -> Rung {
        let named = self.rungs.iter().find(|rung| rung.age_ms == age_ms);
        named.copied().unwrap_or(Rung {
            age_ms,
            period_ms: self.second_look.period_ms.max(age_ms / 8),
        })
    }

    /// The fetches per post of a look: one, and an anchor for each stretch.
    fn look_cost(&self, look: &Rung) -> f64 {
        // Also by the day's rate: a quiet night is no reason for another plan.
        let rate_per_s = self.measured.rate_per_s.max(self.measured.daily_rate_per_s);
        1.0 + 1.0 / (rate_per_s * look.period_ms as f64 / 1000.0).max(1.0)
    }

    /// The number of page-fulls that show that no post arrives later than an age, as far as the
    /// last rung shows.
    fn page_fulls(&self, age_ms: i64, last: &Rung) -> u64 {
        let (evidence, now_ms) = (self.measured.evidence, self.measured.now_ms);
        evidence.page_fulls(age_ms, last.age_ms, now_ms)
    }

    /// A plan with looks at these ages and the kept ones, with the cost of everything else. `None`
    /// for several looks beyond the budget. A single look may exceed it, because the bound has
    /// priority.
    fn with_looks(&self, looks_ms: &[i64], cost: f64) -> Option<Choice> {
        let mut ages = [looks_ms, self.measured.kept_ms].concat();
        ages.sort_unstable();
        ages.dedup();
        let looks: Vec<Rung> = ages.into_iter().map(|age_ms| self.look(age_ms)).collect();
        let cost = cost + looks.iter().map(|look| self.look_cost(look)).sum::<f64>();
        let is_least = looks.len() <= 1 + self.measured.kept_ms.len();
        (cost <= self.budget || is_least).then(|| self.with_overlap(looks, cost))
    }

    /// The looks with an overlap that fits the rest of the budget and is worth its cost.
    fn with_overlap(&self, looks: Vec<Rung>, cost: f64) -> Choice {
        if let Some(fixed_ms) = self.overlap_ms {
            return self.costed(fixed_ms, looks, cost);
        }
        let affordable_ms = (self.budget - cost) * self.every_ms as f64 - DATE_SLACK_MS as f64;
        let longest_ms = looks.first().map_or(self.every_ms, |look| look.age_ms);
        let max_ms = (affordable_ms as i64).clamp(MIN_OVERLAP_MS, longest_ms.max(MIN_OVERLAP_MS));
        let Some(_) = self.lateness else {
            return self.costed(FIRST_OVERLAP_MS.min(max_ms), looks, cost);
        };
        let mut overlaps = ages_from(MIN_OVERLAP_MS, max_ms);
        overlaps.push(max_ms);
        let choices = overlaps
            .into_iter()
            .map(|overlap_ms| self.costed(overlap_ms, looks.clone(), cost));
        // The budget may be spent completely.
        let best = best(choices.collect(), OVERLAP_WORTH);
        best.unwrap_or_else(|| self.costed(MIN_OVERLAP_MS, looks.clone(), cost))
    }

    fn costed(&self, overlap_ms: i64, looks: Vec<Rung>, cost: f64) -> Choice {
        Choice {
            delay_ms: self.delay_ms(overlap_ms, &looks),
            overlap_ms,
            looks,
            is_proven: false,
            trial_ms: None,
            fetches: cost + self.overlap_cost(overlap_ms),
        }
    }

    /// The fetches per post of polls in addition to the first.
    fn overlap_cost(&self, overlap_ms: i64) -> f64 {
        (overlap_ms + DATE_SLACK_MS).max(0) as f64 / self.every_ms.max(1) as f64
    }

    /// The average time from visible to stored, in ms, of the posts that the last look shows.
    fn delay_ms(&self, overlap_ms: i64, looks: &[Rung]) -> Option<f64> {
        let lateness = self.lateness?;
        let half_interval_ms = self.every_ms as f64 / 2.0;
        let mut shown = nearest(overlap_ms);
        let mut share: f64 = (0..=shown).map(|bin| lateness.share(bin)).sum();
        let mut sum_ms = share * half_interval_ms;
        for look in looks {
            let to = nearest(look.age_ms);
            if to <= shown {
                continue;
            }
            let stored_at_ms = look.age_ms as f64 + look.period_ms as f64 / 2.0;
            sum_ms += lateness.delay_ms(Some(shown), to, stored_at_ms);
            share += (shown + 1..=to).map(|bin| lateness.share(bin)).sum::<f64>();
            shown = to;
        }
        (share > 0.0).then(|| sum_ms / share)
    }
}

/// The grid's ages from one to another, in ms, with the first unchanged.
fn ages_from(min_ms: i64, max_ms: i64) -> Vec<i64> {
    let mut ages = vec![min_ms];
    let above = (nearest(min_ms)..=nearest(max_ms)).map(edge_ms);
    ages.extend(above.filter(|age_ms| *age_ms > min_ms && *age_ms <= max_ms));
    ages
}

/// The fetches per post of the probes at ages between the last look's and the last rung's.
pub(super) const YOUNG_PROBES: f64 = 0.14;
/// `Date` is rounded down to a second, and a round trip old. On average a poll therefore assumes an
/// earlier time by this amount, in ms, which costs as much as a larger overlap.
const DATE_SLACK_MS: i64 = 600;
/// The ID service's own bound, until lateness is measured.
const FIRST_OVERLAP_MS: i64 = 1_000;
const MIN_OVERLAP_MS: i64 = 50;
/// A more expensive plan must shorten the mean delay by at least this share.
const WORTH: f64 = 0.01;
/// A larger overlap must shorten the mean delay by at least this share.
const OVERLAP_WORTH: f64 = 0.000_5;
/// Plans whose fetches differ by at most this have the same cost.
const CHEAP: f64 = 0.1;
/// A shorter look on trial must shorten the mean delay to this share.
const TRIAL_GAIN: f64 = 0.9;

#[cfg(test)]
impl<'a> Measured<'a> {
    /// Measurements of a source with 20 posts per second.
    pub(super) fn example(
        lateness: &'a Lateness,
        evidence: &'a Evidence,
        trials: &'a Trials,
    ) -> Self {
        Self {
            lateness,
            evidence,
            kept_ms: &[],
            trials,
            trial_ms: None,
            rate_per_s: 20.0,
            is_rate_known: true,
            daily_rate_per_s: 20.0,
            page_limit: 40,
            quota_spacing_ms: 0,
            timed: true,
            now_ms: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{evidence::PAGE_FULL, trials::TRIAL_PAGE_FULLS};
    use super::*;

    const DAY_MS: i64 = 86_400_000;

    fn rung(age_ms: i64, period_ms: i64) -> Rung {
        Rung { age_ms, period_ms }
    }

    fn rungs() -> Vec<Rung> {
        vec![
            rung(600_000, 300_000),
            rung(7_200_000, 3_600_000),
            rung(DAY_MS, DAY_MS / 4),
        ]
    }

    /// Reads at the ages of the default plan, in a world with the lateness of `visible`.
    fn seen(visible: impl Fn(i64) -> f64) -> Lateness {
        let ages_ms = [
            250, 3_000, 16_000, 32_000, 64_000, 128_000, 512_000, 8_192_000, DAY_MS,
        ];
        Lateness::of_reads(&ages_ms, visible, 1e6)
    }

    fn proven_above(age_ms: i64) -> Evidence {
        let mut evidence = Evidence::default();
        evidence.read_again(age_ms, DAY_MS, 1_300_000, 0);
        evidence
    }

    fn chosen(lateness: &Lateness, evidence: &Evidence, change: impl Fn(&mut Basis<'_>)) -> Choice {
        chosen_after(lateness, evidence, &Trials::default(), change)
    }

    fn chosen_after(
        lateness: &Lateness,
        evidence: &Evidence,
        trials: &Trials,
        change: impl Fn(&mut Basis<'_>),
    ) -> Choice {
        let distribution = lateness.distribution();
        let mut basis = Basis {
            measured: Measured::example(lateness, evidence, trials),
            lateness: distribution.as_ref(),
            every_ms: 3_000,
            overlap_ms: None,
            budget: 2.5,
            upkeep: Some(0.03),
            second_look: rung(15_000, 5_000),
            rungs: &rungs(),
        };
        change(&mut basis);
        choose(&basis)
    }

    /// 1% later than 160 ms, none later than 13 s, as measured on tweets.
    fn tweets(age_ms: i64) -> f64 {
        match age_ms {
            ..3_000 => 0.99,
            3_000..13_000 => 0.999,
            _ => 1.0,
        }
    }

    /// 2% by 20 to 90 s.
    fn federated(age_ms: i64) -> f64 {
        0.98 + 0.02 * ((age_ms - 20_000) as f64 / 70_000.0).clamp(0.0, 1.0)
    }

    #[test]
    fn until_the_bound_is_proven_every_rung_reads_everything() {
        let choice = chosen(&seen(tweets), &Evidence::default(), |_| ());
        assert!(!choice.is_proven);
        let ages: Vec<i64> = choice.looks.iter().map(|look| look.age_ms).collect();
        assert_eq!(ages, [15_000, 600_000, 7_200_000, DAY_MS]);
        let few = chosen(&seen(tweets), &proven_above(15_000), |basis| {
            basis.upkeep = None;
        });
        assert!(!few.is_proven, "too few posts to prove anything");
    }

    #[test]
    fn a_proven_plan_leaves_the_later_rungs_out_within_the_budget() {
        let choice = chosen(&seen(tweets), &proven_above(15_000), |_| ());
        assert!(choice.is_proven && choice.fetches <= 2.5, "{choice:?}");
        assert_eq!(choice.looks.len(), 1);
        assert_eq!(choice.looks[0].age_ms, 15_000);
    }

    #[test]
    fn the_second_look_waits_for_what_is_late_by_minutes() {
        for evidence in [Evidence::default(), proven_above(90_510)] {
            let choice = chosen(&seen(federated), &evidence, |_| ());
            let second_ms = choice.looks[0].age_ms;
            assert!((80_000..=200_000).contains(&second_ms), "{choice:?}");
        }
    }

    #[test]
    fn where_nothing_is_late_the_shortest_look_wins() {
        for evidence in [Evidence::default(), proven_above(15_000)] {
            let choice = chosen(&seen(|_| 1.0), &evidence, |_| ());
            assert_eq!(choice.looks[0].age_ms, 15_000, "{choice:?}");
        }
    }

    #[test]
    fn the_bound_wins_over_the_budget_and_edits_keep_their_rungs() {
        let dear = chosen(&seen(tweets), &proven_above(15_000), |basis| {
            basis.budget = 1.5;
        });
        assert!(
            dear.is_proven && dear.fetches > 1.5 && dear.looks.len() == 1,
            "{dear:?}"
        );
        let kept = chosen(&seen(tweets), &proven_above(15_000), |basis| {
            basis.measured.kept_ms = &[7_200_000];
        });
        assert!(kept.looks.iter().any(|look| look.age_ms == 7_200_000));
    }

    #[test]
    fn more_budget_buys_more_looks() {
        let tail = |age_ms: i64| match age_ms {
            ..16_000 => 0.97,
            16_000..512_000 => 0.99,
            _ => 1.0,
        };
        let poor = chosen(&seen(tail), &proven_above(512_000), |_| ());
        let rich = chosen(&seen(tail), &proven_above(512_000), |basis| {
            basis.budget = 4.0;
        });
        assert_eq!(poor.looks.len(), 1, "{poor:?}");
        assert!(rich.looks.len() > 1 && rich.fetches <= 4.0, "{rich:?}");
        assert!(rich.delay_ms < poor.delay_ms);
    }

    #[test]
    fn a_shorter_look_is_tried_alongside_the_longer_one_and_then_replaces_it() {
        let mut evidence = proven_above(512_000);
        let mut trials = Trials::default();
        let choose = |evidence: &Evidence, trials: &Trials, trial_ms: Option<i64>| {
            chosen_after(&seen(tweets), evidence, trials, |basis| {
                basis.measured.trial_ms = trial_ms;
            })
        };
        let ages =
            |choice: &Choice| -> Vec<i64> { choice.looks.iter().map(|look| look.age_ms).collect() };
        let before = choose(&evidence, &trials, None);
        assert_eq!((before.trial_ms, ages(&before)), (None, vec![600_000]));
        trials.read_again(64_000, PAGE_FULL * TRIAL_PAGE_FULLS, false);
        let trial = choose(&evidence, &trials, None);
        assert_eq!(
            (trial.trial_ms, ages(&trial)),
            (Some(64_000), vec![64_000, 600_000])
        );
        trials.read_again(16_000, PAGE_FULL * TRIAL_PAGE_FULLS, false);
        let shorter = choose(&evidence, &trials, trial.trial_ms);
        assert_eq!(
            (shorter.trial_ms, ages(&shorter)),
            (Some(15_000), vec![15_000, 600_000])
        );
        evidence.read_again(16_000, 512_000, 40 * PROVEN_PAGE_FULLS, 0);
        let over = choose(&evidence, &trials, shorter.trial_ms);
        assert_eq!((over.trial_ms, over.looks[0].age_ms), (None, 15_000));
        let mut refuting = proven_above(512_000);
        refuting.found(16_000, 512_000);
        trials.read_again(16_000, PAGE_FULL, true);
        let refuted = choose(&refuting, &trials, shorter.trial_ms);
        assert_eq!(
            refuted.trial_ms,
            Some(64_000),
            "the longer one is still open"
        );
    }

    #[test]
    fn long_intervals_take_the_overlap_and_no_look() {
        let choice = chosen(&seen(tweets), &proven_above(11_000), |basis| {
            basis.every_ms = 60_000;
        });
        assert!(choice.fetches < 1.6, "{choice:?}");
        assert!(choice.overlap_ms >= 11_000);
    }

    #[test]
    fn a_fixed_overlap_is_kept() {
        let choice = chosen(&seen(tweets), &Evidence::default(), |basis| {
            basis.overlap_ms = Some(7_000);
        });
        assert_eq!(choice.overlap_ms, 7_000);
    }
}
