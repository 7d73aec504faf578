//! Walks down a list whose order is precise to some time only, from post to post.
//!
//! Where a bound names a post of the list ([`IdScheme::names_posts`]), the page below the last post
//! of another goes on where that one ended, also in the middle of a second. Such pages together show
//! what one of them alone cannot prove.
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

/// A place down to which a list was read: what lies below `high` has been shown, or is listed below
/// `last`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Walk {
    pub(super) high: Key,
    /// The beginning of the last post's time.
    low: Key,
    /// The post that was listed last.
    last: Key,
    /// The one that was listed above it.
    before_last: Option<Key>,
    /// When the first page of it was read, Unix ms by the server's clock.
    pub(super) at_ms: i64,
    /// What its pages have listed above `last`, below `high`.
    above: Vec<Key>,
    /// What other pages have shown there since then.
    beside: Vec<Key>,
    /// How many pages it took so far.
    pages: u32,
    /// Whether the page below `last` was empty.
    is_end: bool,
}

impl Machine {
    /// The walk that a page goes on with: not if it shows what is listed above.
    pub(super) fn walk_of(&self, request: &Request, reading: &Reading) -> Option<&Walk> {
        let max_id = request.max_id.as_ref()?;
        let is_down = request.since_id.is_none() && request.min_id.is_none();
        let mut walks = self.walks.iter().filter(|_| is_down);
        let walk = walks.find(|walk| walk.last == *max_id)?;
        let mut above = reading.keys.iter().filter(|key| walk.above.contains(key));
        above.next().is_none().then_some(walk)
    }

    /// The highest end of a walk that goes on in a range.
    pub(super) fn walk_in(&self, low: &Key, high: &Key) -> Option<&Key> {
        let walks = self.walks.iter().map(|walk| &walk.high);
        walks.filter(|end| *end > low && *end <= high).max()
    }

    /// The post below which a range up to `high` goes on.
    pub(super) fn place_below(&self, high: &Key) -> Option<Key> {
        let walk = self.walks.iter().find(|walk| walk.high == *high);
        walk.map(|walk| walk.last.clone())
    }

    /// Goes on from the last post of a page that was asked for to read a range. `false` if that leads no
    /// further down in it.
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

    /// What was shown of the time in which a page goes on.
    pub(super) fn shown_before(&self, request: &Request, reading: &Reading) -> Vec<Key> {
        let walk = self.walk_of(request, reading);
        walk.map_or(Vec::new(), |walk| {
            walk.above.iter().chain(&walk.beside).cloned().collect()
        })
    }

    /// What may be empty if a page shows nothing of a range: the range, or what lies below the time of
    /// the post from which the page goes on. `None` if that has yet to be read for itself.
    pub(super) fn range_below(
        &self,
        request: &Request,
        reading: &Reading,
        (low, high): (&Key, &Key),
    ) -> Option<EmptyRange> {
        let walk = self.walk_of(request, reading);
        let Some(walk) = walk.filter(|walk| walk.low < *high) else {
            return Some(EmptyRange::of(low, high, None));
        };
        // What is already read below need not be read again for it.
        let is_fill = matches!(request.purpose, RequestPurpose::Fill { .. });
        let is_apart = |gap: &&Gap| !is_fill || matches!(gap.kind, GapKind::Open { .. });
        let below = self.ledger.gaps().iter().filter(is_apart);
        let below = below.map(|gap| &gap.high).filter(|high| **high <= walk.low);
        let below = below.max().cloned();
        let low = match *low < walk.low {
            true => low.clone(),
            false => below.unwrap_or_default(),
        };
        let range = EmptyRange::of(&low, &walk.low, Some(walk.high.clone()));
        (low < walk.low).then_some(range)
    }

    /// Notes the posts of a page: walks that go on in their time need not show them.
    pub(super) fn shown_beside_walks(&mut self, keys: &[Key]) {
        for walk in &mut self.walks {
            let mut keys = walk.of_it(keys);
            keys.retain(|key| !walk.beside.contains(key));
            walk.beside.extend(keys);
        }
    }

    /// Whether a walk below `high` found nothing below the last post of a page.
    pub(super) fn ended_walk(&self, high: &Key, reading: &Reading) -> bool {
        let mut walks = self.walks.iter().filter(|walk| walk.high == *high);
        walks.any(|walk| walk.is_end && reading.last.first() == Some(&walk.last))
    }

    /// The bound of a page that begins with the post below which a walk up to `high` found nothing.
    pub(super) fn above_end_of_walk(&self, high: &Key) -> Option<Key> {
        let mut walks = self.walks.iter().filter(|walk| walk.is_end);
        walks.find(|walk| walk.high == *high)?.before_last.clone()
    }

    /// Forgets where the walk ended that a request went on with.
    pub(super) fn end_walk(&mut self, request: &Request) {
        let max_id = request.max_id.as_ref();
        self.walks.retain(|walk| max_id != Some(&walk.last));
    }

    /// Forgets walks that no range waits for.
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
