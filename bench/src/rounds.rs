//! Figures of several rounds.

use std::{fmt, time::Duration};

use crate::failure::Failure;

/// The median of a figure over the rounds, with the least and the most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    least: f64,
    most: f64,
    digits: usize,
}

impl Spread {
    /// Of at least one figure; shown with this many digits after the point.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>, digits: usize) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or(f64::NAN);
        let middle = figures.len() / 2;
        let median = if figures.len().is_multiple_of(2) && middle > 0 {
            f64::midpoint(at(middle - 1), at(middle))
        } else {
            at(middle)
        };
        Self {
            median,
            least: at(0),
            most: at(figures.len().saturating_sub(1)),
            digits,
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.digits;
        write!(f, "{:.digits$}", self.median)?;
        if self.least < self.most {
            write!(f, " ({:.digits$}–{:.digits$})", self.least, self.most)?;
        }
        Ok(())
    }
}

/// Figures of several ways to do one thing, one of each way a round.
#[derive(Debug)]
pub(crate) struct Rounds<T, const N: usize>(pub(crate) Vec<[T; N]>);

/// Figures of Driftline and of its peer.
pub(crate) type Pairs<T> = Rounds<T, 2>;

impl<T> Pairs<T> {
    /// Measures both in each round, and takes turns in who comes first.
    pub(crate) fn measure(
        rounds: usize,
        mut ours: impl FnMut() -> Result<T, Failure>,
        mut peer: impl FnMut() -> Result<T, Failure>,
    ) -> Result<Self, Failure> {
        let mut pairs = Self::new();
        for _ in 0..rounds {
            pairs.round([0, 1], |side| match side {
                0 => ours(),
                _ => peer(),
            })?;
        }
        Ok(pairs)
    }
}

impl<T, const N: usize> Rounds<T, N> {
    /// No round yet.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Measures each way once, and takes turns in which comes first.
    pub(crate) fn round<W>(
        &mut self,
        ways: [W; N],
        measure: impl FnMut(W) -> Result<T, Failure>,
    ) -> Result<(), Failure> {
        let is_turned = self.0.len() % 2 == 1;
        let mut ways = Vec::from(ways);
        if is_turned {
            ways.reverse();
        }
        let figures = ways.into_iter().map(measure);
        let mut figures: Vec<T> = figures.collect::<Result<_, _>>()?;
        if is_turned {
            figures.reverse();
        }
        self.0.extend(<[T; N]>::try_from(figures));
        Ok(())
    }

    /// A figure of one way.
    pub(crate) fn of(&self, way: usize, figure: impl Fn(&T) -> f64, digits: usize) -> Spread {
        Spread::of(self.0.iter().map(|round| figure(&round[way])), digits)
    }

    /// A way's figure by that of another in the same round.
    pub(crate) fn ratio(&self, way: usize, to: usize, figure: impl Fn(&T) -> f64) -> Spread {
        let ratio = |round: &[T; N]| figure(&round[way]) / figure(&round[to]);
        Spread::of(self.0.iter().map(ratio), 2)
    }
}

/// Quantiles of the times of one round, ms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Times {
    /// Sorts at least one time.
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: usize| {
            let time = times.get(times.len().saturating_sub(1) * share / 100);
            time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
        };
        Self {
            p50: at(50),
            p99: at(99),
        }
    }
}
