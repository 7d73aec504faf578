//! A small upstream: posts with a time in their ID and a time at which they
//! become visible, and pages as Mastodon makes them.

use driftline_core::{
    answer::{AnswerHeaders, Listed, Page, PageRequest},
    post::{Author, Counts, Post, PostHashes, References, Visibility},
    upstream_id::{IdOrder, UpstreamId},
};
use driftline_id::Layout;
use rand::{Rng, RngExt};

#[derive(Debug, Clone)]
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
}

impl Codec {
    pub(crate) const ALL: [Self; 4] = [Self::Decimal, Self::Takahe, Self::Ulid, Self::Opaque];

    pub(crate) fn order(self) -> IdOrder {
        match self {
            Self::Decimal | Self::Takahe => IdOrder::Numeric,
            Self::Ulid => IdOrder::Text,
            Self::Opaque => IdOrder::LengthThenText,
        }
    }

    pub(crate) fn id(self, number: u64) -> UpstreamId {
        let time_ms = number >> 16;
        let low = u128::from(number & 0xffff);
        UpstreamId::new(match self {
            Self::Decimal => number.to_string(),
            Self::Takahe => {
                let layout = Layout::TAKAHE;
                (layout.smallest_at(time_ms as i64) + (low << 6)).to_string()
            }
            Self::Ulid => Layout::ULID.print((u128::from(time_ms) << 80) | (low << 40)),
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
            Self::Decimal => text.parse().unwrap(),
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
        let (since, below, above) = (
            number(&request.since_id),
            number(&request.max_id),
            number(&request.min_id),
        );
        let limit = match self.shows_nothing.contains(&now_ms) {
            true => 0,
            false => usize::from(request.limit).min(self.page_limit),
        };
        let above_since = since.map_or(0, |since| self.first_above(since));
        // The ID may lie above that of its number.
        let below = below.map(|number| {
            let is_above = request.max_id.as_ref() != Some(&self.codec.id(number));
            number + u64::from(is_above)
        });
        let is_ahead = |id: &u64| (id >> 16) as i64 > now_ms;
        let below = below.filter(|below| !(self.ignores_max_id && is_ahead(below)));
        let under_below = below.map_or(self.posts.len(), |below| {
            self.posts.partition_point(|post| post.id < below)
        });
        let lowest_in_reach = self.reach.map_or(0, |reach| {
            let there = |(_, post): &(usize, &WorldPost)| Self::is_there(post, now_ms);
            let mut newest = self.posts.iter().enumerate().rev().filter(there);
            newest.nth(reach - 1).map_or(0, |(index, _)| index)
        });
        let there = |post: &&WorldPost| Self::is_there(post, now_ms);
        let slice: Vec<&WorldPost> = match above.filter(|_| self.knows_min_id) {
            Some(above) => {
                let from = self.first_above(above).max(lowest_in_reach);
                let mut slice: Vec<_> = self.posts[from..]
                    .iter()
                    .filter(there)
                    .take(limit)
                    .collect();
                slice.reverse();
                slice
            }
            None => {
                let from = above_since.max(lowest_in_reach);
                let range = from.min(under_below)..under_below;
                self.posts[range]
                    .iter()
                    .rev()
                    .filter(there)
                    .take(limit)
                    .collect()
            }
        };
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

    fn listed(&self, post: &WorldPost) -> Listed {
        let id = self.codec.id(post.id);
        Listed {
            position: id.clone(),
            post: Post {
                id,
                uri: None,
                url: None,
                created_at_ms: Some((post.id >> 16) as i64),
                edited_at_ms: None,
                visibility: Visibility::Public,
                author: Author {
                    id: "1".into(),
                    acct: "a".into(),
                    display_name: String::new(),
                    url: None,
                    raw: "{}".into(),
                },
                boost_of: None,
                references: References::default(),
                counts: Counts::default(),
                hashes: PostHashes::default(),
                raw: "{}".into(),
                viewer: None,
            },
        }
    }
}
