//! An answered page in order, and its meaning for the request.

use std::{collections::HashSet, fmt};

use serde::{Deserialize, Serialize};

use super::{
    page_order::{PageOrder, lists_again},
    request::Request,
    scheme::{IdScheme, detect_layout, detect_order},
    server_time::{answered_by_ms, read_at_ms, retrieved_at_ms},
    settings::Settings,
};
use crate::{
    answer::{AnswerHeaders, Listed, Page, Unreadable},
    upstream_id::{IdOrder, Key, UpstreamId},
};

/// A page with checked IDs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The scheme by which its IDs were read.
    pub scheme: Option<IdScheme>,
    /// The key of each listed post, the newest first.
    pub keys: Vec<Key>,
    /// The newest and the oldest key of the listed items that are not posts, in their place and not
    /// ahead of the server's time.
    pub passed: Option<(Key, Key)>,
    /// The time of the read, in Unix ms by the server's clock, on the safe side of both clocks. The
    /// next poll may begin there.
    pub retrieved_at_ms: i64,
    /// The earliest possible time of the read, in Unix ms by the server's clock only.
    pub read_at_ms: i64,
    /// The latest possible server time of the answer, in Unix ms.
    pub answered_by_ms: i64,
    /// The number of the first keys that are ahead of the server's time.
    pub ahead: usize,
    /// The ms within which the answer lists posts in any order.
    pub precision_ms: i64,
    /// True if that is the server's order. False if a post that is pinned on top explains it.
    pub(super) is_coarse: bool,
    /// The post that is listed first, if it is the only exception to the order of IDs, and to that
    /// of seconds.
    pub(super) odd_top: Option<Key>,
    /// True if it lists posts of one second against the order of IDs that contain no seconds.
    pub(super) is_unordered: bool,
    /// True if the answer lists the oldest post first.
    pub(super) is_reversed: bool,
    /// Set if the answer does not follow the order of IDs. Then `keys` are in the order of the
    /// answer.
    pub disorder: Option<Disorder>,
    /// The number of different listed items, posts or not.
    pub items: usize,
    /// The last posts that the answer lists in their places, up to two, the last one first.
    pub(super) last: Vec<Key>,
    /// For each key, true if the answer lists it in its place. The others are normal posts, but do
    /// not bound the posts between.
    placed: Vec<bool>,
}

/// Two posts that a page lists against the order of their IDs, if it does so with many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disorder {
    /// The post that is listed first.
    pub first: UpstreamId,
    /// The time of its creation, in Unix ms.
    pub first_ms: Option<i64>,
    /// The post that is listed next, whose ID is the larger one.
    pub next: UpstreamId,
    /// The time of its creation, in Unix ms.
    pub next_ms: Option<i64>,
    /// The order of IDs that fits the page, if there is one.
    pub fits: Option<IdOrder>,
    /// True if the page is in the order of `created_at`.
    pub is_by_creation: bool,
}

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pages list {} before {}", self.first, self.next)?;
        if let (Some(first_ms), Some(next_ms)) = (self.first_ms, self.next_ms) {
            let apart_s = (next_ms - first_ms) as f64 / 1000.0;
            let relation = if apart_s > 0.0 { "later" } else { "earlier" };
            write!(f, ", which was created {} s {relation}", apart_s.abs())?;
        }
        match self.fits {
            Some(order) => write!(
                f,
                "; their IDs are in the order `{}`: remove the source and add it with --id-order {0}",
                order.name()
            ),
            None if self.is_by_creation => f.write_str(
                "; they are in the order of their creation, of which their IDs say nothing",
            ),
            None => f.write_str("; no known order of IDs fits"),
        }
    }
}

impl Reading {
    /// Reads the contents of a page, and finds the source's ID scheme if it is not known yet.
    ///
    /// Repeated items are dropped and the others are sorted, the newest first, so that each of
    /// `keys` belongs to the listed post at its index. A page that lists the oldest first is
    /// reversed. A page that does not follow the order of IDs stays as it is. Posts outside the
    /// requested bounds stay. A post whose ID does not fit the source's order becomes unreadable.
    pub fn check(page: &mut Page, known: Option<IdScheme>, settings: &Settings) -> Self {
        let Some(scheme) = known.or_else(|| find_scheme(page, settings)) else {
            return Self::of_keys(Vec::new(), &[], None, &page.headers);
        };
        let mut passed = keys_of(&page.passed, &scheme);
        let passes_again = lists_again(&passed);
        drop_repeats(&mut passed, Clone::clone);
        let mut listed = take_listed(page, &scheme);
        let keys =
            |listed: &[(Key, Listed)]| listed.iter().map(|of| of.0.clone()).collect::<Vec<_>>();
        // Such a page does not show the server's order.
        let repeats = lists_again(&keys(&listed)) || passes_again;
        drop_repeats(&mut listed, |(key, _)| key.clone());
        let is_reversed = is_rising(&keys(&listed), &passed);
        if is_reversed {
            listed.reverse();
            passed.reverse();
        }
        let keys = keys(&listed);
        let order = PageOrder::detect(&keys, &scheme);
        let passed_order = PageOrder::detect(&passed, &scheme);
        let is_unordered = !repeats && is_unordered(&listed, &scheme);
        let is_kept = repeats || order.is_kept();
        if !is_kept || !passed_order.is_kept() || is_unordered {
            page.listed = listed.into_iter().map(|(_, item)| item).collect();
            return Self {
                is_unordered,
                ..Self::disordered(keys, passed.len(), scheme, page)
            };
        }
        let is_coarse = is_coarse(&keys, &scheme) || is_coarse(&passed, &scheme);
        let is_coarse = is_coarse && !repeats;
        let precision_ms = order.precision_ms.max(passed_order.precision_ms);
        let is_odd = precision_ms > scheme.precision_ms() && !is_coarse && !repeats;
        let odd_top = keys.first().filter(|_| is_odd);
        let odd_top = odd_top.cloned();
        let mut listed: Vec<_> = listed.into_iter().zip(order.placed).collect();
        let last = listed.iter().rev().filter(|(_, placed)| *placed);
        let last = last.take(2).map(|((key, _), _)| key.clone()).collect();
        listed.sort_by(|((a, _), _), ((b, _), _)| b.cmp(a));
        let placed = listed.iter().map(|(_, placed)| *placed).collect();
        let (keys, items) = listed.into_iter().map(|(item, _)| item).unzip();
        page.listed = items;
        let items = page.listed.len() + passed.len();
        let mut steps = passed_order.placed.iter();
        passed.retain(|_| steps.next().copied().unwrap_or_default());
        Self {
            placed,
            items,
            last,
            precision_ms,
            is_coarse,
            odd_top,
            is_reversed,
            ..Self::of_keys(keys, &passed, Some(scheme), &page.headers)
        }
    }

    /// A page whose keys are known to be correct, the newest first.
    pub(super) fn of_keys(
        keys: Vec<Key>,
        passed: &[Key],
        scheme: Option<IdScheme>,
        headers: &AnswerHeaders,
    ) -> Self {
        let answered_by_ms = answered_by_ms(headers);
        let is_ahead = |key: &&Key| {
            let time_ms = scheme.and_then(|scheme| scheme.time_ms(key));
            time_ms.is_some_and(|time_ms| time_ms > answered_by_ms)
        };
        let items = keys.len() + passed.len();
        let passed = &passed[passed.iter().take_while(is_ahead).count()..];
        Self {
            scheme,
            ahead: keys.iter().take_while(is_ahead).count(),
            placed: vec![true; keys.len()],
            last: keys.iter().rev().take(2).cloned().collect(),
            keys,
            passed: passed.first().cloned().zip(passed.last().cloned()),
            retrieved_at_ms: retrieved_at_ms(headers),
            read_at_ms: read_at_ms(headers),
            answered_by_ms,
            precision_ms: 0,
            is_coarse: false,
            odd_top: None,
            is_unordered: false,
            is_reversed: false,
            disorder: None,
            items,
        }
    }

    fn disordered(keys: Vec<Key>, passed: usize, scheme: IdScheme, page: &Page) -> Self {
        let disorder = disorder(&keys, scheme, page);
        Self {
            ahead: 0,
            disorder: Some(disorder),
            items: keys.len() + passed,
            ..Self::of_keys(keys, &[], Some(scheme), &page.headers)
        }
    }

    /// The newest ID that is in its place and not ahead of the server's time.
    pub(super) fn newest(&self) -> Option<&Key> {
        let passed = self.passed.as_ref().map(|(newest, _)| newest);
        self.placed_keys().next().max(passed)
    }

    /// The oldest ID that is in its place, if one is not ahead of the server's time.
    pub(super) fn oldest(&self) -> Option<&Key> {
        self.oldest_from(None)
    }

    /// The oldest of them that is not below `low`.
    pub(super) fn oldest_from(&self, low: Option<&Key>) -> Option<&Key> {
        let is_inside = |key: &&Key| low.is_none_or(|low| *key >= low);
        let listed = self.placed_keys().filter(is_inside).last();
        let passed = self
            .passed
            .iter()
            .flat_map(|(newest, oldest)| [newest, oldest]);
        listed.into_iter().chain(passed.filter(is_inside)).min()
    }

    fn placed_keys(&self) -> impl Iterator<Item = &Key> {
        let keys = self.keys.iter().zip(&self.placed).skip(self.ahead);
        let in_order = self.disorder.is_none();
        keys.filter_map(move |(key, placed)| (*placed && in_order).then_some(key))
    }

    /// The upper end of the range of which a page without `max_id` shows all posts: its newest
    /// post. If IDs contain only the second, the end of that second, or its beginning if it may not
    /// have been over.
    pub(super) fn top(&self, scheme: &IdScheme, newest: &Key) -> Key {
        let end = scheme.end_of_time(newest);
        match scheme.time_ms(&end) {
            Some(end_ms) if self.read_at_ms < end_ms => scheme.begin_of_time(newest),
            _ => end,
        }
    }

    /// True if it lists posts above the `max_id` of the request, in their place. It is then the
    /// newest page.
    pub(super) fn passes_max_id(&self, request: &Request) -> bool {
        let newest = self
            .keys
            .iter()
            .zip(&self.placed)
            .find(|(_, placed)| **placed);
        let newest = newest.map(|(key, _)| key).max(self.newest());
        let is_above = |max: &Key| newest.is_some_and(|newest| self.is_above(newest, max));
        self.disorder.is_none() && request.max_id.as_ref().is_some_and(is_above)
    }

    /// True if it lists posts below the lower bound of the request, in their place.
    pub(super) fn passes_lower_bound(&self, request: &Request) -> bool {
        let bound = request.since_id.as_ref().or(request.min_id.as_ref());
        let oldest = self.oldest();
        bound.is_some_and(|bound| oldest.is_some_and(|oldest| self.is_above(bound, oldest)))
    }

    /// True if one key is certainly listed above another: they are further apart than the precision
    /// of the order.
    fn is_above(&self, key: &Key, other: &Key) -> bool {
        let scheme = self.scheme.filter(|_| self.precision_ms > 0);
        let window = |key| Some(scheme?.time_ms(key)?.div_euclid(self.precision_ms));
        match (window(key), window(other)) {
            (Some(key), Some(other)) => key > other,
            _ => key > other,
        }
    }
}

/// True if keys are out of order even without the first of them.
fn is_coarse(keys: &[Key], scheme: &IdScheme) -> bool {
    let below = keys.get(1..).unwrap_or_default();
    PageOrder::detect(below, scheme).precision_ms > 0
}

/// True if posts below the first one that were created in one second are out of order, and IDs
/// contain no time. The distance between such posts is then unknown.
fn is_unordered(listed: &[(Key, Listed)], scheme: &IdScheme) -> bool {
    let second = |item: &Listed| Some(item.post.created_at_ms?.div_euclid(1_000));
    let swapped = |pair: &[(Key, Listed)]| {
        let [(first, one), (next, other)] = pair else {
            return false;
        };
        first < next && second(one).is_some() && second(one) == second(other)
    };
    let below = listed.get(1..).unwrap_or_default();
    scheme.layout.is_none() && below.windows(2).any(swapped)
}

/// Takes the posts of a page with their keys. Posts without a key become unreadable.
fn take_listed(page: &mut Page, scheme: &IdScheme) -> Vec<(Key, Listed)> {
    let all = std::mem::take(&mut page.listed);
    let keys: Vec<_> = all.iter().map(|item| scheme.key(&item.position)).collect();
    let positions: Vec<UpstreamId> = all.iter().map(|item| item.position.clone()).collect();
    let named = |index: usize| keys[index].is_ok().then(|| positions[index].clone());
    for item in &mut page.unreadable {
        item.position
            .take_if(|position| scheme.key(position).is_err());
    }
    let mut listed = Vec::with_capacity(all.len());
    for (index, item) in all.into_iter().enumerate() {
        match &keys[index] {
            Ok(key) => listed.push((key.clone(), item)),
            Err(error) => page.unreadable.push(Unreadable {
                position: None,
                above: (0..index).rev().find_map(named),
                below: (index + 1..positions.len()).find_map(named),
                bytes: item.post.raw.into_bytes(),
                reason: error.to_string(),
            }),
        }
    }
    listed
}

/// True if a page lists the oldest item first: each of several is above the previous one.
fn is_rising(listed: &[Key], passed: &[Key]) -> bool {
    let is_rising = |keys: &[Key]| keys.is_sorted_by(|a, b| a < b);
    let falls = |keys: &[Key]| keys.len() > 1 && !is_rising(keys);
    listed.len().max(passed.len()) >= MIN_RISING && !falls(listed) && !falls(passed)
}

/// Keeps the first of equal items.
fn drop_repeats<T>(items: &mut Vec<T>, key: impl Fn(&T) -> Key) {
    let mut seen = HashSet::with_capacity(items.len());
    items.retain(|item| seen.insert(key(item)));
}

/// The scheme of a page: the order that the form of its IDs suggests, unless the page has another
/// one.
fn find_scheme(page: &Page, settings: &Settings) -> Option<IdScheme> {
    let listed = page.listed.iter().map(|item| &item.position);
    let ids: Vec<_> = listed.chain(&page.passed).collect();
    let scheme = |order| IdScheme {
        order,
        layout: settings
            .named_layout()
            .unwrap_or_else(|| detect_layout(order, &page.listed)),
    };
    if let Some(order) = settings.id_order {
        return Some(scheme(order)).filter(|_| !ids.is_empty());
    }
    let likely = detect_order(&ids)?;
    let orders = std::iter::once(likely).chain(OTHERS);
    let mut schemes = orders.map(scheme);
    Some(
        schemes
            .find(|scheme| fits(page, scheme))
            .unwrap_or_else(|| scheme(likely)),
    )
}

/// True if a page is in a scheme's order.
fn fits(page: &Page, scheme: &IdScheme) -> bool {
    let listed = page.listed.iter().map(|item| &item.position);
    let ids = page.listed.len() + page.passed.len();
    let in_order = |mut keys: Vec<Key>| {
        drop_repeats(&mut keys, Clone::clone);
        PageOrder::detect(&keys, scheme).is_kept()
    };
    let keys = (keys_of(listed, scheme), keys_of(&page.passed, scheme));
    let are_most = (keys.0.len() + keys.1.len()) * MOST.1 >= ids * MOST.0;
    are_most && in_order(keys.0) && in_order(keys.1)
}

/// Two posts that are listed against the order, and the order that fits.
fn disorder(keys: &[Key], scheme: IdScheme, page: &Page) -> Disorder {
    let created_at_ms = |index: usize| page.listed.get(index)?.post.created_at_ms;
    // Posts of one time may be in any order.
    let begin = |key: &Key| scheme.begin_of_time(key);
    let rises = keys
        .windows(2)
        .position(|pair| begin(&pair[0]) < begin(&pair[1]));
    let first = rises.unwrap_or(0);
    let id = |index: usize| keys.get(index).map_or("-".into(), |key| scheme.id(key));
    let times: Vec<_> = page
        .listed
        .iter()
        .map(|item| item.post.created_at_ms)
        .collect();
    let others = OTHERS.iter().filter(|order| **order != scheme.order);
    let mut others = others.map(|order| IdScheme::untimed(*order));
    Disorder {
        first: id(first),
        first_ms: created_at_ms(first),
        next: id(first + 1),
        next_ms: created_at_ms(first + 1),
        fits: others.find(|other| fits(page, other)).map(|fit| fit.order),
        is_by_creation: times.is_sorted_by(|a, b| a.is_some() && a >= b),
    }
}

/// The keys of the IDs that have one.
fn keys_of<'a>(ids: impl IntoIterator<Item = &'a UpstreamId>, scheme: &IdScheme) -> Vec<Key> {
    let keys = ids.into_iter().map(|id| scheme.key(id).ok());
    keys.flatten().collect()
}

/// The orders that a page may have against the form of its IDs.
const OTHERS: [IdOrder; 3] = [IdOrder::LengthThenText, IdOrder::Text, IdOrder::Numeric];
/// Fewer items may rise by chance, for example a pinned post above a new one.
const MIN_RISING: usize = 3;
/// The part of a page's IDs that must fit an order. One may be an exception.
const MOST: (usize, usize) = (7, 8);
