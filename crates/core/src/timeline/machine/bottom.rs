//! What it means that nothing is shown below a place.
//!
//! An empty answer proves nothing: servers answer `[]` while a cache is cold, and pages are sliced
//! first and filtered afterwards. So a range of which nothing is shown is *in doubt* until
//! answers that show something bear canary: the page whose first post has to be the lowest
//! one known above the range is asked for, then pages from places further down, then the first one
//! again. Only between two answers that showed posts above and nothing below is nothing there.

use serde::{Deserialize, Serialize};

use super::{Machine, Step, answers::Answer};
use crate::{
    answer::Abilities,
    timeline::{
        ledger::{Gap, GapKind, Stretch},
        request::{AnchorQuery, Bounds, Fetch, Reading, Request, RequestPurpose},
        scheme::IdScheme,
    },
    upstream_id::{IdOrder, Key, UpstreamId},
};

/// A range of which an answer without a lower bound showed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Doubt {
    low: Key,
    high: Key,
    /// The rung whose look it was; `None` if the range is open.
    rung: Option<usize>,
    /// What was asked so far: 0 is the page above, then those further down, then the page above.
    stage: u32,
    /// Pages above that were empty: each makes the next begin higher up.
    vain: u32,
    /// All pages above that were empty.
    empty: u32,
    since_ms: i64,
    /// When to ask again, Unix ms by the local clock.
    retry_ms: i64,
    /// Such a post was looked up and is gone: the others may be too.
    seen_gone: bool,
    /// The newest post below `high` that was looked up meanwhile and is there.
    seen_alive: Option<Key>,
    /// The oldest post from `high` on that was looked up meanwhile and is there.
    alive_above: Option<Key>,
    /// How far up the page above began that was shown without that post, which is then asked for
    /// once more.
    shown_from: Option<u32>,
}

/// What a request tells of a range in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// The range from its upper end.
    Range,
    /// The range from further down.
    Below,
    /// The page above.
    Above,
}

impl Machine {
    /// For an answer that shows nothing of the range it was asked for, nor of what lies below: the
    /// range's upper end. The newest stored post below it may be there all the same
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

    /// The range in which stored posts are suspected of being deleted, since the page above it
    /// shows none of them.
    pub(super) fn absent_below(&self, request: &Request, reading: &Reading) -> Option<(Key, Key)> {
        let (low, high) = request.unbounded_range()?;
        let doubt = self.doubts.iter().find(|doubt| doubt.is_of(low, high))?;
        let is_shown = self.nothing_below(request, reading).is_some()
            && asked(request, high) == Asked::Above
            && reading.oldest().is_some();
        (is_shown && doubt.seen_gone).then(|| (low.clone(), high.clone()))
    }

    /// Takes in an answer that shows nothing of a range, nor of what lies below.
    pub(super) fn showed_nothing(
        &mut self,
        answer: &Answer<'_>,
        rung: Option<usize>,
        (low, high): (&Key, &Key),
    ) {
        if answer.request.unbounded_range().is_none() {
            return;
        }
        let now_ms = answer.received_at_ms;
        let Some(index) = self.doubts.iter().position(|doubt| doubt.is_of(low, high)) else {
            self.doubts.push(Doubt {
                low: low.clone(),
                high: high.clone(),
                rung,
                stage: 0,
                vain: 0,
                empty: 0,
                since_ms: now_ms,
                retry_ms: now_ms,
                seen_gone: false,
                seen_alive: None,
                alive_above: None,
                shown_from: None,
            });
            return;
        };
        let doubt = &mut self.doubts[index];
        let steps = self.scheme.map_or(0, |scheme| doubt.places(&scheme).len()) as u32;
        let is_last = steps == 0 || doubt.stage > steps;
        match asked(answer.request, high) {
            Asked::Range => {}
            Asked::Below => doubt.stage += 1,
            Asked::Above if answer.reading.oldest().is_some() => {
                let alive = doubt.alive_above.as_ref();
                if alive.is_none_or(|alive| answer.reading.oldest() <= Some(alive)) {
                    if is_last {
                        self.conclude(index, answer);
                    } else {
                        doubt.stage += 1;
                    }
                } else if doubt.shown_from.is_none() {
                    doubt.shown_from = Some(doubt.vain);
                    doubt.vain = 0;
                } else {
                    // Twice it showed posts, and in between not the one that is there.
                    self.is_out_of_reach(index, answer);
                }
            }
            Asked::Above => self.above_was_empty(index, answer),
        }
    }

    /// Not even what lies above was shown: the post may be deleted, or the answer is none.
    fn above_was_empty(&mut self, index: usize, answer: &Answer<'_>) {
        let doubt = &mut self.doubts[index];
        let now_ms = answer.received_at_ms;
        let anchor = answer.request.anchor.as_ref();
        let nothing_is_stored =
            anchor.is_none() && doubt.vain == 0 && answer.stored.live_below.is_none();
        doubt.stage = 0;
        doubt.empty = doubt.empty.saturating_add(1);
        doubt.vain = match anchor {
            Some(_) => (doubt.vain + 1).max(doubt.shown_from.unwrap_or(0)),
            None => 0,
        };
        let wait_ms = (FIRST_WAIT_MS << doubt.empty.min(16)).min(MAX_WAIT_MS);
        doubt.retry_ms = now_ms.saturating_add(wait_ms);
        let for_ms = now_ms - doubt.since_ms;
        if nothing_is_stored && doubt.empty >= LEAST_EMPTY && for_ms >= EMPTY_FOR_MS {
            // Nothing is known that could be shown.
            self.is_empty(index, answer);
        } else if for_ms >= OUT_OF_REACH_MS {
            self.is_out_of_reach(index, answer);
        } else {
            self.suspect_anchor(anchor);
        }
    }

    /// What lies above was shown, and nothing below. A stored post below that is still there when
    /// it is looked up shows that the timeline no longer reaches down to it, or hides the range;
    /// without one nothing is there.
    fn conclude(&mut self, index: usize, answer: &Answer<'_>) {
        let (Some(live), Some(scheme)) = (&answer.stored.live_below, self.scheme) else {
            return self.is_empty(index, answer);
        };
        let id = scheme.id(live);
        let seen_alive = self.doubts[index].seen_alive.as_ref();
        if seen_alive.is_some_and(|alive| alive >= live) {
            return self.is_out_of_reach(index, answer);
        }
        self.suspect(0, &[id]);
    }

    /// Takes the range as read. What comes late into it is found by the rungs.
    fn is_empty(&mut self, index: usize, answer: &Answer<'_>) {
        let doubt = self.doubts.remove(index);
        if let Some(scheme) = self.scheme {
            let stretch = Stretch {
                low: doubt.low,
                high: doubt.high,
                at_ms: answer.reading.read_at_ms,
            };
            self.ledger.read(&stretch, &scheme, &answer.plan.ladder);
        }
    }

    fn is_out_of_reach(&mut self, index: usize, answer: &Answer<'_>) {
        let Doubt {
            low, high, rung, ..
        } = self.doubts.remove(index);
        self.ledger.give_up(&low, &high);
        if let Some(rung) = rung {
            self.ledger.pass_over(&low, &high, &answer.plan.ladder);
            self.stats_of(rung).unreachable += 1;
        }
    }

    /// A post was looked up, on which ranges in doubt may wait.
    pub(super) fn tell_doubts(&mut self, id: &UpstreamId, gone: bool) {
        let Some(key) = self.scheme.and_then(|scheme| scheme.key(id).ok()) else {
            return;
        };
        for doubt in &mut self.doubts {
            let is_below = key < doubt.high;
            if gone {
                doubt.seen_gone |= is_below;
                doubt.alive_above = doubt.alive_above.take().filter(|alive| *alive != key);
            } else if is_below {
                doubt.seen_alive = doubt.seen_alive.take().max(Some(key.clone()));
            } else if doubt.alive_above.as_ref().is_none_or(|alive| key < *alive) {
                doubt.alive_above = Some(key.clone());
            }
        }
    }

    /// Whether a range waits for what becomes of a doubt.
    pub(super) fn is_in_doubt(&self, gap: &Gap) -> bool {
        self.doubts
            .iter()
            .any(|doubt| gap.low < doubt.high && gap.high > doubt.low)
    }

    /// Forgets the doubts of a range of which something was shown.
    pub(super) fn end_doubts(&mut self, low: &Key, high: &Key) {
        self.doubts
            .retain(|doubt| doubt.high <= *low || doubt.low >= *high);
    }

    /// Forgets doubts of what is no longer listed as unread.
    pub(super) fn prune_doubts(&mut self) {
        let gaps = self.ledger.gaps();
        self.doubts.retain(|doubt| {
            gaps.iter().any(|gap| {
                let waits = matches!(gap.kind, GapKind::Open { .. } | GapKind::Provisional { .. });
                waits && gap.low < doubt.high && gap.high > doubt.low
            })
        });
    }

    /// The next request about a range in doubt, or when there will be one, Unix ms by the local
    /// clock.
    pub(super) fn due_doubt(&self, abilities: Abilities, now_ms: i64) -> Result<Step, Option<i64>> {
        let due = |doubt: &&Doubt| doubt.retry_ms <= now_ms;
        let Some(doubt) = self.doubts.iter().find(due) else {
            return Err(self.doubts.iter().map(|doubt| doubt.retry_ms).min());
        };
        let place = self.scheme.and_then(|scheme| {
            let at = doubt.stage.checked_sub(1)? as usize;
            doubt.places(&scheme).into_iter().nth(at)
        });
        Ok(Step::Fetch(Fetch {
            purpose: RequestPurpose::Fill {
                low: doubt.low.clone(),
                high: doubt.high.clone(),
            },
            bounds: match place {
                Some(below) => Bounds::Back {
                    below,
                    anchor: None,
                },
                None => Bounds::Above(AnchorQuery::Oldest {
                    at_least: doubt.high.clone(),
                    skip: (1_u32 << doubt.vain.min(20)) - 1,
                }),
            },
            limit: abilities.page_limit,
        }))
    }
}

impl Doubt {
    fn is_of(&self, low: &Key, high: &Key) -> bool {
        self.low == *low && self.high == *high
    }

    /// From where else to ask, in case a whole page of the range is filtered: in a range from
    /// its middle down, in all that lies below the timeline's known part from further down each
    /// time. A range that was read before is not searched again.
    fn places(&self, scheme: &IdScheme) -> Vec<Key> {
        if self.rung.is_some() {
            return Vec::new();
        }
        let mut places = Vec::new();
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
            places.extend(
                times
                    .filter(|ms| *ms > min_ms)
                    .filter_map(|ms| scheme.floor(ms)),
            );
        } else if scheme.order == IdOrder::Numeric
            && let Ok(high) = scheme.id(&self.high).as_str().parse::<u128>()
        {
            let numbers = (0..NUMBER_STEPS).map_while(|step| high.checked_sub(1 << (3 * step)));
            let ids = numbers.map(|number| UpstreamId::new(number.to_string()));
            places.extend(ids.filter_map(|id| scheme.key(&id).ok()));
        }
        places.retain(|place| *place > self.low && *place < self.high);
        places.dedup();
        places
    }
}

fn asked(request: &Request, high: &Key) -> Asked {
    match &request.below {
        Some(below) if below == high => Asked::Range,
        Some(below) if below < high => Asked::Below,
        _ => Asked::Above,
    }
}

/// Places of a range to ask from: its middle, its quarter, and so on.
const HALVES: u32 = 5;
/// Places below the lowest known post: a second below, eight, and so on to 34 years.
const STEPS: u32 = 11;
const FIRST_STEP_MS: i64 = 1_000;
const NUMBER_STEPS: u32 = 20;
/// After an empty answer above a range, and longer with each.
const FIRST_WAIT_MS: i64 = 500;
const MAX_WAIT_MS: i64 = 10 * 60_000;
/// Where no stored post is known that could be shown, so many empty answers over so long a time
/// say that nothing is there.
const LEAST_EMPTY: u32 = 3;
pub(super) const EMPTY_FOR_MS: i64 = 10 * 60_000;
/// A range that stays in doubt for so long is given up: it stays listed.
const OUT_OF_REACH_MS: i64 = 24 * 3_600_000;
