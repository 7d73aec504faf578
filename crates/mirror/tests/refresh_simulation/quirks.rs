//! The same at servers whose look-ups differ from Mastodon's documents.
//!
//! `DRIFTLINE_QUIRKS=boosts-not-found,no-date` tries these together, whether they hold or not.

use driftline_core::{answer::LookUp, upstream_id::UpstreamId};
use driftline_sim::{
    IdLayout, Truth,
    quirks::{Quirk, Quirks},
    seeds,
};
use driftline_store::{LocalId, StoreError};

use super::Simulation;
use crate::stored_edits::{max_edits, stored_edits};

/// The quirks of look-ups under which the laws hold.
const HELD: &[Quirk] = &[
    Quirk::EntriesLeave,
    Quirk::BoostsNotFound,
    Quirk::OthersFound,
    Quirk::EditsChangeIds,
    Quirk::UnreadablePosts,
    Quirk::RepeatedKeys,
    Quirk::NoDate,
    Quirk::EscapesDiffer,
];

#[test]
fn posts_stay_fresh_and_alive_under_each_quirk() {
    let tried = std::env::var("DRIFTLINE_QUIRKS").ok();
    let tried: Option<Vec<Quirk>> = tried.map(|names| {
        let names = names.split(',').filter(|name| !name.is_empty());
        names.map(|name| name.parse().expect("a quirk")).collect()
    });
    seeds::run(SEEDS, |seed| {
        let quirks = tried
            .clone()
            .unwrap_or_else(|| vec![HELD[seed as usize % HELD.len()]]);
        Simulation::with_quirks(seed / HELD.len() as u64, &quirks).run();
    });
}

/// The quirks, of which some posts are left to be found.
pub(super) fn of_look_ups(quirks: &[Quirk], seed: u64) -> Quirks {
    let drawn = Quirks::of(quirks, seed);
    Quirks {
        other_found_share: drawn.other_found_share.min(0.1),
        ..drawn
    }
}

/// The layout of the one server that is known to change IDs, where they change.
pub(super) fn layout(quirks: &[Quirk]) -> IdLayout {
    match quirks.contains(&Quirk::EditsChangeIds) {
        true => IdLayout::Snac,
        false => IdLayout::default(),
    }
}

impl Simulation {
    /// What is taken for deleted was deleted, or hidden from every reader.
    pub(super) fn check_deletion(&mut self, id: &UpstreamId) {
        let now_ms = self.now_ms;
        let world = self.upstream.world();
        let is_hidden = world.hidden_at_ms(id).is_some_and(|at_ms| at_ms <= now_ms);
        let is_deleted = world
            .truth(now_ms)
            .posts
            .iter()
            .any(|post| post.id.stable() == id.stable() && post.deleted_at_ms.is_some());
        assert!(
            is_deleted || is_hidden,
            "{id} was taken for deleted, and is not"
        );
    }

    /// Whether a look-up of a post does not find it, for a quirk.
    pub(super) fn is_not_found(&mut self, id: &UpstreamId) -> bool {
        let found = self.access.look_up(&mut self.upstream, self.now_ms, id);
        self.access.reads && !matches!(found, Ok(LookUp::Found(_)))
    }

    /// Nothing is taken for an edit that is none.
    pub(super) fn check_edits(&mut self, truth: &Truth) {
        let posts = self.store.read_blocking(|tx| {
            let query = "select id, upstream_id from post";
            let rows = tx.query(query, &[], |row| Ok((row.i64(0)?, row.text(1)?)))?;
            Ok::<_, StoreError>(rows)
        });
        let edits = stored_edits(&self.store);
        for (id, upstream_id) in posts.unwrap() {
            let edits = edits.get(&LocalId::try_from(id).unwrap()).copied();
            let post = {
                let mut posts = truth.posts.iter();
                posts.find(|it| it.id.stable().as_str() == upstream_id)
            };
            if let (Some(edits), Some(post)) = (edits, post) {
                let most = max_edits(&mut self.upstream, post, self.now_ms);
                assert!(edits <= most, "{edits} edits were taken in: {post:?}");
            }
        }
    }
}

const SEEDS: u64 = 8;
