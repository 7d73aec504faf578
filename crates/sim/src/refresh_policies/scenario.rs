use super::{
    policy_run::{PolicyOutcome, Quota, run},
    world::World,
    world_config::{LENGTH_MS, Totals, WorldConfig},
};
use driftline_core::refresh::{AgeBand, AgeTable, RefreshPlan, ValueSettings};

/// A generated world and its upstream, to compare policies in.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name, by what distinguishes it.
    pub name: &'static str,
    /// Its posts.
    pub world_config: WorldConfig,
    /// The periods without quota, Unix ms.
    pub outages: Vec<(i64, i64)>,
    /// Posts in a request.
    pub batch: usize,
}

/// A policy to compare with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Baseline {
    /// The age table, stretched while the quota is short.
    Table,
    /// The same interval for posts of every age.
    Uniform,
    /// By value.
    Value,
}

impl Scenario {
    /// All of them, with this many new posts an hour and batches as large. The curve of the policy
    /// has its half-life at 80 minutes throughout.
    pub fn all(posts_per_hour: f64, batch: usize) -> Vec<Self> {
        let default = WorldConfig {
            posts_per_hour,
            ..WorldConfig::default()
        };
        let times_slower = |times: f64| WorldConfig {
            half_life_ms: default.half_life_ms * times,
            speeds: 1.0,
            ..default.clone()
        };
        let outages = vec![hours(228, 6), hours(456, 8)];
        let scenario = |name, world_config, outages: &[(i64, i64)]| Self {
            name,
            world_config,
            outages: outages.to_vec(),
            batch,
        };
        vec![
            scenario("as expected", default.clone(), &[]),
            scenario("4x slower, outages", times_slower(4.0), &outages),
            scenario("4x faster, outages", times_slower(0.25), &outages),
            scenario("10x slower, outages", times_slower(10.0), &outages),
            scenario("10x faster, outages", times_slower(0.1), &outages),
            scenario(
                "Pareto, revived, undone, outages",
                WorldConfig {
                    totals: Totals::Pareto { exponent: 1.1 },
                    revived: 0.1,
                    undone: 0.1,
                    speeds: 1.5,
                    ..default.clone()
                },
                &outages,
            ),
            scenario(
                "thin, 3x slower, outages",
                WorldConfig {
                    totals: Totals::LogNormal { median: 0.1 },
                    ..times_slower(3.0)
                },
                &outages,
            ),
        ]
    }

    /// The quota that carries this many refreshes per post on average.
    pub fn quota(&self, refreshes: f64) -> Quota {
        let per_hour = self.world_config.posts_per_hour * refreshes / self.batch as f64;
        Quota {
            batch: self.batch,
            every_ms: (HOUR_MS as f64 / per_hour) as i64,
            outages: self.outages.clone(),
        }
    }

    /// The outcome of each baseline in a world of this scenario with the quota for this many
    /// refreshes a post. The table runs first, and no other has more posts in any request than it.
    pub fn compare(
        &self,
        world: &World,
        refreshes: f64,
        baselines: &[Baseline],
    ) -> (PolicyOutcome, Vec<PolicyOutcome>) {
        let quota = self.quota(refreshes);
        let until_ms = LENGTH_MS;
        let table = Baseline::Table.plan(refreshes);
        let table = run(world, &quota, &table, until_ms, None);
        let outcomes = baselines.iter().map(|baseline| {
            let plan = baseline.plan(refreshes);
            run(world, &quota, &plan, until_ms, Some(&table))
        });
        let others = outcomes.collect();
        (table, others)
    }
}

impl Baseline {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "age table",
            Self::Uniform => "uniform",
            Self::Value => "value",
        }
    }

    fn plan(self, refreshes: f64) -> RefreshPlan {
        match self {
            Self::Table => RefreshPlan::default(),
            // A quarter of the interval that the quota carries: the stretch finds the rest.
            Self::Uniform => {
                let band = AgeBand {
                    below_ms: 30 * 24 * HOUR_MS,
                    every_ms: (180.0 * HOUR_MS as f64 / refreshes.max(0.01)).max(1.0) as i64,
                };
                RefreshPlan {
                    ages: AgeTable::new(vec![band], 0).unwrap_or_default(),
                    by_value: None,
                }
            }
            Self::Value => RefreshPlan {
                by_value: Some(ValueSettings::default()),
                ..RefreshPlan::default()
            },
        }
    }
}

fn hours(from: i64, length: i64) -> (i64, i64) {
    (from * HOUR_MS, (from + length) * HOUR_MS)
}

const HOUR_MS: i64 = 3_600_000;
