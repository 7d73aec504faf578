//! The demo's world and the settings that fit it.

use driftline_core::{
    refresh::{AgeBand, AgeTable, RefreshPlan},
    timeline::{Backfill, Rung, Settings, Streaming},
};
use driftline_sim::{Growth, WorldConfig};

use crate::{duration::show_ms, error::CliError};

/// A demo of some length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene {
    for_ms: i64,
}

impl Scene {
    /// A demo that takes this long.
    ///
    /// # Errors
    /// [`CliError::Usage`] if that is too short for the last rung.
    pub(super) fn lasting(for_ms: i64) -> Result<Self, CliError> {
        if for_ms < SHORTEST_MS {
            return Err(CliError::usage(
                "the demo needs at least 20s: the last posts are read again 13.5s after they were published",
            ));
        }
        Ok(Self { for_ms })
    }

    /// The world: it falls silent early enough for the last rung to pass.
    pub(super) fn world(self) -> WorldConfig {
        WorldConfig {
            publish_for_ms: Some(self.publish_ms()),
            growth: Some(Growth {
                half_life_ms: HALF_LIFE_MS,
                ..Growth::default()
            }),
            ..WorldConfig::demo()
        }
    }

    /// How long posts are published.
    pub(super) fn publish_ms(self) -> i64 {
        self.for_ms - SILENCE_MS
    }

    /// The request budget in words.
    pub(super) fn budget(self) -> String {
        match self.world().faults.throttles.first() {
            Some(rule) => format!(
                "a budget of {} requests in {}",
                rule.limit,
                show_ms(rule.window_ms)
            ),
            None => "no request budget".into(),
        }
    }

    /// When Driftline refreshes: the default table's first ages, in which minutes are fractions of a
    /// second.
    pub(super) fn plan(self) -> RefreshPlan {
        let band = |below_ms, every_ms| AgeBand { below_ms, every_ms };
        let bands = vec![band(HALF_LIFE_MS, 2_000), band(10 * self.for_ms, 5_000)];
        RefreshPlan {
            ages: AgeTable::new(bands, SKEW_MS).unwrap_or_default(),
            ..RefreshPlan::default()
        }
    }

    /// Driftline's settings: the default ladder, of which the day is scaled
    /// down to 13.5 s. The world's posts are backdated by at most 8 s and all
    /// but one in 17,000 are at most 5.13 s late.
    pub(super) fn settings(self) -> Settings {
        Settings {
            every_ms: EVERY_MS,
            spacing_ms: 50,
            backfill: Backfill::All,
            second_look_ms: 5_000,
            second_look_period_ms: 1_000,
            rungs: vec![Rung {
                age_ms: LAST_RUNG_MS,
                period_ms: 1_000,
            }],
            rung_share_percent: 100,
            // The three are compared at polling.
            stream: Streaming::Off,
            ..Settings::default()
        }
    }
}

/// The time between two polls, the same for all.
pub(super) const EVERY_MS: i64 = 1_000;
/// A post that stays this long is there when the last rung reads posts of its age, however late it
/// became visible.
pub(super) const LAST_RUNG_MS: i64 = 13_500;
const SHORTEST_MS: i64 = 20_000;
/// From the last post's creation to the end.
const SILENCE_MS: i64 = LAST_RUNG_MS + 1_500;
/// Posts have half of what they will ever get by this age.
const HALF_LIFE_MS: i64 = 10_000;
/// Longer than any of the world's posts is dated ahead.
const SKEW_MS: i64 = 300_000;
