//! The positions of posts whose IDs change.
//!
//! snac lists posts in their order of arrival, with IDs that contain the time of their last change:
//! see [`UpstreamId::stable`]. A post keeps the position at which it was first seen here. A post
//! that was changed before then is listed next to posts with different times, and takes the time of
//! the post above it.

use std::collections::{HashMap, HashSet};

use super::page_order::non_increasing;
use crate::{
    answer::{Listed, Page, PageRequest},
    upstream_id::UpstreamId,
};

/// The posts of a timeline whose IDs at the server are not their positions here.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The newest ID of each post, by its position.
    shown: HashMap<UpstreamId, UpstreamId>,
}

impl Places {
    /// The posts of a page whose positions may be stored under other IDs. They are an input of
    /// [`Places::keep`].
    pub fn movable(page: &Page) -> Vec<UpstreamId> {
        let movable = page.listed.iter().filter(|item| is_movable(item));
        movable.map(|item| item.post.id.clone()).collect()
    }

    /// Lists the posts of a page for this request at their positions: the stored ones, by post, or
    /// those derived from their neighbours.
    pub fn keep(
        &mut self,
        page: &mut Page,
        request: &PageRequest,
        stored: &HashMap<UpstreamId, UpstreamId>,
    ) {
        if self.shown.len() > MAX_SHOWN {
            self.shown.clear();
        }
        // The first place of a post that is listed twice counts.
        let mut seen = HashSet::new();
        page.listed
            .retain(|item| !is_movable(item) || seen.insert(item.post.id.clone()));
        let take = |mut listed: Listed| {
            let known = Some(&listed.post.id).filter(|_| is_movable(&listed));
            let known = known.and_then(|id| stored.get(id));
            let shown = listed.position.clone();
            let is_free = known.is_none() && is_movable(&listed);
            let is_known = known.is_some();
            listed.position = known.unwrap_or(&shown).clone();
            Item {
                is_outside: is_known && is_outside(&listed.position, request),
                listed,
                shown,
                is_free,
            }
        };
        let mut items: Vec<Item> = page.listed.drain(..).map(take).collect();
        let (is_below, placed) = in_place(&items, request);
        let first = placed.iter().position(|placed| *placed);
        let first = first.map(|first| items[first].listed.position.clone());
        let mut neighbour = request.max_id.clone().filter(|_| is_below).or(first);
        for (item, placed) in items.iter_mut().zip(&placed) {
            if *placed {
                neighbour = Some(item.listed.position.clone());
            } else if let Some(other) = neighbour.as_ref().filter(|_| item.is_free)
                && let Some(position) = item.listed.position.at_place_of(other)
            {
                item.listed.position = position;
            }
        }
        for item in &items {
            if item.listed.position == item.shown {
                self.shown.remove(&item.shown);
            } else {
                let position = item.listed.position.clone();
                self.shown.insert(position, item.shown.clone());
            }
        }
        // A list may repeat a post at another place than the stored one.
        let items = items.into_iter().zip(placed);
        let kept = items.filter(|(item, placed)| *placed || !item.is_outside);
        page.listed = kept.map(|(item, _)| item.listed).collect();
    }

    /// The request with the IDs that its bounds have at the server.
    #[must_use]
    pub fn name(&self, request: &PageRequest) -> PageRequest {
        let shown = |id: &UpstreamId| self.shown.get(id).unwrap_or(id).clone();
        PageRequest {
            since_id: request.since_id.as_ref().map(shown),
            max_id: request.max_id.as_ref().map(shown),
            min_id: request.min_id.as_ref().map(shown),
            ..request.clone()
        }
    }
}

/// An item of a page.
struct Item {
    listed: Listed,
    /// Its ID at the server.
    shown: UpstreamId,
    /// True if it has no position yet.
    is_free: bool,
    /// True if its position is outside of the request's bounds.
    is_outside: bool,
}

/// True if a page is below the `max_id` of its request, and the items that are in order there.
/// Items with a position count more than those without.
fn in_place(items: &[Item], request: &PageRequest) -> (bool, Vec<bool>) {
    let above = request.max_id.iter().map(time);
    let mut times: Vec<&str> = above
        .flat_map(|time| vec![time; KNOWN + items.len() / 4])
        .collect();
    let mut firsts = Vec::with_capacity(items.len());
    for item in items {
        firsts.push(times.len());
        let is_light = item.is_free || item.is_outside;
        let weight = if is_light { 1 } else { KNOWN };
        times.extend(vec![time(&item.listed.position); weight]);
    }
    let placed = non_increasing(&times);
    let is_below = request.max_id.is_some() && placed[0];
    let placed = firsts.into_iter().map(|first| placed[first]);
    (is_below, placed.collect())
}

/// True if a position is outside of a request's bounds.
fn is_outside(position: &UpstreamId, request: &PageRequest) -> bool {
    let is_above = |max_id| time(position) > time(max_id);
    let is_below = |bound| time(position) < time(bound);
    let lower = request.since_id.as_ref().or(request.min_id.as_ref());
    request.max_id.as_ref().is_some_and(is_above) || lower.is_some_and(is_below)
}

/// True if an item's position is the ID of its post and may change.
fn is_movable(item: &Listed) -> bool {
    item.position.stable() == item.post.id && item.position.at_place_of(&item.position).is_some()
}

/// The part of an ID that changes.
fn time(id: &UpstreamId) -> &str {
    id.as_str().get(..10).unwrap_or_default()
}

/// An item with a position counts as this number of items without.
const KNOWN: usize = 3;
/// Far more than a walk through a timeline needs.
const MAX_SHOWN: usize = 10_000;
