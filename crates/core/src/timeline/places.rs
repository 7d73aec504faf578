//! The places of posts whose IDs change.
//!
//! snac lists posts in the order in which they came, by IDs that hold the time of their last change:
//! see [`UpstreamId::stable`]. Here a post keeps the position at which it was seen first. A post that
//! was changed before is seen far from the posts that are listed beside it; it takes the time of the
//! one above.

use std::collections::{HashMap, HashSet};

use super::page_order::non_increasing;
use crate::{
    answer::{Listed, Page, PageRequest},
    upstream_id::UpstreamId,
};

/// The posts of a timeline whose IDs there are not their positions here.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The newest ID of each post, by its position.
    shown: HashMap<UpstreamId, UpstreamId>,
}

impl Places {
    /// The posts of a page whose positions may be stored under other IDs: [`Places::keep`] wants to
    /// know them.
    pub fn movable(page: &Page) -> Vec<UpstreamId> {
        let movable = page.listed.iter().filter(|item| is_movable(item));
        movable.map(|item| item.post.id.clone()).collect()
    }

    /// Lists the posts of a page of this request at their positions: those that are stored, by post,
    /// and those that their neighbours give them.
    pub fn keep(
        &mut self,
        page: &mut Page,
        request: &PageRequest,
        stored: &HashMap<UpstreamId, UpstreamId>,
    ) {
        if self.shown.len() > MAX_SHOWN {
            self.shown.clear();
        }
        // Of a post that is listed twice, the first place counts.
        let mut seen = HashSet::new();
        page.listed
            .retain(|item| !is_movable(item) || seen.insert(item.post.id.clone()));
        let shown: Vec<UpstreamId> = page.listed.iter().map(|it| it.position.clone()).collect();
        let mut is_free = Vec::with_capacity(shown.len());
        for item in &mut page.listed {
            let known = Some(&item.post.id).filter(|_| is_movable(item));
            let known = known.and_then(|id| stored.get(id));
            is_free.push(known.is_none() && is_movable(item));
            if let Some(position) = known {
                item.position.clone_from(position);
            }
        }
        let placed = in_place(page, request, &is_free);
        let mut neighbour = placed.iter().position(|placed| *placed);
        for index in 0..placed.len() {
            if placed[index] {
                neighbour = Some(index);
            } else if let Some(other) = neighbour.filter(|_| is_free[index]) {
                let position = &page.listed[index].position;
                if let Some(position) = position.at_place_of(&page.listed[other].position) {
                    page.listed[index].position = position;
                }
            }
        }
        for (item, shown) in page.listed.iter().zip(shown) {
            if item.position == shown {
                self.shown.remove(&shown);
            } else {
                self.shown.insert(item.position.clone(), shown);
            }
        }
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

/// Which items of a page are in order, below the `max_id` of its request if it lists what is there.
/// What has a place counts more than what has none yet.
fn in_place(page: &Page, request: &PageRequest, is_free: &[bool]) -> Vec<bool> {
    let above = request.max_id.iter().map(time);
    let mut times: Vec<&str> = above
        .flat_map(|time| vec![time; KNOWN + page.listed.len() / 4])
        .collect();
    let mut firsts = Vec::with_capacity(page.listed.len());
    for (item, is_free) in page.listed.iter().zip(is_free) {
        firsts.push(times.len());
        let weight = if *is_free { 1 } else { KNOWN };
        times.extend(vec![time(&item.position); weight]);
    }
    let placed = non_increasing(&times);
    firsts.into_iter().map(|first| placed[first]).collect()
}

/// Whether an item's position is the ID of its post and may be another one tomorrow.
fn is_movable(item: &Listed) -> bool {
    item.position.stable() == item.post.id && item.position.at_place_of(&item.position).is_some()
}

/// The part of an ID that changes.
fn time(id: &UpstreamId) -> &str {
    id.as_str().get(..10).unwrap_or_default()
}

/// An item with a place counts as so many without.
const KNOWN: usize = 3;
/// Far more than a walk through a timeline needs.
const MAX_SHOWN: usize = 10_000;
