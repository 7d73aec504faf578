//! The requests of the machine.

use std::collections::BTreeMap;

use super::scheme::IdScheme;
use crate::{answer::PageRequest, upstream_id::Key};

/// A page to request, before its anchor is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Its purpose.
    pub purpose: RequestPurpose,
    /// The bounds of the page.
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
        /// The upper bound, which is not part of the gap.
        high: Key,
    },
    /// A rung's look at a provisional range.
    Look {
        /// The rung; 0 is the second look.
        rung: usize,
        /// The range's lowest ID.
        low: Key,
        /// The upper bound, which is not part of the range.
        high: Key,
    },
    /// A page-full drawn at random from posts of this age. New posts in it measure the plan's
    /// omissions.
    Probe {
        /// The age in ms.
        age_ms: i64,
        /// The end of the draw, in Unix ms by the server's clock, not included.
        until_ms: i64,
    },
    /// A place where a page lacked posts for which no look-up has answered.
    Recheck {
        /// The place's lowest ID.
        low: Key,
        /// The upper bound, which is not part of the place.
        high: Key,
    },
    /// Posts dated ahead of the server's time, which polls exclude.
    Ahead,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bounds {
    Head {
        since_id: Option<Key>,
        /// The ID above which posts are dated ahead, if polls exclude those.
        ceiling: Option<Key>,
    },
    /// The newest posts, from a stored one on.
    HeadFrom(AnchorQuery),
    Back {
        max_id: Key,
        anchor: Option<AnchorQuery>,
    },
    Forward {
        anchor: AnchorQuery,
        else_max_id: Key,
    },
    /// The page below a stored post.
    Under {
        anchor: AnchorQuery,
        else_max_id: Key,
    },
    /// The page that must show a stored post first; the newest if none is stored.
    Above(AnchorQuery),
}

/// A query for a stored post that a page has shown and that is not known to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnchorQuery {
    /// The newest post at which a page may end.
    Newest {
        /// The largest suitable ID.
        at_most: Key,
        /// The number of suitable posts to skip, because pages did not reach them.
        skip: u32,
    },
    /// The oldest post that a page must show.
    Oldest {
        /// The smallest suitable ID.
        at_least: Key,
        /// The number of suitable posts to skip, because pages did not show them.
        skip: u32,
    },
    /// A post of a range, drawn at random.
    Drawn {
        /// The range's lowest ID.
        low: Key,
        /// The upper bound, which is not part of the range.
        high: Key,
        /// The position of the post: the parts per million of the range's posts below it.
        per_million: u32,
    },
}

/// A stored post at which a page may end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Its ID.
    pub key: Key,
    /// The ID of the stored post before it (after it, for [`AnchorQuery::Oldest`]), for IDs without
    /// computable neighbours.
    pub before: Option<Key>,
}

impl AnchorQuery {
    /// A query for the newest post below an ID, by [`Anchor::below`].
    pub fn below(high: &Key) -> Self {
        Self::Newest {
            at_most: high.clone(),
            skip: 0,
        }
    }

    /// The answer of a store in memory, from these posts by ID, of which the live ones count.
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
    pub fn first(mut posts: impl Iterator<Item = Key>) -> Option<Self> {
        Some(Self {
            key: posts.next()?,
            before: posts.next(),
        })
    }

    /// The stored post below the ID, from the answer to [`AnchorQuery::below`].
    pub fn below(self, high: &Key) -> Option<Key> {
        if self.key == *high {
            self.before
        } else {
            Some(self.key)
        }
    }
}

/// A page to request from the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its purpose.
    pub purpose: RequestPurpose,
    /// The bounds and limit to send.
    pub page: PageRequest,
    pub(super) since_id: Option<Key>,
    pub(super) max_id: Option<Key>,
    pub(super) min_id: Option<Key>,
    /// The ID above which posts are dated ahead. The page should exclude them, but a server that
    /// lists them does no harm.
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
            Bounds::Forward { anchor, .. } | Bounds::HeadFrom(anchor) => Some(anchor),
            Bounds::Under { anchor: query, .. } | Bounds::Above(query) => Some(query),
        }
    }

    /// The request, with the anchor that was found for its query, if it has one.
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
            // The page shows the anchor, if another post is below it.
            Bounds::HeadFrom(_) => {
                since_id = under_anchor.or_else(|| anchor.map(|anchor| anchor.key.clone()));
            }
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
    /// The range of a request without a lower bound. An answer without posts of it may mean that
    /// the range is empty now, that the upstream does not reach down to it, or nothing.
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
