//! Worlds for common purposes.

use std::collections::BTreeMap;

use crate::{
    config::{Bursts, DatedTomorrow, WorldConfig},
    faults_config::{FaultKind, FaultsConfig, Mishap, Outage},
    lateness::Lateness,
    quota::{Endpoint, ThrottleRule},
    span::SpanMs,
};

impl WorldConfig {
    /// Posts in the order of their IDs, visible the moment they are created; no faults.
    pub fn punctual(rate_per_s: f64) -> Self {
        Self {
            lateness: Lateness::PUNCTUAL,
            ..Self::measured(rate_per_s)
        }
    }

    /// Lateness exactly as measured, which includes the workers' clocks; no
    /// faults.
    pub fn measured(rate_per_s: f64) -> Self {
        Self {
            rate_per_s,
            worker_offset_max_ms: 0,
            ..Self::default()
        }
    }

    /// Half a minute that shows every kind of miss: about 25 posts a second
    /// for 18 s, lateness as measured with six times the tail, bursts above
    /// the page limit, federated posts backdated by 3 to 8 s, deletions,
    /// edits, pages cut short by filtering, and the faults of [`FaultsConfig::demo`]. Its tail
    /// is boosted, so its shares of misses are no measurement. What is deleted
    /// is so after seven seconds at least: longer than the faults blind anyone.
    pub fn demo() -> Self {
        Self {
            publish_for_ms: Some(18_000),
            rate_per_s: 25.0,
            lateness: Lateness {
                scale: 1.0,
                tail: 6.0,
            },
            federated_share: 0.02,
            federated_backdate_ms: SpanMs::new(3_000, 8_000),
            bursts: Some(Bursts {
                every_ms: 5_000,
                posts: 60,
                span_ms: 700,
            }),
            deleted_share: 0.02,
            deleted_after_ms: SpanMs::new(7_000, 10_000),
            edited_share: 0.03,
            edited_after_ms: SpanMs::new(1_000, 4_000),
            boost_share: 0.1,
            non_public_share: 0.05,
            filtered_share: 0.1,
            faults: FaultsConfig::demo(),
            ..Self::default()
        }
    }

    /// Everything at once, for seeded tests: long lateness, wide clock
    /// offsets, deep backdating, big bursts, a post dated tomorrow, home's
    /// depth, and every fault at random.
    pub fn hard(rate_per_s: f64) -> Self {
        Self {
            rate_per_s,
            worker_offset_max_ms: 250,
            lateness: Lateness {
                scale: 2.0,
                tail: 10.0,
            },
            federated_share: 0.03,
            federated_backdate_ms: SpanMs::new(5_000, 300_000),
            bursts: Some(Bursts {
                every_ms: 20_000,
                posts: 130,
                span_ms: 900,
            }),
            deleted_share: 0.04,
            deleted_after_ms: SpanMs::new(0, 120_000),
            edited_share: 0.04,
            edited_after_ms: SpanMs::new(0, 120_000),
            boost_share: 0.1,
            non_public_share: 0.1,
            reach: Some(800),
            filtered_share: 0.2,
            dated_tomorrow: Some(DatedTomorrow {
                after_ms: 15_000,
                ahead_ms: 86_400_000,
            }),
            faults: FaultsConfig::hard(),
            ..Self::default()
        }
    }
}

impl FaultsConfig {
    /// Mastodon's own rate limits and nothing else wrong: 300 requests in 5
    /// minutes, and 300 paged ones in 15.
    pub fn mastodon() -> Self {
        Self {
            throttles: vec![
                ThrottleRule::all(300, 300_000),
                ThrottleRule::paged(300, 900_000),
            ],
            ..Self::default()
        }
    }

    /// The rate limits of X's version 2, per user, and nothing else wrong.
    pub fn x() -> Self {
        Self::per_endpoint([180, 900, 300, 900, 5_000, 900, 75])
    }

    /// The rate limits of Twitter's version 1.1, per user, and nothing else
    /// wrong.
    pub fn twitter() -> Self {
        Self::per_endpoint([15, 900, 75, 900, 900, 900, 75])
    }

    fn per_endpoint(limits: [u32; 7]) -> Self {
        let endpoints = [
            Endpoint::Home,
            Endpoint::User,
            Endpoint::Mentions,
            Endpoint::List,
            Endpoint::LookUps,
            Endpoint::LookUp,
            Endpoint::Credentials,
        ];
        let rules = endpoints.into_iter().zip(limits);
        Self {
            throttles: rules
                .map(|(endpoint, limit)| ThrottleRule::endpoint(endpoint, limit))
                .collect(),
            ..Self::default()
        }
    }

    /// For each token a cut body, a 429, a stall and a 502, once each; for all
    /// an outage of 1.5 s; a budget of 60 requests in 10 s for each token.
    ///
    /// No empty pages: one in the middle of a walk would cost the baselines
    /// more than lateness does, and hide what the demo is to show.
    pub fn demo() -> Self {
        let mishap = |after_ms, fault| Mishap { after_ms, fault };
        Self {
            throttles: vec![ThrottleRule::all(60, 10_000)],
            stall_ms: SpanMs::new(2_000, 2_000),
            delay_ms: SpanMs::new(300, 900),
            throttled_reset_ms: SpanMs::new(500, 1_200),
            shares: BTreeMap::from([(FaultKind::Delay, 0.02)]),
            mishaps: vec![
                mishap(3_000, FaultKind::Cut),
                mishap(6_500, FaultKind::Throttled),
                mishap(11_500, FaultKind::Stall),
                mishap(15_000, FaultKind::BadGateway),
            ],
            outages: vec![Outage {
                after_ms: 9_000,
                for_ms: 1_500,
                fault: FaultKind::Unavailable,
            }],
            ..Self::default()
        }
    }

    /// Every fault at random, about one request in seven, on top of Mastodon's
    /// own limits and a front end whose clock is 700 ms behind.
    pub fn hard() -> Self {
        Self {
            shares: BTreeMap::from([
                (FaultKind::Throttled, 0.02),
                (FaultKind::InternalError, 0.01),
                (FaultKind::BadGateway, 0.01),
                (FaultKind::Unavailable, 0.01),
                (FaultKind::Stall, 0.01),
                (FaultKind::Cut, 0.01),
                (FaultKind::Html, 0.01),
                (FaultKind::ErrorObject, 0.01),
                (FaultKind::BadJson, 0.01),
                (FaultKind::EmptyPage, 0.02),
                (FaultKind::Delay, 0.03),
            ]),
            date_offset_ms: -700,
            ..Self::mastodon()
        }
    }
}
