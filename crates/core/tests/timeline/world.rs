//! A small upstream: posts with a time in their ID and a time at which they
//! become visible, and pages as Mastodon makes them.

use driftline_core::{
    answer::{AnswerHeaders, Listed, Page, PageRequest},
    post::Post,
    upstream_id::{IdOrder, UpstreamId},
};
use driftline_id::Layout;
use rand::{Rng, RngExt};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorldPost {
    pub(crate) id: u64,
    pub(crate) visible_at_ms: i64,
    pub(crate) deleted_at_ms: Option<i64>,
    /// Sliced into pages, but never shown to this reader.
    pub(crate) filtered: bool,
}

/// How a world writes its numbers as IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Codec {
    /// Mastodon's decimal numbers.
    #[default]
    Decimal,
    /// Takahe's layout: decimal, random inside a millisecond.
    Takahe,
    /// ULIDs, as GoToSocial has them.
    Ulid,
    /// Base 36 without known time: shorter is smaller.
    Opaque,
    /// snac's seconds and hash.
    Snac,
    /// Numbers in sequence, which say nothing of time: the notifications that mentions are read from.
    Counted,
}

impl Codec {
    pub(crate) const ALL: [Self; 4] = [Self::Decimal, Self::Takahe, Self::Ulid, Self::Opaque];

    pub(crate) fn order(self) -> IdOrder {
        match self {
            Self::Decimal | Self::Takahe | Self::Counted => IdOrder::Numeric,
            Self::Ulid | Self::Snac => IdOrder::Text,
            Self::Opaque => IdOrder::LengthThenText,
        }
    }

    pub(crate) fn id(self, number: u64) -> UpstreamId {
        let time_ms = number >> 16;
        let low = u128::from(number & 0xffff);
        UpstreamId::new(match self {
            Self::Decimal | Self::Counted => number.to_string(),
            Self::Takahe => {
                let layout = Layout::TAKAHE;
                (layout.smallest_at(time_ms as i64) + (low << 6)).to_string()
            }
            Self::Ulid => Layout::ULID.print((u128::from(time_ms) << 80) | (low << 40)),
            Self::Snac => {
                let hash = number.wrapping_mul(0x2545_f491_4f6c_dd1d);
                format!("{:010}{hash:016x}{number:016x}", time_ms / 1_000)
            }
            Self::Opaque => {
                let mut rest = number;
                let mut digits = Vec::new();
                while rest > 0 {
                    digits.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(rest % 36) as usize]);
                    rest /= 36;
                }
                digits.reverse();
                String::from_utf8(digits).unwrap()
            }
        })
    }

    /// The number of an ID, which need not be a post's: those above it are above
    /// the ID.
    fn number(self, id: &UpstreamId) -> u64 {
        let text = id.as_str();
        match self {
            Self::Decimal | Self::Counted => text.parse().unwrap(),
            Self::Takahe => {
                let raw: u128 = text.parse().unwrap();
                let time_ms = Layout::TAKAHE.time_ms(raw) as u64;
                (time_ms << 16) | ((raw & 0x3f_ffff) >> 6) as u64
            }
            Self::Ulid => {
                let raw = Layout::ULID.parse(text).unwrap();
                (((raw >> 80) as u64) << 16) | ((raw >> 40) & 0xffff) as u64
            }
            Self::Opaque => u64::from_str_radix(text, 36).unwrap(),
            // Of no use for bounds that are no posts.
            Self::Snac => u64::from_str_radix(&text[26..], 16).unwrap(),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    /// By ID.
    pub(crate) posts: Vec<WorldPost>,
    pub(crate) page_limit: usize,
    /// How many of the newest posts are reachable.
    pub(crate) reach: Option<usize>,
    pub(crate) knows_min_id: bool,
    /// Ignores a `max_id` whose time has not come.
    pub(crate) ignores_max_id: bool,
    /// Answers do not carry the server's time.
    pub(crate) hides_date: bool,
    /// Whether a page lists the positions of filtered posts.
    pub(crate) names_filtered: bool,
    /// While it answers every page with none, ms.
    pub(crate) shows_nothing: std::ops::Range<i64>,
    pub(crate) codec: Codec,
    pub(crate) quirks: Quirks,
}

/// How a server departs from the documents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Quirks {
    pub(crate) since_id: Bound,
    pub(crate) min_id: Bound,
    pub(crate) ignores_max_id: bool,
    /// Of `since_id` and `max_id` in one request, which are honoured.
    pub(crate) of_both: Option<(bool, bool)>,
    /// The most posts of a page, whatever the limit.
    pub(crate) cap: Option<usize>,
    /// Pages are twice as long as asked.
    pub(crate) ignores_limit: bool,
    /// A short page with `since_id` ends with the newest post of all.
    pub(crate) repeats_newest: bool,
    /// As GoToSocial: a short page with `since_id` lists its posts again at its end, and only there
    /// every third one, which is a boost.
    pub(crate) repeats_page: bool,
    /// Every page without `max_id` begins with the oldest post.
    pub(crate) pins_oldest: bool,
    /// Posts of one second are in any order.
    pub(crate) orders_by_second: bool,
    /// As snac: bounds are sought among the listed posts, `min_id` is not known.
    pub(crate) seeks_posts: bool,
}

/// The place of a post among those that are precise to the second.
fn place(post: &WorldPost) -> (u64, u64) {
    let second = (post.id >> 16) / 1_000;
    (second, post.id.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// How a server takes a lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Bound {
    #[default]
    Honoured,
    Ignored,
    /// `since_id` as `min_id`, or the other way round.
    FromTheOtherEnd,
}

/// What a random world is made of.
#[derive(Debug, Clone)]
pub(crate) struct WorldConfig {
    pub(crate) start_ms: i64,
    pub(crate) length_ms: i64,
    pub(crate) rate_per_s: f64,
    /// Share of posts that are late, and the most they are late by.
    pub(crate) late_share: f64,
    pub(crate) late_up_to_ms: i64,
    pub(crate) deleted_share: f64,
    pub(crate) filtered_share: f64,
    pub(crate) burst_share: f64,
    pub(crate) page_limit: usize,
    pub(crate) codec: Codec,
}

impl World {
    pub(crate) fn random(config: &WorldConfig, rng: &mut impl Rng) -> Self {
        let mut posts = Vec::new();
        let mut time_ms = config.start_ms as f64;
        let end_ms = (config.start_ms + config.length_ms) as f64;
        while time_ms < end_ms {
            time_ms += -(1.0 - rng.random::<f64>()).ln() / config.rate_per_s * 1000.0;
            let count = if rng.random_bool(config.burst_share) {
                rng.random_range(1..config.page_limit * 4)
            } else {
                1
            };
            for _ in 0..count {
                let id_ms = time_ms as i64 + rng.random_range(-30..=30);
                let late_ms = if rng.random_bool(config.late_share) {
                    rng.random_range(0..=config.late_up_to_ms)
                } else {
                    rng.random_range(-20..60)
                };
                let visible_at_ms = id_ms + late_ms;
                posts.push(WorldPost {
                    id: ((id_ms as u64) << 16) | rng.random_range(0..0x1_0000),
                    visible_at_ms,
                    deleted_at_ms: rng
                        .random_bool(config.deleted_share)
                        .then(|| visible_at_ms + rng.random_range(0..120_000)),
                    filtered: rng.random_bool(config.filtered_share),
                });
            }
        }
        posts.sort_by_key(|post| post.id);
        posts.dedup_by_key(|post| post.id);
        Self {
            posts,
            page_limit: config.page_limit,
            reach: None,
            knows_min_id: rng.random_bool(0.7),
            ignores_max_id: false,
            hides_date: false,
            names_filtered: rng.random_bool(0.2),
            shows_nothing: 0..0,
            codec: config.codec,
            quirks: Quirks::default(),
        }
    }

    pub(crate) fn is_visible(post: &WorldPost, now_ms: i64) -> bool {
        !post.filtered && Self::is_there(post, now_ms)
    }

    fn first_above(&self, id: u64) -> usize {
        self.posts.partition_point(|post| post.id <= id)
    }

    fn is_there(post: &WorldPost, now_ms: i64) -> bool {
        post.visible_at_ms <= now_ms && post.deleted_at_ms.is_none_or(|at_ms| at_ms > now_ms)
    }

    pub(crate) fn is_gone(&self, id: &UpstreamId, now_ms: i64) -> bool {
        let id = self.codec.number(id);
        !self
            .posts
            .iter()
            .any(|post| post.id == id && Self::is_visible(post, now_ms))
    }

    /// Mastodon's page: sliced first, filtered after.
    pub(crate) fn page(&self, request: &PageRequest, now_ms: i64, clock_ms: i64) -> Page {
        let number = |id: &Option<UpstreamId>| id.as_ref().map(|id| self.codec.number(id));
        let quirks = &self.quirks;
        let (mut since, mut below, mut above) = (
            number(&request.since_id),
            number(&request.max_id),
            number(&request.min_id).filter(|_| self.knows_min_id),
        );
        // The ID may lie above that of its number.
        below = below.map(|number| {
            let is_above = request.max_id.as_ref() != Some(&self.codec.id(number));
            number + u64::from(is_above)
        });
        if let (Some(_), Some(_), Some((honours_since, honours_max))) =
            (since, below, quirks.of_both)
        {
            since = since.filter(|_| honours_since);
            below = below.filter(|_| honours_max);
        }
        let is_ahead = |id: &u64| (id >> 16) as i64 > now_ms;
        below = below
            .filter(|below| !(quirks.ignores_max_id || self.ignores_max_id && is_ahead(below)));
        match quirks.min_id {
            Bound::Honoured => {}
            Bound::Ignored => above = None,
            Bound::FromTheOtherEnd => since = since.or(above.take()),
        }
        match quirks.since_id {
            Bound::Honoured => {}
            Bound::Ignored => since = since.filter(|_| number(&request.min_id).is_some()),
            Bound::FromTheOtherEnd => above = above.or(since),
        }
        let limit = match self.shows_nothing.contains(&now_ms) {
            true => 0,
            false if quirks.ignores_limit => 2 * usize::from(request.limit),
            false => usize::from(request.limit).min(self.page_limit),
        };
        let limit = limit.min(quirks.cap.unwrap_or(usize::MAX));
        let lowest_in_reach = self.reach.map_or(0, |reach| {
            let there = |(_, post): &(usize, &WorldPost)| Self::is_there(post, now_ms);
            let mut newest = self.posts.iter().enumerate().rev().filter(there);
            newest.nth(reach - 1).map_or(0, |(index, _)| index)
        });
        let from = since.max(above).map_or(0, |since| self.first_above(since));
        let from = from.max(lowest_in_reach);
        let to = below.map_or(self.posts.len(), |below| {
            self.posts.partition_point(|post| post.id < below)
        });
        let there = |post: &&WorldPost| Self::is_there(post, now_ms);
        let range = self.posts[from.min(to)..to].iter().filter(there);
        let mut slice: Vec<&WorldPost> = if quirks.seeks_posts {
            self.sought(request, limit, now_ms)
        } else if quirks.orders_by_second {
            let mut slice: Vec<_> = range.collect();
            slice.sort_by_key(|post| std::cmp::Reverse(place(post)));
            slice
        } else if above.is_some() {
            let mut slice: Vec<_> = range.take(limit).collect();
            slice.reverse();
            slice
        } else {
            range.rev().take(limit).collect()
        };
        if above.is_some() {
            slice.drain(..slice.len().saturating_sub(limit));
        } else {
            slice.truncate(limit);
        }
        let shown = |post: &&WorldPost| Self::is_visible(post, now_ms);
        let is_head = request.since_id.is_some() && request.max_id.is_none();
        if quirks.repeats_newest && is_head && slice.len() < limit {
            slice.extend(self.posts.iter().rev().find(shown));
        }
        if quirks.repeats_page && is_head && 2 * slice.len() <= limit {
            let whole = slice.clone();
            slice.retain(|post| !post.id.is_multiple_of(3));
            slice.extend(whole);
        }
        if quirks.pins_oldest && below.is_none() && limit > 0 {
            let pinned = self.posts.iter().find(shown);
            slice.splice(..0, pinned);
        }
        let (others, posts): (Vec<_>, Vec<_>) = slice.into_iter().partition(|post| post.filtered);
        let others = if self.names_filtered {
            others
        } else {
            Vec::new()
        };
        Page {
            listed: posts.into_iter().map(|post| self.listed(post)).collect(),
            passed: others
                .into_iter()
                .map(|post| self.codec.id(post.id))
                .collect(),
            unreadable: Vec::new(),
            headers: AnswerHeaders {
                sent_at_ms: clock_ms,
                received_at_ms: clock_ms + 40,
                round_trip_ms: 40,
                date_ms: (!self.hides_date).then_some(now_ms / 1000 * 1000),
                ..AnswerHeaders::default()
            },
        }
    }

    /// As snac: bounds are sought in the list, and the server lists all or nothing where they are not
    /// in it.
    fn sought(&self, request: &PageRequest, limit: usize, now_ms: i64) -> Vec<&WorldPost> {
        let mut list: Vec<&WorldPost> = self
            .posts
            .iter()
            .filter(|post| Self::is_there(post, now_ms))
            .collect();
        list.sort_by_key(|post| std::cmp::Reverse(place(post)));
        let is = |id: &Option<UpstreamId>, post: &WorldPost| {
            id.as_ref().is_some_and(|id| *id == self.codec.id(post.id))
        };
        let from = match &request.max_id {
            None => 0,
            max_id => list
                .iter()
                .position(|post| is(max_id, post))
                .map_or(list.len(), |index| index + 1),
        };
        let older = list.into_iter().skip(from);
        let newer = older.take_while(|post| !is(&request.since_id, post));
        newer.take(limit).collect()
    }

    fn listed(&self, post: &WorldPost) -> Listed {
        let mut listed = listed_at(self.codec.id(post.id));
        listed.post.created_at_ms = Some(match self.codec {
            Codec::Counted => post.visible_at_ms,
            _ => (post.id >> 16) as i64,
        });
        listed
    }
}

/// A post that is listed by this ID.
pub(crate) fn listed_at(position: UpstreamId) -> Listed {
    Listed {
        post: Post::bare(position.stable(), "1", "{}"),
        position,
    }
}
