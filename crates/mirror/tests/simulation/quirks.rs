//! The same laws under servers that differ from Mastodon's documents.
//!
//! `DRIFTLINE_QUIRKS=since-id-ignored,no-date` tries these together.

use driftline_sim::{
    IdLayout,
    quirks::{Kinds, Limit, Quirk, Quirks},
};

use crate::{
    settings::Drawn,
    simulation::{Place, Simulation},
    trace,
};

#[test]
fn the_copy_equals_the_truth_under_each_quirk() {
    let quirks = tried().unwrap_or_else(|| Quirk::ALL.to_vec());
    driftline_sim::seeds::run(SEEDS_OF_EACH * quirks.len() as u64, |seed| {
        let quirk = quirks[seed as usize % quirks.len()];
        run(Drawn::quirky(seed / quirks.len() as u64, &[quirk]));
    });
}

#[test]
fn the_copy_equals_the_truth_under_quirks_together() {
    driftline_sim::seeds::run(SEEDS_TOGETHER, |seed| {
        let quirks = tried().unwrap_or_else(|| Quirks::draw(Quirk::ALL, seed).0);
        run(Drawn::quirky(seed, &quirks));
    });
}

fn run(drawn: Drawn) {
    trace::trace(0, &drawn);
    let quirks = drawn.quirks.clone();
    if let Err(violation) = Simulation::at(Place::sqlite(), drawn).run() {
        let names: Vec<String> = quirks.iter().map(Quirk::to_string).collect();
        panic!("DRIFTLINE_QUIRKS={}: {violation}", names.join(","));
    }
}

/// The quirks that the environment names.
fn tried() -> Option<Vec<Quirk>> {
    let names = std::env::var("DRIFTLINE_QUIRKS").ok()?;
    let quirks = names.split(',').filter(|name| !name.is_empty());
    Some(quirks.map(|name| name.parse().expect("a quirk")).collect())
}

impl Drawn {
    /// What a seed stands for at a server with these quirks.
    pub(crate) fn quirky(seed: u64, quirks: &[Quirk]) -> Self {
        let mut drawn = Self::of(seed);
        drawn.quirks = quirks.to_vec();
        drawn.world.quirks = Quirks::of(quirks, seed);
        drawn.access.reads = true;
        if quirks.contains(&Quirk::LookUpsNeedToken) {
            drawn.access.token = "";
        }
        // The IDs of the one server that is known to do so. It has no streams.
        let is_snac = |quirk: &Quirk| match quirk {
            Quirk::EditsChangeIds | Quirk::BoundsByPlace => true,
            Quirk::SecondsUnordered => seed.is_multiple_of(2),
            _ => false,
        };
        if quirks.iter().any(is_snac) {
            drawn.world.layout = IdLayout::Snac;
            drawn.world.quirks.bounds_by_place = Kinds::ALL;
            drawn.settings.id_order = None;
            drawn.streams = false;
        }
        drawn
    }

    /// Whether only the newest page may be had.
    pub(crate) fn ignores_bounds(&self) -> bool {
        let ignoring = [Quirk::MaxIdIgnored, Quirk::BoundsIgnored];
        self.quirks.iter().any(|quirk| ignoring.contains(quirk))
    }

    /// How many posts the server slices for a page at most, before it filters them: where that is
    /// less than it says, fewer filtered posts in a row hide what lies among them.
    pub(crate) fn page_places(&self) -> u16 {
        let page_limit = self.world.page_limit;
        match self.world.quirks.limit {
            Limit::Capped(most) => page_limit.min(most),
            Limit::Honoured | Limit::Ignored(_) => page_limit,
        }
    }
}

const SEEDS_OF_EACH: u64 = 1;
const SEEDS_TOGETHER: u64 = 8;
