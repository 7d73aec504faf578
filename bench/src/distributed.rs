//! `distributed`: what four sources of four instances commit to a store that a Citus cluster has, and a
//! page of its public timeline, next to the same on one PostgreSQL.

use std::time::Instant;

use clap::Args;
use driftline_db::testing::Cluster;
use driftline_store::{
    Store, Viewer, distribution,
    timeline::{self, Range},
};

use crate::{
    Effort,
    commits::{Writers, commits},
    database::postgres_target,
    failure::Failure,
    pages,
    rounds::{Pairs, Spread},
    table::{Table, Target},
};

/// What it takes.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The database on the cluster's coordinator: postgres://USER@HOST:PORT/DATABASE. A schema stays
    /// behind for each round
    #[arg(long, value_name = "URL")]
    database_url: String,
    /// Into how many shards its stores are distributed
    #[arg(long, default_value_t = 8)]
    shards: u32,
}

/// Measures both in turn.
pub(crate) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let count = if effort.quick { 4 } else { 60 };
    let pages = pages::forward(u64::from(pages::LIMIT) * count)?;
    let cluster = Cluster::start()?;
    let mut pairs = Pairs::new();
    for round in 0..effort.rounds(9) {
        let schema = format!("bench_{}_{round}", std::process::id());
        let [on_nodes, on_one] = [&*options.database_url, cluster.url()]
            .map(|url| postgres_target(url, Some(schema.clone())));
        distribute(&on_nodes, options.shards)?;
        pairs.round([on_nodes, on_one], |target| {
            let committed = commits(&target, Writers::new(1, 4, false), &pages)?;
            Ok((committed.per_s, public_page_ms(&target)?))
        })?;
    }
    let mut table = Table::new(
        format!(
            "distributed: {} pages of {} posts a source, 4 sources of 4 instances",
            pages.len(),
            pages::LIMIT
        ),
        "what | Citus | one PostgreSQL | times | target | met",
    );
    table.compare("commits/s", &pairs, |(per_s, _)| *per_s, 0, Target::Any);
    let page = "public timeline, the newest 40, p50 in ms";
    table.compare(page, &pairs, |(_, page_ms)| *page_ms, 2, Target::Any);
    table.print();
    Ok(())
}

/// Makes a distributed store.
pub(crate) fn distribute(target: &driftline_store::Target, shards: u32) -> Result<(), Failure> {
    let store = Store::open(target.clone())?;
    let done = distribution::distribute(&store, shards, |_| ());
    done.map_err(|error| Failure::new(error.to_string()))?;
    store.close_blocking();
    Ok(())
}

/// The median time of a page of the public timeline, ms.
fn public_page_ms(target: &driftline_store::Target) -> Result<f64, Failure> {
    let store = Store::open(target.clone())?;
    let range = Range {
        limit: 40,
        ..Range::default()
    };
    let mut times = Vec::new();
    for _ in 0..READS {
        let start = Instant::now();
        let posts =
            store.read_blocking(move |tx| timeline::public(tx, &range, Viewer::Anonymous))?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        if posts.len() != usize::from(range.limit) {
            return Err(Failure::new(format!("{} posts were shown", posts.len())));
        }
    }
    store.close_blocking();
    Ok(Spread::of(times, 2).median)
}

const READS: usize = 100;
