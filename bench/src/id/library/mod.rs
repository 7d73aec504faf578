//! The generators as libraries: ns an ID, without I/O, next to ferroid's.

mod ferroid;
mod ours;
mod timing;

use std::time::Duration;

use driftline_id::clock::{Clock as _, TickedClock};

use self::timing::Extent;
use crate::{
    Effort,
    failure::Failure,
    rounds::Pairs,
    table::{Table, met},
};

/// A generator in one of its forms, and the measurement of it.
struct Contestant {
    name: &'static str,
    measure: Box<dyn Fn(Extent) -> Result<f64, Failure>>,
}

impl Contestant {
    fn new(name: &'static str, measure: impl Fn(Extent) -> Result<f64, Failure> + 'static) -> Self {
        Self {
            name,
            measure: Box::new(measure),
        }
    }

    fn figure(&self, extent: Extent) -> Result<f64, Failure> {
        (self.measure)(extent).map_err(|failure| Failure::new(format!("{}: {failure}", self.name)))
    }
}

/// A condition under which IDs are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    /// Nothing but the generator's own cost, by its one owner.
    Exclusive,
    /// The same, in the form that threads can share.
    Shared,
    /// The same, while two threads share it. A lane gives up the order between threads, and is compared with
    /// the peer next to the form that keeps it.
    SharedByTwo,
    /// Twitter's layout, whose sequence caps a node.
    Twitter,
    /// The same, while two threads share it.
    TwitterByTwo,
    /// Batches of a thousand IDs, with nothing to hold them back; ferroid makes them one by one.
    Batch,
}

impl Condition {
    const ALL: [Self; 6] = [
        Self::Exclusive,
        Self::Shared,
        Self::SharedByTwo,
        Self::Twitter,
        Self::TwitterByTwo,
        Self::Batch,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
            Self::SharedByTwo => "shared, 2 threads",
            Self::Twitter => "Twitter",
            Self::TwitterByTwo => "Twitter, 2 threads",
            Self::Batch => "batch of 1000",
        }
    }

    /// The most of the peer's time, and the most ns.
    const fn target(self) -> (f64, f64) {
        match self {
            Self::Exclusive | Self::Shared | Self::SharedByTwo => (1.0, f64::INFINITY),
            Self::Twitter | Self::TwitterByTwo => (TIE, CAP_NS * CAP_TARGET),
            Self::Batch => (1.0, BATCH_TARGET_NS),
        }
    }
}

/// Measures each form of ours next to the form of the peer, in turns.
pub(super) fn run(effort: Effort) -> Result<(), Failure> {
    let (unthrottled_ms, sustained_ms) = if effort.quick { (5, 20) } else { (60, 250) };
    let unthrottled = Extent::Unthrottled(Duration::from_millis(unthrottled_ms));
    let extent = |condition| match condition {
        Condition::Twitter | Condition::TwitterByTwo => Extent::Sustained(sustained_ms),
        _ => unthrottled,
    };
    let clock = TickedClock::start();
    let mut pairs = Vec::new();
    for condition in Condition::ALL {
        for ours in ours::all(condition, &clock) {
            pairs.push((condition, ours, ferroid::of(condition), Pairs::new()));
        }
    }
    let rounds = effort.rounds(11);
    for _ in 0..rounds {
        for (condition, ours, peer, figures) in &mut pairs {
            let extent = extent(*condition);
            figures.round([&*ours, &*peer], |contestant| {
                // The clock rests a second after its last use; ferroid's never does.
                clock.fresh_us();
                contestant.figure(extent)
            })?;
        }
    }
    let mut table = Table::new(
        format!(
            "id: ns/ID next to ferroid 2, {rounds} interleaved rounds; un-throttled by a sequence of 22 bits but for \
             Twitter's layout, whose cap is {CAP_NS:.2} ns"
        ),
        "condition | Driftline | ns/ID | peer | ns/ID | ratio | target | met",
    );
    for (condition, ours, peer, figures) in &pairs {
        let [ns, peer_ns] = [0, 1].map(|way| figures.of(way, |ns| *ns, 2));
        let ratio = figures.ratio(0, 1, |ns| *ns);
        let (of_peer, most_ns) = condition.target();
        let is_met = met(ns.median < peer_ns.median * of_peer && ns.median <= most_ns);
        let or_less = match most_ns.is_finite() {
            true => format!(", <= {most_ns:.1} ns"),
            false => String::new(),
        };
        let (name, ours, peer) = (condition.name(), ours.name, peer.name);
        table.row(format!(
            "{name} | {ours} | {ns} | {peer} | {peer_ns} | {ratio} | < {of_peer} of it{or_less} | {is_met}"
        ));
    }
    table.print();
    println!(
        "Driftline reads the system's time each ms; ferroid read it once, then counts a ticker of monotonic time"
    );
    Ok(())
}

const BATCH: usize = 1_000;
const BATCH_TARGET_NS: f64 = 1.1;
/// A ms of 4096 IDs.
const CAP_NS: f64 = 1e6 / 4_096.0;
const CAP_TARGET: f64 = 1.05;
/// Figures this near to each other at the cap are equal.
const TIE: f64 = 1.01;
