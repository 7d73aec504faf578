//! What goes wrong with each request.

use std::collections::HashMap;

use driftline_core::{answer::Throttle, upstream_id::UpstreamId};

use crate::{
    faults_config::{FaultKind, FaultsConfig, PoisonAnswer},
    quirks::Quirks,
    quota::RequestKind,
    rng::{Rng, hash_text, mix},
    throttles::Throttles,
};

/// Decides what each request meets. A token's fate depends on the seed, the
/// token and its own requests only, never on other clients.
#[derive(Debug, Clone)]
pub struct Faults {
    config: FaultsConfig,
    quirks: Quirks,
    seed: u64,
    start_ms: i64,
    throttles: Throttles,
    clients: HashMap<String, Client>,
    /// The number of the cap's period, and the posts given out in it.
    given: (i64, u64),
}

/// A fault and how long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// How long a stall or a delay lasts, ms; 0 for others.
    pub hold_ms: i64,
}

/// What one request meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The fault, if any.
    pub fault: Option<Fault>,
    /// The throttle that the headers report, by the front end's clock.
    pub throttle: Option<Throttle>,
    /// From sending to the answer without faults, ms.
    pub round_trip_ms: i64,
}

#[derive(Debug, Clone, Default)]
struct Client {
    requests: u64,
    /// Which mishaps it has met.
    met: Vec<bool>,
    /// Whether its last request met one.
    just_met: bool,
}

impl Faults {
    /// Faults for a world that starts at `start_ms`, Unix ms.
    pub fn new(config: FaultsConfig, seed: u64, start_ms: i64) -> Self {
        Self {
            throttles: Throttles::new(&config.throttles, start_ms),
            clients: HashMap::new(),
            given: (0, 0),
            quirks: Quirks::default(),
            config,
            seed,
            start_ms,
        }
    }

    /// With what a server's quirks do to requests of each kind.
    #[must_use]
    pub fn with_quirks(self, quirks: Quirks) -> Self {
        Self { quirks, ..self }
    }

    /// The configuration.
    pub fn config(&self) -> &FaultsConfig {
        &self.config
    }

    /// Changes the knobs from now on. What was counted under a throttle of the
    /// same position still counts, and mishaps that were met stay met.
    pub fn change(&mut self, change: impl FnOnce(&mut FaultsConfig)) {
        change(&mut self.config);
        self.throttles.change(&self.config.throttles);
    }

    /// What a token's next request meets at a time, Unix ms.
    ///
    /// A revoked token comes first, then a used-up budget, mishaps, outages
    /// and chance.
    pub fn decide(&mut self, now_ms: i64, token: &str, asked: RequestKind) -> Decision {
        let mut rng = self.next_rng(token);
        let round_trip_ms = self.config.round_trip_ms.draw(&mut rng).max(0);
        let drawn = self.drawn(&mut rng);
        let own = self.quirks.fault(asked, &mut rng);
        if self.is_revoked(now_ms, token) {
            return Decision {
                fault: Some(Fault {
                    kind: FaultKind::Unauthorized,
                    hold_ms: 0,
                }),
                throttle: None,
                round_trip_ms,
            };
        }
        let ruling = self.throttles.count(now_ms, token, asked);
        let kind = if ruling.refused {
            Some(FaultKind::Throttled)
        } else {
            self.next_mishap(now_ms, token)
                .or_else(|| self.outage(now_ms))
                .or(drawn)
                .or(own)
        };
        let fault = kind.map(|kind| {
            let hold_ms = match kind {
                FaultKind::Stall => self.config.stall_ms.draw(&mut rng).max(0),
                FaultKind::Delay => self.config.delay_ms.draw(&mut rng).max(0),
                _ => 0,
            };
            Fault { kind, hold_ms }
        });
        let mut throttle = ruling.tightest;
        if kind == Some(FaultKind::Throttled) && !ruling.refused {
            throttle = Some(Throttle {
                limit: throttle.map_or(SPURIOUS_LIMIT, |throttle| throttle.limit),
                remaining: 0,
                reset_at_ms: now_ms + self.config.throttled_reset_ms.draw(&mut rng).max(0),
                error_ms: 0,
            });
        }
        let throttle = throttle.map(|throttle| Throttle {
            reset_at_ms: throttle.reset_at_ms + self.config.date_offset_ms,
            ..throttle
        });
        Decision {
            fault,
            throttle,
            round_trip_ms,
        }
    }

    /// What the `Date` header says at a time, Unix ms floored to a second.
    pub fn date_ms(&self, now_ms: i64) -> Option<i64> {
        (self.config.date_header && !self.quirks.no_date)
            .then(|| (now_ms + self.config.date_offset_ms).div_euclid(1000) * 1000)
    }

    /// Whether a token is revoked at a time, Unix ms.
    pub fn is_revoked(&self, now_ms: i64, token: &str) -> bool {
        self.config
            .revocations
            .iter()
            .any(|revoked| revoked.token == token && revoked.after_ms <= now_ms - self.start_ms)
    }

    /// Whether a post is hidden from a token at a time, Unix ms, by
    /// [`FaultsConfig::hidings`].
    pub fn hides(&self, now_ms: i64, token: &str, id: &UpstreamId) -> bool {
        self.config.hidings.iter().any(|hiding| {
            hiding.id == *id
                && hiding.after_ms <= now_ms - self.start_ms
                && hiding.token.as_deref().is_none_or(|whose| whose == token)
        })
    }

    /// What a look-up of these is answered with if one of them is poison.
    pub fn poisoned(&self, ids: &[UpstreamId]) -> Option<PoisonAnswer> {
        let share = self.config.poison_share;
        let poison = |id: &UpstreamId| {
            self.config.poison_ids.contains(id)
                || share > 0.0
                    && Rng::stream(mix(self.seed, hash_text(id.as_str())), POISON).happens(share)
        };
        ids.iter().any(poison).then_some(self.config.poison_answer)
    }

    /// Whether the cap on posts is reached at a time, Unix ms.
    pub fn is_capped(&self, now_ms: i64) -> bool {
        self.config
            .posts_cap
            .is_some_and(|cap| self.given(now_ms, cap.period_ms).1 >= cap.posts)
    }

    /// Counts posts that were given out against the cap.
    pub fn give(&mut self, now_ms: i64, posts: usize) {
        if let Some(cap) = self.config.posts_cap {
            let (period, given) = self.given(now_ms, cap.period_ms);
            self.given = (period, given + posts as u64);
        }
    }

    fn given(&self, now_ms: i64, period_ms: i64) -> (i64, u64) {
        let period = (now_ms - self.start_ms).div_euclid(period_ms.max(1));
        match self.given {
            (same, given) if same == period => (period, given),
            _ => (period, 0),
        }
    }

    fn next_rng(&mut self, token: &str) -> Rng {
        let client = self.clients.entry(token.to_owned()).or_default();
        client.requests += 1;
        Rng::stream(mix(mix(self.seed, hash_text(token)), client.requests), 0)
    }

    fn drawn(&self, rng: &mut Rng) -> Option<FaultKind> {
        let mut draw = rng.share();
        let mut shares = self.config.shares.iter();
        let hit = shares.find(|(_, share)| {
            draw -= share.max(0.0);
            draw < 0.0
        });
        hit.map(|(kind, _)| *kind)
    }

    fn next_mishap(&mut self, now_ms: i64, token: &str) -> Option<FaultKind> {
        let mishaps = &self.config.mishaps;
        let client = self.clients.entry(token.to_owned()).or_default();
        client.met.resize(mishaps.len(), false);
        if std::mem::take(&mut client.just_met) {
            return None;
        }
        let mut all = client.met.iter_mut().zip(mishaps);
        let (met, mishap) =
            all.find(|(met, mishap)| !**met && mishap.after_ms <= now_ms - self.start_ms)?;
        *met = true;
        client.just_met = true;
        Some(mishap.fault)
    }

    fn outage(&self, now_ms: i64) -> Option<FaultKind> {
        self.config
            .outages
            .iter()
            .find(|outage| {
                (outage.after_ms..outage.after_ms.saturating_add(outage.for_ms))
                    .contains(&(now_ms - self.start_ms))
            })
            .map(|outage| outage.fault)
    }
}

/// The limit that a 429 out of the blue reports where there is no rule.
const SPURIOUS_LIMIT: u32 = 300;
/// The random stream of an ID; stream 0 is that of requests.
const POISON: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        faults_config::{Hiding, Mishap, Outage, Revocation},
        quota::{Endpoint, PostsCap, ThrottleRule},
    };

    const PLAIN: RequestKind = RequestKind::plain(Endpoint::Home);
    const PAGED: RequestKind = RequestKind {
        endpoint: Endpoint::Home,
        paged: true,
    };

    #[test]
    fn a_tokens_fate_does_not_depend_on_others() {
        let fates = |others: bool| {
            let mut faults = Faults::new(FaultsConfig::hard(), 5, 0);
            (0..200)
                .map(|n| {
                    if others {
                        faults.decide(n * 10_000, "other", PAGED);
                    }
                    faults.decide(n * 10_000, "mine", PAGED)
                })
                .collect::<Vec<_>>()
        };
        let alone = fates(false);
        assert_eq!(alone, fates(true));
        assert!(alone.iter().any(|decision| decision.fault.is_some()));
        assert!(alone.iter().any(|decision| decision.fault.is_none()));
    }

    /// Faults of a world that starts at 1,000 ms.
    fn faults(set: impl FnOnce(&mut FaultsConfig)) -> Faults {
        let mut config = FaultsConfig::default();
        set(&mut config);
        Faults::new(config, 1, 1_000)
    }

    fn kind(decision: Decision) -> Option<FaultKind> {
        decision.fault.map(|fault| fault.kind)
    }

    #[test]
    fn every_share_is_drawn_as_often_as_it_says() {
        let mut faults = faults(|config| {
            *config = FaultsConfig::hard();
            config.throttles.clear();
        });
        let mut seen: HashMap<FaultKind, f64> = HashMap::new();
        for n in 0..40_000 {
            if let Some(kind) = kind(faults.decide(n, "t", PLAIN)) {
                *seen.entry(kind).or_default() += 1.0 / 40_000.0;
            }
        }
        for (kind, share) in FaultsConfig::hard().shares {
            let seen = seen.get(&kind).copied().unwrap_or_default();
            assert!((seen - share).abs() < 0.004, "{kind:?}: {seen}");
        }
    }

    #[test]
    fn outages_last_and_mishaps_happen_once_for_each_token() {
        let mishap = |after_ms, fault| Mishap { after_ms, fault };
        let mut faults = faults(|config| {
            config.outages = vec![Outage {
                after_ms: 100,
                for_ms: 50,
                fault: FaultKind::Unavailable,
            }];
            config.mishaps = vec![mishap(200, FaultKind::Cut), mishap(300, FaultKind::Html)];
        });
        for (at_ms, token, expected) in [
            (99, "a", None),
            (100, "a", Some(FaultKind::Unavailable)),
            (149, "a", Some(FaultKind::Unavailable)),
            (150, "a", None),
            (205, "a", Some(FaultKind::Cut)),
            (206, "a", None),
            (900, "b", Some(FaultKind::Cut)),
            // Never two in a row.
            (901, "b", None),
            (902, "b", Some(FaultKind::Html)),
            (903, "b", None),
        ] {
            let decision = faults.decide(1_000 + at_ms, token, PLAIN);
            assert_eq!(kind(decision), expected, "{token} {at_ms}");
        }
    }

    #[test]
    fn dates_and_resets_follow_the_front_ends_clock() {
        let mut faults = faults(|config| {
            *config = FaultsConfig::mastodon();
            config.date_offset_ms = -1_500;
        });
        assert_eq!(faults.date_ms(10_400), Some(8_000));
        let throttle = faults.decide(10_400, "t", PLAIN).throttle;
        assert_eq!(throttle.map(|t| t.reset_at_ms), Some(300_000 - 1_500));
    }

    #[test]
    fn a_revoked_token_is_refused_and_counted_nowhere() {
        let mut faults = faults(|config| {
            config.revocations = vec![Revocation {
                token: "a".into(),
                after_ms: 100,
            }];
            config.throttles = vec![ThrottleRule::all(5, 1_000_000)];
        });
        for (at_ms, token, fault, remaining) in [
            (1_099, "a", None, Some(4)),
            (1_100, "a", Some(FaultKind::Unauthorized), None),
            (1_100, "b", None, Some(4)),
            (1_099, "a", None, Some(3)),
        ] {
            let decision = faults.decide(at_ms, token, PLAIN);
            assert_eq!(kind(decision), fault, "{token} {at_ms}");
            assert_eq!(decision.throttle.map(|it| it.remaining), remaining);
        }
    }

    #[test]
    fn hidings_are_of_a_token_and_a_time() {
        let hiding = |id: &str, token: Option<&str>| Hiding {
            id: id.into(),
            token: token.map(str::to_owned),
            after_ms: 50,
        };
        let hidings = vec![hiding("1", Some("a")), hiding("2", None)];
        let faults = faults(|config| config.hidings = hidings);
        for (at_ms, token, id, hides) in [
            (1_049, "a", "1", false),
            (1_050, "a", "1", true),
            (1_050, "b", "1", false),
            (1_050, "b", "2", true),
            (1_050, "b", "3", false),
        ] {
            assert_eq!(
                faults.hides(at_ms, token, &id.into()),
                hides,
                "{id} {at_ms}"
            );
        }
    }

    #[test]
    fn poison_is_found_among_others_and_by_its_share() {
        let poisoned = |poison_share| {
            faults(move |config| {
                config.poison_ids = vec!["7".into()];
                config.poison_answer = PoisonAnswer::Unprocessable;
                config.poison_share = poison_share;
            })
        };
        let faults = poisoned(0.0);
        let answer = Some(PoisonAnswer::Unprocessable);
        assert_eq!(faults.poisoned(&["6".into(), "8".into()]), None);
        assert_eq!(faults.poisoned(&["6".into(), "7".into()]), answer);
        let shared = poisoned(0.1);
        let hits = (100..2_100)
            .filter(|n: &i32| shared.poisoned(&[UpstreamId::new(n.to_string())]).is_some())
            .count();
        assert!((150..250).contains(&hits), "{hits}");
    }

    #[test]
    fn the_cap_on_posts_comes_back_with_its_period() {
        let mut faults = faults(|config| {
            config.posts_cap = Some(PostsCap {
                posts: 10,
                period_ms: 1_000,
                forbidden: false,
            });
        });
        faults.give(1_100, 9);
        assert!(!faults.is_capped(1_200));
        faults.give(1_200, 1);
        assert!(faults.is_capped(1_999));
        assert!(!faults.is_capped(2_000));
    }
}
