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

/// Figures of Driftline and of its peer, a pair a round.
#[derive(Debug)]
pub(crate) struct Pairs<T>(Vec<[T; 2]>);

impl<T> Pairs<T> {
    /// No round yet.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Measures both in each round, and takes turns in who comes first.
    pub(crate) fn measure(
        rounds: usize,
        mut ours: impl FnMut() -> Result<T, Failure>,
        mut peer: impl FnMut() -> Result<T, Failure>,
    ) -> Result<Self, Failure> {
        let mut pairs = Self::new();
        for _ in 0..rounds {
            pairs.round(&mut ours, &mut peer)?;
        }
        Ok(pairs)
    }

    /// Measures one round.
    pub(crate) fn round(
        &mut self,
        ours: impl FnOnce() -> Result<T, Failure>,
        peer: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(), Failure> {
        self.0.push(match self.0.len() % 2 {
            0 => [ours()?, peer()?],
            _ => {
                let peer = peer()?;
                [ours()?, peer]
            }
        });
        Ok(())
    }

    /// Driftline's figure of each round.
    pub(crate) fn all_ours(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|[ours, _]| ours)
    }

    /// A figure of Driftline.
    pub(crate) fn ours(&self, figure: impl Fn(&T) -> f64, digits: usize) -> Spread {
        Spread::of(self.0.iter().map(|[ours, _]| figure(ours)), digits)
    }

    /// A figure of the peer.
    pub(crate) fn peer(&self, figure: impl Fn(&T) -> f64, digits: usize) -> Spread {
        Spread::of(self.0.iter().map(|[_, peer]| figure(peer)), digits)
    }

    /// Driftline's figure by the peer's of the same round.
    pub(crate) fn ratio(&self, figure: impl Fn(&T) -> f64) -> Spread {
        let ratios = self
            .0
            .iter()
            .map(|[ours, peer]| figure(ours) / figure(peer));
        Spread::of(ratios, 2)
    }

    /// The cells of a figure: Driftline's, the peer's, and the ratio.
    pub(crate) fn cells(&self, figure: impl Fn(&T) -> f64, digits: usize) -> [String; 3] {
        [
            self.ours(&figure, digits).to_string(),
            self.peer(&figure, digits).to_string(),
            self.ratio(&figure).to_string(),
        ]
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
