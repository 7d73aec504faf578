//! Quirks by name.

use strum::{Display, EnumString, VariantArray};

use super::{
    BoostLookUps, Escapes, Failing, Kinds, Leave, LeaveCause, Limit, Links, Quirks, Requests,
    Together,
};
use crate::{
    faults_config::FaultKind,
    rng::{Rng, mix},
    span::SpanMs,
};

/// One way in which servers differ. Its details are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Quirk {
    /// `since_id` is ignored.
    SinceIdIgnored,
    /// `min_id` is ignored.
    MinIdIgnored,
    /// `max_id` is ignored.
    MaxIdIgnored,
    /// Every bound is ignored: each page is the newest.
    BoundsIgnored,
    /// `since_id`, `max_id` or both are ignored where they come together.
    BoundsTogether,
    /// Bounds name the places of listed posts.
    BoundsByPlace,
    /// The newest post stands again at the end of a short page.
    NewestRepeated,
    /// Pages list some posts twice.
    PostsRepeated,
    /// Posts of one second are in any order.
    SecondsUnordered,
    /// Pages have more posts than were asked for.
    LimitIgnored,
    /// Pages have fewer posts than were asked for.
    LimitCapped,
    /// An edit changes a post's ID.
    EditsChangeIds,
    /// The timeline shows posts late.
    ShownLate,
    /// Entries leave, and come back.
    EntriesLeave,
    /// Look-ups need a token.
    LookUpsNeedToken,
    /// A boost's own ID is 404.
    BoostsNotFound,
    /// Some look-ups answer another post.
    OthersFound,
    /// Pages and look-ups escape differently.
    EscapesDiffer,
    /// Some posts cannot be read.
    UnreadablePosts,
    /// Some posts have keys that stand twice.
    RepeatedKeys,
    /// Answers have no `Date`.
    NoDate,
    /// `Link` is missing or odd.
    OddLinks,
    /// Every look-up is a 500.
    LookUpsFail,
    /// Requests of each kind fail, or are cut.
    RequestsFail,
}

impl Quirk {
    /// Every quirk.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    fn add(self, to: &mut Quirks, rng: &mut Rng) {
        match self {
            Self::SinceIdIgnored => to.since_id_ignored = Kinds::draw(rng),
            Self::MinIdIgnored => to.min_id_ignored = Kinds::draw(rng),
            Self::MaxIdIgnored => to.max_id_ignored = Kinds::draw(rng),
            Self::BoundsIgnored => {
                let kinds = Kinds::draw(rng);
                (to.since_id_ignored, to.min_id_ignored) = (kinds, kinds);
                to.max_id_ignored = kinds;
            }
            Self::BoundsTogether => {
                let all = [
                    Together::SinceIdIgnored,
                    Together::MaxIdIgnored,
                    Together::BothIgnored,
                ];
                to.together = *pick(rng, &all);
            }
            Self::BoundsByPlace => to.bounds_by_place = Kinds::draw(rng),
            Self::NewestRepeated => to.newest_repeated = Kinds::draw(rng),
            Self::PostsRepeated => to.repeated_share = *pick(rng, &[0.02, 0.2]),
            Self::SecondsUnordered => to.seconds_unordered = Kinds::draw(rng),
            Self::LimitIgnored => to.limit = Limit::Ignored(*pick(rng, &[50, 100])),
            Self::LimitCapped => to.limit = Limit::Capped(*pick(rng, &[3, 5, 10])),
            // The one server that is known to do so finds places by what stays of an ID.
            Self::EditsChangeIds => {
                to.edits_change_ids = true;
                to.bounds_by_place = Kinds::ALL;
            }
            Self::ShownLate => {
                to.shown_late = Kinds::draw(rng);
                to.shown_late_ms = SpanMs::new(0, *pick(rng, &[2_000, 20_000, 82_000]));
            }
            Self::EntriesLeave => {
                to.leaves = (0..rng.between(1, 4)).map(|_| leave(rng)).collect();
            }
            Self::LookUpsNeedToken => to.look_ups_need_token = true,
            Self::BoostsNotFound => to.boosts = BoostLookUps::NotFound,
            Self::OthersFound => {
                to.boosts = BoostLookUps::Boosted;
                to.other_found_share = *pick(rng, &[0.0, 0.1, 1.0]);
            }
            Self::EscapesDiffer => {
                to.page_escapes = escapes(rng);
                to.look_up_escapes = escapes(rng);
                to.look_up_escapes.html = !to.page_escapes.html;
            }
            Self::UnreadablePosts => to.unreadable_share = *pick(rng, &[0.02, 0.1]),
            Self::RepeatedKeys => to.repeated_keys_share = *pick(rng, &[0.02, 0.5]),
            Self::NoDate => to.no_date = true,
            Self::OddLinks => {
                let all = [
                    Links::Missing,
                    Links::Relative,
                    Links::OtherHost,
                    Links::WithoutRel,
                ];
                to.links = *pick(rng, &all);
            }
            Self::LookUpsFail => to.failing.push(Failing {
                requests: Requests::LookUp,
                fault: FaultKind::InternalError,
                share: 1.0,
            }),
            Self::RequestsFail => to.failing.extend(failing(rng)),
        }
    }
}

impl Quirks {
    /// These quirks, with details by the seed.
    pub fn of(quirks: &[Quirk], seed: u64) -> Self {
        let mut made = Self::default();
        for quirk in quirks {
            let rng = &mut Rng::stream(mix(seed, *quirk as u64), QUIRKS);
            quirk.add(&mut made, rng);
        }
        made
    }

    /// Up to four of these quirks, with their details, by the seed.
    pub fn draw(among: &[Quirk], seed: u64) -> (Vec<Quirk>, Self) {
        let mut rng = Rng::stream(seed, QUIRKS);
        let mut left = among.to_vec();
        let count = rng.between(1, 4).min(left.len() as i64);
        let drawn = (0..count).map(|_| {
            let at = rng.between(0, left.len() as i64 - 1) as usize;
            left.swap_remove(at)
        });
        let mut drawn: Vec<Quirk> = drawn.collect();
        drawn.sort_unstable();
        let made = Self::of(&drawn, seed);
        (drawn, made)
    }
}

fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.between(0, from.len() as i64 - 1) as usize]
}

fn escapes(rng: &mut Rng) -> Escapes {
    Escapes {
        html: rng.happens(0.5),
        slash: rng.happens(0.5),
        non_ascii: rng.happens(0.5),
    }
}

/// Within the first hour, for a minute or more; a boost that was taken back does not return.
fn leave(rng: &mut Rng) -> Leave {
    let cause = *pick(rng, LeaveCause::VARIANTS);
    Leave {
        cause,
        after_ms: rng.between(0, 3_600_000),
        for_ms: match rng.happens(0.3) || cause == LeaveCause::Unboost {
            true => None,
            false => Some(rng.between(60_000, 1_200_000)),
        },
        share: *pick(rng, &[0.02, 0.2, 0.5]),
    }
}

fn failing(rng: &mut Rng) -> Vec<Failing> {
    let kinds = [
        Requests::NewestPages,
        Requests::BoundedPages,
        Requests::LookUp,
        Requests::LookUps,
    ];
    let faults = [
        FaultKind::InternalError,
        FaultKind::Unavailable,
        FaultKind::Cut,
    ];
    let of = |requests| Failing {
        requests,
        fault: *pick(rng, &faults),
        share: *pick(rng, &[0.05, 0.3]),
    };
    kinds.map(of).to_vec()
}

/// The random stream of a seed's quirks.
const QUIRKS: u64 = 10;
