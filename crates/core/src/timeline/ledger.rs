//! The gap ledger: which ranges of a source's IDs are not proven complete.

use serde::{Deserialize, Serialize};

use super::{ladder::Ladder, scheme::IdScheme};
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
        /// Requests that brought nothing nearer: each makes the next reach
        /// further down for an anchor.
        tries: u32,
        /// To be filled although the source does not fill gaps by itself.
        wanted: bool,
    },
    /// Read, but its last rung has not passed.
    Provisional {
        /// The rung that is to read it next.
        rung: usize,
        /// The time of its lowest ID (where IDs carry no time: of its first
        /// read), Unix ms.
        from_ms: i64,
        /// The time of its highest ID (likewise), Unix ms.
        until_ms: i64,
        /// As for [`GapKind::Open`].
        tries: u32,
    },
    /// Beyond the upstream's depth.
    Unrecoverable,
}

impl GapKind {
    /// An open range without history in it, not tried yet.
    pub const fn open() -> Self {
        Self::Open {
            history: false,
            tries: 0,
            wanted: false,
        }
    }
}

/// Every range of a source that is not proven complete, in order, disjoint.
///
/// What lies between [`Ledger::origin`] and [`Ledger::frontier`] and in no
/// range here is complete.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ledger {
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

impl Ledger {
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

    /// Puts back the ranges that the store keeps apart from the rest.
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
                    wanted: history,
                },
            });
        }
        self.origin = Some(origin);
        self.frontier = Some(frontier);
    }

    /// Extends coverage to `frontier`; what the next [`Ledger::read`] does not
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

    /// Takes a proven stretch in: open parts become provisional, provisional
    /// ones pass each rung whose age they had when they were read.
    pub fn read(&mut self, stretch: &Stretch, scheme: &IdScheme, ladder: &Ladder) {
        if stretch.low >= stretch.high {
            return;
        }
        self.rewrite(&stretch.low, &stretch.high, |part| {
            let (rung, from_ms, until_ms) = match part.kind {
                GapKind::Provisional {
                    rung,
                    from_ms,
                    until_ms,
                    ..
                } => (
                    rung,
                    scheme.time_ms(&part.low).unwrap_or(from_ms),
                    scheme.time_ms(&part.high).unwrap_or(until_ms),
                ),
                GapKind::Open { .. } | GapKind::Unrecoverable => (
                    0,
                    scheme.time_ms(&part.low).unwrap_or(stretch.at_ms),
                    scheme.time_ms(&part.high).unwrap_or(stretch.at_ms),
                ),
            };
            let from_ms = from_ms.min(until_ms);
            climb(
                part.low,
                part.high,
                rung,
                (from_ms, until_ms),
                stretch.at_ms,
                scheme,
                ladder,
            )
        });
        self.join(ladder);
    }

    /// Lets the provisional parts of a range pass one rung without a read.
    pub fn skip_rung(&mut self, low: &Key, high: &Key, skipped: usize, ladder: &Ladder) {
        self.rewrite(low, high, |mut part| {
            if let GapKind::Provisional { rung, tries, .. } = &mut part.kind
                && *rung == skipped
            {
                *rung += 1;
                *tries = 0;
                if *rung >= ladder.len() {
                    return Vec::new();
                }
            }
            vec![part]
        });
        self.join(ladder);
    }

    /// Marks the open parts of a range as beyond the upstream's depth.
    pub fn give_up(&mut self, low: &Key, high: &Key) {
        self.rewrite(low, high, |mut part| {
            if matches!(part.kind, GapKind::Open { .. }) {
                part.kind = GapKind::Unrecoverable;
            }
            vec![part]
        });
    }

    /// Lets coverage begin at `origin` instead: what was open below it was
    /// history that the upstream does not have, or that was not asked for.
    pub fn begin_later(&mut self, origin: &Key) {
        let Some(old) = self.origin.clone() else {
            return;
        };
        self.rewrite(&old, origin, |_| Vec::new());
        self.origin = Some(origin.clone());
    }

    /// Counts a request for a range that brought nothing nearer.
    pub fn tried(&mut self, low: &Key, high: &Key) {
        for gap in &mut self.gaps {
            if gap.low < *high
                && gap.high > *low
                && let GapKind::Open { tries, .. } | GapKind::Provisional { tries, .. } =
                    &mut gap.kind
            {
                *tries += 1;
            }
        }
    }

    /// Forgets the tries in a range: a request brought something.
    pub fn progressed(&mut self, low: &Key, high: &Key) {
        for gap in &mut self.gaps {
            if gap.low < *high
                && gap.high > *low
                && let GapKind::Open { tries, .. } | GapKind::Provisional { tries, .. } =
                    &mut gap.kind
            {
                *tries = 0;
            }
        }
    }

    /// Asks for an open range to be filled although the source does not fill
    /// gaps by itself. `false` if there is none there.
    pub fn want(&mut self, low: &Key) -> bool {
        let mut found = false;
        for gap in &mut self.gaps {
            if gap.low == *low
                && let GapKind::Open { wanted, .. } = &mut gap.kind
            {
                *wanted = true;
                found = true;
            }
        }
        found
    }

    /// Replaces what lies between `low` and `high` by what `change` makes of
    /// each part; the rest stays.
    fn rewrite(&mut self, low: &Key, high: &Key, mut change: impl FnMut(Gap) -> Vec<Gap>) {
        let old = std::mem::take(&mut self.gaps);
        for gap in old {
            if gap.high <= *low || gap.low >= *high {
                self.gaps.push(gap);
                continue;
            }
            let (before, inside, after) = cut(&gap, low, high);
            self.gaps.extend(before);
            self.gaps.extend(change(inside));
            self.gaps.extend(after);
        }
    }

    /// Joins neighbours that wait for the same rung, as long as the whole is
    /// no longer than that rung's period: a look then reads full pages.
    fn join(&mut self, ladder: &Ladder) {
        let mut joined: Vec<Gap> = Vec::with_capacity(self.gaps.len());
        for gap in self.gaps.drain(..) {
            if let Some(last) = joined.last_mut()
                && last.high == gap.low
                && let GapKind::Provisional {
                    rung,
                    from_ms,
                    until_ms,
                    tries,
                } = &mut last.kind
                && let GapKind::Provisional {
                    rung: next_rung,
                    until_ms: next_until_ms,
                    tries: next_tries,
                    ..
                } = gap.kind
                && *rung == next_rung
                && *tries == next_tries
                && next_until_ms - *from_ms <= ladder.period_ms(*rung)
            {
                last.high = gap.high;
                *until_ms = (*until_ms).max(next_until_ms);
                continue;
            }
            joined.push(gap);
        }
        self.gaps = joined;
    }
}

/// The parts of a read range by the rung that each waits for, lowest first;
/// what has passed the last rung is left out, being complete.
fn climb(
    low: Key,
    high: Key,
    rung: usize,
    (from_ms, until_ms): (i64, i64),
    read_at_ms: i64,
    scheme: &IdScheme,
    ladder: &Ladder,
) -> Vec<Gap> {
    let Some(age_ms) = ladder.age_ms(rung) else {
        return Vec::new();
    };
    let old_enough_ms = read_at_ms - age_ms;
    if until_ms <= old_enough_ms {
        return climb(
            low,
            high,
            rung + 1,
            (from_ms, until_ms),
            read_at_ms,
            scheme,
            ladder,
        );
    }
    let waiting = |low: Key, from_ms: i64| Gap {
        low,
        high: high.clone(),
        kind: GapKind::Provisional {
            rung,
            from_ms,
            until_ms,
            tries: 0,
        },
    };
    match scheme.floor(old_enough_ms) {
        Some(edge) if edge > low && edge < high => {
            let mut parts = climb(
                low,
                edge.clone(),
                rung + 1,
                (from_ms, old_enough_ms),
                read_at_ms,
                scheme,
                ladder,
            );
            parts.push(waiting(edge, old_enough_ms));
            parts
        }
        _ => vec![waiting(low, from_ms)],
    }
}

fn cut(gap: &Gap, low: &Key, high: &Key) -> (Option<Gap>, Gap, Option<Gap>) {
    let part = |low: &Key, high: &Key| Gap {
        low: low.clone(),
        high: high.clone(),
        kind: gap.kind.clone(),
    };
    let before = (gap.low < *low).then(|| part(&gap.low, low));
    let after = (gap.high > *high).then(|| part(high, &gap.high));
    let inside = part((&gap.low).max(low), (&gap.high).min(high));
    (before, inside, after)
}
