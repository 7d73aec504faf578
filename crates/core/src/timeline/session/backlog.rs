//! A backlog: pages that are held until the posts below them are read, so that posts are stored in
//! their order.
//!
//! A poll that finds more than one page of new posts leaves a gap below its page. The page is not
//! committed at once. The gap is filled first, in any way that the server honours. Then the posts
//! of all pages are stored, the oldest first. Until then nothing is stored, so a crash only repeats
//! the reading.

use std::sync::Arc;

use super::PageCommit;
use crate::{
    answer::Abilities,
    clock::ClockReading,
    quota::QuotaView,
    timeline::{Anchor, AnchorQuery, GapKind, Machine, RequestPurpose, Settings, Step, Stored},
    upstream_id::{Key, UpstreamId},
};

/// The held pages, of which the first is that of a poll.
#[derive(Debug, Clone)]
pub(super) struct Backlog {
    /// The approximate machine at the time of the commit.
    pub(super) machine: Machine,
    pages: Vec<Arc<PageCommit>>,
    /// The lower bound of the poll. The gap does not begin below it.
    low: Key,
    /// The end of the coverage before the poll.
    frontier: Key,
    /// The time of the answer to the poll, by the monotonic clock, in ms.
    since_ms: i64,
    bytes: usize,
    /// The number of last consecutive pages that showed no other posts than the pages before, and
    /// closed no gap.
    fruitless: u32,
    /// The largest size of held pages, in bytes.
    max_bytes: usize,
}

/// The next step of a backlog.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BacklogStep {
    /// Read a page below it, or pause before that.
    Read(Step),
    /// The backlog has no gap left, and is committed.
    Whole,
    /// The backlog is too long to be held, and is committed with a gap below its newest page.
    TooLong,
}

impl Backlog {
    /// Holds the page of a poll that leaves a gap; `None` if it leaves no gap that can be filled.
    pub(super) fn begin(
        before: &Machine,
        settings: &Settings,
        abilities: Abilities,
        poll: &Arc<PageCommit>,
        clock: ClockReading,
        max_bytes: usize,
    ) -> Option<Self> {
        if poll.request.purpose != RequestPurpose::Poll {
            return None;
        }
        let frontier = before.ledger().frontier()?.clone();
        let newest = poll.reading.newest()?;
        if *newest < frontier || !before.leaves_gap(&poll.request, &poll.reading) {
            return None;
        }
        let scheme = before.scheme()?;
        let since = poll.request.since_id.as_ref();
        let since = since.map(|since| scheme.begin_of_time(since));
        let mut backlog = Self {
            machine: before.clone(),
            pages: Vec::new(),
            low: since.map_or_else(|| frontier.clone(), |since| since.min(frontier.clone())),
            frontier,
            since_ms: clock.steady_ms,
            bytes: 0,
            fruitless: 0,
            max_bytes,
        };
        backlog.add(settings, abilities, Arc::clone(poll));
        let next = backlog.next(settings, abilities, clock);
        (next != BacklogStep::Whole).then_some(backlog)
    }

    /// Holds another page.
    pub(super) fn add(
        &mut self,
        settings: &Settings,
        abilities: Abilities,
        commit: Arc<PageCommit>,
    ) {
        let PageCommit {
            request,
            reading,
            page,
        } = &*commit;
        let is_new = reading.keys.iter().map(|key| *key >= self.frontier);
        let stored = Stored {
            new: is_new.collect(),
            ..Stored::default()
        };
        let headers = &page.headers;
        let open = self.open_ranges();
        self.machine
            .page(settings, abilities, request, reading, headers, &stored);
        let held = || self.pages.iter().flat_map(|held| &held.reading.keys);
        let mut keys = reading.keys.iter().filter(|key| **key >= self.low);
        let shows_more = keys.any(|key| held().all(|other| other != key));
        self.fruitless = match shows_more || self.open_ranges() != open {
            true => 0,
            false => self.fruitless + 1,
        };
        let sizes = page.listed.iter().map(|listed| listed.post.raw.len());
        self.bytes += sizes.map(|bytes| PARSED_TIMES * bytes).sum::<usize>();
        self.pages.push(commit);
    }

    /// The bounds of the gaps that are not read yet.
    fn open_ranges(&self) -> Vec<(Key, Key)> {
        let gaps = self.machine.ledger().gaps().iter();
        let open = gaps.filter(|gap| matches!(gap.kind, GapKind::Open { .. }));
        open.map(|gap| (gap.low.clone(), gap.high.clone()))
            .collect()
    }

    /// Returns its next step.
    pub(super) fn next(
        &mut self,
        settings: &Settings,
        abilities: Abilities,
        clock: ClockReading,
    ) -> BacklogStep {
        let fill = self
            .machine
            .next_fill(settings, abilities, clock.wall_ms, &self.low);
        // The rest may be empty, which takes longer to confirm.
        let Some(step) = fill.filter(|_| self.fruitless < MAX_FRUITLESS) else {
            return BacklogStep::Whole;
        };
        let left_ms = self.left_ms(clock);
        let is_too_late = match step {
            Step::Wait { until_ms } => until_ms - clock.wall_ms > left_ms,
            Step::Fetch(_) | Step::LookUp(_) => left_ms <= 0,
        };
        if is_too_late || self.pages.len() >= MAX_PAGES || self.bytes > self.max_bytes {
            return BacklogStep::TooLong;
        }
        BacklogStep::Read(step)
    }

    /// The time for which its pages may still be held, in ms.
    pub(super) fn left_ms(&self, clock: ClockReading) -> i64 {
        self.since_ms + MAX_MS - clock.steady_ms
    }

    /// Continues with the remaining quota and this amount of memory, in bytes.
    pub(super) fn go_on_with(&mut self, quota: QuotaView, max_bytes: usize) {
        self.machine.set_quota(quota);
        self.max_bytes = max_bytes;
    }

    /// The positions of the held posts, by their IDs.
    pub(super) fn positions(&self) -> impl Iterator<Item = (&UpstreamId, &UpstreamId)> {
        let listed = self.pages.iter().flat_map(|commit| &commit.page.listed);
        listed.map(|listed| (&listed.post.id, &listed.position))
    }

    /// The answer to a query for a stored post, as if the held posts were stored, too.
    pub(super) fn anchor(&self, query: &AnchorQuery, stored: Option<Anchor>) -> Option<Anchor> {
        let held = self.pages.iter().flat_map(|commit| &commit.reading.keys);
        let found = stored.into_iter().flat_map(|it| {
            let before = it.before.into_iter();
            before.chain([it.key])
        });
        match query {
            AnchorQuery::Newest { at_most, skip: 0 } => {
                let held = held.filter(|key| *key <= at_most).cloned();
                let mut keys: Vec<Key> = held.chain(found).collect();
                keys.sort_unstable_by(|a, b| b.cmp(a));
                keys.dedup();
                Anchor::first(keys.into_iter())
            }
            AnchorQuery::Oldest { at_least, skip } => {
                let held = held.filter(|key| *key >= at_least).cloned();
                let mut keys: Vec<Key> = held.chain(found).collect();
                keys.sort_unstable();
                keys.dedup();
                Anchor::first(keys.into_iter().skip(*skip as usize))
            }
            AnchorQuery::Newest { .. } | AnchorQuery::Drawn { .. } => Anchor::first(found),
        }
    }

    /// The number of held pages.
    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    /// The approximate memory of the held pages, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if the pages below the poll's list posts that are not on it and were not covered
    /// before. The order in which pages are stored then matters.
    pub(super) fn has_posts_below(&self) -> bool {
        let Some((poll, others)) = self.pages.split_first() else {
            return false;
        };
        let mut keys = others.iter().flat_map(|commit| &commit.reading.keys);
        keys.any(|key| *key >= self.frontier && !poll.reading.keys.contains(key))
    }

    /// The pages, in the order in which they were answered.
    pub(super) fn into_pages(self) -> Vec<Arc<PageCommit>> {
        self.pages
    }
}

/// The largest number of held pages.
const MAX_PAGES: usize = 20;
/// A backlog ends after this number of consecutive fruitless pages.
const MAX_FRUITLESS: u32 = 2;
/// The longest time for which pages are held, in ms.
const MAX_MS: i64 = 10_000;
/// The approximate ratio of a post's size in memory to the bytes of its answer.
const PARSED_TIMES: usize = 3;
