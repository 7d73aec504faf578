//! The order in which pages list posts, and what their bounds cut.

use std::{cmp::Reverse, ops::Bound};

use driftline_core::{
    answer::PageRequest,
    upstream_id::{Key, UpstreamId},
};

use super::World;
use crate::rng::mix;

impl World {
    /// The posts of a page before those are left out that the reader does not see. The request's
    /// limit is the server's.
    pub(super) fn slice(&self, now_ms: i64, request: &PageRequest) -> Vec<u32> {
        let limit = usize::from(request.limit);
        let min_id = request
            .min_id
            .as_ref()
            .filter(|_| !self.config.ignores_min_id);
        if self.config.quirks.lists_by_place() {
            return self.slice_by_place(now_ms, request, min_id);
        }
        let key = |bound: Option<&UpstreamId>| bound.and_then(|id| self.key(id));
        let floor = self.reach_floor(now_ms);
        let above = key(min_id.or(request.since_id.as_ref())).filter(|above| *above >= floor);
        let low = above.map_or(Bound::Included(floor), Bound::Excluded);
        let high = key(request.max_id.as_ref()).map_or(Bound::Unbounded, Bound::Excluded);
        if let (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high)) = (&low, &high)
            && low >= high
        {
            return Vec::new();
        }
        let visible = self
            .by_key
            .range((low, high))
            .map(|(_, &index)| index)
            .filter(|&index| self.is_listed(index, now_ms));
        newest_first(visible, min_id.is_some(), limit)
    }

    /// The same where the order of pages is not that of the IDs, or bounds are no IDs.
    fn slice_by_place(
        &self,
        now_ms: i64,
        request: &PageRequest,
        min_id: Option<&UpstreamId>,
    ) -> Vec<u32> {
        let limit = usize::from(request.limit);
        let mut listing = self.listing(now_ms);
        if let Some(max_id) = &request.max_id {
            listing = match self.bound(&listing, max_id) {
                Place::At(place) => listing.split_off(place + 1),
                Place::Nowhere => Vec::new(),
                Place::Above(key) => self.where_key(listing, now_ms, |own| *own < key),
            };
        }
        if let Some(min_id) = min_id {
            match self.bound(&listing, min_id) {
                Place::At(place) => listing.truncate(place),
                Place::Nowhere => listing.clear(),
                Place::Above(key) => listing = self.where_key(listing, now_ms, |own| *own > key),
            }
            return listing.split_off(listing.len().saturating_sub(limit));
        }
        if let Some(since_id) = &request.since_id {
            match self.bound(&listing, since_id) {
                Place::At(place) => listing.truncate(place),
                Place::Nowhere => {}
                Place::Above(key) => listing = self.where_key(listing, now_ms, |own| *own > key),
            }
        }
        listing.truncate(limit);
        listing
    }

    /// Everything that is listed, within reach, the newest first.
    fn listing(&self, now_ms: i64) -> Vec<u32> {
        let listed = self.by_key.values().rev().copied();
        let listed = listed.filter(|&index| self.is_listed(index, now_ms));
        let mut listed = self.in_places(listed.collect());
        if let Some(reach) = self.config.reach {
            listed.truncate(reach as usize);
        }
        listed
    }

    /// Posts in the order in which they are listed, of those in the order of their IDs, newest first.
    fn in_places(&self, mut listed: Vec<u32>) -> Vec<u32> {
        if !self.config.quirks.seconds_unordered.is_none() {
            // Where IDs are not backdated, their order is not that of the times.
            let second = |index: &u32| self.record(*index).id_time_ms.div_euclid(1_000);
            let mut places: Vec<_> = listed.iter().map(second).collect();
            for at in (1..places.len()).rev() {
                places[at - 1] = places[at - 1].max(places[at]);
            }
            let mut placed: Vec<(i64, u32)> = places.into_iter().zip(listed).collect();
            placed.sort_by_key(|&(second, index)| {
                (Reverse(second), mix(self.record(index).genes, 21))
            });
            listed = placed.into_iter().map(|(_, index)| index).collect();
        }
        listed
    }

    /// Whether no pages of so many places prove a range of whole seconds, from `low`, inclusive, to
    /// `high`, exclusive, where bounds name places: pages from above prove down to the second above
    /// the last post that they show before a run of posts that are left out, those from below up to
    /// the second of the first post after it.
    pub(super) fn hides_seconds(&self, now_ms: i64, low: i64, high: i64, places: u16) -> bool {
        if self.config.quirks.bounds_by_place.is_none() || low >= high {
            return false;
        }
        let posts = self.by_key.values().rev().copied();
        let posts = posts.filter(|&index| self.record(index).visible_at_ms <= now_ms);
        let mut above = i64::MAX;
        let mut in_a_row = 0;
        let mut hidden_from = high;
        for index in self.in_places(posts.collect()) {
            let record = self.record(index);
            if self.is_left_out(record, now_ms) || !record.is_visible(now_ms) {
                in_a_row += 1;
                continue;
            }
            let second = record.id_time_ms.div_euclid(1_000);
            if in_a_row >= places && above >= hidden_from - 1 {
                hidden_from = hidden_from.min(second);
            }
            (above, in_a_row) = (second, 0);
        }
        hidden_from <= low
    }

    fn bound(&self, listing: &[u32], id: &UpstreamId) -> Place {
        let by_place = !self.config.quirks.bounds_by_place.is_none();
        if !by_place {
            return self.key(id).map_or(Place::Nowhere, Place::Above);
        }
        let named = self.index(id);
        let place = named.and_then(|named| listing.iter().position(|&index| index == named));
        place.map_or(Place::Nowhere, Place::At)
    }

    fn where_key(&self, listing: Vec<u32>, now_ms: i64, is: impl Fn(&Key) -> bool) -> Vec<u32> {
        let layout = self.config.layout;
        let key = |index: u32| layout.key(self.record(index).value_at(now_ms));
        listing
            .into_iter()
            .filter(|&index| is(&key(index)))
            .collect()
    }

    fn is_listed(&self, index: u32, now_ms: i64) -> bool {
        let record = self.record(index);
        record.is_visible(now_ms) && !self.is_unlisted(record, now_ms)
    }

    /// The lowest ID that requests reach.
    pub(super) fn reach_floor(&self, now_ms: i64) -> Key {
        let Some(reach) = self.config.reach else {
            return Key::lowest();
        };
        let Some(deeper) = (reach as usize).checked_sub(1) else {
            return Key::highest();
        };
        self.by_key
            .iter()
            .rev()
            .filter(|&(_, &index)| self.record(index).is_visible(now_ms))
            .nth(deeper)
            .map_or_else(Key::lowest, |(key, _)| key.clone())
    }
}

/// A page of what is listed from the oldest to the newest: the newest posts, or with `min_id` those
/// next above it.
pub(crate) fn newest_first<T>(
    listed: impl DoubleEndedIterator<Item = T>,
    has_min_id: bool,
    limit: usize,
) -> Vec<T> {
    if !has_min_id {
        return listed.rev().take(limit).collect();
    }
    let mut page: Vec<T> = listed.take(limit).collect();
    page.reverse();
    page
}

/// What a bound names.
enum Place {
    /// The post at this place of the listing.
    At(usize),
    /// No listed post.
    Nowhere,
    /// An ID, whether a post has it or not.
    Above(Key),
}
