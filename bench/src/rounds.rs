//! Figures of several rounds.

use std::fmt;

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
