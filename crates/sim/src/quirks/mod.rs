//! Ways in which servers differ from Mastodon's documents.
//!
//! A world with quirks still knows the truth: which posts exist, when each became visible, which
//! were really edited or deleted, and which entries left a timeline.

mod encoding;
mod kinds;
mod leaves;
mod quirk;
mod repeats;

use driftline_core::answer::PageRequest;
use smart_default::SmartDefault;

use crate::{
    faults_config::FaultKind,
    quota::{Endpoint, RequestKind},
    rng::Rng,
    span::SpanMs,
    status::Status,
};

pub use encoding::Escapes;
pub use kinds::Kinds;
pub use leaves::{Leave, LeaveCause};
pub use quirk::Quirk;

/// What a server does otherwise than Mastodon documents it. By default nothing.
///
/// Shares are between 0 and 1; times are ms. Presets: [`Quirks::gotosocial`], [`Quirks::takahe`],
/// [`Quirks::snac`] and [`Quirks::pleroma`]; [`Quirks::of`] makes named ones, [`Quirks::draw`] some.
#[derive(Debug, Clone, PartialEq, SmartDefault)]
pub struct Quirks {
    /// Timelines whose pages ignore `since_id`.
    pub since_id_ignored: Kinds,
    /// Timelines whose pages ignore `min_id`.
    pub min_id_ignored: Kinds,
    /// Timelines whose pages ignore `max_id`.
    pub max_id_ignored: Kinds,
    /// What becomes of `since_id` and `max_id` in one request.
    pub together: Together,
    /// Timelines whose bounds name the place of a listed post. One that names no listed post bounds
    /// nothing as `since_id`, and shows nothing as `max_id` or `min_id`.
    pub bounds_by_place: Kinds,
    /// Timelines that list posts of one second in any order, and cut pages in that order.
    pub seconds_unordered: Kinds,
    /// Timelines that repeat the newest post at the end of a short page with `since_id`.
    pub newest_repeated: Kinds,
    /// The share of posts that a page lists twice.
    pub repeated_share: f64,
    /// What becomes of `limit`.
    pub limit: Limit,
    /// Whether an edit gives a post another ID, of the time of the edit, with the same `uri`, at the
    /// same place of the timeline. Look-ups find it by each of its IDs.
    pub edits_change_ids: bool,
    /// Timelines that show posts later than look-ups find them.
    pub shown_late: Kinds,
    /// By how much. Default up to 82 s.
    #[default(SpanMs::new(0, 82_000))]
    pub shown_late_ms: SpanMs,
    /// Entries that leave timelines, and may come back.
    pub leaves: Vec<Leave>,
    /// Whether look-ups without a token are refused with 401, also where timelines are open.
    pub look_ups_need_token: bool,
    /// What look-ups of boosts by their own ID find.
    pub boosts: BoostLookUps,
    /// The share of other posts whose look-up answers another post.
    pub other_found_share: f64,
    /// How texts on pages are escaped.
    pub page_escapes: Escapes,
    /// How texts of look-ups are escaped.
    pub look_up_escapes: Escapes,
    /// The share of posts that cannot be read as a post.
    pub unreadable_share: f64,
    /// The share of posts with keys that stand twice; the last one is right.
    pub repeated_keys_share: f64,
    /// Whether answers carry no `Date`; over HTTP they carry one that cannot be read.
    pub no_date: bool,
    /// The `Link` header, over HTTP.
    pub links: Links,
    /// Requests that fail, by what they ask for.
    pub failing: Vec<Failing>,
}

/// What becomes of `since_id` and `max_id` in one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Together {
    /// Both are honoured.
    #[default]
    Honoured,
    /// `since_id` is ignored.
    SinceIdIgnored,
    /// `max_id` is ignored.
    MaxIdIgnored,
    /// Both are ignored.
    BothIgnored,
}

/// What becomes of `limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limit {
    /// It is honoured, up to [`crate::WorldConfig::page_limit`].
    #[default]
    Honoured,
    /// Every page may have so many.
    Ignored(u16),
    /// No page has more.
    Capped(u16),
}

/// What look-ups of boosts by their own ID find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BoostLookUps {
    /// The boost.
    #[default]
    Found,
    /// Nothing: 404.
    NotFound,
    /// The boosted post.
    Boosted,
}

/// The `Link` header of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Links {
    /// As documented.
    #[default]
    Documented,
    /// There is none.
    Missing,
    /// Without host.
    Relative,
    /// With another host than was asked.
    OtherHost,
    /// Without `rel`.
    WithoutRel,
}

/// Requests of a kind that fail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failing {
    /// Which.
    pub requests: Requests,
    /// How.
    pub fault: FaultKind,
    /// The share that does.
    pub share: f64,
}

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// Pages without bounds.
    NewestPages,
    /// Pages with bounds.
    BoundedPages,
    /// Look-ups of one post.
    LookUp,
    /// Look-ups of several posts.
    LookUps,
}

impl Links {
    /// The header of a page between two posts, of a path with its limit.
    pub(crate) fn header(
        self,
        host: &str,
        page: &str,
        newest: &Status,
        oldest: &Status,
    ) -> Option<String> {
        let base = match self {
            Self::Missing => return None,
            Self::Relative => page.to_owned(),
            Self::OtherHost => format!("https://elsewhere.example{page}"),
            Self::Documented | Self::WithoutRel => format!("http://{host}{page}"),
        };
        let rel = |name: &str| match self {
            Self::WithoutRel => String::new(),
            _ => format!("; rel=\"{name}\""),
        };
        Some(format!(
            "<{base}&max_id={}>{}, <{base}&min_id={}>{}",
            oldest.id,
            rel("next"),
            newest.id,
            rel("prev")
        ))
    }
}

impl Quirks {
    /// GoToSocial 0.20. Its IDs are [`crate::IdLayout::Ulid`].
    pub fn gotosocial() -> Self {
        Self {
            since_id_ignored: Kinds::of(&[Endpoint::User]),
            newest_repeated: Kinds::of(&[Endpoint::Home]),
            look_ups_need_token: true,
            look_up_escapes: Escapes {
                html: true,
                ..Escapes::default()
            },
            ..Self::default()
        }
    }

    /// Takahe of August 2024. Its IDs are [`crate::IdLayout::Takahe`], and it looks no batches up.
    pub fn takahe() -> Self {
        Self {
            look_ups_need_token: true,
            boosts: BoostLookUps::NotFound,
            shown_late: Kinds::of(&[Endpoint::Home]),
            ..Self::default()
        }
    }

    /// snac 2.94. Its IDs are [`crate::IdLayout::Snac`], and it looks no batches up.
    pub fn snac() -> Self {
        Self {
            since_id_ignored: Kinds::of(&[Endpoint::User]),
            min_id_ignored: Kinds::of(&[Endpoint::User]),
            bounds_by_place: Kinds::ALL,
            seconds_unordered: Kinds::ALL,
            edits_change_ids: true,
            look_ups_need_token: true,
            ..Self::default()
        }
    }

    /// Pleroma and Akkoma, as recorded: escapes differ, nothing else is known of them. Their IDs are
    /// texts that order by length and then text.
    pub fn pleroma() -> Self {
        Self {
            page_escapes: Escapes {
                slash: true,
                ..Escapes::default()
            },
            ..Self::default()
        }
    }

    /// Those of one kind of timeline.
    pub(crate) fn of_kind(&self, kind: Endpoint) -> Self {
        let mut own = self.clone();
        for kinds in [
            &mut own.since_id_ignored,
            &mut own.min_id_ignored,
            &mut own.max_id_ignored,
            &mut own.bounds_by_place,
            &mut own.seconds_unordered,
            &mut own.newest_repeated,
            &mut own.shown_late,
        ] {
            *kinds = kinds.only(kind);
        }
        own
    }

    /// A request as the server takes it.
    pub(crate) fn heard(&self, request: &PageRequest, page_limit: u16) -> PageRequest {
        let mut heard = request.clone();
        let (since, max) = match self.together {
            _ if heard.since_id.is_none() || heard.max_id.is_none() => (true, true),
            Together::Honoured => (true, true),
            Together::SinceIdIgnored => (false, true),
            Together::MaxIdIgnored => (true, false),
            Together::BothIgnored => (false, false),
        };
        heard.since_id = heard
            .since_id
            .filter(|_| since && self.since_id_ignored.is_none());
        heard.max_id = heard
            .max_id
            .filter(|_| max && self.max_id_ignored.is_none());
        heard.min_id = heard.min_id.filter(|_| self.min_id_ignored.is_none());
        let limit = request.limit.min(page_limit);
        heard.limit = match self.limit {
            Limit::Honoured => limit,
            Limit::Ignored(posts) => posts,
            Limit::Capped(most) => limit.min(most),
        };
        heard
    }

    /// Whether pages are in another order than that of IDs, or bounds are no IDs.
    pub(crate) fn lists_by_place(&self) -> bool {
        self.edits_change_ids
            || !self.bounds_by_place.is_none()
            || !self.seconds_unordered.is_none()
    }

    /// Whether a look-up with this token, empty for none, is refused with 401.
    pub fn refuses_look_up(&self, token: &str) -> bool {
        self.look_ups_need_token && token.is_empty()
    }

    /// The fault that a request meets by its kind, if any. Draws only where some may fail.
    pub(crate) fn fault(&self, asked: RequestKind, rng: &mut Rng) -> Option<FaultKind> {
        if self.failing.is_empty() {
            return None;
        }
        let kind = match asked.endpoint {
            Endpoint::LookUp => Requests::LookUp,
            Endpoint::LookUps => Requests::LookUps,
            Endpoint::Credentials => return None,
            _ if asked.paged => Requests::BoundedPages,
            _ => Requests::NewestPages,
        };
        let mut left = rng.share();
        let mut own = self.failing.iter();
        own.find(|failing| {
            if failing.requests == kind {
                left -= failing.share.max(0.0);
            }
            left < 0.0
        })
        .map(|failing| failing.fault)
    }

    /// The places of a page's posts that are listed once more, newest first, each after the place
    /// that it follows.
    pub(crate) fn with_repeats(&self, statuses: Vec<Status>) -> Vec<Status> {
        if self.repeated_share <= 0.0 {
            return statuses;
        }
        let mut page: Vec<Status> = Vec::with_capacity(statuses.len());
        let mut later: Vec<(usize, Status)> = Vec::new();
        for (place, status) in statuses.into_iter().enumerate() {
            if let Some(after) = repeats::repeat(&status, self.repeated_share) {
                later.push((place + after, status.clone()));
            }
            page.push(status);
            let due = later.extract_if(.., |(at, _)| *at <= place);
            page.extend(due.map(|(_, status)| status));
        }
        page.extend(later.into_iter().map(|(_, status)| status));
        page
    }
}
