use std::collections::HashSet;

use driftline_store::{InstanceId, social::list_entry::ListEntry, timeline::PostKey};
use proptest::prelude::*;

use super::*;

proptest! {
    /// Pages of the two sequences together, in both directions, have each selected post once, in
    /// order, whatever the sequences and the limits are.
    #[test]
    fn pages_lose_and_repeat_nothing(
        places in proptest::collection::btree_set(1_u64..200, 0..60),
        entries in proptest::collection::btree_map(1_u64..200, any::<bool>(), 0..60),
        part in 1_usize..5,
        limit in 1_u16..7,
        is_upward in any::<bool>(),
    ) {
        let entries: Vec<(u64, bool)> = entries
            .into_iter()
            .filter(|(id, _)| !places.contains(id))
            .collect();
        let selected = entries.iter().filter(|(_, is_selected)| *is_selected);
        let mut expected: Vec<u64> = places.iter().copied().chain(selected.map(|(id, _)| *id)).collect();
        expected.sort_unstable();
        let mut range = Range { limit, ..Range::default() };
        if is_upward {
            range.min = Some(LocalId::new(0));
        } else {
            expected.reverse();
        }
        let (mut all, mut next) = (Vec::new(), Some(range));
        while let Some(range) = next {
            let (mut page, mut rest) = (Vec::new(), Some(range));
            while let Some(part_of_page) = rest {
                prop_assert!(part_of_page.limit > 0);
                let found = parted(&places, part, &part_of_page);
                let entered = entries_in(&entries, &part_of_page);
                let posts = posts_of(&entries, &entered);
                let read = merge(&part_of_page, found, &entered, posts);
                let mut ids: Vec<u64> = read.posts.iter().map(|post| post.id.raw()).collect();
                if is_upward {
                    ids.reverse();
                }
                page.extend(ids);
                rest = read.rest;
            }
            prop_assert!(page.len() <= usize::from(limit));
            let last = page.last().copied();
            next = last.filter(|_| page.len() == usize::from(limit)).map(|last| {
                let last = Some(LocalId::new(last));
                match is_upward {
                    true => Range { min: last, ..range },
                    false => Range { max: last, ..range },
                }
            });
            all.extend(page);
        }
        prop_assert_eq!(&all, &expected);
        let once: HashSet<u64> = all.iter().copied().collect();
        prop_assert_eq!(once.len(), all.len());
    }
}

/// The IDs that are in a range, in the direction of reading.
fn in_range(ids: impl Iterator<Item = u64>, range: &Range) -> Vec<u64> {
    let above = range.since.max(range.min).map_or(0, LocalId::raw);
    let below = range.max.map_or(u64::MAX, LocalId::raw);
    let mut ids: Vec<u64> = ids.filter(|id| *id > above && *id < below).collect();
    ids.sort_unstable();
    if range.min.is_none() {
        ids.reverse();
    }
    ids
}

/// A search that stops after `part` places.
fn parted(places: &std::collections::BTreeSet<u64>, part: usize, range: &Range) -> Stretch {
    let mut ids = in_range(places.iter().copied(), range);
    let limit = usize::from(range.limit);
    let is_cut = ids.len() > part && part < limit;
    ids.truncate(part.min(limit));
    let last = ids.last().copied().map(LocalId::new);
    let rest = last.filter(|_| is_cut).map(|last| {
        let (min, max) = match range.min {
            Some(_) => (Some(last), range.max),
            None => (range.min, Some(last)),
        };
        let limit = range.limit - ids.len() as u16;
        Range {
            min,
            max,
            limit,
            ..*range
        }
    });
    if range.min.is_some() {
        ids.reverse();
    }
    Stretch {
        posts: ids.into_iter().map(post).collect(),
        rest,
    }
}

fn entries_in(entries: &[(u64, bool)], range: &Range) -> Vec<ListEntry> {
    let mut ids = in_range(entries.iter().map(|(id, _)| *id), range);
    ids.truncate(usize::from(range.limit));
    if range.min.is_some() {
        ids.reverse();
    }
    let entries = ids.into_iter().map(|id| ListEntry {
        id: LocalId::new(id),
        key: PostKey {
            post: LocalId::new(1_000 + id),
            instance: InstanceId::new(1),
        },
    });
    entries.collect()
}

fn posts_of(entries: &[(u64, bool)], entered: &[ListEntry]) -> Vec<TimelinePost> {
    let is_selected = |id: u64| entries.contains(&(id, true));
    let ids = entered.iter().map(|entry| entry.id.raw());
    ids.filter(|id| is_selected(*id)).map(post).collect()
}

fn post(id: u64) -> TimelinePost {
    TimelinePost {
        id: LocalId::new(id),
        post_id: LocalId::new(id),
        public_id: LocalId::new(id),
        instance: InstanceId::new(1),
        upstream_id: String::new(),
        uri: None,
        url: None,
        account: None,
        created_at_ms: None,
        edited_at_ms: None,
        visibility: driftline_core::post::Visibility::Public,
        boost_of: None,
        raw: String::new(),
        copies: Vec::new(),
    }
}
