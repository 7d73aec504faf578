//! `policy`: how much change goes unseen for how long under the value policy, next to the age table at equal
//! requests; in virtual time, so the same on every machine.

use clap::Args;
use driftline_sim::refresh_policies::{Baseline, PolicyOutcome, Scenario};

use crate::{
    Effort,
    failure::Failure,
    rounds::Spread,
    table::{Table, met},
};

/// What `policy` takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// New posts an hour
    #[arg(long, default_value_t = POSTS_PER_HOUR)]
    posts_per_hour: f64,
    /// Posts in a request
    #[arg(long, default_value_t = BATCH)]
    batch: usize,
    /// Refreshes a post that the quota carries, several with commas
    #[arg(long, value_delimiter = ',', default_values_t = BUDGETS)]
    budgets: Vec<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            posts_per_hour: POSTS_PER_HOUR,
            batch: BATCH,
            budgets: BUDGETS.to_vec(),
        }
    }
}

/// Runs both policies over the same worlds.
pub(crate) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let is_sound = |figure: f64| figure.is_finite() && (0.1..=10_000.0).contains(&figure);
    if !is_sound(options.posts_per_hour) || !options.budgets.iter().all(|it| is_sound(*it)) {
        return Err(Failure::new(
            "a rate and budgets lie between 0.1 and 10,000",
        ));
    }
    // A smoke run asks for fewer posts at once, as often.
    let (posts_per_hour, batch) = if effort.quick {
        (1.0, 2)
    } else {
        (options.posts_per_hour, options.batch.max(1))
    };
    let seeds = effort.rounds(3);
    let scenarios = Scenario::all(posts_per_hour, batch);
    let mut table = Table::new(
        format!(
            "policy: {posts_per_hour} new posts/h for 30 days after 30 days read at the start, \
             batches of {batch}, {seeds} seeds"
        ),
        "scenario | refreshes/post | policy | unseen change, hours | ÷ age table | refreshes | ÷ age table | longest wait, d | target | met",
    );
    for scenario in &scenarios {
        // By budget, of each seed.
        let mut results = vec![Vec::new(); options.budgets.len()];
        for seed in 1..=seeds as u64 {
            let world = scenario.world_config.world(seed);
            for (results, &budget) in results.iter_mut().zip(&options.budgets) {
                results.push(scenario.compare(&world, budget, &[Baseline::Value]));
            }
        }
        for (results, &budget) in results.iter().zip(&options.budgets) {
            let tables: Vec<&PolicyOutcome> = results.iter().map(|(table, _)| table).collect();
            let values: Vec<&PolicyOutcome> = results.iter().flat_map(|(_, value)| value).collect();
            table.row(row(scenario, budget, Baseline::Table, &tables, &tables));
            table.row(row(scenario, budget, Baseline::Value, &values, &tables));
        }
    }
    table.print();
    Ok(())
}

fn row(
    scenario: &Scenario,
    budget: f64,
    baseline: Baseline,
    outcomes: &[&PolicyOutcome],
    tables: &[&PolicyOutcome],
) -> String {
    let of = |figure: &dyn Fn(&PolicyOutcome) -> f64, digits| {
        Spread::of(outcomes.iter().map(|it| figure(it)), digits)
    };
    let ratios = |figure: fn(&PolicyOutcome) -> f64| {
        let both = outcomes.iter().zip(tables);
        both.map(move |(it, table)| figure(it) / figure(table))
    };
    let unseen = Spread::of(ratios(|it| it.unseen_h), 2);
    let is_target = baseline == Baseline::Value && BUDGETS.contains(&budget);
    let is_met = unseen.median <= TARGET && ratios(|it| it.unseen_h).all(|ratio| ratio <= 1.0);
    let target = match is_target {
        true => format!("<= {TARGET}, none > 1 | {}", met(is_met)),
        false => "|".to_owned(),
    };
    format!(
        "{} | {budget} | {} | {} | {unseen} | {} | {} | {} | {target}",
        scenario.name,
        baseline.name(),
        of(&|it| it.unseen_h, 0),
        of(&|it| it.refreshes as f64, 0),
        Spread::of(ratios(|it| it.refreshes as f64), 3),
        of(&|it| it.longest_ms as f64 / DAY_MS, 1)
    )
}

const POSTS_PER_HOUR: f64 = 20.0;
/// As many as an upstream looks up at once.
const BATCH: usize = 100;
/// What the age table takes by itself, a third and a sixth of it.
const BUDGETS: [f64; 3] = [42.0, 14.0, 7.0];
const TARGET: f64 = 0.6;
const DAY_MS: f64 = 86_400_000.0;
