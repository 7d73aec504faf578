//! Whatever holders do and whatever their clocks do, no ID comes twice.

use std::collections::{BTreeMap, BTreeSet};

use driftline_id::{
    Field, Generator, Layout,
    clock::{Clock, ManualClock},
    window::{BeginError, Lease, LeaseStore, WindowConfig},
};
use driftline_sim::seeds;
use driftline_store::{
    Store,
    node_lease::{NodeLease, NodeLeaseError, NodeLeases},
};

use super::{LEASE_MARGIN_MS, NOW_US, execute, generator, layout, make, pass};

on_both!(no_id_comes_twice);

const SEEDS: u64 = 30;
const STEPS: usize = 200;
const HOLDERS: usize = 4;

/// Two nodes, fewer than there are holders.
const SCARCE: Layout = layout("scarce", &[Field::node("node", 1), Field::sequence(21)]);

const SHORT: WindowConfig = WindowConfig {
    length_ms: 20,
    max_clock_skew_ms: 1_000,
};

fn no_id_comes_twice(store: &Store) {
    let mut seen = Seen::default();
    let mut ran = 0;
    seeds::in_turn(SEEDS, |seed| {
        execute(store, "delete from node_lease");
        let mut world = World::new(store, seed);
        (0..STEPS).for_each(|_| world.step());
        seen.add(&world.seen);
        ran += 1;
    });
    // Else the test would prove nothing.
    assert!(ran < SEEDS || seen.is_enough(), "{seen:?}");
}

struct World {
    store: Store,
    holders: Vec<Holder>,
    ids: BTreeSet<u64>,
    /// By node: the fence of who acquired it last, unless that one released it.
    current: BTreeMap<u64, Option<u64>>,
    random: u64,
    seen: Seen,
}

struct Holder {
    nodes: NodeLeases,
    clock: ManualClock,
    held: Option<(NodeLease, Generator<ManualClock>)>,
}

/// How often what matters has happened.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    ids: usize,
    taken_over: usize,
    ahead_of_the_clock: usize,
    lost: usize,
    used_after_loss: usize,
    released: usize,
    passed_over: usize,
}

impl World {
    fn new(store: &Store, seed: u64) -> World {
        let holder = |n: usize| Holder {
            nodes: NodeLeases::new(store.clone(), SCARCE, SHORT, format!("holder {n}")),
            clock: ManualClock::at_us(NOW_US),
            held: None,
        };
        World {
            store: store.clone(),
            holders: (0..HOLDERS).map(holder).collect(),
            ids: BTreeSet::new(),
            current: BTreeMap::new(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            seen: Seen::default(),
        }
    }

    fn roll(&mut self, below: i64) -> i64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) as i64 % below
    }

    fn step(&mut self) {
        let n = self.roll(HOLDERS as i64) as usize;
        match self.roll(100) {
            0..25 => self.make(n),
            25..52 => self.renew(n),
            52..64 if self.holders[n].held.is_none() => self.acquire(n),
            52..64 => self.make(n),
            64..67 => self.holders[n].held = None,
            67..71 => self.release(n),
            71..79 => {
                let ms = [50, LEASE_MARGIN_MS / 2, LEASE_MARGIN_MS + 100][self.roll(3) as usize];
                pass(&self.store, ms);
            }
            79..90 => {
                let us = self.roll(15_000);
                self.holders.iter().for_each(|h| h.clock.advance_us(us));
            }
            90..97 => {
                let us = self.roll(60_000) - 30_000;
                self.holders[n].clock.advance_us(us);
            }
            97..98 => {
                let us = self.roll(4_000_000);
                self.holders.iter().for_each(|h| h.clock.advance_us(us));
            }
            _ => {
                let us = self.roll(4_000_000) - 2_000_000;
                self.holders[n].clock.advance_us(us);
            }
        }
    }

    fn make(&mut self, n: usize) {
        let Some((lease, ids)) = &mut self.holders[n].held else {
            return;
        };
        let is_current = self.current[&lease.node().number()] == Some(lease.fence());
        for id in make(ids, 3) {
            assert!(self.ids.insert(id), "{id} came twice, now to holder {n}");
            self.seen.ids += 1;
            self.seen.used_after_loss += usize::from(!is_current);
        }
    }

    fn acquire(&mut self, n: usize) {
        let holder = &mut self.holders[n];
        let now_us = holder.clock.now_us();
        match holder.nodes.acquire(now_us) {
            Ok((lease, window)) => {
                let number = lease.node().number();
                self.seen.ahead_of_the_clock += usize::from(window.from_us() > now_us);
                self.seen.passed_over += usize::from(number > 0);
                let last = self.current.insert(number, Some(lease.fence()));
                self.seen.taken_over += usize::from(last.flatten().is_some());
                holder.held = Some((lease, generator(window, &holder.clock)));
            }
            Err(
                NodeLeaseError::AllHeld { .. }
                | NodeLeaseError::Begin {
                    error: BeginError::ClockBehind { .. },
                    ..
                },
            ) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn renew(&mut self, n: usize) {
        let holder = &mut self.holders[n];
        let Some((lease, _)) = &mut holder.held else {
            return;
        };
        let now_us = holder.clock.now_us();
        let is_due = now_us >= lease.due_us();
        let is_current = self.current[&lease.node().number()] == Some(lease.fence());
        match lease.renew(now_us) {
            Ok(()) => assert!(is_current || !is_due, "it was taken over, and renewed"),
            Err(NodeLeaseError::Lost { .. }) => {
                assert!(!is_current, "it was lost without a new holder");
                self.seen.lost += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn release(&mut self, n: usize) {
        let Some((lease, ids)) = self.holders[n].held.take() else {
            return;
        };
        let (number, fence) = (lease.node().number(), lease.fence());
        let is_current = self.current[&number] == Some(fence);
        match lease.release(ids.retire()) {
            Ok(()) => {
                assert!(is_current, "it was taken over, and released");
                self.current.insert(number, None);
                self.seen.released += 1;
            }
            Err(NodeLeaseError::Lost { .. }) => {
                assert!(!is_current, "it was lost without a new holder");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

impl Seen {
    fn add(&mut self, other: &Seen) {
        self.ids += other.ids;
        self.taken_over += other.taken_over;
        self.ahead_of_the_clock += other.ahead_of_the_clock;
        self.lost += other.lost;
        self.used_after_loss += other.used_after_loss;
        self.released += other.released;
        self.passed_over += other.passed_over;
    }

    fn is_enough(&self) -> bool {
        let least = [
            self.taken_over,
            self.ahead_of_the_clock,
            self.lost,
            self.used_after_loss,
            self.released,
            self.passed_over,
        ];
        self.ids > 500 && least.iter().all(|&count| count > 10)
    }
}
