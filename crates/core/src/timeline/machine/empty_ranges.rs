//! Ranges that appear empty, and the confirmation of that.
//!
//! An empty answer proves nothing: servers answer `[]` while a cache is cold, and cut pages before
//! they filter them. A range without shown posts therefore stays *unconfirmed* until other answers
//! confirm it. The machine requests the page whose first post must be the lowest known post above
//! the range, then pages from positions further down, then the first page again. The range is empty
//! only if both outer answers showed posts above it and none below.

use serde::{Deserialize, Serialize};

use super::{LookUpOutcome, Machine, Step, answers::Answer};
use crate::{
    answer::Abilities,
    clock::Deadline,
    timeline::{
        gap_ledger::{Gap, GapKind, Stretch},
        reading::Reading,
        request::{AnchorQuery, Bounds, Request, RequestPurpose},
        scheme::IdScheme,
    },
    upstream_id::{IdOrder, Key, UpstreamId},
};

/// A range for which an answer without a lower bound showed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct EmptyRange {
    low: Key,
    high: Key,
    /// The end of the time in which the last post above was listed, if that time is unread, too.
    #[serde(default)]
    end: Option<Key>,
    /// The rung of the look; `None` if the range is open.
    rung: Option<usize>,
    /// The index of the next request: 0 is the page above, then those further down, then the page
    /// above.
    stage: u32,
    /// The number of empty pages above. Each makes the next page begin higher up.
    empty_above: u32,
    /// The number of all empty pages above.
    empty: u32,
    /// The time since which it is unconfirmed, in Unix ms by the local clock.
    pub(super) since_ms: i64,
    /// The wait before the next request.
    pub(super) wait: Deadline,
    /// True if a stored post below `high` was looked up and is deleted. Others may be deleted, too.
    seen_gone: bool,
    /// The newest post below `high` that was looked up since and exists.
    seen_alive: Option<Key>,
    /// The oldest post from `high` on that was looked up since and exists.
    alive_above: Option<Key>,
    /// The `empty_above` of a page above that showed posts but not `alive_above`. The page is then
    /// requested once more.
    shown_from: Option<u32>,
    /// The stored post for whose look-up it waits.
    #[serde(default)]
    awaits: Option<Key>,
}

/// The position of a request relative to an unconfirmed range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The range from its upper end.
    Range,
    /// The range from further down.
    Below,
    /// The page above.
    Above,
}

impl Machine {
    /// The upper end of the requested range, if an answer shows no posts of the range or below it.
    /// The newest stored post below it may still exist
    /// ([`Stored::live_below`](super::Stored::live_below)).
    pub fn nothing_below<'a>(&self, request: &'a Request, reading: &Reading) -> Option<&'a Key> {
        let (_, high) = request.unbounded_range()?;
        let shows = reading
            .keys
            .iter()
            .chain(reading.passed.as_ref().map(|(_, oldest)| oldest));
        shows
            .min()
            .is_none_or(|oldest| oldest >= high)
            .then_some(high)
    }

    /// The range in which stored posts may be deleted, because the page above it shows none of
    /// them.
    pub(super) fn absent_below(&self, request: &Request, reading: &Reading) -> Option<(Key, Key)> {
        let (low, high) = request.unbounded_range()?;
        let range = self
            .empty_ranges
            .iter()
            .find(|range| range.is_of(low, high))?;
        let is_shown = self.nothing_below(request, reading).is_some()
            && position(request, high) == Position::Above
            && reading.oldest().is_some();
        (is_shown && range.seen_gone).then(|| (low.clone(), high.clone()))
    }

    /// Applies an answer that shows no posts of a range or below it.
    pub(super) fn showed_nothing(
        &mut self,
        answer: &Answer<'_>,
        rung: Option<usize>,
        new: EmptyRange,
    ) {
        if answer.request.unbounded_range().is_none() {
            return;
        }
        let now_ms = answer.received_at_ms;
        let is_it = |range: &EmptyRange| range.is_of(&new.low, &new.high);
        let Some(index) = self.empty_ranges.iter().position(is_it) else {
            self.empty_ranges.push(EmptyRange {
                rung,
                since_ms: now_ms,
                wait: Deadline::default(),
                ..new
            });
            return;
        };
        let high = &new.high;
        let is_full = self
            .honoured
            .is_surely_full(answer.reading.items, answer.request.page.limit);
        let range = &mut self.empty_ranges[index];
        let steps = self
            .scheme
            .map_or(0, |scheme| range.positions(&scheme).len()) as u32;
        let is_last = steps == 0 || range.stage > steps;
        match position(answer.request, high) {
            Position::Range => {}
            Position::Below => range.stage += 1,
            Position::Above if answer.reading.oldest().is_some() => {
                let alive = range.alive_above.as_ref();
                if alive.is_none_or(|alive| answer.reading.oldest() <= Some(alive)) {
                    if is_full && range.empty_above > 0 {
                        // A full page ended at the beginning of the range. The next one begins
                        // further down.
                        range.empty_above = 0;
                    } else if is_last {
                        self.conclude(index, answer);
                    } else {
                        range.stage += 1;
                    }
                } else if range.shown_from.is_none() {
                    range.shown_from = Some(range.empty_above);
                    range.empty_above = 0;
                } else {
                    // It showed posts twice, but never the one that exists.
                    self.is_out_of_reach(index, answer);
                }
            }
            Position::Above => self.above_was_empty(index, answer),
        }
    }

    /// Applies an answer without even the posts above. The anchor may be deleted, or the answer
    /// unreliable.
    fn above_was_empty(&mut self, index: usize, answer: &Answer<'_>) {
        let range = &mut self.empty_ranges[index];
        let now_ms = answer.received_at_ms;
        let anchor = answer.request.anchor.as_ref();
        let nothing_is_stored =
            anchor.is_none() && range.empty_above == 0 && answer.stored.live_below.is_none();
        range.stage = 0;
        range.empty = range.empty.saturating_add(1);
        range.empty_above = match anchor {
            Some(_) => (range.empty_above + 1).max(range.shown_from.unwrap_or(0)),
            None => 0,
        };
        let wait_ms = (FIRST_WAIT_MS << range.empty.min(16)).min(MAX_WAIT_MS);
        range.wait = Deadline::after(now_ms, wait_ms);
        let for_ms = now_ms - range.since_ms;
        if nothing_is_stored && range.empty >= MIN_EMPTY && for_ms >= EMPTY_FOR_MS {
            // No stored post is known that could be shown.
            self.is_empty(index, answer);
        } else if for_ms >= OUT_OF_REACH_MS {
            self.is_out_of_reach(index, answer);
        } else {
            self.suspect_anchor(anchor);
        }
    }

    /// Decides after an answer that shows the posts above and none below. If a stored post below
    /// still exists by a look-up, the timeline does not reach down to it any more, or hides the
    /// range. Without such a post the range is empty.
    fn conclude(&mut self, index: usize, answer: &Answer<'_>) {
        let (Some(live), Some(scheme)) = (&answer.stored.live_below, self.scheme) else {
            return self.is_empty(index, answer);
        };
        let id = scheme.id(live);
        let seen_alive = self.empty_ranges[index].seen_alive.as_ref();
        if seen_alive.is_some_and(|alive| alive >= live) || self.no_look_up_answers() {
            return self.is_out_of_reach(index, answer);
        }
        self.empty_ranges[index].awaits = Some(live.clone());
        self.look_up_first(&id);
    }

    /// Marks the range as read. The rungs find posts that arrive late in it.
    fn is_empty(&mut self, index: usize, answer: &Answer<'_>) {
        let range = self.empty_ranges.remove(index);
        if let Some(scheme) = self.scheme {
            // No post is below it, so all posts of the oldest post's time are shown.
            let oldest = answer.reading.oldest();
            let whole = oldest.map(|oldest| scheme.end_of_time(oldest));
            let begins_above = |end: &Key| {
                let max_id = answer.request.max_id.as_ref();
                max_id.is_none_or(|max_id| scheme.begin_of_time(max_id) >= *end)
                    || self.ended_walk(end, answer.reading)
            };
            let whole = whole.filter(|end| scheme.names_posts() && begins_above(end));
            let stretch = Stretch {
                low: range.low,
                high: whole.unwrap_or_default().max(range.high),
                at_ms: answer.reading.read_at_ms,
            };
            self.ledger.read(&stretch, &scheme, &answer.plan.ladder);
        }
    }

    fn is_out_of_reach(&mut self, index: usize, answer: &Answer<'_>) {
        let EmptyRange {
            low, high, rung, ..
        } = self.empty_ranges.remove(index);
        let Some(scheme) = self.scheme else {
            return;
        };
        self.ledger.give_up(&low, &high, &scheme);
        if let Some(rung) = rung {
            let ladder = &answer.plan.ladder;
            self.ledger.pass_over(&low, &high, &scheme, ladder);
            self.stats_of(rung).unreachable += 1;
        }
    }

    /// Applies the look-up of a post for which unconfirmed ranges may wait. If it proves nothing,
    /// the post below may exist, and the range may not be empty.
    pub(super) fn update_empty_ranges(&mut self, id: &UpstreamId, outcome: LookUpOutcome) {
        let Some(key) = self.scheme.and_then(|scheme| scheme.key(id).ok()) else {
            return;
        };
        for range in &mut self.empty_ranges {
            let is_below = key < range.high;
            range.awaits.take_if(|awaited| *awaited == key);
            match outcome {
                LookUpOutcome::Gone | LookUpOutcome::Hidden => {
                    range.seen_gone |= is_below;
                    range.alive_above.take_if(|alive| *alive == key);
                }
                LookUpOutcome::Found | LookUpOutcome::NotConfirmed if is_below => {
                    range.seen_alive = range.seen_alive.take().max(Some(key.clone()));
                }
                LookUpOutcome::Found => {
                    let lowest = range.alive_above.take().unwrap_or_else(|| key.clone());
                    range.alive_above = Some(lowest.min(key.clone()));
                }
                LookUpOutcome::NotConfirmed => {}
            }
        }
    }

    /// True if the emptiness of a range is being confirmed.
    pub(super) fn is_in_doubt(&self, low: &Key, high: &Key) -> bool {
        self.empty_ranges.iter().any(|range| range.is_of(low, high))
    }

    /// True if a gap overlaps an unconfirmed empty range.
    pub(super) fn is_unconfirmed(&self, gap: &Gap) -> bool {
        self.empty_ranges
            .iter()
            .any(|range| gap.overlaps(&range.low, range.end()))
    }

    /// Removes the empty ranges in a range after posts of it were shown.
    pub(super) fn end_empty_ranges(&mut self, low: &Key, high: &Key) {
        self.empty_ranges
            .retain(|range| range.end() <= low || range.low >= *high);
    }

    /// Removes empty ranges that are no longer listed as unread.
    pub(super) fn prune_empty_ranges(&mut self) {
        let gaps = self.ledger.gaps();
        self.empty_ranges.retain(|range| {
            gaps.iter().any(|gap| {
                let waits = matches!(gap.kind, GapKind::Open { .. } | GapKind::Provisional(_));
                waits && gap.overlaps(&range.low, range.end())
            })
        });
    }

    /// The next request for an unconfirmed range. The error is the time of the next one in Unix ms
    /// by the local clock, if there will be one.
    pub(super) fn due_empty_range(
        &self,
        abilities: Abilities,
        now_ms: i64,
    ) -> Result<Step, Option<i64>> {
        let ready = self.empty_ranges.iter();
        let ready = ready.filter(|range| range.awaits.is_none());
        let Some(range) = ready.clone().find(|range| range.wait.is_over(now_ms)) else {
            return Err(ready.map(|range| range.wait.until_ms()).min());
        };
        let position = self.scheme.and_then(|scheme| {
            let at = range.stage.checked_sub(1)? as usize;
            range.positions(&scheme).into_iter().nth(at)
        });
        let end = range.end.as_ref().filter(|_| range.empty == 0);
        let above = end.and_then(|end| self.above_end_of_walk(end));
        let bounds = match position.or(above) {
            Some(max_id) => Bounds::Back {
                max_id,
                anchor: None,
            },
            None => Bounds::Above(AnchorQuery::Oldest {
                at_least: range.high.clone(),
                skip: (1_u32 << range.empty_above.min(20)) - 1,
            }),
        };
        let (low, high) = (range.low.clone(), range.high.clone());
        let purpose = RequestPurpose::Fill { low, high };
        Ok(Step::fetch(purpose, bounds, abilities))
    }
}

impl EmptyRange {
    /// A range without shown posts.
    pub(super) fn new(low: &Key, high: &Key, end: Option<Key>) -> Self {
        Self {
            low: low.clone(),
            high: high.clone(),
            end,
            ..Self::default()
        }
    }

    fn end(&self) -> &Key {
        self.end.as_ref().unwrap_or(&self.high)
    }

    fn is_of(&self, low: &Key, high: &Key) -> bool {
        self.low == *low && self.high == *high
    }

    /// Further positions for requests, in case a whole page of the range is filtered. In a bounded
    /// range they go down from its middle; below the timeline's known part, each is further down. A
    /// range that was read before is not searched again.
    fn positions(&self, scheme: &IdScheme) -> Vec<Key> {
        if self.rung.is_some() || scheme.names_posts() {
            return Vec::new();
        }
        let mut positions = Vec::new();
        if let (Some(layout), Some(high_ms)) = (scheme.layout, scheme.time_ms(&self.high)) {
            let low_ms = scheme.time_ms(&self.low).filter(|_| !self.low.is_lowest());
            let distances_ms: Vec<i64> = match low_ms {
                Some(low_ms) => {
                    let width_ms = (high_ms - low_ms).max(0);
                    (1..=HALVES)
                        .map(|part| width_ms - (width_ms >> part))
                        .collect()
                }
                None => (0..STEPS).map(|step| FIRST_STEP_MS << (3 * step)).collect(),
            };
            let min_ms = layout.in_use_since_ms();
            let times = distances_ms.into_iter().map(|ms| high_ms - ms);
            positions.extend(
                times
                    .filter(|ms| *ms > min_ms)
                    .filter_map(|ms| scheme.floor(ms)),
            );
        } else if scheme.order == IdOrder::Numeric
            && let Ok(high) = scheme.id(&self.high).as_str().parse::<u128>()
        {
            let numbers = (0..NUMBER_STEPS).map_while(|step| high.checked_sub(1 << (3 * step)));
            let ids = numbers.map(|number| UpstreamId::new(number.to_string()));
            positions.extend(ids.filter_map(|id| scheme.key(&id).ok()));
        }
        positions.retain(|key| *key > self.low && *key < self.high);
        positions.dedup();
        positions
    }
}

fn position(request: &Request, high: &Key) -> Position {
    match &request.max_id {
        Some(below) if below == high => Position::Range,
        Some(below) if below < high => Position::Below,
        _ => Position::Above,
    }
}

/// The number of positions in a range: its middle, its quarter, and so on.
const HALVES: u32 = 5;
/// The number of positions below the lowest known post: a second below, eight, and so on to 34
/// years.
const STEPS: u32 = 11;
const FIRST_STEP_MS: i64 = 1_000;
const NUMBER_STEPS: u32 = 20;
/// The wait after an empty answer above a range, which grows with each.
const FIRST_WAIT_MS: i64 = 500;
const MAX_WAIT_MS: i64 = 10 * 60_000;
/// If no stored post is known that could be shown, this number of empty answers over this time
/// confirms that the range is empty.
const MIN_EMPTY: u32 = 3;
pub(super) const EMPTY_FOR_MS: i64 = 10 * 60_000;
/// A range that stays unconfirmed for this time is given up. It stays listed.
const OUT_OF_REACH_MS: i64 = 24 * 3_600_000;
