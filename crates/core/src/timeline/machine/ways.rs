//! The ways of requesting a range, in turn, if the server may honour them.

use super::Machine;
use crate::{
    answer::Abilities,
    timeline::{
        abilities::Honoured,
        gap_ledger::{Gap, GapKind},
        request::{AnchorQuery, Bounds},
        scheme::IdScheme,
    },
    upstream_id::Key,
};

/// A way of requesting a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Upward from a stored post, by `min_id`.
    Up,
    /// Downward to a stored post, by `max_id` and `since_id`.
    Between,
    /// Downward, by `max_id` only.
    Down,
}

impl Machine {
    /// The bounds of a request for a range below `high`; `None` if the server honours none that can
    /// reach it.
    pub(super) fn bounds_of(
        &self,
        gap: &Gap,
        high: &Key,
        abilities: Abilities,
        now_ms: i64,
    ) -> Option<Bounds> {
        let (is_history, tries, order) = match &gap.kind {
            GapKind::Open { history, tries, .. } => (*history, *tries, &FILL_WAYS),
            GapKind::Provisional(read) => (false, read.tries, &LOOK_WAYS),
            GapKind::PassedOver { .. } | GapKind::Unrecoverable => return None,
        };
        let ways = order
            .iter()
            .filter(|way| self.is_usable(**way, abilities, now_ms));
        // History is read newest first, down to a part without stored posts.
        let ways = ways.filter(|way| !is_history || **way == Way::Down);
        let ways: Vec<Way> = ways.copied().collect();
        let round = tries / u32::try_from(ways.len()).ok().filter(|count| *count > 0)?;
        let way = ways[tries as usize % ways.len()];
        let scheme = self.scheme?;
        if scheme.names_posts() {
            if let Some(max_id) = self.place_below(high) {
                let anchor = None;
                return Some(Bounds::Back { max_id, anchor });
            }
            // Below the lowest post above the range, and each second time from further up.
            let lowest_above = AnchorQuery::Oldest {
                // A page from a post of its last time would begin in the middle of that time.
                at_least: match scheme.begin_of_time(high) == *high {
                    true => high.clone(),
                    false => scheme.end_of_time(high),
                },
                skip: skip(tries / 2),
            };
            return Some(match tries % 2 {
                0 => Bounds::Under {
                    anchor: lowest_above,
                    else_max_id: high.clone(),
                },
                _ => Bounds::Above(lowest_above),
            });
        }
        let anchor = self.anchor_for(&scheme, &gap.low, round);
        let (max_id, anchor) = match (way, anchor) {
            (Way::Up, Some(anchor)) => {
                let else_max_id = high.clone();
                return Some(Bounds::Forward {
                    anchor,
                    else_max_id,
                });
            }
            (Way::Between, anchor) => (high.clone(), anchor),
            (Way::Up | Way::Down, _) => (high.clone(), None),
        };
        Some(Bounds::Back { max_id, anchor })
    }

    /// True if [`Machine::bounds_of`] has bounds for every range that must be read.
    pub(super) fn can_ask_down(&self, abilities: Abilities, now_ms: i64) -> bool {
        self.scheme.is_some() && self.is_usable(Way::Down, abilities, now_ms)
    }

    fn is_usable(&self, way: Way, abilities: Abilities, now_ms: i64) -> bool {
        let honoured = &self.honoured;
        let is_usable = match way {
            Way::Up => abilities.min_id && honoured.min_id.is_usable(now_ms),
            // In a timeline with few posts, a page by `max_id` alone is just as short.
            Way::Between if !honoured.can_prove_both() => false,
            Way::Between if honoured.both.state == Honoured::Honoured => true,
            Way::Between => {
                honoured.both.is_usable(now_ms)
                    && honoured.max_id.is_usable(now_ms)
                    && honoured.since_id.is_usable(now_ms)
            }
            Way::Down => honoured.max_id.is_usable(now_ms),
        };
        // If bounds name listed posts, pages are requested from a post above the range.
        let names_posts = self.scheme.is_some_and(|scheme| scheme.names_posts());
        is_usable && (!names_posts || way == Way::Down)
    }

    /// The anchor of a range: the newest stored post at or below its low end, which a page must
    /// show to prove the range down to there. After each round without result it is twice as far
    /// down.
    fn anchor_for(&self, scheme: &IdScheme, low: &Key, round: u32) -> Option<AnchorQuery> {
        let precision_ms = self.precision_ms();
        let below = (precision_ms > 0)
            .then(|| scheme.floor(scheme.time_ms(low)?.div_euclid(precision_ms) * precision_ms))
            .flatten();
        let at_most = below.unwrap_or_else(|| low.clone());
        (!low.is_lowest()).then(|| AnchorQuery::Newest {
            at_most,
            skip: skip(round),
        })
    }
}

/// The number of suitable posts to skip after this number of tries.
fn skip(tries: u32) -> u32 {
    (1_u32 << tries.min(20)) - 1
}

const FILL_WAYS: [Way; 3] = [Way::Up, Way::Between, Way::Down];
const LOOK_WAYS: [Way; 3] = [Way::Between, Way::Down, Way::Up];
