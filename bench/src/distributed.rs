//! `distributed`: what four sources of four instances commit to a store that a Citus cluster has, and a
//! page of its public timeline, next to the same on one PostgreSQL.

use std::time::Instant;

use clap::Args;
use driftline_db::testing::Cluster;
use driftline_store::{
    SecretUrl, Store, Target, distribution,
    timeline::{self, Range},
};

use crate::{
    Effort,
    commits::{Writers, commits},
    failure::Failure,
    pages,
    rounds::Spread,
    table::Table,
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
    let target = |url: &str, name: &str, round| Target::Postgres {
        url: SecretUrl::new(url),
        schema: Some(format!("bench_{}_{name}_{round}", std::process::id())),
    };
    let (mut single, mut distributed) = (Figures::default(), Figures::default());
    for round in 0..effort.rounds(9) {
        let on_one = target(cluster.url(), "single", round);
        let on_nodes = target(&options.database_url, "distributed", round);
        let store = Store::open(on_nodes.clone())?;
        let done = distribution::distribute(&store, options.shards, |_| ());
        done.map_err(|error| Failure::new(error.to_string()))?;
        store.close_blocking();
        for (target, figures) in [(&on_one, &mut single), (&on_nodes, &mut distributed)] {
            let committed = commits(target, Writers::new(1, 4), &pages)?;
            figures.commits.push(committed.per_s);
            figures.page_ms.push(public_page_ms(target)?);
        }
    }
    let mut table = Table::new(
        format!(
            "distributed: {} pages of {} posts a source, 4 sources of 4 instances",
            pages.len(),
            pages::LIMIT
        ),
        ["what", "Citus", "one PostgreSQL", "times"],
    );
    for (what, on_nodes, on_one, digits) in [
        ("commits/s", &distributed.commits, &single.commits, 0),
        (
            "public timeline, the newest 40, p50 in ms",
            &distributed.page_ms,
            &single.page_ms,
            2,
        ),
    ] {
        let times = on_nodes.iter().zip(on_one).map(|(nodes, one)| nodes / one);
        table.row([
            what.to_owned(),
            Spread::of(on_nodes.iter().copied(), digits).to_string(),
            Spread::of(on_one.iter().copied(), digits).to_string(),
            Spread::of(times, 2).to_string(),
        ]);
    }
    table.print();
    Ok(())
}

/// Of each round.
#[derive(Default)]
struct Figures {
    commits: Vec<f64>,
    page_ms: Vec<f64>,
}

/// The median time of a page of the public timeline, ms.
fn public_page_ms(target: &Target) -> Result<f64, Failure> {
    let store = Store::open(target.clone())?;
    let range = Range {
        limit: 40,
        ..Range::default()
    };
    let mut times = Vec::new();
    for _ in 0..READS {
        let start = Instant::now();
        let posts = store.read_blocking(move |tx| {
            timeline::public(tx, &range, driftline_store::Viewer::Anonymous)
        })?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        if posts.len() != usize::from(range.limit) {
            return Err(Failure::new(format!("{} posts were shown", posts.len())));
        }
    }
    store.close_blocking();
    Ok(Spread::of(times, 2).median)
}

const READS: usize = 100;
