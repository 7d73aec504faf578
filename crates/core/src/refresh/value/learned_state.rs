use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    engagement_sums::{EngagementSums, Scale},
    policy::{ValuePolicy, ValueSettings},
    quota_price::{QuotaPrice, QuotaUse},
};
use crate::refresh::{AgeTable, Cause, Policy, RefreshHistory};

/// The operator's settings for refreshing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RefreshPlan {
    /// The ages, and the intervals at each.
    pub ages: AgeTable,
    /// The settings of refreshing by value; `None` to refresh by age alone.
    pub by_value: Option<ValueSettings>,
}

/// The engagement of posts, learned from the refreshes of one upstream, and the price of its quota.
/// Workers add to it in any order with the same result.
///
/// Engagement is learned for each source, since sources share a quota but not an audience.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedState {
    /// Of posts whose source is unknown.
    engagement: EngagementSums,
    /// By source, of the posts that it was the first to store.
    sources: BTreeMap<u64, EngagementSums>,
    price: QuotaPrice,
    stretch: QuotaPrice,
    due: f64,
    probes: f64,
    bounds: f64,
    /// Since when the three are counted, Unix ms.
    since_ms: i64,
}

/// A worker's observations since it last shared them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RefreshObservation {
    engagement: EngagementSums,
    sources: BTreeMap<u64, EngagementSums>,
    due: f64,
    probes: f64,
    bounds: f64,
}

impl RefreshObservation {
    /// Counts an answered post that was due, by the cause that made it due.
    pub fn answered(&mut self, policy: &Policy, post: &RefreshHistory, now_ms: i64) {
        if policy.value(post, now_ms) < 1.0 {
            return;
        }
        self.due += 1.0;
        match policy.due_because(post).1 {
            Cause::Probe => self.probes += 1.0,
            Cause::Bound => self.bounds += 1.0,
            Cause::Age | Cause::Value => {}
        }
    }

    /// Adds the growth of a post up to an answer that was requested at that Unix ms.
    pub fn grew(&mut self, post: &RefreshHistory, at_ms: i64, total: f64) {
        let Some(growth) = post.growth(at_ms, total) else {
            return;
        };
        let sums = match post.source {
            Some(source) => self.sources.entry(source).or_default(),
            None => &mut self.engagement,
        };
        sums.observe(&growth);
    }

    /// Adds another observation: one that could not be shared is shared with the next.
    pub fn add(&mut self, other: &Self) {
        self.engagement.merge(&other.engagement);
        for (source, sums) in &other.sources {
            self.sources.entry(*source).or_default().merge(sums);
        }
        self.due += other.due;
        self.probes += other.probes;
        self.bounds += other.bounds;
    }

    /// Whether there is nothing to share.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl LearnedState {
    /// An empty state at that Unix ms.
    pub fn new(now_ms: i64) -> Self {
        Self {
            engagement: EngagementSums::default(),
            sources: BTreeMap::new(),
            price: QuotaPrice::of_refresh(),
            // Due times are stored: with a larger stretch, posts put off would not be refreshed soon
            // when quota returns.
            stretch: QuotaPrice::new(1.0, 1.0, MAX_STRETCH),
            due: 0.0,
            probes: 0.0,
            bounds: 0.0,
            since_ms: now_ms,
        }
    }

    /// Adds a worker's observations.
    pub fn learn(&mut self, observation: &RefreshObservation) {
        self.engagement.merge(&observation.engagement);
        self.engagement.fade_if_full();
        for (source, sums) in &observation.sources {
            let known = self.sources.entry(*source).or_default();
            known.merge(sums);
            known.fade_if_full();
        }
        self.due += observation.due;
        self.probes += observation.probes;
        self.bounds += observation.bounds;
    }

    /// Moves the price by the use of the quota since the last move, at most every quarter of an hour.
    /// `offered_per_ms` is the number of posts that the quota carries per ms, 0 while there is none;
    /// `overdue` the number of due posts that wait.
    pub fn settle(&mut self, plan: &RefreshPlan, offered_per_ms: f64, overdue: u64, now_ms: i64) {
        let elapsed_ms = now_ms.saturating_sub(self.since_ms);
        if elapsed_ms < 0 {
            // The clock was set back: the use is of an unknown time.
            (self.due, self.probes, self.bounds) = (0.0, 0.0, 0.0);
            self.since_ms = now_ms;
        }
        if elapsed_ms < SETTLED_MS {
            return;
        }
        if self.due <= 0.0 && overdue > 0 {
            // Without answers there is no evidence of a shortage of quota.
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

    /// The policy that follows from it.
    pub fn policy(&self, plan: &RefreshPlan) -> Policy {
        let (ages, stretch) = (plan.ages.clone(), self.stretch.level());
        let Some(settings) = &plan.by_value else {
            return Policy::Table { ages, stretch };
        };
        let mut all = self.engagement.clone();
        for sums in self.sources.values() {
            all.merge(sums);
        }
        let weight = settings.prior_weight;
        let sources = self.sources.iter().map(|(source, sums)| {
            let expected = all.without(sums).scale(Scale::default(), weight);
            (*source, sums.scale(expected, weight))
        });
        let by = ValuePolicy {
            settings: settings.clone(),
            scale: all.scale(Scale::default(), weight),
            sources: sources.collect(),
            price: self.price.level(),
            stretch,
        };
        Policy::Value { ages, by }
    }

    /// The factor that lengthens the configured intervals while the quota is short; 1 or more.
    pub fn stretch(&self) -> f64 {
        self.stretch.level()
    }
}

/// How long the use of the quota is counted before the price moves, ms.
const SETTLED_MS: i64 = 15 * 60_000;
const MAX_STRETCH: f64 = 10.0;
