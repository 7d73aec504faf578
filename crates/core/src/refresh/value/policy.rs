use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    engagement_sums::Scale,
    growth_curve::{self, share},
};
use crate::refresh::{AgeTable, Cause, Due, RefreshHistory};

/// Refreshes a post when the value of its expected change reaches the price of the quota.
///
/// With `A = (alpha + count) / (beta + G(age))` the final engagement that is expected and
/// `m(s) = A (G(t + s) - G(t))` what goes unseen a time `s` after a refresh at the age `t`, a post
/// is due at the smallest `s` where `s m(s) - integral of m over [0, s]` reaches the price. No wait is shorter than a floor, none is longer than a multiple of the age table's,
/// and the first ones end with a probe at the latest.
///
/// Sources: Cho & Garcia-Molina, "Effective page refresh policies for Web crawlers", 2003; Azar
/// et al., "Tractable near-optimal policies for crawling", PNAS 2018; Kolobov et al., "Staying up
/// to date with online content changes using reinforcement learning for scheduling", NeurIPS 2019;
/// Avrachenkov & Borkar, "Whittle index policy for crawling ephemeral content", arXiv 1503.08558.
#[derive(Debug, Clone, PartialEq)]
pub struct ValuePolicy {
    /// The operator's settings.
    pub settings: ValueSettings,
    /// The engagement of posts of sources without observations of their own.
    pub scale: Scale,
    /// That of each source with observations, by its number in the store.
    pub sources: BTreeMap<u64, Scale>,
    /// The price of a refresh, count-hours (see [`super::QuotaPrice`]).
    pub price: f64,
    /// The factor that lengthens the waits in the settings while bounds alone would take too much
    /// of the quota; 1 or more.
    pub stretch: f64,
}

/// The operator's settings of a [`ValuePolicy`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValueSettings {
    /// The least time between two refreshes of a post, ms.
    pub floor_ms: i64,
    /// The longest time between two refreshes, as a multiple of the age table's.
    pub longest: f64,
    /// The longest waits before the first refreshes of a post, ms.
    pub probes_ms: Vec<i64>,
    /// At which age a post is no longer probed, ms.
    pub probed_below_ms: i64,
    /// The weight of growth before the last two looks, from 0 (only the growth since counts) to 1
    /// (all of the post's life counts the same).
    pub memory: f64,
    /// The weight of the engagement that is expected of a source, as the number of observed posts
    /// that count as much.
    pub prior_weight: f64,
}

impl ValuePolicy {
    /// The engagement of a source's posts.
    pub fn scale_of(&self, source: Option<u64>) -> Scale {
        let own = source.and_then(|source| self.sources.get(&source));
        own.copied().unwrap_or(self.scale)
    }

    pub(in crate::refresh) fn due_because(
        &self,
        ages: &AgeTable,
        history: &RefreshHistory,
    ) -> (Due, Cause) {
        let every_ms = match ages.wait_ms(history.created_at_ms, history.refreshed_ms) {
            Ok(every_ms) => every_ms,
            Err(due) => return (due, Cause::Age),
        };
        let regret_h = self.price() / self.expected(history);
        let waits = [
            (
                growth_curve::wait_ms(age_ms(history), regret_h),
                Cause::Value,
            ),
            (self.probe_ms(history).unwrap_or(i64::MAX), Cause::Probe),
        ];
        // Of equals the first.
        let sooner = |a: (i64, Cause), b: (i64, Cause)| if b.0 < a.0 { b } else { a };
        let bound = (self.bound_ms(every_ms), Cause::Bound);
        let (wait_ms, cause) = waits.into_iter().rfold(bound, |a, b| sooner(b, a));
        let wait_ms = wait_ms.max(self.floor_ms());
        (Due::At(history.refreshed_ms.saturating_add(wait_ms)), cause)
    }

    pub(in crate::refresh) fn value(
        &self,
        ages: &AgeTable,
        history: &RefreshHistory,
        now_ms: i64,
    ) -> f64 {
        let Ok(every_ms) = ages.wait_ms(history.created_at_ms, history.refreshed_ms) else {
            return 0.0;
        };
        let waited_ms = now_ms.saturating_sub(history.refreshed_ms);
        if waited_ms < self.floor_ms() {
            return 0.0;
        }
        let regret_h = growth_curve::regret_h(age_ms(history), waited_ms);
        let value = self.expected(history) * regret_h / self.price();
        // Squared, since regret grows no faster than time: a post that keeps waiting comes first in
        // the end.
        let within_ms = self.bound_ms(every_ms);
        let within_ms = self
            .probe_ms(history)
            .map_or(within_ms, |ms| ms.min(within_ms));
        let waited = waited_ms as f64 / within_ms as f64;
        value.max(waited * waited)
    }

    pub(in crate::refresh) fn is_beyond_bound(
        &self,
        ages: &AgeTable,
        history: &RefreshHistory,
        now_ms: i64,
    ) -> bool {
        let waited_ms = now_ms.saturating_sub(history.refreshed_ms);
        let every_ms = ages.wait_ms(history.created_at_ms, history.refreshed_ms);
        every_ms.is_ok_and(|every_ms| waited_ms > self.bound_ms(every_ms))
    }

    /// The expected final engagement: `(alpha + count) / (beta + G(age))`, with less weight for
    /// growth before the last two looks.
    fn expected(&self, history: &RefreshHistory) -> f64 {
        let total = finite(history.total);
        let scale = self.scale_of(history.source);
        let now_share = share(age_ms(history));
        let Some((before, created_at_ms)) = history.before.zip(history.created_at_ms) else {
            return scale.expected(total, now_share);
        };
        let forgotten = 1.0 - self.settings.memory.clamp(0.0, 1.0);
        let old_share = share(before.at_ms.saturating_sub(created_at_ms)).min(now_share);
        let old = finite(before.total).min(total);
        scale.expected(total - forgotten * old, now_share - forgotten * old_share)
    }

    /// The longest wait before a probe, ms; `None` if no more are made.
    fn probe_ms(&self, history: &RefreshHistory) -> Option<i64> {
        let probe_ms = self.settings.probes_ms.get(history.refreshes as usize)?;
        let is_probed = age_ms(history) < self.settings.probed_below_ms;
        is_probed.then(|| (*probe_ms).max(self.floor_ms()))
    }

    /// The longest wait of all, ms.
    fn bound_ms(&self, every_ms: i64) -> i64 {
        let longest = at_least_one(self.settings.longest) * at_least_one(self.stretch);
        ((every_ms as f64 * longest) as i64).max(self.floor_ms())
    }

    fn floor_ms(&self) -> i64 {
        self.settings.floor_ms.max(1)
    }

    fn price(&self) -> f64 {
        if self.price.is_finite() && self.price > 0.0 {
            self.price
        } else {
            1.0
        }
    }
}

impl Default for ValueSettings {
    fn default() -> Self {
        Self {
            floor_ms: 30_000,
            longest: 2.0,
            probes_ms: vec![20 * MINUTE_MS, 240 * MINUTE_MS],
            probed_below_ms: 24 * 60 * MINUTE_MS,
            memory: 0.6,
            prior_weight: 50.0,
        }
    }
}

/// The post's age at the last look, ms.
fn age_ms(history: &RefreshHistory) -> i64 {
    let created_at_ms = history.created_at_ms.unwrap_or(history.refreshed_ms);
    history.refreshed_ms.saturating_sub(created_at_ms).max(0)
}

fn at_least_one(factor: f64) -> f64 {
    if factor >= 1.0 { factor } else { 1.0 }
}

fn finite(total: f64) -> f64 {
    if total.is_finite() {
        total.clamp(0.0, MAX_TOTAL)
    } else {
        0.0
    }
}

const MINUTE_MS: i64 = 60_000;
const MAX_TOTAL: f64 = 1e15;
