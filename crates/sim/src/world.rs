//! A timeline that publishes under a seed and answers as Mastodon does.

mod events;
mod found;
mod leaving;
mod listing;

use std::collections::BTreeMap;

use driftline_core::{
    answer::PageRequest,
    post::{Counts, Visibility},
    upstream_id::{Key, UpstreamId},
};

use self::events::EventLog;
pub use self::{
    events::{Happening, WorldEvent},
    found::Found,
};
pub(crate) use self::{found::answer_order, listing::newest_first};

use crate::{
    config::WorldConfig,
    layout::IdLayout,
    publisher::{Creation, Publisher},
    record::Record,
    rng::{Rng, hash_text, mix},
    status::Status,
    truth::{TruePost, Truth},
};

/// One timeline's posts, past and to come.
///
/// What is published depends on the configuration and the seed alone, never
/// on how often or when the world is asked. Questions about the past are
/// answered as they would have been then.
#[derive(Debug, Clone)]
pub struct World {
    config: WorldConfig,
    seed: u64,
    publisher: Publisher,
    rng: Rng,
    worker_offsets_ms: Vec<i64>,
    records: Vec<Record>,
    /// All records in the order of their IDs, visible or not.
    by_key: BTreeMap<Key, u32>,
    /// Further IDs that find posts: those that edits give, and those that stay.
    by_other_key: BTreeMap<Key, u32>,
    /// Kept only once events are asked for.
    events: Option<EventLog>,
}

impl World {
    /// A world before its first post.
    pub fn new(config: WorldConfig, seed: u64) -> Self {
        let mut offsets = Rng::stream(seed, OFFSETS);
        let most = config.worker_offset_max_ms.max(0);
        let worker_offsets_ms = (0..config.workers.max(1))
            .map(|_| offsets.between(-most, most))
            .collect();
        Self {
            publisher: Publisher::new(&config, Rng::stream(seed, ARRIVALS)),
            rng: Rng::stream(seed, POSTS),
            worker_offsets_ms,
            records: Vec::new(),
            by_key: BTreeMap::new(),
            by_other_key: BTreeMap::new(),
            events: None,
            config,
            seed,
        }
    }

    /// The configuration.
    pub fn config(&self) -> &WorldConfig {
        &self.config
    }

    /// The layout of the world's IDs.
    pub fn layout(&self) -> IdLayout {
        self.config.layout
    }

    /// Publishes up to a time, Unix ms. Every question does so itself.
    pub fn advance(&mut self, now_ms: i64) {
        while let Some(creation) = self.publisher.next_until(now_ms) {
            self.admit(creation);
        }
    }

    /// Publishes up to a time, Unix ms, and nothing more.
    pub fn fall_silent(&mut self, now_ms: i64) {
        self.advance(now_ms);
        self.publisher.end_at(now_ms);
    }

    /// A page of the timeline at a time, Unix ms, as Mastodon answers.
    ///
    /// `min_id` answers the posts next above it and wins over `since`;
    /// otherwise the newest posts below `below` are sliced and cut at
    /// `since`. Posts that no reader sees are left
    /// out after slicing.
    pub fn page(&mut self, now_ms: i64, request: &PageRequest) -> Vec<Status> {
        self.cut(now_ms, request).statuses
    }

    /// The same page, and where its slice ended.
    pub(crate) fn cut(&mut self, now_ms: i64, request: &PageRequest) -> Cut {
        self.advance(now_ms);
        let quirks = &self.config.quirks;
        let heard = quirks.heard(request, self.config.page_limit);
        let mut slice = self.slice(now_ms, &heard);
        let oldest = slice.last().map(|&index| self.id(index, now_ms));
        let full = slice.len() >= usize::from(heard.limit);
        slice.retain(|&index| {
            let record = self.record(index);
            !self.is_filtered(record)
                && !self.is_hidden(record, now_ms)
                && !self.shortens_pages(record, now_ms)
        });
        let is_repeated = !quirks.newest_repeated.is_none() && request.since_id.is_some();
        if is_repeated && !full {
            slice.extend(slice.first().copied());
        }
        let statuses = slice.into_iter().map(|index| self.status(index, now_ms));
        Cut {
            statuses: quirks.with_repeats(statuses.collect()),
            oldest,
            full,
        }
    }

    /// Every post that was ever visible up to a time, Unix ms.
    pub fn truth(&mut self, now_ms: i64) -> Truth {
        self.advance(now_ms);
        let posts = self
            .by_key
            .values()
            .map(|&index| self.record(index))
            .filter(|record| record.visible_at_ms <= now_ms && !self.is_filtered(record))
            .map(|record| self.true_post(record, now_ms))
            .collect();
        Truth { posts }
    }

    /// Whether a page of so many places that lies below and reaches into the range, from `low`,
    /// inclusive, to `high`, exclusive, may show nothing of it: because there is no post in it
    /// that a page would show, or because so many in a row are left out after slicing. Of IDs that say
    /// the second only, such a run hides the seconds at its ends too.
    pub fn may_hide(
        &mut self,
        now_ms: i64,
        (low, high): (Option<&UpstreamId>, &UpstreamId),
        places: u16,
    ) -> bool {
        self.advance(now_ms);
        let second = |id: &UpstreamId| id.as_str().get(..10).and_then(|text| text.parse().ok());
        let seconds = low.and_then(second).zip(second(high));
        if self.config.layout == IdLayout::Snac
            && seconds.is_some_and(|(low, high)| self.hides_seconds(now_ms, low, high, places))
        {
            return true;
        }
        let low = low.map_or(Some(Key::lowest()), |low| self.key(low));
        let (Some(low), Some(high)) = (low, self.key(high)) else {
            return true;
        };
        let range = self
            .by_key
            .range(low..high)
            .map(|(_, &index)| self.record(index));
        let shown = |record: &&Record| record.visible_at_ms <= now_ms;
        let mut in_a_row = 0;
        let mut any = false;
        for record in range.filter(shown) {
            let is_left_out = self.is_left_out(record, now_ms);
            any |= !is_left_out && record.is_visible(now_ms);
            in_a_row = match is_left_out || !record.is_visible(now_ms) {
                true => in_a_row + 1,
                false => 0,
            };
            if in_a_row >= places {
                return true;
            }
        }
        !any
    }

    fn is_left_out(&self, record: &Record, now_ms: i64) -> bool {
        self.is_filtered(record) || self.is_hidden(record, now_ms) || self.has_left(record, now_ms)
    }

    /// Whether a post lies within the reach of requests at a time, Unix ms.
    pub fn reaches(&mut self, now_ms: i64, id: &UpstreamId) -> bool {
        self.advance(now_ms);
        self.key(id)
            .is_some_and(|key| key >= self.reach_floor(now_ms))
    }

    /// The place of an ID or of a bound; `None` if the order has none for it: then it bounds nothing.
    fn key(&self, id: &UpstreamId) -> Option<Key> {
        self.config.layout.order().key(id).ok()
    }

    fn true_post(&self, record: &Record, now_ms: i64) -> TruePost {
        let content = self.content(record, now_ms);
        let id = self.config.layout.id(record.value);
        let edited_value = record
            .edited_value
            .filter(|_| record.edited_at_ms <= now_ms);
        let deleted_at_ms = record.deleted_at_ms(now_ms);
        let edited_at_ms = record.edited_at_ms(now_ms);
        TruePost {
            edited_id: edited_value.map(|value| self.config.layout.id(value)),
            boost_of: record
                .boost_of
                .map(|boosted| self.config.layout.id(self.record(boosted).value)),
            is_unreadable: self.config.quirks.is_unreadable(id.as_str()),
            id,
            visible_at_ms: record.visible_at_ms,
            id_time_ms: record.id_time_ms,
            deleted_at_ms,
            edited_at_ms,
            visible_for_ms: deleted_at_ms.map(|ms| ms - record.visible_at_ms),
            content_hash: hash_text(&content),
            edited_content: edited_at_ms.map(|_| content),
        }
    }

    fn is_filtered(&self, record: &Record) -> bool {
        self.config.filtered_share > 0.0
            && Rng::stream(mix(self.seed, record.genes), FILTERED)
                .happens(self.config.filtered_share)
    }

    fn status(&self, index: u32, now_ms: i64) -> Status {
        let record = self.record(index);
        let counts = self.counts(record, now_ms);
        Status {
            id: self.id(index, now_ms),
            first_id: (record.value_at(now_ms) != record.value)
                .then(|| self.config.layout.id(record.value)),
            created_at_ms: record.created_at_ms,
            edited_at_ms: record.edited_at_ms(now_ms),
            visibility: record.visibility,
            content: self.content(record, now_ms),
            author: record.author(self.config.authors, self.config.only_author),
            replies: counts.replies.unwrap_or(0),
            boosts: counts.boosts.unwrap_or(0),
            favourites: counts.favourites.unwrap_or(0),
            boost_of: record
                .boost_of
                .map(|boosted| Box::new(self.status(boosted, now_ms))),
        }
    }

    fn counts(&self, record: &Record, now_ms: i64) -> Counts {
        record.counts(
            now_ms,
            self.config
                .growth
                .as_ref()
                .map(|growth| (growth, self.seed)),
        )
    }

    fn id(&self, index: u32, now_ms: i64) -> UpstreamId {
        self.config.layout.id(self.record(index).value_at(now_ms))
    }

    fn content(&self, record: &Record, now_ms: i64) -> String {
        let quirks = &self.config.quirks;
        // Else there would be nothing to escape.
        let has_accents = quirks.page_escapes != quirks.look_up_escapes;
        record.content(now_ms, has_accents)
    }

    /// Indices come from `admit` alone and records are never removed.
    fn record(&self, index: u32) -> &Record {
        &self.records[index as usize]
    }

    /// Draws the same number of times for every post, whatever the knobs, so
    /// that turning one leaves the rest of the world as it was.
    fn admit(&mut self, creation: Creation) {
        let config = &self.config;
        let rng = &mut self.rng;
        let worker = rng.between(0, self.worker_offsets_ms.len() as i64 - 1) as usize;
        let lateness_ms = config.lateness.draw_ms(rng);
        let federated = rng.happens(config.federated_share);
        let backdate_ms = config.federated_backdate_ms.draw(rng);
        let deleted = rng.happens(config.deleted_share);
        let deleted_after_ms = config.deleted_after_ms.draw(rng);
        let edited = rng.happens(config.edited_share);
        let edited_after_ms = config.edited_after_ms.draw(rng);
        let boosts = rng.happens(config.boost_share);
        let boosted_back = rng.between(1, 200) as usize;
        let visibility = visibility(rng.share(), config.non_public_share);
        let genes = rng.bits();

        let visible_at_ms = creation.at_ms + lateness_ms + self.shown_late_ms(genes);
        let clock_ms =
            creation.at_ms + self.worker_offsets_ms[worker] + creation.ahead_ms.unwrap_or_default();
        let created_at_ms = clock_ms - if federated { backdate_ms } else { 0 };
        let id_time_ms = if config.layout.backdates() {
            created_at_ms
        } else {
            clock_ms
        };
        let boost_of = boosts
            .then(|| self.boostable(boosted_back, creation.at_ms))
            .flatten();
        let after = |happens: bool, after_ms: i64| {
            if happens {
                visible_at_ms.saturating_add(after_ms.max(0))
            } else {
                i64::MAX
            }
        };
        let (value, id_time_ms) = self.free_value(id_time_ms, worker, genes);
        let edited_at_ms = after(edited && boost_of.is_none(), edited_after_ms);
        let edited_value = self.edited_value(value, edited_at_ms);
        let index = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        self.records.push(Record {
            value,
            id_time_ms,
            created_at_ms,
            visible_at_ms,
            deleted_at_ms: after(deleted, deleted_after_ms),
            edited_at_ms,
            edited_value,
            genes,
            boost_of,
            visibility,
            federated,
        });
        self.by_key.insert(self.config.layout.key(value), index);
        let edited_key = edited_value.map(|value| self.config.layout.key(value));
        self.by_other_key.extend(edited_key.map(|key| (key, index)));
        if self.config.layout == IdLayout::Snac {
            let stable = self.key(&self.config.layout.id(value).stable());
            self.by_other_key.extend(stable.map(|key| (key, index)));
        }
        self.log_events(index);
    }

    /// An earlier post that anyone may boost and that never gets deleted (a
    /// server deletes boosts along with what they boost).
    fn boostable(&self, back: usize, at_ms: i64) -> Option<u32> {
        let index = self.records.len().checked_sub(back)?;
        let record = self.records.get(index)?;
        let may = record.visibility == Visibility::Public
            && record.boost_of.is_none()
            && record.visible_at_ms <= at_ms
            && record.deleted_at_ms == i64::MAX;
        may.then(|| u32::try_from(index).ok()).flatten()
    }

    /// The value that an edit gives a post, where edits change IDs: its own, at the time of the edit.
    fn edited_value(&self, value: u128, edited_at_ms: i64) -> Option<u128> {
        if !self.config.quirks.edits_change_ids || edited_at_ms == i64::MAX {
            return None;
        }
        let layout = self.config.layout;
        let values = (0..).map(|step| layout.compose(edited_at_ms + step * 1_000, value));
        values
            .into_iter()
            .find(|&edited| edited == value || !self.is_taken(edited))
    }

    fn is_taken(&self, value: u128) -> bool {
        let key = self.config.layout.key(value);
        self.by_key.contains_key(&key) || self.by_other_key.contains_key(&key)
    }

    /// IDs differ within a lane because taken ones are stepped over, and
    /// between lanes because the lane is the lowest part of every ID. When a
    /// ms is full the next one is taken, as real generators do.
    fn free_value(&self, id_time_ms: i64, worker: usize, genes: u64) -> (u128, i64) {
        let layout = self.config.layout;
        let lanes = u128::from(self.config.lane.of.clamp(1, 4096));
        let lane = u128::from(self.config.lane.number) % lanes;
        let slots = (1u128 << layout.tail_bits()) / lanes;
        let serial = self.records.len() as u128;
        let first = match layout {
            IdLayout::Mastodon => u128::from(mix(id_time_ms as u64, 0)) + serial,
            IdLayout::Twitter => slots / self.worker_offsets_ms.len() as u128 * worker as u128,
            IdLayout::Takahe => u128::from(genes) << 3,
            IdLayout::Ulid | IdLayout::Snac => {
                (u128::from(genes) << 16) ^ u128::from(mix(genes, 1))
            }
            IdLayout::Sequential => serial + 1,
        };
        let mut at_ms = id_time_ms;
        loop {
            let free = (0..slots)
                .map(|step| layout.compose(at_ms, (first + step) % slots * lanes + lane))
                .find(|&value| !self.is_taken(value));
            if let Some(value) = free {
                return (value, at_ms);
            }
            at_ms += 1;
        }
    }
}

/// A page, and the slice of the timeline that it was cut from.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    pub(crate) statuses: Vec<Status>,
    /// The last of the slice, shown or not.
    pub(crate) oldest: Option<UpstreamId>,
    /// Whether the slice had as many as were asked for, so that there may be
    /// more.
    pub(crate) full: bool,
}

/// Of the posts that are not public, six in ten are unlisted, three private
/// and one direct.
fn visibility(draw: f64, non_public_share: f64) -> Visibility {
    if draw >= non_public_share {
        Visibility::Public
    } else if draw < non_public_share * 0.6 {
        Visibility::Unlisted
    } else if draw < non_public_share * 0.9 {
        Visibility::Private
    } else {
        Visibility::Direct
    }
}

// The random streams of a world's seed.
const ARRIVALS: u64 = 1;
const POSTS: u64 = 2;
const OFFSETS: u64 = 3;
const FILTERED: u64 = 5;
// 6 is that of growth, under a post's genes.
const HIDING: u64 = 7;
const SHOWN_LATE: u64 = 14;
const LEAVING: u64 = 16;
const OTHER_FOUND: u64 = 15;
