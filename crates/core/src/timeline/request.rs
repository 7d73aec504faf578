//! The requests of the machine, and what their pages prove.

use std::collections::BTreeMap;

use super::{
    gap_ledger::Stretch,
    scheme::{IdScheme, detect_layout, detect_order},
    server_time::{answered_by_ms, read_at_ms, retrieved_at_ms},
    settings::Settings,
};
use crate::{
    answer::{AnswerHeaders, Failure, FailureKind, Page, PageRequest},
    upstream_id::{Key, UpstreamId},
};

/// A page to request, before its anchor is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Its purpose.
    pub purpose: RequestPurpose,
    /// Which page it is.
    pub(super) bounds: Bounds,
    pub(super) limit: u16,
}

/// The purpose of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestPurpose {
    /// The newest posts.
    Poll,
    /// An open gap.
    Fill {
        /// The gap's lowest ID.
        low: Key,
        /// The ID that it ends below.
        high: Key,
    },
    /// A rung's look at a provisional range.
    Look {
        /// The rung; 0 is the second look.
        rung: usize,
        /// The range's lowest ID.
        low: Key,
        /// The ID that it ends below.
        high: Key,
    },
    /// A page-full drawn at random over what has come of this age: what it shows
    /// that is not stored measures what the plan leaves out.
    Probe {
        /// The age, ms.
        age_ms: i64,
        /// The time that the draw ended below, Unix ms by the server's clock.
        until_ms: i64,
    },
    /// Posts dated ahead of the server's time, which polls leave out.
    Ahead,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bounds {
    Head {
        since_id: Option<Key>,
        /// The ID above which posts are dated ahead, if polls leave those out.
        ceiling: Option<Key>,
    },
    Back {
        max_id: Key,
        anchor: Option<AnchorQuery>,
    },
    Forward {
        anchor: AnchorQuery,
        else_max_id: Key,
    },
    Under {
        drawn: AnchorQuery,
        else_max_id: Key,
    },
    /// The page that has to show a stored post first; the newest if none is stored.
    Above(AnchorQuery),
}

/// A query for a stored post, of those that a page has shown and that are not
/// known to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnchorQuery {
    /// The newest that a page may end at.
    Newest {
        /// The largest suitable ID.
        at_most: Key,
        /// How many suitable posts to skip, since pages did not reach them.
        skip: u32,
    },
    /// The oldest that a page has to show.
    Oldest {
        /// The smallest suitable ID.
        at_least: Key,
        /// How many suitable posts to skip, since pages did not show them.
        skip: u32,
    },
    /// One of a range, drawn at random.
    Drawn {
        /// The range's lowest ID.
        low: Key,
        /// The ID that it ends below.
        high: Key,
        /// How many of a million parts of the range's posts lie below it.
        per_million: u32,
    },
}

/// A stored post that a page may end at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Its ID.
    pub key: Key,
    /// The ID of the stored post before it (after it, for
    /// [`AnchorQuery::Oldest`]), for IDs that cannot be counted from.
    pub before: Option<Key>,
}

impl AnchorQuery {
    /// The newest below an ID, by [`Anchor::below`].
    pub fn below(high: &Key) -> Self {
        Self::Newest {
            at_most: high.clone(),
            skip: 0,
        }
    }

    /// The answer of a store that keeps its posts in memory: of these posts, by ID, those that are
    /// live.
    pub fn among<P>(
        &self,
        posts: &BTreeMap<Key, P>,
        is_live: impl Fn(&P) -> bool,
    ) -> Option<Anchor> {
        let live = |(key, post): (&Key, &P)| is_live(post).then(|| key.clone());
        match self {
            Self::Newest { at_most, skip } => {
                let live = posts.range(..=at_most.clone()).rev().filter_map(live);
                Anchor::first(live.skip(*skip as usize))
            }
            Self::Oldest { at_least, skip } => {
                let live = posts.range(at_least.clone()..).filter_map(live);
                Anchor::first(live.skip(*skip as usize))
            }
            Self::Drawn {
                low,
                high,
                per_million,
            } => {
                let live = posts.range(low.clone()..high.clone()).filter_map(live);
                let live: Vec<Key> = live.collect();
                let drawn = live.len() * *per_million as usize / 1_000_000;
                Anchor::first(live.into_iter().skip(drawn).take(1))
            }
        }
    }
}

impl Anchor {
    /// The first of these posts, with the one after it.
    pub(super) fn first(mut posts: impl Iterator<Item = Key>) -> Option<Self> {
        Some(Self {
            key: posts.next()?,
            before: posts.next(),
        })
    }

    /// Of what [`AnchorQuery::below`] found: the stored post below the ID.
    pub fn below(self, high: &Key) -> Option<Key> {
        if self.key == *high {
            self.before
        } else {
            Some(self.key)
        }
    }
}

/// A page to ask the upstream for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its purpose.
    pub purpose: RequestPurpose,
    /// The bounds and limit to send.
    pub page: PageRequest,
    pub(super) since_id: Option<Key>,
    pub(super) max_id: Option<Key>,
    pub(super) min_id: Option<Key>,
    /// Above it posts are dated ahead. The page should leave them out, but a
    /// server that lists them does no harm.
    pub(super) ceiling: Option<Key>,
    /// The stored post that the page should reach.
    pub(super) anchor: Option<Key>,
}

impl Fetch {
    /// The anchor to look up before the request can be made.
    pub fn anchor_query(&self) -> Option<&AnchorQuery> {
        match &self.bounds {
            Bounds::Head { .. } => None,
            Bounds::Back { anchor, .. } => anchor.as_ref(),
            Bounds::Forward { anchor, .. } => Some(anchor),
            Bounds::Under { drawn: query, .. } | Bounds::Above(query) => Some(query),
        }
    }

    /// The request, with the anchor that was found, if one was asked for.
    pub fn request(self, scheme: Option<&IdScheme>, anchor: Option<&Anchor>) -> Request {
        let under_anchor = anchor.and_then(|anchor| {
            scheme
                .and_then(|scheme| scheme.predecessor(&anchor.key))
                .or_else(|| anchor.before.clone())
        });
        let (mut since_id, mut max_id, mut min_id, mut ceiling) = (None, None, None, None);
        match self.bounds {
            Bounds::Head {
                since_id: since,
                ceiling: above,
            } => (since_id, ceiling) = (since, above),
            Bounds::Back { max_id: below, .. } => (since_id, max_id) = (under_anchor, Some(below)),
            Bounds::Forward { else_max_id, .. } => match under_anchor {
                None => max_id = Some(else_max_id),
                under => min_id = under,
            },
            Bounds::Under { else_max_id, .. } => {
                let drawn = anchor.map(|anchor| anchor.key.clone());
                max_id = drawn.or(Some(else_max_id));
            }
            Bounds::Above(_) => {
                max_id = anchor.and_then(|anchor| {
                    let above = scheme.and_then(|scheme| scheme.successor(&anchor.key));
                    above.or_else(|| anchor.before.clone())
                });
            }
        }
        let id = |key: &Option<Key>| {
            let scheme = scheme?;
            key.as_ref().map(|key| scheme.id(key))
        };
        Request {
            purpose: self.purpose,
            page: PageRequest {
                since_id: id(&since_id),
                max_id: id(&max_id).or_else(|| id(&ceiling)),
                min_id: id(&min_id),
                limit: self.limit,
            },
            since_id,
            max_id,
            min_id,
            ceiling,
            anchor: anchor.map(|anchor| anchor.key.clone()),
        }
    }
}

impl Request {
    /// The range, for a request that no ID bounds from below: an answer that shows
    /// nothing of it may mean that nothing is there any more, or that the upstream
    /// does not reach down to it, or nothing at all.
    pub(super) fn unbounded_range(&self) -> Option<(&Key, &Key)> {
        match &self.purpose {
            RequestPurpose::Fill { low, high } | RequestPurpose::Look { low, high, .. }
                if self.since_id.is_none() && self.min_id.is_none() =>
            {
                Some((low, high))
            }
            _ => None,
        }
    }
}

/// A page whose IDs were checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The scheme that its IDs were read by.
    pub scheme: Option<IdScheme>,
    /// The key of each listed post, in the page's order.
    pub keys: Vec<Key>,
    /// The newest and the oldest key of the listed items that are not posts and
    /// not ahead of server time.
    pub passed: Option<(Key, Key)>,
    /// When it was read, Unix ms by the server's clock, on the safe side of both
    /// clocks: what the next poll may begin from.
    pub retrieved_at_ms: i64,
    /// When it was read at the earliest, Unix ms, by the server's clock alone.
    pub read_at_ms: i64,
    /// The server's time when it answered, at most, Unix ms.
    pub answered_by_ms: i64,
    /// How many of the first keys are ahead of server time.
    pub ahead: usize,
}

impl Reading {
    /// Checks a page against its request, and finds the source's ID scheme
    /// if it is not known yet.
    ///
    /// # Errors
    /// A [`Failure`] of kind [`FailureKind::BadId`] or
    /// [`FailureKind::WrongOrder`]: nothing of such a page may be stored.
    pub fn check(
        page: &Page,
        request: &Request,
        known: Option<IdScheme>,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let scheme = known.or_else(|| find_scheme(page, settings));
        let listed = page.listed.iter().map(|item| &item.position);
        let (keys, passed) = (keys_of(listed, scheme)?, keys_of(&page.passed, scheme)?);
        let name = |key: &Key| scheme.map_or_else(String::new, |scheme| scheme.id(key).to_string());
        for pair in keys.windows(2).chain(passed.windows(2)) {
            if pair[0] <= pair[1] {
                return Err(Failure::new(
                    FailureKind::WrongOrder,
                    format!(
                        "the page lists {} before {}, but expected newest first; if the server orders its IDs differently, set --id-order",
                        name(&pair[0]),
                        name(&pair[1])
                    ),
                ));
            }
        }
        // A server that does not know `min_id` answers with its newest page,
        // which proves what it lists all the same: no bound to check there.
        let outside = |key: &&Key| {
            request.since_id.as_ref().is_some_and(|since| *key < since)
                || request.max_id.as_ref().is_some_and(|below| *key > below)
        };
        if let Some(key) = keys.iter().chain(&passed).find(outside) {
            return Err(Failure::new(
                FailureKind::WrongOrder,
                format!("the page lists {}, outside the requested bounds", name(key)),
            ));
        }
        Ok(Self::of_keys(keys, &passed, scheme, &page.headers))
    }

    /// A page whose keys are known to be right, newest first.
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
        let passed = &passed[passed.iter().take_while(is_ahead).count()..];
        Self {
            scheme,
            ahead: keys.iter().take_while(is_ahead).count(),
            keys,
            passed: passed.first().cloned().zip(passed.last().cloned()),
            retrieved_at_ms: retrieved_at_ms(headers),
            read_at_ms: read_at_ms(headers),
            answered_by_ms,
        }
    }

    /// The newest ID that is not ahead of server time.
    pub(super) fn newest(&self) -> Option<&Key> {
        let passed = self.passed.as_ref().map(|(newest, _)| newest);
        self.keys.get(self.ahead).max(passed)
    }

    /// The oldest ID, if any is not ahead of server time.
    pub(super) fn oldest(&self) -> Option<&Key> {
        let listed = self.keys[self.ahead..].last();
        let passed = self.passed.as_ref().map(|(_, oldest)| oldest);
        [listed, passed].into_iter().flatten().min()
    }

    /// The stretch that this page of this request proves.
    ///
    /// From a bound that the request set, or from the newest post, downward
    /// to the oldest post on the page: what the answer lists is contiguous.
    /// Nothing is proven beyond its last post, however short the page.
    pub(super) fn stretch(&self, request: &Request) -> Option<Stretch> {
        let oldest = self.oldest()?.clone();
        let high = request.max_id.as_ref().or(self.newest())?.clone();
        (oldest < high).then_some(Stretch {
            low: oldest,
            high,
            at_ms: self.read_at_ms,
        })
    }
}

fn find_scheme(page: &Page, settings: &Settings) -> Option<IdScheme> {
    let listed = page.listed.iter().map(|item| &item.position);
    let ids: Vec<_> = listed.chain(&page.passed).collect();
    let order = settings.id_order.or_else(|| detect_order(&ids))?;
    let layout = settings
        .named_layout()
        .unwrap_or_else(|| detect_layout(order, &page.listed));
    Some(IdScheme { order, layout })
}

fn keys_of<'a>(
    ids: impl IntoIterator<Item = &'a UpstreamId>,
    scheme: Option<IdScheme>,
) -> Result<Vec<Key>, Failure> {
    let Some(scheme) = scheme else {
        return Ok(Vec::new());
    };
    let bad = |error| Failure::new(FailureKind::BadId, format!("{error}"));
    let keys = ids.into_iter().map(|id| scheme.key(id).map_err(bad));
    keys.collect()
}
