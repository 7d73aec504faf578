//! The parameters of timeline requests that a server honours, learned from its answers.
//!
//! Servers differ from the documentation of their API, and from one kind of timeline to another. So
//! nothing is assumed that no answer has shown. Only an answer that would differ if a parameter
//! were ignored counts as evidence about it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    reading::{Disorder, Reading},
    request::{Request, RequestPurpose},
};
use crate::upstream_id::Key;

/// The parameters of timeline requests that a server honours.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HonouredAbilities {
    /// `since_id` alone.
    pub since_id: Observed,
    /// `min_id`: the posts just above it.
    pub min_id: Observed,
    /// `max_id` alone.
    pub max_id: Observed,
    /// `since_id` and `max_id` together.
    pub both: Observed,
    /// With both, an answer that is too small for all posts begins with the newest post.
    pub from_newest: Observed,
    /// `limit`: ignored if a page was longer.
    pub limit: Observed,
    /// The longest page so far, in items. The server may use a smaller limit than requested.
    pub longest_page: usize,
    /// The ms within which posts are listed in any order, as seen in pages.
    pub precision_ms: i64,
    /// Set while pages do not follow the order of IDs.
    pub disorder: Option<Disorder>,
    /// The number of consecutive pages out of order.
    disordered: u8,
    /// Set permanently once posts of one second were out of order and IDs contain no seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    unordered: Option<Disorder>,
    /// The post that a page listed first, against the order in its second.
    #[serde(skip_serializing_if = "Option::is_none")]
    odd_top: Option<Key>,
    /// A page that cannot prove the range above its newest post before `from_newest` is known.
    unproven_top: Option<(Key, Key)>,
}

/// The observations of one ability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Observed {
    /// The state of the ability.
    pub state: Honoured,
    /// The time of the last observation, in Unix ms by the local clock.
    pub at_ms: i64,
    /// The number of consecutive answers against it.
    pub contradictions: u8,
}

named_enum! {
    /// The state of a server's ability.
    #[derive(Default)]
    pub enum Honoured: "snake_case" {
        /// No answer has shown it yet.
        #[default]
        Unknown,
        /// The server honours it.
        Honoured,
        /// The server ignores it.
        Ignored,
    }
}

/// The reason why completeness cannot be proven for a timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unprovable {
    /// The server ignores `max_id`, and no answer has shown that it honours `min_id`. Only its
    /// newest page is available.
    NoBounds,
    /// Pages do not follow the order of IDs.
    NoOrder(Disorder),
}

impl fmt::Display for Unprovable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBounds => f.write_str(
                "no answer has shown that the server honours max_id or min_id, so that only its \
                 newest page can be read; what came between two polls is known to be whole only where their pages meet",
            ),
            Self::NoOrder(disorder) => disorder.fmt(f),
        }
    }
}

/// The known state of a timeline when a page arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimelineState<'a> {
    /// The beginning of coverage: a post that was shown, or the lowest key.
    pub(super) origin: Option<&'a Key>,
    /// The newest post that was shown.
    pub(super) frontier: Option<&'a Key>,
    /// The number of the page's posts that are new.
    pub(super) new: u64,
    /// The time in Unix ms by the local clock.
    pub(super) now_ms: i64,
}

impl HonouredAbilities {
    /// Visits each of its past times by the local clock.
    pub(super) fn each_local_time(&mut self, visit: &mut impl FnMut(&mut i64)) {
        for ability in [
            &mut self.since_id,
            &mut self.min_id,
            &mut self.max_id,
            &mut self.both,
            &mut self.from_newest,
            &mut self.limit,
        ] {
            visit(&mut ability.at_ms);
        }
    }
}

impl Observed {
    /// True if the ability may be used: it is not ignored, or was not tested for some hours.
    pub(super) fn is_usable(self, now_ms: i64) -> bool {
        self.state != Honoured::Ignored || !(0..RETRY_MS).contains(&(now_ms - self.at_ms))
    }

    fn is_honoured(self) -> bool {
        self.state == Honoured::Honoured
    }

    fn saw(&mut self, obeyed: Option<bool>, now_ms: i64) {
        let Some(obeyed) = obeyed else { return };
        self.at_ms = now_ms;
        if obeyed {
            self.contradictions = 0;
            self.state = Honoured::Honoured;
            return;
        }
        self.contradictions = self.contradictions.saturating_add(1);
        if self.contradictions >= MIN_CONTRADICTIONS {
            self.state = Honoured::Ignored;
        }
    }
}

impl HonouredAbilities {
    /// True if nothing has been learned yet.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The assumptions for another source of the same kind of timeline.
    #[must_use]
    pub(super) fn as_prior(&self) -> Self {
        Self {
            unproven_top: None,
            disorder: None,
            disordered: 0,
            ..self.clone()
        }
    }

    /// True if at most a `Link` header makes further pages available.
    pub fn is_link_only(&self) -> bool {
        self.max_id.state == Honoured::Ignored && !self.min_id.is_honoured()
    }

    /// True if an answer with this number of items may have been cut, because it reaches the limit
    /// or the longest page so far.
    pub(super) fn is_full(&self, items: usize, limit: u16) -> bool {
        items >= usize::from(limit).min(self.longest_page.max(1))
    }

    /// The same, but a short answer counts only if it is long enough for a server's own limit. The
    /// first posts of a timeline make pages that are the longest so far.
    pub(super) fn is_surely_full(&self, items: usize, limit: u16) -> bool {
        let is_long = items >= MIN_FULL.min(usize::from(limit));
        is_long && self.is_full(items, limit)
    }

    /// True if an answer is certainly complete, even if posts were removed by a filter after it was
    /// cut.
    pub(super) fn is_surely_whole(&self, items: usize, limit: u16) -> bool {
        let full = usize::from(limit).min(self.longest_page);
        full >= MIN_FULL && items * WHOLE_PART <= full
    }

    /// True if a page shows all posts between its newest post and an honoured `max_id`.
    pub(super) fn shows_top(&self, request: &Request, reading: &Reading) -> bool {
        request.since_id.is_none()
            || self.from_newest.is_honoured()
            || self.is_surely_whole(reading.items, request.page.limit)
    }

    /// True if a page between two bounds can show that it is complete.
    pub(super) fn can_prove_both(&self) -> bool {
        self.from_newest.is_honoured() || self.longest_page >= MIN_FULL
    }

    /// Learns from an answer.
    pub(super) fn learn(&mut self, request: &Request, reading: &Reading, known: TimelineState<'_>) {
        // Before anything is known, any page has information.
        let is_first = known.frontier.is_none();
        if reading.items >= MIN_ORDERED || is_first {
            self.disordered = match reading.disorder {
                Some(_) => self.disordered.saturating_add(1),
                None => 0,
            };
            let is_shown = is_first || self.disordered >= MIN_CONTRADICTIONS;
            self.disorder = reading.disorder.clone().filter(|_| is_shown);
        }
        if reading.is_unordered {
            self.unordered.clone_from(&reading.disorder);
        }
        if self.disorder.is_none() {
            self.disorder.clone_from(&self.unordered);
        }
        if reading.is_coarse || self.is_odd_again(request, reading) {
            self.precision_ms = self.precision_ms.max(reading.precision_ms);
        }
        let limit = usize::from(request.page.limit);
        if reading.items > 0 && reading.items >= limit {
            let obeyed = Some(reading.items == limit);
            self.limit.saw(obeyed, known.now_ms);
        }
        self.learn_top(request, reading, known);
        let is_full = self.is_full(reading.items, request.page.limit);
        self.longest_page = self.longest_page.max(reading.items);
        let (Some(newest), Some(oldest)) = (reading.newest(), reading.oldest()) else {
            return;
        };
        // Without the bound, known posts would also have been shown: as many as ever, or those
        // outside of it.
        let has_below = |bound: &Key| {
            let origin = known.origin.filter(|origin| !origin.is_lowest());
            origin.is_some_and(|origin| origin < bound)
        };
        let is_cut_above = |bound: &Key| known.frontier.is_some_and(|frontier| frontier > bound);
        // A full page that lists the oldest first is the lowest above the bound, not the newest.
        let passes = ignores_max_id(request, reading, known)
            || reading.passes_lower_bound(request)
            || (request.since_id.is_some() && reading.is_reversed && is_full);
        let answer = |is_cut: bool| match passes {
            true => Some(false),
            false => is_cut.then_some(true),
        };
        let now_ms = known.now_ms;
        match (&request.since_id, &request.max_id, &request.min_id) {
            // Polls may exclude posts that are dated ahead by their own bound.
            (Some(_), None, None) if request.ceiling.is_none() => {
                self.since_id.saw(answer(!is_full), now_ms);
            }
            (None, Some(max), None) => self.max_id.saw(answer(is_cut_above(max)), now_ms),
            (Some(since), Some(max), None) => {
                let is_cut = !is_full && has_below(since) && is_cut_above(max);
                self.both.saw(answer(is_cut), now_ms);
            }
            (None, None, Some(_)) => {
                let is_joined = request
                    .anchor
                    .as_ref()
                    .is_some_and(|anchor| oldest <= anchor);
                let reaches_top = known.frontier.is_some_and(|frontier| newest >= frontier);
                let obeyed = match passes || (is_full && reaches_top && !is_joined) {
                    true => Some(false),
                    false => (is_joined && !reaches_top).then_some(true),
                };
                self.min_id.saw(obeyed, now_ms);
            }
            _ => {}
        }
    }

    /// True if a page lists its first post against the order in its second, and that post cannot be
    /// pinned on top of the newest page.
    fn is_odd_again(&mut self, request: &Request, reading: &Reading) -> bool {
        let Some(top) = &reading.odd_top else {
            return false;
        };
        let before = self.odd_top.replace(top.clone());
        request.max_id.is_some() || before.is_some_and(|before| before != *top)
    }

    /// Learns the end from which a page between two bounds was cut. If it is unknown, the range
    /// above its newest post is requested again. If that shows nothing more, the page began with
    /// the newest.
    fn learn_top(&mut self, request: &Request, reading: &Reading, known: TimelineState<'_>) {
        let (Some(max), Some(_)) = (&request.max_id, &request.since_id) else {
            return;
        };
        let (RequestPurpose::Fill { low, .. } | RequestPurpose::Look { low, .. }) =
            &request.purpose
        else {
            return;
        };
        let is_asked_again = self
            .unproven_top
            .as_ref()
            .is_some_and(|(newest, high)| newest == low && high == max);
        let obeyed = !reading.passes_max_id(request) && !reading.passes_lower_bound(request);
        if self.is_surely_whole(reading.items, request.page.limit) {
            if is_asked_again && obeyed && reading.newest() == Some(low) && known.new == 0 {
                self.from_newest.saw(Some(true), known.now_ms);
            }
        } else if let (Some(newest), Some(oldest)) = (reading.newest(), reading.oldest()) {
            // A page that reaches its anchor may be complete.
            let is_cut = self.is_full(reading.items, request.page.limit)
                && request
                    .anchor
                    .as_ref()
                    .is_some_and(|anchor| oldest > anchor);
            if obeyed && is_cut {
                self.unproven_top = Some((newest.clone(), max.clone()));
            }
        }
    }
}

/// True if a page is the newest one although a `max_id` was sent. Within a second posts may be in
/// any order, and a list may repeat a post further down.
fn ignores_max_id(request: &Request, reading: &Reading, known: TimelineState<'_>) -> bool {
    let (Some(scheme), Some(max), Some(newest)) =
        (reading.scheme, &request.max_id, reading.newest())
    else {
        return false;
    };
    let second = |key: &Key| Some(scheme.time_ms(key)?.div_euclid(1_000));
    let is_apart = second(newest).is_none_or(|newest| second(max).is_none_or(|max| newest > max));
    let is_newest = |frontier: &Key| scheme.end_of_time(newest) >= *frontier;
    reading.passes_max_id(request)
        && is_apart
        && (!scheme.names_posts() || known.frontier.is_none_or(is_newest))
}

/// The number of consecutive answers against an ability before it counts as ignored. A cache may
/// give one such answer.
const MIN_CONTRADICTIONS: u8 = 2;
/// An ignored ability is tested again after this time, because servers are upgraded.
const RETRY_MS: i64 = 6 * 3_600_000;
/// A page with fewer items does not show the order.
const MIN_ORDERED: usize = 8;
/// A page with at most this part of the longest was not cut, even if a filter removed most of it.
const WHOLE_PART: usize = 4;
/// A filter may remove most items of shorter pages.
const MIN_FULL: usize = 12;

#[cfg(test)]
mod tests {
    use driftline_id::Layout;

    use super::*;
    use crate::{
        answer::{AnswerHeaders, PageRequest},
        timeline::scheme::IdScheme,
        upstream_id::{IdOrder, UpstreamId},
    };

    /// The state of `max_id` after two pages with posts of these tenths of a second, which were
    /// requested below the 500th. The 900th is the newest known post.
    fn learned(layout: Layout, order: IdOrder, tenths: &[i64]) -> Honoured {
        let scheme = IdScheme {
            order,
            layout: Some(layout),
        };
        let key = |tenth: i64| {
            let id = layout.print(layout.smallest_at(1_700_000_000_000 + tenth * 100) + 7);
            scheme.key(&UpstreamId::new(id)).expect("an ID")
        };
        let max_id = key(500);
        let request = Request {
            purpose: RequestPurpose::Poll,
            page: PageRequest::default(),
            since_id: None,
            max_id: Some(max_id),
            min_id: None,
            ceiling: None,
            anchor: None,
        };
        let headers = AnswerHeaders {
            received_at_ms: 1_700_000_100_000,
            sent_at_ms: 1_700_000_100_000,
            ..AnswerHeaders::default()
        };
        let keys = tenths.iter().map(|tenth| key(*tenth)).collect();
        let reading = Reading::of_keys(keys, &[], Some(scheme), &headers);
        let mut honoured = HonouredAbilities::default();
        let known = TimelineState {
            origin: None,
            frontier: Some(&key(900)),
            new: 0,
            now_ms: 0,
        };
        for _ in 0..2 {
            honoured.learn(&request, &reading, known);
        }
        honoured.max_id.state
    }

    #[test]
    fn only_the_newest_page_shows_that_max_id_is_ignored() {
        let snac = |tenths: &[i64]| learned(Layout::SNAC, IdOrder::Text, tenths);
        let mastodon = |tenths: &[i64]| learned(Layout::MASTODON, IdOrder::Numeric, tenths);
        assert_eq!(snac(&[900, 600, 400]), Honoured::Ignored);
        assert_eq!(mastodon(&[900, 600, 400]), Honoured::Ignored);
        // A list may repeat a post that it also lists further up.
        assert_ne!(snac(&[600, 400]), Honoured::Ignored);
        assert_eq!(mastodon(&[600, 400]), Honoured::Ignored);
        // Within a second any order is possible.
        assert_ne!(mastodon(&[505, 400]), Honoured::Ignored);
        assert_eq!(snac(&[450, 400]), Honoured::Honoured);
    }
}
