//! Walks down a list whose order is only precise to some time, from post to post.
//!
//! If a bound names a post of the list ([`IdScheme::names_posts`]), the page below another page's
//! last post continues where that page ended, even in the middle of a second. Together such pages
//! show what a single one cannot prove.
//!
//! [`IdScheme::names_posts`]: crate::timeline::IdScheme::names_posts

use serde::{Deserialize, Serialize};

use super::{Machine, answers::Answer, empty_ranges::EmptyRange};
use crate::{
    timeline::{
        gap_ledger::{Gap, GapKind},
        reading::Reading,
        request::{Request, RequestPurpose},
    },
    upstream_id::Key,
};

/// The place down to which a list was read. Posts below `high` have been shown, or are listed below
/// `last`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Walk {
    pub(super) high: Key,
    /// The beginning of the last post's time.
    low: Key,
    /// The last listed post.
    last: Key,
    /// The post that was listed above it.
    before_last: Option<Key>,
    /// The time of its first page, in Unix ms by the server's clock.
    pub(super) at_ms: i64,
    /// The posts that its pages have listed above `last` and below `high`.
    above: Vec<Key>,
    /// The posts that other pages have shown there since then.
    beside: Vec<Key>,
    /// The number of pages so far.
    pages: u32,
    /// True if the page below `last` was empty.
    is_end: bool,
}

impl Machine {
    /// The walk that a page continues. `None` if the page shows posts that are listed above.
    pub(super) fn walk_of(&self, request: &Request, reading: &Reading) -> Option<&Walk> {
        let max_id = request.max_id.as_ref()?;
        let is_down = request.since_id.is_none() && request.min_id.is_none();
        let mut walks = self.walks.iter().filter(|_| is_down);
        let walk = walks.find(|walk| walk.last == *max_id)?;
        let mut above = reading.keys.iter().filter(|key| walk.above.contains(key));
        above.next().is_none().then_some(walk)
    }

    /// The highest end of a walk that continues in a range.
    pub(super) fn walk_in(&self, low: &Key, high: &Key) -> Option<&Key> {
        let walks = self.walks.iter().map(|walk| &walk.high);
        walks.filter(|end| *end > low && *end <= high).max()
    }

    /// The post below which a range up to `high` continues.
    pub(super) fn place_below(&self, high: &Key) -> Option<Key> {
        let walk = self.walks.iter().find(|walk| walk.high == *high);
        walk.map(|walk| walk.last.clone())
    }

    /// Continues from the last post of a page that was requested to read a range. Returns `false`
    /// if that leads no further down in the range.
    pub(super) fn walk_on(&mut self, answer: &Answer<'_>, (low, high): (&Key, &Key)) -> bool {
        let (request, reading) = (answer.request, answer.reading);
        let before = self.walk_of(request, reading).cloned();
        self.end_walk(request);
        if let Some(walk) = before
            .clone()
            .filter(|walk| reading.items == 0 && !walk.is_end)
        {
            let is_end = true;
            self.walks.push(Walk { is_end, ..walk });
            return false;
        }
        let is_asked = |max_id: &Key| !reading.keys.contains(max_id);
        let is_obeyed = request.max_id.as_ref().is_none_or(is_asked)
            && request.min_id.is_none()
            && !reading.passes_max_id(request)
            && reading.disorder.is_none();
        let (Some(scheme), Some(last), Some(newest), true) = (
            self.scheme.filter(|scheme| scheme.names_posts()),
            reading.last.first(),
            reading.newest(),
            is_obeyed,
        ) else {
            return false;
        };
        let begin = match (&before, &request.max_id) {
            (Some(walk), _) => walk.high.clone(),
            (None, Some(max_id)) => scheme.begin_of_time(max_id),
            (None, None) => reading.top(&scheme, newest),
        };
        let high = begin.min(scheme.end_of_time(last)).min(high.clone());
        if high <= *low {
            return false;
        }
        let before = before.filter(|walk| walk.high == high);
        let mut walk = before.unwrap_or_else(|| Walk {
            high: high.clone(),
            low: Key::lowest(),
            last: last.clone(),
            before_last: None,
            at_ms: reading.read_at_ms,
            above: Vec::new(),
            beside: Vec::new(),
            pages: 0,
            is_end: false,
        });
        walk.last.clone_from(last);
        walk.before_last = reading.last.get(1).or(request.max_id.as_ref()).cloned();
        walk.low = scheme.begin_of_time(last);
        walk.pages += 1;
        if walk.pages > MAX_PAGES {
            return false;
        }
        let above = walk.of_it(&reading.keys);
        walk.above.extend(above);
        self.walks
            .retain(|other| other.last != *last && other.high != high);
        if self.walks.len() >= MAX_WALKS {
            self.walks.remove(0);
        }
        self.walks.push(walk);
        true
    }

    /// The posts shown before within the time in which a page continues.
    pub(super) fn shown_before(&self, request: &Request, reading: &Reading) -> Vec<Key> {
        let walk = self.walk_of(request, reading);
        walk.map_or(Vec::new(), |walk| {
            walk.above.iter().chain(&walk.beside).cloned().collect()
        })
    }

    /// The range that may be empty if a page shows nothing of a range: the range itself, or the
    /// part below the time of the post from which the page continues. `None` if that must be read
    /// separately first.
    pub(super) fn range_below(
        &self,
        request: &Request,
        reading: &Reading,
        (low, high): (&Key, &Key),
    ) -> Option<EmptyRange> {
        let walk = self.walk_of(request, reading);
        let Some(walk) = walk.filter(|walk| walk.low < *high) else {
            return Some(EmptyRange::new(low, high, None));
        };
        // Ranges below that were already read need not be read again.
        let is_fill = matches!(request.purpose, RequestPurpose::Fill { .. });
        let is_apart = |gap: &&Gap| !is_fill || matches!(gap.kind, GapKind::Open { .. });
        let below = self.ledger.gaps().iter().filter(is_apart);
        let below = below.map(|gap| &gap.high).filter(|high| **high <= walk.low);
        let below = below.max().cloned();
        let low = match *low < walk.low {
            true => low.clone(),
            false => below.unwrap_or_default(),
        };
        let range = EmptyRange::new(&low, &walk.low, Some(walk.high.clone()));
        (low < walk.low).then_some(range)
    }

    /// Records the posts of a page. Walks that continue in their time need not show them.
    pub(super) fn shown_beside_walks(&mut self, keys: &[Key]) {
        for walk in &mut self.walks {
            let mut keys = walk.of_it(keys);
            keys.retain(|key| !walk.beside.contains(key));
            walk.beside.extend(keys);
        }
    }

    /// True if a walk below `high` found nothing below the last post of a page.
    pub(super) fn ended_walk(&self, high: &Key, reading: &Reading) -> bool {
        let mut walks = self.walks.iter().filter(|walk| walk.high == *high);
        walks.any(|walk| walk.is_end && reading.last.first() == Some(&walk.last))
    }

    /// The bound of a page that begins with the post below which a walk up to `high` found nothing.
    pub(super) fn above_end_of_walk(&self, high: &Key) -> Option<Key> {
        let mut walks = self.walks.iter().filter(|walk| walk.is_end);
        walks.find(|walk| walk.high == *high)?.before_last.clone()
    }

    /// Removes the walk that a request continued.
    pub(super) fn end_walk(&mut self, request: &Request) {
        let max_id = request.max_id.as_ref();
        self.walks.retain(|walk| max_id != Some(&walk.last));
    }

    /// Removes walks that no range needs.
    pub(super) fn prune_walks(&mut self) {
        let waits = |gap: &&Gap| matches!(gap.kind, GapKind::Open { .. } | GapKind::Provisional(_));
        let gaps = self.ledger.gaps();
        self.walks.retain(|walk| {
            let mut gaps = gaps.iter().filter(waits);
            gaps.any(|gap| walk.high > gap.low && walk.high <= gap.high)
        });
    }
}

impl Walk {
    fn of_it(&self, keys: &[Key]) -> Vec<Key> {
        let is_of_it = |key: &&Key| **key >= self.low && **key < self.high;
        keys.iter().filter(is_of_it).cloned().collect()
    }
}

const MAX_WALKS: usize = 8;
/// A time with more pages of posts is left unread.
const MAX_PAGES: u32 = 50;
