//! Faults put into the source's reading on purpose, each of which a law must
//! catch.

use std::hash::{DefaultHasher, Hash, Hasher};

use driftline_core::{
    answer::{Failure, FailureKind, Page},
    timeline::{Backfill, Gap, Machine, Overlap, Reading, Request, RequestPurpose},
    upstream_id::{Key, UpstreamId},
};
use driftline_sim::quirks::Quirk;

use crate::{laws::Violation, settings::Drawn, simulation::Simulation};

/// A fault in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Each poll that shows something moves the origin up to its oldest post.
    OriginMovesAtPolls,
    /// History ends one page too early, at the newest post of its last page.
    OriginAboveHistory,
    /// Leases are renewed by their holder's name, sessions that ended
    /// included.
    LeaseOutlivesSession,
    /// The first look at a range is taken for all of its looks.
    RungsPassUnread,
    /// A poll reads from the newest post.
    NoOverlap,
    /// The machine is committed before the posts.
    CursorBeforePosts,
    /// A gap is taken for filled by a page that is not full.
    GapClosedByShortPage,
    /// Look-ups of absent posts are forgotten.
    AbsenceIgnored,
    /// An empty answer is taken for the end of what it was to show.
    EmptyAnswerIsTheEnd,
    /// A page that is not as it was asked for is refused as a whole.
    RefusesDisorder,
    /// Posts are compared by the text of their JSON.
    ComparesTexts,
}

impl Mutant {
    /// What a committed page leaves of the machine instead.
    pub(crate) fn page(
        self,
        machine: &Machine,
        request: &Request,
        reading: &Reading,
    ) -> Option<Machine> {
        if self == Self::EmptyAnswerIsTheEnd
            && let RequestPurpose::Fill { low, .. } = &request.purpose
            && request.page.since_id.is_none()
            && reading.keys.is_empty()
        {
            return Some(with_gaps(machine, |gap| gap.low != *low));
        }
        let limit = usize::from(request.page.limit);
        let oldest = reading.keys.get(reading.ahead..)?.last()?;
        match self {
            Self::OriginMovesAtPolls if request.purpose == RequestPurpose::Poll => {
                Some(beginning_at(machine, oldest))
            }
            Self::OriginAboveHistory
                if machine.is_readable() && !machine.ledger().origin()?.is_lowest() =>
            {
                let newest = reading.keys.get(reading.ahead)?;
                matches!(request.purpose, RequestPurpose::Fill { .. })
                    .then(|| beginning_at(machine, newest))
            }
            Self::RungsPassUnread => Some(with_gaps(machine, |gap| {
                gap.provisional()
                    .is_none_or(|read| read.read_age_ms < 10_000)
            })),
            Self::GapClosedByShortPage if reading.keys.len() < limit => {
                let RequestPurpose::Fill { low, .. } = &request.purpose else {
                    return None;
                };
                Some(with_gaps(machine, |gap| gap.low != *low))
            }
            _ => None,
        }
    }

    /// What it makes of an answer.
    pub(crate) fn answer(
        self,
        page: Page,
        request: &Request,
        machine: &Machine,
    ) -> Result<Page, Failure> {
        match self {
            Self::RefusesDisorder => refuse_disorder(page, request, machine),
            Self::ComparesTexts => Ok(with_text_hashes(page)),
            _ => Ok(page),
        }
    }

    pub(crate) fn overlap(self) -> Option<Overlap> {
        (self == Self::NoOverlap).then_some(Overlap::Fixed(0))
    }
}

fn refuse_disorder(page: Page, request: &Request, machine: &Machine) -> Result<Page, Failure> {
    let Some(scheme) = machine.scheme() else {
        return Ok(page);
    };
    let key = |id: &UpstreamId| scheme.key(id).unwrap();
    let keys: Vec<Key> = page.listed.iter().map(|it| key(&it.position)).collect();
    let bound = |id: &Option<UpstreamId>| id.as_ref().map(key);
    let (since, max) = (bound(&request.page.since_id), bound(&request.page.max_id));
    let is_outside = |key: &Key| {
        since.as_ref().is_some_and(|since| key < since) || max.as_ref().is_some_and(|max| key > max)
    };
    if keys.is_sorted_by(|a, b| a > b) && !keys.iter().any(is_outside) {
        return Ok(page);
    }
    Err(Failure::new(
        FailureKind::WrongOrder,
        "not as it was asked for",
    ))
}

fn with_text_hashes(mut page: Page) -> Page {
    for listed in &mut page.listed {
        let mut hasher = DefaultHasher::new();
        let content = listed.post.raw.split("\"content\":").nth(1);
        let content = content.and_then(|rest| rest.split("\",\"").next());
        content.hash(&mut hasher);
        listed.post.hashes.content = hasher.finish().cast_signed();
    }
    page
}

fn with_gaps(machine: &Machine, stays: impl Fn(&Gap) -> bool) -> Machine {
    let mut changed = machine.clone();
    let gaps = machine.ledger().gaps().iter();
    changed.restore_gaps(gaps.filter(|gap| stays(gap)).cloned().collect());
    changed
}

/// The machine with another origin, and without the ranges below it.
fn beginning_at(machine: &Machine, origin: &Key) -> Machine {
    let mut json = serde_json::to_value(machine).unwrap();
    json["ledger"]["origin"] = serde_json::to_value(origin).unwrap();
    let mut changed: Machine = serde_json::from_value(json).unwrap();
    let gaps = machine.ledger().gaps().iter().filter_map(|gap| {
        let low = gap.low.clone().max(origin.clone());
        (low < gap.high).then(|| Gap { low, ..gap.clone() })
    });
    changed.restore_gaps(gaps.collect());
    changed
}

#[test]
fn an_origin_that_moves_at_polls_is_caught() {
    let is_caught = |violation: &Violation| matches!(violation, Violation::Origin(_));
    assert_caught(Mutant::OriginMovesAtPolls, Drawn::of, is_caught);
}

#[test]
fn a_history_that_ends_too_early_is_caught() {
    let is_caught = |violation: &Violation| matches!(violation, Violation::Origin(_));
    let drawn = |seed| {
        let drawn = Drawn::of(seed);
        let backfill = Backfill::Count(20 + seed);
        let settings = driftline_core::timeline::Settings {
            backfill,
            ..drawn.settings
        };
        Drawn { settings, ..drawn }
    };
    assert_caught(Mutant::OriginAboveHistory, drawn, is_caught);
}

#[test]
fn a_lease_that_outlives_its_session_is_caught() {
    let is_caught = |violation: &Violation| matches!(violation, Violation::Stalled(_));
    assert_caught(Mutant::LeaseOutlivesSession, Drawn::of, is_caught);
}

#[test]
fn rungs_that_pass_unread_are_caught() {
    let is_caught = |violation: &Violation| {
        matches!(
            violation,
            Violation::Missing(_) | Violation::Unaccounted(_) | Violation::Content(_)
        )
    };
    assert_caught(Mutant::RungsPassUnread, Drawn::of, is_caught);
}

#[test]
fn a_cursor_committed_before_its_posts_is_caught() {
    let is_caught = |violation: &Violation| {
        matches!(violation, Violation::Unaccounted(_) | Violation::Missing(_))
    };
    assert_caught(Mutant::CursorBeforePosts, Drawn::of, is_caught);
}

#[test]
fn a_gap_closed_by_a_short_page_is_caught() {
    let is_caught = |violation: &Violation| {
        matches!(violation, Violation::Unaccounted(_) | Violation::Missing(_))
    };
    assert_caught(Mutant::GapClosedByShortPage, Drawn::of, is_caught);
}

#[test]
fn absence_that_is_ignored_is_caught() {
    let is_caught = |violation: &Violation| matches!(violation, Violation::Content(_));
    assert_caught(Mutant::AbsenceIgnored, Drawn::of, is_caught);
}

#[test]
fn an_empty_answer_taken_for_the_end_is_caught() {
    let is_caught = |violation: &Violation| matches!(violation, Violation::Missing(_));
    assert_caught(Mutant::EmptyAnswerIsTheEnd, Drawn::of, is_caught);
}

#[test]
fn a_page_refused_for_its_order_is_caught() {
    let is_caught = |violation: &Violation| {
        matches!(
            violation,
            Violation::Stalled(_) | Violation::Unsettled(_) | Violation::Missing(_)
        )
    };
    let drawn = |seed| Drawn::quirky(seed, &[Quirk::SinceIdIgnored]);
    assert_caught(Mutant::RefusesDisorder, drawn, is_caught);
}

#[test]
fn texts_compared_as_they_are_written_are_caught() {
    let is_caught = |violation: &Violation| matches!(violation, Violation::Content(_));
    let drawn = |seed| Drawn {
        refreshes: true,
        ..Drawn::quirky(seed, &[Quirk::EscapesDiffer])
    };
    assert_caught(Mutant::ComparesTexts, drawn, is_caught);
}

/// Some of the first runs end with the violation that is expected of a mutant.
fn assert_caught(
    mutant: Mutant,
    drawn: impl Fn(u64) -> Drawn,
    is_caught: impl Fn(&Violation) -> bool,
) {
    let ends: Vec<String> = (0..40)
        .map_while(
            |seed| match Simulation::new(drawn(seed)).with(mutant).run() {
                Err(violation) if is_caught(&violation) => None,
                Err(violation) => Some(format!("{seed}: {violation}")),
                Ok(_) => Some(format!("{seed}: survived")),
            },
        )
        .collect();
    assert!(ends.len() < 40, "{mutant:?} survives: {ends:#?}");
}
