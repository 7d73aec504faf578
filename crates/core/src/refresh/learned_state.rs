use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    age_table::AgeTable,
    facts::Refreshed,
    growth_curve::GrowthCurve,
    growth_sums::{GrowthSums, Scale},
    policy::{Cause, Policy},
    quota_price::{QuotaPrice, QuotaUse},
    value_policy::{ValuePolicy, ValueSettings},
};

/// What an operator decides about refreshing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// The ages, and the intervals at each.
    pub ages: AgeTable,
    /// How worth is told, if posts are refreshed by value; else by age alone.
    pub by_value: Option<ValueSettings>,
    /// How posts are taken to grow before any growth was seen.
    pub prior: GrowthCurve,
}

/// What the refreshes of one upstream have taught, and what its quota costs. Workers add to it, in
/// any order and to the same result.
///
/// Growth is learned for each source, since they share a quota but not an audience.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedState {
    /// Of posts whose source is unknown, and of all that was stored before sources were told apart.
    growth: GrowthSums,
    /// Of the posts that each source was the first to store.
    #[serde(default)]
    sources: BTreeMap<u64, GrowthSums>,
    price: QuotaPrice,
    stretch: QuotaPrice,
    due: f64,
    probes: f64,
    bounds: f64,
    /// Since when the three are counted, Unix ms.
    since_ms: i64,
}

/// What a worker has seen since it last told.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RefreshObservation {
    growth: GrowthSums,
    sources: BTreeMap<u64, GrowthSums>,
    due: f64,
    probes: f64,
    bounds: f64,
}

impl RefreshObservation {
    /// Notes that a due post was answered: what it was due for tells what the quota is used for.
    pub fn answered(&mut self, policy: &Policy, post: &Refreshed, now_ms: i64) {
        if policy.value(post, now_ms) < 1.0 {
            return;
        }
        self.due += 1.0;
        match policy.due_because(post).1 {
            Cause::Probe => self.probes += 1.0,
            Cause::Bound => self.bounds += 1.0,
            Cause::Age | Cause::Worth => {}
        }
    }

    /// Notes how a post grew until an answer that was asked for at that Unix ms.
    pub fn grew(&mut self, policy: &Policy, post: &Refreshed, at_ms: i64, total: f64) {
        let Some(growth) = post.growth(at_ms, total) else {
            return;
        };
        let sums = match post.source {
            Some(source) => self.sources.entry(source).or_default(),
            None => &mut self.growth,
        };
        match policy {
            Policy::Value { by, .. } => sums.observe(&growth, by.growth(post.source).0),
            Policy::Table { .. } | Policy::Never { .. } => {
                sums.observe(&growth, &GrowthCurve::default());
            }
        }
    }

    /// Adds what another observation holds: one that could not be told is told with the next.
    pub fn add(&mut self, other: &Self) {
        self.growth.merge(&other.growth);
        for (source, sums) in &other.sources {
            self.sources.entry(*source).or_default().merge(sums);
        }
        self.due += other.due;
        self.probes += other.probes;
        self.bounds += other.bounds;
    }

    /// Whether there is nothing to notify.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl LearnedState {
    /// None yet, at that Unix ms.
    pub fn new(now_ms: i64) -> Self {
        Self {
            growth: GrowthSums::default(),
            sources: BTreeMap::new(),
            price: QuotaPrice::of_refresh(),
            // Due times are stored: what is put off further would not notice when quota is back.
            stretch: QuotaPrice::new(1.0, 1.0, MAX_STRETCH),
            due: 0.0,
            probes: 0.0,
            bounds: 0.0,
            since_ms: now_ms,
        }
    }

    /// Adds what a worker has seen.
    pub fn learn(&mut self, observation: &RefreshObservation) {
        learn_growth(&mut self.growth, &observation.growth);
        for (source, sums) in &observation.sources {
            learn_growth(self.sources.entry(*source).or_default(), sums);
        }
        self.due += observation.due;
        self.probes += observation.probes;
        self.bounds += observation.bounds;
    }

    /// Moves the price by what the quota was used for since it was last moved, once a quarter of an
    /// hour is over. `offered_per_ms` is how many posts the quota carries in a ms, 0 while there is
    /// none; `overdue` how many posts are due and wait.
    pub fn settle(&mut self, plan: &Plan, offered_per_ms: f64, overdue: u64, now_ms: i64) {
        let elapsed_ms = now_ms.saturating_sub(self.since_ms);
        if elapsed_ms < SETTLED_MS {
            return;
        }
        if self.due <= 0.0 && overdue > 0 {
            // Nothing was answered: that is no shortage of quota.
            self.since_ms = now_ms;
            return;
        }
        let used = QuotaUse {
            elapsed_ms,
            offered: offered_per_ms * elapsed_ms as f64,
            due: self.due,
            probes: self.probes,
            bounds: self.bounds,
            overdue: overdue as f64,
        };
        if plan.by_value.is_some() {
            self.price = self.price.after(&used.of_value());
            self.stretch = self.stretch.after(&used.of_bounds());
        } else {
            self.stretch = self.stretch.after(&used);
        }
        (self.due, self.probes, self.bounds) = (0.0, 0.0, 0.0);
        self.since_ms = now_ms;
    }

    /// The policy that it leads to.
    pub fn policy(&self, plan: &Plan) -> Policy {
        let (ages, stretch) = (plan.ages.clone(), self.stretch.level());
        let Some(settings) = &plan.by_value else {
            return Policy::Table { ages, stretch };
        };
        let mut all = self.growth.clone();
        for sums in self.sources.values() {
            all.merge(sums);
        }
        let weight = settings.prior_weight;
        let taught = |sums: &GrowthSums| sums.learned(&plan.prior, Scale::default(), weight);
        let (curve, scale) = taught(&all);
        let sources = self.sources.iter().map(|(source, sums)| {
            let (prior, expected) = taught(&all.without(sums));
            (*source, sums.learned(&prior, expected, weight))
        });
        let by = ValuePolicy {
            settings: settings.clone(),
            curve,
            scale,
            sources: sources.collect(),
            price: self.price.level(),
            stretch,
        };
        Policy::Value { ages, by }
    }

    /// How much longer intervals are than configured, because the quota is short; 1 or more.
    pub fn stretch(&self) -> f64 {
        self.stretch.level()
    }
}

fn learn_growth(known: &mut GrowthSums, seen: &GrowthSums) {
    known.merge(seen);
    if known.seen() > GrowthSums::FADE_AT {
        known.fade();
    }
}

/// How long the use of the quota is counted before the price moves, ms.
const SETTLED_MS: i64 = 15 * 60_000;
const MAX_STRETCH: f64 = 10.0;
