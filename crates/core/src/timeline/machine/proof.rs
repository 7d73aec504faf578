//! The abilities that the server honours, and the proofs in its pages.

use super::{Machine, stalled::FREE_TRIES};
use crate::{
    answer::AnswerHeaders,
    timeline::{
        abilities::{HonouredAbilities, TimelineState, Unprovable},
        gap_ledger::{GapKind, Provisional, Stretch},
        ladder::Ladder,
        plan::Plan,
        reading::Reading,
        request::Request,
        scheme::IdScheme,
    },
    upstream_id::Key,
};

impl Machine {
    /// The parameters of requests for this timeline that the server honours, according to its
    /// answers.
    pub fn honoured(&self) -> &HonouredAbilities {
        &self.honoured
    }

    /// The reason why the completeness of this source cannot be proven, if it cannot.
    pub fn unprovable(&self) -> Option<Unprovable> {
        let disorder = self.honoured.disorder.clone().map(Unprovable::NoOrder);
        disorder.or_else(|| {
            let is_bounded = !self.honoured.is_link_only();
            (!is_bounded).then_some(Unprovable::NoBounds)
        })
    }

    /// Starts with the abilities that another source of the same instance and kind of timeline has
    /// learned, if this one has learned nothing.
    pub fn assume_honoured(&mut self, other: &HonouredAbilities) {
        if self.honoured.is_empty() && !other.is_empty() {
            self.honoured = other.as_prior();
        }
    }

    /// The ms within which posts are listed in any order.
    pub(super) fn precision_ms(&self) -> i64 {
        let scheme_ms = self.scheme.map_or(0, |scheme| scheme.precision_ms());
        self.honoured.precision_ms.max(scheme_ms)
    }

    /// Learns which parameters the server honours. Proofs that relied on more are doubted.
    pub(super) fn learn(
        &mut self,
        plan: &Plan,
        request: &Request,
        reading: &Reading,
        new: u64,
        headers: &AnswerHeaders,
    ) {
        let before = (self.precision_ms(), self.honoured.disorder.is_some());
        let known = TimelineState {
            origin: self.ledger.origin(),
            frontier: self.ledger.frontier(),
            new,
            now_ms: headers.received_at_ms,
        };
        self.honoured.learn(request, reading, known);
        let after = (self.precision_ms(), self.honoured.disorder.is_some());
        if after > before {
            self.doubt(&plan.ladder, reading.read_at_ms);
        }
    }

    /// Lists ranges again that were proven while the order of pages was assumed to be finer than it
    /// is. Ranges that recently became old enough wait for the last rung. Older ones are listed as
    /// passed over.
    fn doubt(&mut self, ladder: &Ladder, now_ms: i64) {
        let (Some(origin), Some(frontier)) = (self.ledger.origin(), self.ledger.frontier()) else {
            return;
        };
        let (origin, frontier) = (origin.clone(), frontier.clone());
        let lately_ms = now_ms - DOUBTED_AGES * ladder.complete_ms();
        let scheme = self.scheme;
        let Some(lately) = scheme.and_then(|scheme| scheme.floor(lately_ms)) else {
            let passed_over = GapKind::PassedOver { read_age_ms: 0 };
            self.ledger.doubt(&origin, &frontier, &passed_over);
            return;
        };
        let lately = lately.clamp(origin.clone(), frontier.clone());
        let time_ms = |key: &Key| scheme.and_then(|scheme| scheme.time_ms(key));
        let rungs = ladder.rungs();
        let before_last = rungs.len().checked_sub(2).and_then(|rung| rungs.get(rung));
        let provisional = GapKind::Provisional(Provisional {
            read_age_ms: before_last.map_or(0, |rung| rung.age_ms),
            from_ms: time_ms(&lately).unwrap_or(now_ms),
            until_ms: time_ms(&frontier).unwrap_or(now_ms),
            tries: 0,
        });
        let passed_over = GapKind::PassedOver { read_age_ms: 0 };
        self.ledger.doubt(&origin, &lately, &passed_over);
        self.ledger.doubt(&lately, &frontier, &provisional);
    }

    /// The stretch that a page of this request proves.
    ///
    /// The posts on a page are contiguous, from its newest post down to its oldest. The stretch
    /// reaches up to the `max_id` of the request, if the server honoured that. A page with posts
    /// above it is not the requested one, and proves nothing. Nothing is proven below its last
    /// post, even on a short page, or below the `since_id` of the request. If the order is only
    /// precise to some time, the last post's neighbours may be on another page.
    pub(super) fn stretch(&self, request: &Request, reading: &Reading) -> Option<Stretch> {
        if self.honoured.disorder.is_some() || reading.passes_max_id(request) {
            return None;
        }
        let (newest, oldest) = (reading.newest()?, reading.oldest()?);
        let mut low = reading.oldest_from(request.since_id.as_ref())?.clone();
        let shows_top = self.honoured.shows_top(request, reading);
        let max_id = request.max_id.as_ref().filter(|_| shows_top);
        let scheme = self.scheme.or(reading.scheme);
        let top = scheme.map(|scheme| reading.top(&scheme, newest));
        let mut high = max_id.cloned().or(top).unwrap_or_else(|| newest.clone());
        let precision_ms = self.precision_ms().max(reading.precision_ms);
        if let (1.., Some(scheme)) = (precision_ms, scheme) {
            let window = |time_ms: i64| time_ms.div_euclid(precision_ms);
            let oldest_ms = scheme.time_ms(oldest)?;
            low = low.max(scheme.floor((window(oldest_ms) + 1) * precision_ms)?);
            if let Some(max) = max_id {
                // Posts of its time are listed above it, too.
                let time_ms = window(scheme.time_ms(max)?) * precision_ms;
                high = high.min(scheme.floor(time_ms)?);
            }
            let is_from_below = request.min_id.is_some()
                || (request.since_id.is_some() && max_id.is_none() && !shows_top);
            if is_from_below {
                high = high.min(scheme.floor(window(scheme.time_ms(newest)?) * precision_ms)?);
            }
        }
        let mut at_ms = reading.read_at_ms;
        // The previous pages have shown the posts above the bound and below the walk's end.
        if let Some(walk) = self.walk_of(request, reading) {
            high.clone_from(&walk.high);
            at_ms = at_ms.min(walk.at_ms);
        }
        (low < high).then_some(Stretch { low, high, at_ms })
    }

    /// True if the page of a poll does not reach down to the covered part.
    pub(in crate::timeline) fn leaves_gap(&self, request: &Request, reading: &Reading) -> bool {
        let stretch = self.stretch(request, reading);
        let frontier = self.ledger.frontier();
        frontier.is_some_and(|frontier| stretch.is_none_or(|stretch| stretch.low > *frontier))
    }

    /// The part of a range that cannot be read: a page that is full, or was requested in each way,
    /// of posts that are closer together than the precision of the order.
    pub(super) fn crowded(
        &mut self,
        request: &Request,
        reading: &Reading,
        (range_low, range_high): (&Key, &Key),
    ) -> Option<(Key, Key)> {
        let precision_ms = self.precision_ms();
        let scheme: IdScheme = self.scheme.filter(|_| precision_ms > 0)?;
        let newest = reading.newest()?;
        let oldest_ms = scheme.time_ms(reading.oldest()?)?;
        let newest_ms = match newest < range_high {
            true => scheme.time_ms(newest)?,
            false => scheme.time_ms(range_high)?.saturating_sub(1),
        };
        let window = |time_ms: i64| time_ms.div_euclid(precision_ms);
        let is_cut = self.honoured.is_surely_full(reading.items, request.page.limit)
            // If bounds name posts, a second is read from post to post.
            || !scheme.names_posts() && self.ledger.max_tries(range_low, range_high) >= FREE_TRIES;
        if !is_cut || window(newest_ms) > window(oldest_ms) {
            return None;
        }
        let low = scheme.floor(window(oldest_ms) * precision_ms)?;
        let high = scheme.floor((window(oldest_ms) + 1) * precision_ms)?;
        let (low, high) = (low.max(range_low.clone()), high.min(range_high.clone()));
        (low < high).then_some((low, high))
    }
}

/// Ranges that became old enough within this multiple of the last rung's age are read again.
const DOUBTED_AGES: i64 = 2;
