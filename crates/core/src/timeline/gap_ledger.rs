//! The gap ledger: the ranges of a source's IDs that are not proven complete.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{age_bins::nearest, ladder::Ladder, scheme::IdScheme};
use crate::upstream_id::Key;

/// A range of IDs that is not proven complete, from `low`, inclusive, to `high`, exclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The lowest ID of the range.
    pub low: Key,
    /// The upper bound, which is not part of the range.
    pub high: Key,
    /// The reason why it is not complete.
    pub kind: GapKind,
}

/// The reason why a range is not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum GapKind {
    /// The range was not yet read by contiguous answers.
    Open {
        /// True for a part of the history that was requested for the source.
        history: bool,
        /// The number of requests without progress. Each makes the next one use an older anchor.
        tries: u32,
        /// True if the range must be filled although the source does not fill gaps by itself.
        fill_requested: bool,
    },
    /// The range was read, but is not yet old enough.
    Provisional(Provisional),
    /// The range became old enough without the last rung's read, because of the plan or a short
    /// quota.
    PassedOver {
        /// The same as [`Provisional::read_age_ms`].
        read_age_ms: i64,
    },
    /// The upstream's pages do not reach it.
    Unrecoverable,
}

/// The reads of a provisional range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provisional {
    /// The age at the last read, in ms. No post of the range was younger then.
    pub read_age_ms: i64,
    /// The time of its lowest ID in Unix ms, or of its first read if IDs contain no time.
    pub from_ms: i64,
    /// The time of its highest ID in Unix ms, with the same exception.
    pub until_ms: i64,
    /// The same as in [`GapKind::Open`].
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

    /// True if a part of it lies between `low` and `high`.
    pub(super) fn overlaps(&self, low: &Key, high: &Key) -> bool {
        self.low < *high && self.high > *low
    }
}

impl GapKind {
    /// An open range outside of the history, not tried yet.
    pub const fn open() -> Self {
        Self::Open {
            history: false,
            tries: 0,
            fill_requested: false,
        }
    }
}

/// All ranges of a source that are not proven complete, in order and disjoint.
///
/// IDs between [`GapLedger::origin`] and [`GapLedger::frontier`] outside of these ranges are
/// complete.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GapLedger {
    origin: Option<Key>,
    frontier: Option<Key>,
    #[serde(skip)]
    gaps: Vec<Gap>,
}

/// A contiguous stretch of IDs that answers have proven, from `low`, inclusive, to `high`,
/// exclusive. It was read at `at_ms` by the server's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The lowest ID that was read.
    pub low: Key,
    /// The upper bound, which is not part of the stretch.
    pub high: Key,
    /// The time of the read, in Unix ms by the server's clock.
    pub at_ms: i64,
}

impl GapLedger {
    /// The beginning of the source's coverage, inclusive; `None` before the first post was seen.
    pub fn origin(&self) -> Option<&Key> {
        self.origin.as_ref()
    }

    /// The end of the source's coverage, exclusive: the newest ID of a proven read that was not
    /// ahead of the server's time.
    pub fn frontier(&self) -> Option<&Key> {
        self.frontier.as_ref()
    }

    /// The ranges, in order.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Restores the ranges, which the store keeps separately.
    pub fn restore_gaps(&mut self, mut gaps: Vec<Gap>) {
        gaps.sort_by(|a, b| a.low.cmp(&b.low));
        self.gaps = gaps;
    }

    /// Begins coverage at `origin`, with an open gap up to `frontier`.
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

    /// Extends coverage to `frontier`. The part that the next [`GapLedger::read`] does not prove
    /// stays an open gap.
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

    /// Applies a proven stretch. Open parts become provisional, provisional parts are read at their
    /// present age, and old enough parts become complete.
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

    /// Marks the provisional parts of a range as old enough without another read.
    pub fn pass_over(&mut self, low: &Key, high: &Key, scheme: &IdScheme, ladder: &Ladder) {
        self.change(low, high, scheme, |kind| match kind {
            GapKind::Provisional(Provisional { read_age_ms, .. }) => {
                GapKind::PassedOver { read_age_ms }
            }
            other => other,
        });
        self.join(ladder);
    }

    /// The smallest age at the last read of any part of a stretch, in ms. `None` if a part was
    /// never read, or is complete: another read is then no evidence about omissions of reads.
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

    /// Opens the provisional parts of a range again. They are the overlap of a poll whose page did
    /// not reach down to it, and are read with the gap above.
    pub fn reopen(&mut self, low: &Key, high: &Key, scheme: &IdScheme) {
        self.change(low, high, scheme, |kind| match kind {
            GapKind::Provisional(_) => GapKind::open(),
            other => other,
        });
        self.join_open();
    }

    /// Marks the open parts of a range as unreachable by the upstream's pages.
    pub fn give_up(&mut self, low: &Key, high: &Key, scheme: &IdScheme) {
        self.change(low, high, scheme, |kind| match kind {
            GapKind::Open { .. } => GapKind::Unrecoverable,
            other => other,
        });
    }

    /// Moves the beginning of coverage up to `origin`. The open ranges below it were history that
    /// the upstream does not have, or that was not requested.
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

    /// Resets the tries in a range after a request with progress.
    pub fn progressed(&mut self, low: &Key, high: &Key) {
        self.tries_of(low, high).for_each(|tries| *tries = 0);
    }

    /// The largest number of requests without progress for a part of a range.
    pub fn max_tries(&mut self, low: &Key, high: &Key) -> u32 {
        self.tries_of(low, high)
            .map(|tries| *tries)
            .max()
            .unwrap_or(0)
    }

    /// Marks the complete parts between `low` and `high` as ranges of this kind, because their
    /// proof is no longer valid.
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

    /// Requests that an open range be filled although the source does not fill gaps by itself.
    /// Returns `false` if no open range begins at `low`.
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

    /// Changes the kind of the ranges between `low` and `high`.
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

    /// Replaces the ranges between `low` and `high` by the results of `change` for each part. The
    /// rest stays.
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

    /// The indexes of the ranges that overlap `low` to `high`.
    fn overlapping(&self, low: &Key, high: &Key) -> Range<usize> {
        let begin = self.gaps.partition_point(|gap| gap.high <= *low);
        let rest = &self.gaps[begin..];
        begin..begin + rest.partition_point(|gap| gap.low < *high)
    }

    /// Joins neighbours that wait for the same rung, if the whole is no longer than that rung's
    /// period, so that a look reads full pages. Ranges that were passed over are joined at any
    /// length.
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

/// The kind of two neighbours as one range, if they may be joined.
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

/// True if two ranges were read at a similar age for the rung for which both wait. Ranges read by a
/// probe stay separate until then, so that the look shows the later posts.
fn are_alike(age_ms: i64, other_ms: i64, rung_ms: Option<i64>) -> bool {
    let Some(rung_ms) = rung_ms else {
        return true;
    };
    let early_ms = rung_ms / 5;
    nearest(age_ms) == nearest(other_ms) || age_ms.max(other_ms) < early_ms
}

/// The parts of a range that was read, by the rung for which each waits, the lowest first. Parts
/// that are old enough are complete and left out. Parts that were passed over stay so, unless this
/// read completes them.
fn aged(
    Gap { low, high, kind }: Gap,
    before: Provisional,
    read_at_ms: i64,
    scheme: &IdScheme,
    ladder: &Ladder,
) -> Vec<Gap> {
    // From the oldest part to the youngest: first the complete ones, then by rung.
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

/// The parts of a range before, inside and after other bounds. Each part has the times of its own
/// IDs. With the times of the whole, the remaining parts would be due at once, in small pieces.
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
