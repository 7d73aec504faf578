//! Posts whose IDs change keep their places.

use std::collections::HashMap;

use driftline_core::{
    answer::{AnswerHeaders, Page, PageRequest},
    timeline::Places,
    upstream_id::UpstreamId,
};
use proptest::prelude::*;

use crate::world::listed_at;

fn page(ids: impl IntoIterator<Item = UpstreamId>) -> Page {
    Page {
        listed: ids.into_iter().map(listed_at).collect(),
        passed: Vec::new(),
        unreadable: Vec::new(),
        headers: AnswerHeaders::default(),
    }
}

/// A timeline as snac keeps it: posts in the order in which they came, newest first, with the
/// second of their last change.
#[derive(Debug, Clone)]
struct Listing(Vec<(u32, u64)>);

impl Listing {
    fn id((number, second): (u32, u64)) -> UpstreamId {
        let hash = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        UpstreamId::new(format!("{:010}{hash:032x}", 1_700_000_000 + second))
    }

    /// The page below a bound, which names a post by its whole ID.
    fn page(&self, request: &PageRequest) -> Page {
        let ids = self.0.iter().map(|post| Self::id(*post));
        let below: Vec<UpstreamId> = match &request.max_id {
            None => ids.collect(),
            Some(max) => ids.skip_while(|id| id != max).skip(1).collect(),
        };
        page(below.into_iter().take(request.limit.into()))
    }
}

proptest! {
    #[test]
    fn a_walk_lists_each_post_once_and_in_order_however_posts_change(
        changes in prop::collection::vec((1_u32..60, 0_u64..4), 1..80),
        limit in 4_u16..20,
    ) {
        let mut listing = Listing((0..60).rev().map(|n| (n, u64::from(n) / 2)).collect());
        let mut places = Places::default();
        let mut stored: HashMap<UpstreamId, UpstreamId> = HashMap::new();
        let mut changes = changes.into_iter();
        let mut request = PageRequest { limit, ..PageRequest::default() };
        let mut now = 60;
        let mut walked = HashMap::new();
        for _ in 0..200 {
            let mut page = listing.page(&places.name(&request));
            places.keep(&mut page, &request, &stored);
            let Some(last) = page.listed.last() else { break };
            for item in &page.listed {
                let before = stored.insert(item.post.id.clone(), item.position.clone());
                prop_assert!(before.is_none_or(|before| before == item.position));
                walked.insert(item.post.id.clone(), item.position.clone());
            }
            let times = page.listed.iter().map(|item| item.position.as_str()[..10].to_owned());
            prop_assert!(times.collect::<Vec<_>>().is_sorted_by(|a, b| a >= b));
            request.max_id = Some(last.position.clone());
            for (number, after) in changes.by_ref().take(usize::from(limit) / 2) {
                now += after;
                let bound = request.max_id.as_ref().map(UpstreamId::stable);
                let changed = listing.0.iter_mut().find(|post| post.0 == number);
                let changed = changed.filter(|post| Some(Listing::id(**post).stable()) != bound);
                if let Some(post) = changed {
                    post.1 = now;
                }
            }
        }
        prop_assert_eq!(walked.len(), 60);
    }
}

#[test]
fn other_ids_stay_as_they_are() {
    let mut page = page(["3", "5", "1"].map(UpstreamId::from));
    let before = page.clone();
    assert!(Places::movable(&page).is_empty());
    Places::default().keep(&mut page, &PageRequest::default(), &HashMap::new());
    assert_eq!(page, before);
}

/// Two posts below a stored one were changed together, and are as many as those that were not.
#[test]
fn what_has_a_place_counts_more_than_what_has_none() {
    let listed = [id(1938, 4), id(1951, 3), id(1951, 2), id(1869, 1)];
    let mut page = page(listed.clone());
    let stored = HashMap::from([(listed[0].stable(), listed[0].clone())]);
    let mut places = Places::default();
    places.keep(&mut page, &PageRequest::default(), &stored);
    let positions = positions(&page);
    let expected = [id(1938, 4), id(1938, 3), id(1938, 2), id(1869, 1)];
    assert_eq!(positions, expected);
    // Bounds name them as the server does.
    let request = PageRequest {
        max_id: Some(positions[2].clone()),
        ..PageRequest::default()
    };
    assert_eq!(places.name(&request).max_id.as_ref(), Some(&listed[2]));
}

fn id(second: u64, number: u32) -> UpstreamId {
    UpstreamId::new(format!("{second:010}{number:032x}"))
}

fn positions(page: &Page) -> Vec<UpstreamId> {
    page.listed.iter().map(|it| it.position.clone()).collect()
}

#[test]
fn a_page_of_changed_posts_is_at_the_place_of_its_bound() {
    let mut page = page([id(1969, 9), id(1970, 8)]);
    let request = PageRequest {
        max_id: Some(id(1871, 7)),
        ..PageRequest::default()
    };
    Places::default().keep(&mut page, &request, &HashMap::new());
    assert_eq!(positions(&page), [id(1871, 9), id(1871, 8)]);
}

/// snac's lists show a post once more for each boost by a member.
#[test]
fn what_a_list_repeats_has_its_place_above() {
    let stored = |ids: &[UpstreamId]| {
        let ids = ids.iter().map(|id| (id.stable(), id.clone()));
        ids.collect::<HashMap<_, _>>()
    };
    let mut places = Places::default();
    // Eight of twenty were boosted, and are listed above the bound.
    let boosted: Vec<_> = (0..8).map(|n| id(1990 - u64::from(n), 100 + n)).collect();
    let fresh: Vec<_> = (0..12).map(|n| id(1900 - u64::from(n), n)).collect();
    let mixed = (0..12_usize).flat_map(|n| fresh.get(n).into_iter().chain(boosted.get(n)));
    let mut below = page(mixed.cloned());
    let request = PageRequest {
        max_id: Some(id(1950, 99)),
        ..PageRequest::default()
    };
    places.keep(&mut below, &request, &stored(&boosted));
    assert_eq!(positions(&below), fresh);
    // A server that ignores the bound shows the newest page.
    let mut newest = page(boosted.iter().chain(&fresh).cloned());
    places.keep(&mut newest, &request, &stored(&boosted));
    assert_eq!(positions(&newest), [boosted.clone(), fresh].concat());
    // An old post is listed again on top of a new one.
    let mut top = page([id(1800, 5), id(2000, 6)]);
    let request = PageRequest {
        since_id: Some(id(1990, 100)),
        ..PageRequest::default()
    };
    places.keep(&mut top, &request, &stored(&[id(1800, 5)]));
    assert_eq!(positions(&top), [id(2000, 6)]);
}
