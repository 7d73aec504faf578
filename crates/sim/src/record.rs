//! What a world keeps of each post.

use driftline_core::post::{Counts, Visibility};

use crate::{
    growth::Growth,
    rng::{hash_text, mix},
    status::SimAuthor,
};

/// A post's whole life, known from its creation on. What can be computed from
/// the seed (text, author, counts) is not kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) value: u128,
    pub(crate) id_time_ms: i64,
    pub(crate) created_at_ms: i64,
    pub(crate) visible_at_ms: i64,
    /// `i64::MAX` if never, as for `edited_at_ms`.
    pub(crate) deleted_at_ms: i64,
    pub(crate) edited_at_ms: i64,
    /// The value that an edit gives it, where edits change IDs.
    pub(crate) edited_value: Option<u128>,
    /// What text, author and counts are computed from.
    pub(crate) genes: u64,
    /// The record that this one boosts.
    pub(crate) boost_of: Option<u32>,
    pub(crate) visibility: Visibility,
    pub(crate) federated: bool,
}

impl Record {
    pub(crate) fn is_visible(&self, now_ms: i64) -> bool {
        self.visible_at_ms <= now_ms && now_ms < self.deleted_at_ms
    }

    pub(crate) fn edited_at_ms(&self, now_ms: i64) -> Option<i64> {
        (self.edited_at_ms <= now_ms).then_some(self.edited_at_ms)
    }

    pub(crate) fn deleted_at_ms(&self, now_ms: i64) -> Option<i64> {
        (self.deleted_at_ms <= now_ms).then_some(self.deleted_at_ms)
    }

    /// The value of its ID at a time.
    pub(crate) fn value_at(&self, now_ms: i64) -> u128 {
        let edited = self.edited_value.filter(|_| self.edited_at_ms <= now_ms);
        edited.unwrap_or(self.value)
    }

    /// A boost has no content of its own.
    pub(crate) fn content(&self, now_ms: i64, has_accents: bool) -> String {
        if self.boost_of.is_some() {
            return String::new();
        }
        let edited = self.edited_at_ms(now_ms).is_some();
        let mut text = String::from(if edited { "<p>(edited)" } else { "<p>" });
        let words = 4 + self.genes % 20;
        for n in 0..words {
            if n > 0 || edited {
                text.push(' ');
            }
            let word = mix(self.genes, n + 100 * u64::from(edited)) as usize % WORDS.len();
            text.push_str(WORDS[word]);
        }
        if has_accents {
            text.push_str(" & flöde – 流れ");
        }
        text.push_str("</p>");
        text
    }

    pub(crate) fn author(&self, authors: u32, only: Option<u64>) -> SimAuthor {
        let number =
            only.unwrap_or_else(|| 1_000 + mix(self.genes, 7_001) % u64::from(authors.max(1)));
        let host = (self.federated && only.is_none())
            .then(|| HOSTS[(mix(number, 7_002) as usize) % HOSTS.len()]);
        SimAuthor {
            // The same name on two servers is two accounts.
            id: number + host.map_or(0, |host| hash_text(host) % 1_000_000 * 1_000_000),
            name: format!("drifter{number}"),
            host: host.map(str::to_owned),
        }
    }

    /// What is counted on it; nothing more once it is deleted. Without
    /// `growth`, replies, boosts and favourites grow with age towards a small
    /// limit, half of it after ten minutes. With it, nothing is counted on a
    /// boost.
    pub(crate) fn counts(&self, now_ms: i64, growth: Option<(&Growth, u64)>) -> Counts {
        let now_ms = now_ms.min(self.deleted_at_ms);
        let Some((growth, seed)) = growth else {
            let [replies, boosts, favourites] = self.small_counts(now_ms).map(Some);
            return Counts {
                replies,
                boosts,
                favourites,
                ..Counts::default()
            };
        };
        if self.boost_of.is_some() {
            return Counts {
                replies: Some(0),
                boosts: Some(0),
                favourites: Some(0),
                quotes: Some(0),
                views: Some(0),
            };
        }
        let age_ms = now_ms.saturating_sub(self.visible_at_ms).max(0);
        growth.counts(mix(seed, self.genes), age_ms)
    }

    fn small_counts(&self, now_ms: i64) -> [i64; 3] {
        let age_s = now_ms.saturating_sub(self.visible_at_ms).max(0) / 1000;
        [(1, 8), (2, 20), (3, 60)].map(|(gene, most)| {
            let heat = mix(self.genes, 8_000 + gene);
            let limit = (heat % most + 1) * if heat >> 58 == 0 { 50 } else { 1 };
            i64::try_from(limit).unwrap_or(0) * age_s / (age_s + 600)
        })
    }
}

const HOSTS: &[&str] = &["ebb.example", "flow.example", "spring.example"];
const WORDS: &[&str] = &[
    "amber", "anchor", "bay", "buoy", "cliff", "cloud", "coral", "current", "drift", "dune", "ebb",
    "eddy", "fjord", "foam", "gull", "harbour", "island", "jetty", "kelp", "lagoon", "mist",
    "moon", "neap", "oar", "pebble", "quay", "reef", "salt", "shell", "spray", "tide", "wave",
];
