use core::fmt;

use crate::layout::Layout;

/// A warning that a layout will soon reach a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LifeWarning {
    /// No IDs can be made after this time.
    Ends {
        /// The layout's name.
        layout: &'static str,
        /// The last Unix ms that the layout can express.
        end_of_life_ms: i64,
    },
    /// IDs do not fit a signed 64-bit integer from this time on.
    PassesSigned {
        /// The layout's name.
        layout: &'static str,
        /// The first Unix ms of such IDs.
        signed_limit_ms: i64,
    },
}

impl Layout {
    /// Warns if the layout ends, or its IDs pass 2^63 - 1, within a year (366 days) of `now_ms`.
    /// Warns after either date too. Generators always refuse after the end.
    pub fn expires_within_a_year(&self, now_ms: i64) -> Option<LifeWarning> {
        let layout = self.name();
        let soon = |at_ms: i64| now_ms.saturating_add(YEAR_MS) >= at_ms;
        let end_of_life_ms = self.end_of_life_ms();
        if soon(end_of_life_ms) {
            return Some(LifeWarning::Ends {
                layout,
                end_of_life_ms,
            });
        }
        let signed_limit_ms = self.signed_limit_ms().filter(|&at_ms| soon(at_ms))?;
        Some(LifeWarning::PassesSigned {
            layout,
            signed_limit_ms,
        })
    }
}

impl fmt::Display for LifeWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ends {
                layout,
                end_of_life_ms,
            } => write!(
                f,
                "the layout {layout} makes no IDs after Unix ms {end_of_life_ms}; \
                 plan the move to another one"
            ),
            Self::PassesSigned {
                layout,
                signed_limit_ms,
            } => write!(
                f,
                "IDs of {layout} pass 2^63 - 1 at Unix ms {signed_limit_ms}; \
                 readers must take them as unsigned or as text from then on"
            ),
        }
    }
}

const YEAR_MS: i64 = 366 * 24 * 3_600_000;
