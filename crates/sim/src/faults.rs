//! What goes wrong with each request.

use std::collections::HashMap;

use driftline_core::answer::Throttle;

use crate::{
    chance::{Chance, hash_text, mix},
    config::SpanMs,
    faults_config::{FaultKind, FaultsConfig},
    throttles::Throttles,
};

/// Decides what each request meets. A token's fate depends on the seed, the
/// token and its own requests only, never on other clients.
#[derive(Debug, Clone)]
pub struct Faults {
    config: FaultsConfig,
    seed: u64,
    start_ms: i64,
    throttles: Throttles,
    clients: HashMap<String, Client>,
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
pub struct Verdict {
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
            throttles: Throttles::new(&config.throttles),
            clients: HashMap::new(),
            config,
            seed,
            start_ms,
        }
    }

    /// The configuration.
    pub fn config(&self) -> &FaultsConfig {
        &self.config
    }

    /// What a token's next request meets at a time, Unix ms. `paged` says
    /// whether it carries `since_id`, `max_id` or `min_id`.
    ///
    /// A used-up budget comes first, then mishaps, outages and chance.
    pub fn verdict(&mut self, now_ms: i64, token: &str, paged: bool) -> Verdict {
        let mut chance = self.next_chance(token);
        let round_trip_ms = draw(&mut chance, self.config.round_trip_ms);
        let drawn = self.drawn(&mut chance);
        let budget = if self.config.budget_per_token {
            token
        } else {
            ""
        };
        let ruling = self.throttles.count(now_ms, budget, paged);
        let kind = if ruling.refused {
            Some(FaultKind::Throttled)
        } else {
            self.next_mishap(now_ms, token)
                .or_else(|| self.outage(now_ms))
                .or(drawn)
        };
        let fault = kind.map(|kind| {
            let hold_ms = match kind {
                FaultKind::Stall => draw(&mut chance, self.config.stall_ms),
                FaultKind::Delay => draw(&mut chance, self.config.delay_ms),
                _ => 0,
            };
            Fault { kind, hold_ms }
        });
        let mut throttle = ruling.tightest;
        if kind == Some(FaultKind::Throttled) && !ruling.refused {
            throttle = Some(Throttle {
                limit: throttle.map_or(SPURIOUS_LIMIT, |throttle| throttle.limit),
                remaining: 0,
                reset_at_ms: now_ms + draw(&mut chance, self.config.throttled_reset_ms),
            });
        }
        let throttle = throttle
            .filter(|_| self.config.throttle_headers)
            .map(|throttle| Throttle {
                reset_at_ms: throttle.reset_at_ms + self.config.date_offset_ms,
                ..throttle
            });
        Verdict {
            fault,
            throttle,
            round_trip_ms,
        }
    }

    /// What the `Date` header says at a time, Unix ms floored to a second.
    pub fn date_ms(&self, now_ms: i64) -> Option<i64> {
        self.config
            .date_header
            .then(|| (now_ms + self.config.date_offset_ms).div_euclid(1000) * 1000)
    }

    fn client(&mut self, token: &str) -> &mut Client {
        let mishaps = self.config.mishaps.len();
        self.clients
            .entry(token.to_owned())
            .or_insert_with(|| Client {
                requests: 0,
                met: vec![false; mishaps],
                just_met: false,
            })
    }

    fn next_chance(&mut self, token: &str) -> Chance {
        let client = self.client(token);
        client.requests += 1;
        let number = client.requests;
        Chance::stream(mix(mix(self.seed, hash_text(token)), number), 0)
    }

    fn drawn(&self, chance: &mut Chance) -> Option<FaultKind> {
        let mut draw = chance.share();
        self.config.shares().into_iter().find_map(|(kind, share)| {
            let hit = draw < share;
            draw -= share.max(0.0);
            hit.then_some(kind)
        })
    }

    fn next_mishap(&mut self, now_ms: i64, token: &str) -> Option<FaultKind> {
        let since_start_ms = now_ms - self.start_ms;
        let due = self
            .config
            .mishaps
            .iter()
            .map(|mishap| (mishap.after_ms <= since_start_ms, mishap.fault))
            .collect::<Vec<_>>();
        let client = self.client(token);
        if std::mem::take(&mut client.just_met) {
            return None;
        }
        let (met, fault) = client
            .met
            .iter_mut()
            .zip(due)
            .find_map(|(met, (due, fault))| (due && !*met).then_some((met, fault)))?;
        *met = true;
        client.just_met = true;
        Some(fault)
    }

    fn outage(&self, now_ms: i64) -> Option<FaultKind> {
        let since_start_ms = now_ms - self.start_ms;
        self.config
            .outages
            .iter()
            .find(|outage| {
                (outage.after_ms..outage.after_ms.saturating_add(outage.for_ms))
                    .contains(&since_start_ms)
            })
            .map(|outage| outage.fault)
    }
}

fn draw(chance: &mut Chance, span: SpanMs) -> i64 {
    chance.between(span.min, span.max).max(0)
}

/// The limit that a 429 out of the blue reports where there is no rule.
const SPURIOUS_LIMIT: u32 = 300;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults_config::{Mishap, Outage};

    #[test]
    fn a_tokens_fate_does_not_depend_on_others() {
        let fates = |others: bool| {
            let mut faults = Faults::new(FaultsConfig::hard(), 5, 0);
            (0..200)
                .map(|n| {
                    if others {
                        faults.verdict(n * 10_000, "other", true);
                    }
                    faults.verdict(n * 10_000, "mine", true)
                })
                .collect::<Vec<_>>()
        };
        let alone = fates(false);
        assert_eq!(alone, fates(true));
        assert!(alone.iter().any(|verdict| verdict.fault.is_some()));
        assert!(alone.iter().any(|verdict| verdict.fault.is_none()));
    }

    #[test]
    fn every_share_is_drawn_as_often_as_it_says() {
        let mut faults = Faults::new(
            FaultsConfig {
                throttles: Vec::new(),
                ..FaultsConfig::hard()
            },
            1,
            0,
        );
        let mut seen: HashMap<FaultKind, f64> = HashMap::new();
        for n in 0..40_000 {
            if let Some(fault) = faults.verdict(n, "t", false).fault {
                *seen.entry(fault.kind).or_default() += 1.0 / 40_000.0;
            }
        }
        for (kind, share) in FaultsConfig::hard().shares() {
            let seen = seen.get(&kind).copied().unwrap_or_default();
            assert!((seen - share).abs() < 0.004, "{kind:?}: {seen}");
        }
    }

    #[test]
    fn outages_last_and_mishaps_happen_once_for_each_token() {
        let config = FaultsConfig {
            outages: vec![Outage {
                after_ms: 100,
                for_ms: 50,
                fault: FaultKind::Unavailable,
            }],
            mishaps: vec![
                Mishap {
                    after_ms: 200,
                    fault: FaultKind::Cut,
                },
                Mishap {
                    after_ms: 300,
                    fault: FaultKind::Html,
                },
            ],
            ..FaultsConfig::default()
        };
        let mut faults = Faults::new(config, 1, 1_000);
        let mut kind = |at_ms: i64, token| {
            let verdict = faults.verdict(1_000 + at_ms, token, false);
            verdict.fault.map(|fault| fault.kind)
        };
        assert_eq!(kind(99, "a"), None);
        assert_eq!(kind(100, "a"), Some(FaultKind::Unavailable));
        assert_eq!(kind(149, "a"), Some(FaultKind::Unavailable));
        assert_eq!(kind(150, "a"), None);
        assert_eq!(kind(205, "a"), Some(FaultKind::Cut));
        assert_eq!(kind(206, "a"), None);
        assert_eq!(kind(900, "b"), Some(FaultKind::Cut));
        assert_eq!(kind(901, "b"), None, "never two in a row");
        assert_eq!(kind(902, "b"), Some(FaultKind::Html));
        assert_eq!(kind(903, "b"), None);
    }

    #[test]
    fn dates_and_resets_follow_the_front_ends_clock() {
        let config = FaultsConfig {
            date_offset_ms: -1_500,
            ..FaultsConfig::mastodon()
        };
        let mut faults = Faults::new(config, 1, 0);
        assert_eq!(faults.date_ms(10_400), Some(8_000));
        let throttle = faults.verdict(10_400, "t", false).throttle;
        assert_eq!(throttle.map(|t| t.reset_at_ms), Some(300_000 - 1_500));
    }
}
