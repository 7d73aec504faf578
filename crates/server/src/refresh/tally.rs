use driftline_core::refresh::{Outcome, RefreshObservation};
use metrics::counter;
use serde::Serialize;

/// What workers have done for an instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Look-ups sent.
    pub requests: u64,
    /// Posts asked for in them.
    pub posts: u64,
    /// What became of posts, in the order of [`Outcome::ALL`].
    #[serde(serialize_with = "by_name")]
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Claims that ended before their answers were saved.
    pub lost_leases: u64,
    /// What is still to be told of growth and of the use of quota.
    #[serde(skip)]
    pub(crate) observation: RefreshObservation,
    /// When it was last told, or that was tried, Unix ms.
    #[serde(skip)]
    told_ms: i64,
    /// The instance's origin, for metrics.
    #[serde(skip)]
    pub(crate) origin: String,
}

impl Tally {
    /// Posts asked for in a request, on average.
    pub fn mean_posts(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.posts as f64 / self.requests as f64)
    }

    pub(crate) fn asked(&mut self, posts: usize) {
        self.requests += 1;
        self.posts += posts as u64;
        let labels = [("instance", self.origin.clone())];
        counter!("driftline_refresh_requests_total", &labels).increment(1);
        counter!("driftline_refresh_requested_posts_total", &labels).increment(posts as u64);
    }

    /// What was seen, if it is time to tell it. If that fails, it is to be added again.
    pub(crate) fn observation_to_share(&mut self, now_ms: i64) -> Option<RefreshObservation> {
        if now_ms.saturating_sub(self.told_ms) < SHARED_EVERY_MS {
            return None;
        }
        self.told_ms = now_ms;
        Some(std::mem::take(&mut self.observation))
    }

    pub(crate) fn saved(&mut self, outcome: Outcome) {
        let at = Outcome::ALL.iter().position(|other| *other == outcome);
        if let Some(kept) = at.and_then(|at| self.outcomes.get_mut(at)) {
            *kept += 1;
        }
        counter!("driftline_refreshed_posts_total", "outcome" => outcome.name()).increment(1);
    }

    /// How often a post was left in doubt whether it is there.
    pub(crate) fn doubtful(&self) -> u64 {
        let outcomes = Outcome::ALL.iter().zip(self.outcomes);
        let doubtful = [Outcome::Missing, Outcome::Failed];
        outcomes
            .filter(|(outcome, _)| doubtful.contains(outcome))
            .map(|(_, count)| count)
            .sum()
    }

    pub(crate) fn lost(&mut self) {
        self.lost_leases += 1;
        counter!("driftline_refresh_lost_leases_total").increment(1);
    }
}

fn by_name<S: serde::Serializer>(
    outcomes: &[u64; Outcome::ALL.len()],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(
        Outcome::ALL
            .iter()
            .map(|outcome| outcome.name())
            .zip(outcomes),
    )
}

/// How often what was seen is told, ms.
const SHARED_EVERY_MS: i64 = 180_000;

#[cfg(test)]
mod tests {
    use driftline_core::refresh::{LearnedState, Plan, Refreshed};

    use super::*;

    #[test]
    fn requests_are_counted_for_each_server() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            for (origin, posts) in [("https://a.example", 20), ("https://b.example", 7)] {
                let mut tally = Tally {
                    origin: origin.into(),
                    ..Tally::default()
                };
                tally.asked(posts);
            }
        });
        let told = handle.render();
        for line in [
            "driftline_refresh_requests_total{instance=\"https://a.example\"} 1",
            "driftline_refresh_requested_posts_total{instance=\"https://a.example\"} 20",
            "driftline_refresh_requested_posts_total{instance=\"https://b.example\"} 7",
        ] {
            assert!(told.contains(line), "{told}");
        }
    }

    #[test]
    fn a_lesson_that_could_not_be_told_is_told_later() {
        let policy = LearnedState::new(0).policy(&Plan::default());
        let mut tally = Tally::default();
        let post = Refreshed::stored(Some(0), 3_600_000, 5.0);
        tally.observation.grew(&policy, &post, 7_200_000, 50.0);
        let seen = tally.observation.clone();
        assert!(!seen.is_empty());
        let told = tally
            .observation_to_share(SHARED_EVERY_MS)
            .expect("a observation");
        assert_eq!(told, seen);
        assert!(tally.observation.is_empty());
        tally.observation.add(&told);
        assert_eq!(tally.observation_to_share(SHARED_EVERY_MS + 1), None);
        assert_eq!(tally.observation_to_share(2 * SHARED_EVERY_MS), Some(seen));
    }
}
