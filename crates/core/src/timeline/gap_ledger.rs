//! The gap ledger: which ranges of a source's IDs are not proven complete.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{age_bins::nearest, ladder::Ladder, scheme::IdScheme};
use crate::upstream_id::Key;

/// A range of IDs that is not proven complete: from `low`, inclusive, to
/// `high`, exclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The lowest ID of the range.
    pub low: Key,
    /// The ID that the range ends below.
    pub high: Key,
    /// Why it is not complete.
    pub kind: GapKind,
}

/// Why a range is not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum GapKind {
    /// Not yet read by contiguous answers.
    Open {
        /// Part of the history that the source was asked to begin with.
        history: bool,
        /// Requests without progress: each makes the next use an older anchor.
        tries: u32,
        /// To be filled although the source does not fill gaps by itself.
        fill_requested: bool,
    },
    /// Read, but not yet of age.
    Provisional(Provisional),
    /// It came of age without the last rung's read, by the plan or for want of quota.
    PassedOver {
        /// As for [`Provisional`].
        read_age_ms: i64,
    },
    /// The upstream's pages do not reach it.
    Unrecoverable,
}

/// The reads of a provisional range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provisional {
    /// The age at which it was read last: no post of it was younger then, ms.
    pub read_age_ms: i64,
    /// The time of its lowest ID (where IDs carry no time: of its first
    /// read), Unix ms.
    pub from_ms: i64,
    /// The time of its highest ID (likewise), Unix ms.
    pub until_ms: i64,
    /// As for [`GapKind::Open`].
    pub tries: u32,
}

impl Gap {
    /// Its reads, if it is provisional.
    pub fn provisional(&self) -> Option<Provisional> {
        match self.kind {
            GapKind::Provisional(provisional) => Some(provisional),
            _ => None,
        }
    }

    /// Whether part of it lies between `low` and `high`.
    pub(super) fn overlaps(&self, low: &Key, high: &Key) -> bool {
        self.low < *high && self.high > *low
    }
}

impl GapKind {
    /// An open range without history in it, not tried yet.
    pub const fn open() -> Self {
        Self::Open {
            history: false,
            tries: 0,
            fill_requested: false,
        }
    }
}

/// Every range of a source that is not proven complete, in order, disjoint.
///
/// What lies between [`GapLedger::origin`] and [`GapLedger::frontier`] and in no
/// range here is complete.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GapLedger {
    origin: Option<Key>,
    frontier: Option<Key>,
    #[serde(skip)]
    gaps: Vec<Gap>,
}

/// A contiguous stretch of IDs that answers proved: from `low`, inclusive, to
/// `high`, exclusive, read at `at_ms` by the server's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The lowest ID that was read.
    pub low: Key,
    /// The ID that the stretch ends below.
    pub high: Key,
    /// When it was read, Unix ms by the server's clock.
    pub at_ms: i64,
}

impl GapLedger {
    /// Where the source's coverage begins, inclusive; `None` before the first
    /// post was seen.
    pub fn origin(&self) -> Option<&Key> {
        self.origin.as_ref()
    }

    /// Where the source's coverage ends, exclusive: the newest ID that a
    /// proven read brought and that was not ahead of server time.
    pub fn frontier(&self) -> Option<&Key> {
        self.frontier.as_ref()
    }

    /// The ranges, in order.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Restores the ranges, which the store keeps apart from the rest.
    pub fn restore_gaps(&mut self, mut gaps: Vec<Gap>) {
        gaps.sort_by(|a, b| a.low.cmp(&b.low));
        self.gaps = gaps;
    }

    /// Begins coverage at `origin`; up to `frontier` it is an open gap.
    pub fn begin(&mut self, origin: Key, frontier: Key, history: bool) {
        self.gaps.clear();
        if origin < frontier {
            self.gaps.push(Gap {
                low: origin.clone(),
                high: frontier.clone(),
                kind: GapKind::Open {
                    history,
                    tries: 0,
                    fill_requested: history,
                },
            });
        }
        self.origin = Some(origin);
        self.frontier = Some(frontier);
    }

    /// Extends coverage to `frontier`; what the next [`GapLedger::read`] does not
    /// prove of it stays an open gap.
    pub fn extend(&mut self, frontier: Key) {
        let Some(old) = self.frontier.clone() else {
            return;
        };
        if frontier <= old {
            return;
        }
        self.gaps.push(Gap {
            low: old,
            high: frontier.clone(),
            kind: GapKind::open(),
        });
        self.frontier = Some(frontier);
    }

    /// Applies a proven stretch: open parts become provisional, provisional
    /// ones are read at the age that they have now, and what has come of age by
    /// then is complete.
    pub fn read(&mut self, stretch: &Stretch, scheme: &IdScheme, ladder: &Ladder) {
        if stretch.low >= stretch.high {
            return;
        }
        self.rewrite(&stretch.low, &stretch.high, scheme, |part| {
            let first = Provisional {
                read_age_ms: 0,
                from_ms: stretch.at_ms,
                until_ms: stretch.at_ms,
                tries: 0,
            };
            let before = match part.kind {
                GapKind::Provisional(before) => before,
                GapKind::PassedOver { read_age_ms } => Provisional {
                    read_age_ms,
                    ..first
                },
                GapKind::Open { .. } | GapKind::Unrecoverable => first,
            };
            let until_ms = scheme.time_ms(&part.high).unwrap_or(before.until_ms);
            let from_ms = scheme.time_ms(&part.low).unwrap_or(before.from_ms);
            let before = Provisional {
                from_ms: from_ms.min(until_ms),
                until_ms,
                ..before
            };
            aged(part, before, stretch.at_ms, scheme, ladder)
        });
        self.join(ladder);
    }

    /// Lets the provisional parts of a range come of age without another read.
    pub fn pass_over(&mut self, low: &Key, high: &Key, scheme: &IdScheme, ladder: &Ladder) {
        self.change(low, high, scheme, |kind| match kind {
            GapKind::Provisional(Provisional { read_age_ms, .. }) => {
                GapKind::PassedOver { read_age_ms }
            }
            other => other,
        });
        self.join(ladder);
    }

    /// The least age at which all of a stretch was read last, ms; `None` if part of it was never
    /// read, or is complete: then reading it again gives no evidence of what reads leave out.
    pub fn read_age_ms(&self, low: &Key, high: &Key) -> Option<i64> {
        let mut covered = low.clone();
        let mut min_ms: Option<i64> = None;
        for gap in &self.gaps[self.overlapping(low, high)] {
            if gap.low > covered {
                return None;
            }
            let (GapKind::Provisional(Provisional { read_age_ms, .. })
            | GapKind::PassedOver { read_age_ms }) = gap.kind
            else {
                return None;
            };
            min_ms = Some(min_ms.map_or(read_age_ms, |min_ms| min_ms.min(read_age_ms)));
            if gap.high >= *high {
                return min_ms;
            }
            covered = gap.high.clone();
        }
        None
    }

    /// Opens the provisional parts of a range again: the overlap of a poll whose page did not reach
    /// down to it is read with the gap above.
    pub fn reopen(&mut self, low: &Key, high: &Key, scheme: &IdScheme) {
        self.change(low, high, scheme, |kind| match kind {
            GapKind::Provisional(_) => GapKind::open(),
            other => other,
        });
        self.join_open();
    }

    /// Marks the open parts of a range as ranges that the upstream's pages do not reach.
    pub fn give_up(&mut self, low: &Key, high: &Key, scheme: &IdScheme) {
        self.change(low, high, scheme, |kind| match kind {
            GapKind::Open { .. } => GapKind::Unrecoverable,
            other => other,
        });
    }

    /// Lets coverage begin at `origin` instead: what was open below it was
    /// history that the upstream does not have, or that was not asked for.
    pub fn begin_later(&mut self, origin: &Key) {
        if self.origin.is_none() {
            return;
        }
        self.gaps.retain(|gap| gap.high > *origin);
        if let Some(first) = self.gaps.first_mut() {
            first.low = origin.max(&first.low).clone();
        }
        self.origin = Some(origin.clone());
    }

    /// Counts a request for a range that made no progress.
    pub fn tried(&mut self, low: &Key, high: &Key) {
        self.tries_of(low, high).for_each(|tries| *tries += 1);
    }

    /// Resets the tries in a range: a request made progress.
    pub fn progressed(&mut self, low: &Key, high: &Key) {
        self.tries_of(low, high).for_each(|tries| *tries = 0);
    }

    /// The most requests without progress for a part of a range.
    pub fn max_tries(&mut self, low: &Key, high: &Key) -> u32 {
        self.tries_of(low, high)
            .map(|tries| *tries)
            .max()
            .unwrap_or(0)
    }

    /// Lists what is complete between `low` and `high` as a range of this kind: what its proof rested
    /// on has failed.
    pub fn doubt(&mut self, low: &Key, high: &Key, kind: &GapKind) {
        let mut covered = low.clone();
        let mut listed = Vec::with_capacity(self.gaps.len());
        let list = |listed: &mut Vec<Gap>, from: &Key, to: &Key| {
            if from < to {
                let (low, high) = (from.clone(), to.clone());
                let kind = kind.clone();
                listed.push(Gap { low, high, kind });
            }
        };
        for gap in self.gaps.drain(..) {
            list(&mut listed, &covered, (&gap.low).min(high));
            covered = covered.max(gap.high.clone());
            listed.push(gap);
        }
        list(&mut listed, &covered, high);
        self.gaps = listed;
    }

    fn tries_of(&mut self, low: &Key, high: &Key) -> impl Iterator<Item = &mut u32> {
        let range = self.overlapping(low, high);
        let gaps = self.gaps[range].iter_mut();
        gaps.filter_map(|gap| match &mut gap.kind {
            GapKind::Open { tries, .. } | GapKind::Provisional(Provisional { tries, .. }) => {
                Some(tries)
            }
            GapKind::PassedOver { .. } | GapKind::Unrecoverable => None,
        })
    }

    /// Requests that an open range be filled although the source does not fill
    /// gaps by itself. `false` if there is none at `low`.
    pub fn request_fill(&mut self, low: &Key) -> bool {
        let gap = self.gaps.iter_mut().find(|gap| gap.low == *low);
        let Some(GapKind::Open { fill_requested, .. }) = gap.map(|gap| &mut gap.kind) else {
            return false;
        };
        *fill_requested = true;
        true
    }

    /// Joins open neighbours of the same state, so that one walk fills them.
    fn join_open(&mut self) {
        self.gaps.dedup_by(|next, last| {
            let joins = last.high == next.low
                && last.kind == next.kind
                && matches!(last.kind, GapKind::Open { .. });
            if joins {
                last.high = next.high.clone();
            }
            joins
        });
    }

    /// Changes the kind of what lies between `low` and `high`.
    fn change(
        &mut self,
        low: &Key,
        high: &Key,
        scheme: &IdScheme,
        kind: impl Fn(GapKind) -> GapKind,
    ) {
        self.rewrite(low, high, scheme, |part| {
            vec![Gap {
                kind: kind(part.kind),
                ..part
            }]
        });
    }

    /// Replaces what lies between `low` and `high` by what `change` makes of
    /// each part; the rest stays.
    fn rewrite(
        &mut self,
        low: &Key,
        high: &Key,
        scheme: &IdScheme,
        mut change: impl FnMut(Gap) -> Vec<Gap>,
    ) {
        let range = self.overlapping(low, high);
        let mut changed = Vec::new();
        for gap in &self.gaps[range.clone()] {
            let (before, inside, after) = cut(gap, low, high, scheme);
            changed.extend(before);
            changed.extend(change(inside));
            changed.extend(after);
        }
        self.gaps.splice(range, changed);
    }

    /// The indexes of the ranges that lie between `low` and `high`, in part at least.
    fn overlapping(&self, low: &Key, high: &Key) -> Range<usize> {
        let begin = self.gaps.partition_point(|gap| gap.high <= *low);
        let rest = &self.gaps[begin..];
        begin..begin + rest.partition_point(|gap| gap.low < *high)
    }

    /// Joins neighbours that wait for the same rung, as long as the whole is
    /// no longer than that rung's period: a look then reads full pages. What was
    /// passed over is joined whatever its length.
    fn join(&mut self, ladder: &Ladder) {
        self.gaps.dedup_by(|next, last| {
            let kind = joined_kind(&last.kind, &next.kind, ladder);
            let Some(kind) = kind.filter(|_| last.high == next.low) else {
                return false;
            };
            last.high = std::mem::take(&mut next.high);
            last.kind = kind;
            true
        });
    }
}

/// What two neighbours are as one range, if they may be one.
fn joined_kind(low: &GapKind, high: &GapKind, ladder: &Ladder) -> Option<GapKind> {
    match (low, high) {
        (GapKind::Provisional(low), GapKind::Provisional(high)) => {
            let rung = ladder.next(low.read_age_ms);
            let are_alike = || are_alike(low.read_age_ms, high.read_age_ms, ladder.age_ms(rung));
            let fits = rung == ladder.next(high.read_age_ms)
                && (!ladder.is_probed() || are_alike())
                && low.tries == high.tries
                && high.until_ms - low.from_ms <= ladder.period_ms(rung);
            fits.then(|| {
                GapKind::Provisional(Provisional {
                    read_age_ms: low.read_age_ms.min(high.read_age_ms),
                    until_ms: low.until_ms.max(high.until_ms),
                    ..*low
                })
            })
        }
        (GapKind::PassedOver { read_age_ms: low }, GapKind::PassedOver { read_age_ms: high }) => {
            let read_age_ms = *low.min(high);
            Some(GapKind::PassedOver { read_age_ms })
        }
        _ => None,
    }
}

/// Whether two ranges were read at much the same age, for the rung that both wait for: what a probe
/// read stays apart until then, so that the look shows what came after it.
fn are_alike(age_ms: i64, other_ms: i64, rung_ms: Option<i64>) -> bool {
    let Some(rung_ms) = rung_ms else {
        return true;
    };
    let early_ms = rung_ms / 5;
    nearest(age_ms) == nearest(other_ms) || age_ms.max(other_ms) < early_ms
}

/// The parts of a range that was read, by the rung that each waits for, lowest first; what has
/// come of age is left out, being complete. What was passed over stays so unless this read makes
/// it complete.
fn aged(
    Gap { low, high, kind }: Gap,
    before: Provisional,
    read_at_ms: i64,
    scheme: &IdScheme,
    ladder: &Ladder,
) -> Vec<Gap> {
    // From the oldest part to the youngest: first what is complete, then by rung.
    let ages = ladder.rungs().iter().rev().map(|rung| rung.age_ms);
    let complete_ms = ladder.complete_ms();
    let ages = std::iter::once(complete_ms).chain(ages.filter(|age_ms| *age_ms < complete_ms));
    let mut edges: Vec<(Key, i64)> = Vec::new();
    for age_ms in ages {
        let old_enough_ms = read_at_ms - age_ms;
        if let Some(edge) = scheme.floor(old_enough_ms)
            && edge > *edges.last().map_or(&low, |(last, _)| last)
            && edge < high
        {
            edges.push((edge, old_enough_ms));
        }
    }
    edges.push((high, before.until_ms));
    let mut parts = Vec::new();
    let (mut low, mut from_ms) = (low, before.from_ms);
    for (edge, edge_ms) in edges {
        let age_ms = (read_at_ms - edge_ms).max(before.read_age_ms);
        if age_ms < complete_ms {
            let read_age_ms = ladder.counted_ms(age_ms);
            let kind = match kind {
                GapKind::PassedOver { .. } => GapKind::PassedOver { read_age_ms },
                _ => GapKind::Provisional(Provisional {
                    read_age_ms,
                    from_ms: from_ms.min(edge_ms),
                    until_ms: edge_ms,
                    tries: 0,
                }),
            };
            parts.push(Gap {
                low,
                high: edge.clone(),
                kind,
            });
        }
        (low, from_ms) = (edge, edge_ms);
    }
    parts
}

/// The parts of a range before, inside and after others bounds. Each has the times of its own IDs: with
/// those of the whole, what is left of a range would be due at once, a sliver at a time.
fn cut(gap: &Gap, low: &Key, high: &Key, scheme: &IdScheme) -> (Option<Gap>, Gap, Option<Gap>) {
    let part = |low: &Key, high: &Key| {
        let mut kind = gap.kind.clone();
        if let GapKind::Provisional(read) = &mut kind {
            let from_ms = scheme.time_ms(low).unwrap_or(read.from_ms);
            let until_ms = scheme.time_ms(high).unwrap_or(read.until_ms);
            read.until_ms = until_ms.min(read.until_ms);
            read.from_ms = from_ms.max(read.from_ms).min(read.until_ms);
        }
        Gap {
            low: low.clone(),
            high: high.clone(),
            kind,
        }
    };
    let before = (gap.low < *low).then(|| part(&gap.low, low));
    let after = (gap.high > *high).then(|| part(high, &gap.high));
    let inside = part((&gap.low).max(low), (&gap.high).min(high));
    (before, inside, after)
}
