//! The generators as libraries: ns an ID, without I/O.

mod contestant;
mod ferroid;
mod ours;
mod random;
mod snowflakes;
mod timing;

use std::time::Duration;

use driftline_id::clock::{Clock as _, TickedClock};

use self::contestant::{Column, Contestant};
use crate::{
    Effort,
    failure::Failure,
    rounds::Spread,
    table::{Table, met},
};

/// Measures every generator in every column that it has.
pub(super) fn run(effort: Effort) -> Result<(), Failure> {
    let extent = if effort.quick {
        timing::Extent {
            unthrottled: Duration::from_millis(5),
            sustained_ms: 20,
            bursts: 10,
        }
    } else {
        timing::Extent {
            unthrottled: Duration::from_millis(60),
            sustained_ms: 250,
            bursts: 150,
        }
    };
    let clock = TickedClock::start();
    let mut contestants = Vec::from(ours::all(&clock));
    contestants.extend(ferroid::all());
    contestants.extend(snowflakes::all());
    contestants.extend(random::all());
    let rounds = effort.rounds(11);
    for _ in 0..rounds {
        for contestant in &mut contestants {
            // The clock rests a second after its last use; ferroid's never does.
            contestant.measure(extent, || {
                clock.fresh_us();
            })?;
        }
    }
    figures(&contestants, rounds).print();
    conditions(&contestants).print();
    targets(&contestants).print();
    Ok(())
}

fn figures(contestants: &[Contestant], rounds: usize) -> Table {
    let columns = Column::ALL.map(Column::name);
    let mut table = Table::new(
        format!("id: ns/ID, {rounds} interleaved rounds; un-throttled but for Twitter's layout"),
        ["generator", "version"].into_iter().chain(columns),
    );
    for contestant in contestants {
        let name = [contestant.name.to_owned(), contestant.version().to_owned()];
        let figures = Column::ALL.map(|column| {
            let spread = contestant.spread(column);
            spread.map_or_else(|| "-".to_owned(), |spread| spread.to_string())
        });
        table.row(name.into_iter().chain(figures));
    }
    table
}

fn conditions(contestants: &[Contestant]) -> Table {
    let mut table = Table::new(
        "id: what stands in for the layout's cap, and whether the time follows the system's",
        ["generator", "un-throttled by", "wall-correct"],
    );
    for contestant in contestants {
        table.row([
            contestant.name.to_owned(),
            contestant.unthrottled_by.to_owned(),
            contestant.clock.to_owned(),
        ]);
    }
    table
}

fn targets(contestants: &[Contestant]) -> Table {
    let mut table = Table::new(
        format!(
            "id: targets; at the cap of {CAP_NS:.2} ns, figures within {:.0} % of each other are equal",
            (TIE - 1.0) * 100.0
        ),
        [
            "column",
            "Driftline",
            "ns/ID",
            "best peer",
            "ns/ID",
            "ratio",
            "target",
            "met",
        ],
    );
    for (column, name) in TARGETS {
        let Some(ours) = contestants.iter().find(|c| c.name == name) else {
            continue;
        };
        let Some(figure) = ours.spread(column) else {
            continue;
        };
        let Some((peer, best)) = best_peer(contestants, column) else {
            continue;
        };
        let rounds = ours.figures(column).into_iter().flatten();
        let peers = peer.figures(column).into_iter().flatten();
        let ratio = Spread::of(rounds.zip(peers).map(|(ours, peer)| ours / peer), 2);
        let most = if column.is_capped() { TIE } else { 1.0 };
        let mut target = if column.is_capped() {
            format!("not behind, <= {:.1} ns", CAP_NS * CAP_TARGET)
        } else {
            "ahead".to_owned()
        };
        let mut is_met = figure.median < best.median * most;
        if column.is_capped() {
            is_met &= figure.median <= CAP_NS * CAP_TARGET;
        }
        if column == Column::Batch {
            target.push_str(&format!(", <= {BATCH_TARGET_NS} ns"));
            is_met &= figure.median <= BATCH_TARGET_NS;
        }
        table.row([
            column.name().to_owned(),
            name.to_owned(),
            figure.to_string(),
            peer.name.to_owned(),
            best.to_string(),
            ratio.to_string(),
            target,
            met(is_met),
        ]);
    }
    table
}

fn best_peer(contestants: &[Contestant], column: Column) -> Option<(&Contestant, Spread)> {
    let peers = contestants
        .iter()
        .filter(|c| c.package.is_some() && c.counts);
    let spreads = peers.filter_map(|peer| Some((peer, peer.spread(column)?)));
    spreads.min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))
}

/// Which of ours is held against the best peer of a column. A lane gives up the order between
/// threads, and is compared with the peers next to the form that keeps it.
const TARGETS: [(Column, &str); 9] = [
    (Column::Exclusive, ours::EXCLUSIVE),
    (Column::Shared, ours::SHARED),
    (Column::SharedByTwo, ours::SHARED),
    (Column::SharedByTwo, ours::LANE),
    (Column::Twitter, ours::EXCLUSIVE),
    (Column::TwitterByTwo, ours::SHARED),
    (Column::TwitterByTwo, ours::LANE),
    (Column::Batch, ours::EXCLUSIVE),
    (Column::Batch, ours::FILL),
];
const BATCH: usize = 1_000;
const BATCH_TARGET_NS: f64 = 1.1;
/// A ms of 4096 IDs.
const CAP_NS: f64 = 1e6 / 4_096.0;
const CAP_TARGET: f64 = 1.05;
/// Figures this near to each other at the cap are equal.
const TIE: f64 = 1.01;
