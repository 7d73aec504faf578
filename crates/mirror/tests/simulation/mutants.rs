//! Faults put into the source's reading on purpose, each of which a law must
//! catch.

use std::hash::{DefaultHasher, Hash, Hasher};

use driftline_core::{
    answer::{Failure, FailureKind, Page},
    timeline::{Backfill, Gap, Machine, Reading, Request, RequestPurpose},
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

/// A mutant, the first seed that is run, the runs, and the expected violation. The first seed is one that catches the
/// mutant; others follow, because any change of the simulation may change that.
type Case = (Mutant, u64, fn(u64) -> Drawn, fn(&Violation) -> bool);

#[test]
fn each_mutant_is_caught_by_the_law_that_it_breaks() {
    let is_lost = |it: &Violation| matches!(it, Violation::Unaccounted(_) | Violation::Missing(_));
    let is_content = |it: &Violation| matches!(it, Violation::Content(_));
    let cases: [Case; 10] = [
        (Mutant::OriginMovesAtPolls, 0, Drawn::of, |it| {
            matches!(it, Violation::Origin(_))
        }),
        (Mutant::OriginAboveHistory, 1, of_counted_history, |it| {
            matches!(it, Violation::Origin(_))
        }),
        (Mutant::LeaseOutlivesSession, 7, Drawn::of, |it| {
            matches!(it, Violation::Stalled(_))
        }),
        (Mutant::RungsPassUnread, 0, Drawn::of, |it| {
            matches!(
                it,
                Violation::Missing(_) | Violation::Unaccounted(_) | Violation::Content(_)
            )
        }),
        (Mutant::CursorBeforePosts, 4, Drawn::of, is_lost),
        (Mutant::GapClosedByShortPage, 11, Drawn::of, is_lost),
        (Mutant::AbsenceIgnored, 19, Drawn::of, is_content),
        (Mutant::EmptyAnswerIsTheEnd, 13, Drawn::of, |it| {
            matches!(it, Violation::Missing(_))
        }),
        (
            Mutant::RefusesDisorder,
            0,
            |seed| Drawn::quirky(seed, &[Quirk::SinceIdIgnored]),
            |it| {
                matches!(
                    it,
                    Violation::Stalled(_) | Violation::Unsettled(_) | Violation::Missing(_)
                )
            },
        ),
        (
            Mutant::ComparesTexts,
            0,
            |seed| Drawn {
                refreshes: true,
                ..Drawn::quirky(seed, &[Quirk::EscapesDiffer])
            },
            is_content,
        ),
    ];
    for case in cases {
        assert_caught(case);
    }
}

fn of_counted_history(seed: u64) -> Drawn {
    let mut drawn = Drawn::of(seed);
    drawn.settings.backfill = Backfill::Count(20 + seed);
    drawn
}

/// Some of the first runs end with the violation that is expected of a mutant.
fn assert_caught((mutant, first, drawn, is_caught): Case) {
    let ends: Vec<String> = (first..first + 40)
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
