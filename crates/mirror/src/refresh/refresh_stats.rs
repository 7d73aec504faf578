use std::time::Duration;

use driftline_core::refresh::{LookupOutcome, RefreshObservation};
use driftline_runtime::metrics::{
    REFRESH_LOST_LEASES, REFRESH_REQUESTED_POSTS, REFRESH_REQUESTS, REFRESHED_POSTS,
};
use serde::Serialize;

/// The work of this process's workers for an instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RefreshStats {
    /// Look-ups sent.
    pub requests: u64,
    /// Posts in these look-ups.
    pub posts: u64,
    /// Outcomes of posts, in the order of [`LookupOutcome::ALL`].
    #[serde(serialize_with = "by_name")]
    pub outcomes: [u64; LookupOutcome::ALL.len()],
    /// Claims that ended before their answers were saved.
    pub lost_leases: u64,
    /// Why the last look-up had no answer, if it had none.
    pub failure: Option<String>,
    /// Growth and quota use that is not shared yet.
    #[serde(skip)]
    pub(crate) observation: RefreshObservation,
    /// When it was last shared, or sharing was tried, Unix ms.
    #[serde(skip)]
    shared_at_ms: i64,
    /// When the schedule is to be counted again, Unix ms.
    #[serde(skip)]
    count_at_ms: i64,
    /// The overdue posts when it was counted last.
    #[serde(skip)]
    pub(crate) overdue: u64,
    /// The instance's origin, for metrics.
    #[serde(skip)]
    pub(crate) origin: String,
}

impl RefreshStats {
    /// Posts per request, on average.
    pub fn mean_posts(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.posts as f64 / self.requests as f64)
    }

    pub(crate) fn asked(&mut self, posts: usize) {
        self.requests += 1;
        self.posts += posts as u64;
        let origin = || [self.origin.clone()];
        REFRESH_REQUESTS.with(origin()).increment(1);
        REFRESH_REQUESTED_POSTS
            .with(origin())
            .increment(posts as u64);
    }

    /// Whether the schedule is to be counted, so that metrics are not long out of date.
    pub(crate) fn is_count_due(&self, now_ms: i64) -> bool {
        now_ms >= self.count_at_ms || self.count_at_ms > now_ms.saturating_add(SHARED_EVERY_MS)
    }

    /// The schedule was counted, with those of other instances, which took so long.
    pub(crate) fn counted(&mut self, now_ms: i64, took: Duration, overdue: u64) {
        self.overdue = overdue;
        let took_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        let pause_ms = took_ms.saturating_mul(PAUSES_A_COUNT);
        let pause_ms = pause_ms.clamp(MIN_COUNT_PAUSE_MS, SHARED_EVERY_MS);
        self.count_at_ms = now_ms.saturating_add(pause_ms);
    }

    /// The observation, if it is due to be shared. If sharing fails, the caller adds it back.
    pub(crate) fn observation_to_share(&mut self, now_ms: i64) -> Option<RefreshObservation> {
        if (0..SHARED_EVERY_MS).contains(&now_ms.saturating_sub(self.shared_at_ms)) {
            return None;
        }
        self.shared_at_ms = now_ms;
        Some(std::mem::take(&mut self.observation))
    }

    pub(crate) fn saved(&mut self, outcome: LookupOutcome) {
        for (other, count) in LookupOutcome::ALL.iter().zip(&mut self.outcomes) {
            *count += u64::from(*other == outcome);
        }
        REFRESHED_POSTS.with([outcome.name()]).increment(1);
    }

    /// How many answers left open whether the post still exists.
    pub(crate) fn unconfirmed(&self) -> u64 {
        let outcomes = LookupOutcome::ALL.iter().zip(self.outcomes);
        let unconfirmed = [LookupOutcome::Missing, LookupOutcome::Failed];
        outcomes
            .filter(|(outcome, _)| unconfirmed.contains(outcome))
            .map(|(_, count)| count)
            .sum()
    }

    pub(crate) fn lost(&mut self) {
        self.lost_leases += 1;
        REFRESH_LOST_LEASES.increment(1);
    }
}

fn by_name<S: serde::Serializer>(
    outcomes: &[u64; LookupOutcome::ALL.len()],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(
        LookupOutcome::ALL
            .iter()
            .map(|outcome| outcome.name())
            .zip(outcomes),
    )
}

/// How often observations are shared, ms.
const SHARED_EVERY_MS: i64 = 180_000;
/// A large schedule is counted more rarely: counting takes a hundredth of the time.
const PAUSES_A_COUNT: i64 = 100;
const MIN_COUNT_PAUSE_MS: i64 = 10_000;

#[cfg(test)]
mod tests {
    use driftline_core::answer::FailureKind;
    use driftline_core::refresh::RefreshHistory;
    use driftline_runtime::metrics::{LabelValues, METRICS};

    use super::*;

    #[test]
    fn requests_are_counted_for_each_server() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            for (origin, posts) in [("https://a.example", 20), ("https://b.example", 7)] {
                let mut refresh_stats = RefreshStats {
                    origin: origin.into(),
                    ..RefreshStats::default()
                };
                refresh_stats.asked(posts);
            }
        });
        let rendered = handle.render();
        for line in [
            "driftline_refresh_requests_total{instance=\"https://a.example\"} 1",
            "driftline_refresh_requested_posts_total{instance=\"https://a.example\"} 20",
            "driftline_refresh_requested_posts_total{instance=\"https://b.example\"} 7",
        ] {
            assert!(rendered.contains(line), "{rendered}");
        }
    }

    fn listed(metric: &str) -> Vec<&'static str> {
        let metric = METRICS.iter().find(|listed| listed.name == metric);
        match metric.unwrap().labels[0].values {
            LabelValues::Closed(values) => values.to_vec(),
            LabelValues::Fixed(..) | LabelValues::Open(_) => Vec::new(),
        }
    }

    #[test]
    fn each_outcome_and_each_kind_of_failure_has_its_series() {
        let names = LookupOutcome::ALL.iter().map(|outcome| outcome.name());
        let outcomes: Vec<&str> = names.collect();
        assert_eq!(listed("driftline_refreshed_posts_total"), outcomes);
        // The error names all kinds, in backticks, after the unknown one.
        let unknown = serde_json::from_str::<FailureKind>("\"none\"").unwrap_err();
        let unknown = unknown.to_string();
        let kinds: Vec<_> = unknown.split('`').skip(3).step_by(2).collect();
        assert_eq!(listed("driftline_request_failures_total"), kinds);
    }

    #[test]
    fn an_observation_that_could_not_be_shared_is_shared_later() {
        let mut refresh_stats = RefreshStats::default();
        let post = RefreshHistory::stored(Some(0), 60_000, 5.0);
        refresh_stats.observation.grew(&post, 7_200_000, 50.0);
        let seen = refresh_stats.observation.clone();
        assert!(!seen.is_empty());
        let shared = refresh_stats
            .observation_to_share(SHARED_EVERY_MS)
            .expect("an observation");
        assert_eq!(shared, seen);
        assert!(refresh_stats.observation.is_empty());
        refresh_stats.observation.add(&shared);
        assert_eq!(
            refresh_stats.observation_to_share(SHARED_EVERY_MS + 1),
            None
        );
        assert_eq!(
            refresh_stats.observation_to_share(2 * SHARED_EVERY_MS),
            Some(seen)
        );
    }

    #[test]
    fn a_schedule_that_takes_long_to_count_is_counted_rarely() {
        let mut stats = RefreshStats::default();
        assert!(stats.is_count_due(1_000));
        for (took_ms, pause_ms) in [(2, 10_000), (300, 30_000), (60_000, 180_000)] {
            stats.counted(1_000, Duration::from_millis(took_ms), 7);
            assert!(!stats.is_count_due(1_000 + pause_ms - 1), "{took_ms}");
            assert!(stats.is_count_due(1_000 + pause_ms), "{took_ms}");
        }
    }
}
