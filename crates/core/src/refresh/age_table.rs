use serde::{Deserialize, Serialize};

/// The intervals between refreshes of a post, by its age.
///
/// Bands are half-open: a post with exactly the age of a band's end belongs to the next band. After
/// the last band it is retired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgeTable {
    bands: Vec<AgeBand>,
    skew_ms: i64,
}

/// One row of an [`AgeTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgeBand {
    /// The age at the end of the band, in ms.
    pub below_ms: i64,
    /// The time between two refreshes in the band, in ms.
    pub every_ms: i64,
}

/// The due time of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Due at this time in Unix ms, which may have passed.
    At(i64),
    /// Not any more, because the post is older than the table.
    Retired,
    /// Never, because its creation time is unknown, or further in the future than clocks differ.
    Never,
}

/// An invalid table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AgeTableError {
    /// The table has no bands.
    #[error("the table is empty: expected at least one age")]
    Empty,
    /// A band does not end after the previous one, or its interval is not above zero.
    #[error(
        "age {} must lie above the one before it and have an interval above zero",
        .at + 1
    )]
    Band {
        /// The band's index, from 0.
        at: usize,
    },
    /// Older posts would be refreshed more often than younger ones.
    #[error(
        "age {} has a shorter interval than a younger one; intervals grow with age",
        .at + 1
    )]
    Shrinks {
        /// The older band's index, from 0.
        at: usize,
    },
}

impl AgeTable {
    /// A table of these bands, the youngest first. A creation time up to `skew_ms` in the future
    /// counts as now.
    ///
    /// # Errors
    /// [`AgeTableError`] with the first invalid band.
    pub fn new(bands: Vec<AgeBand>, skew_ms: i64) -> Result<Self, AgeTableError> {
        if bands.is_empty() {
            return Err(AgeTableError::Empty);
        }
        let mut last = AgeBand {
            below_ms: 0,
            every_ms: 0,
        };
        for (at, band) in bands.iter().enumerate() {
            if band.below_ms <= last.below_ms || band.every_ms <= 0 {
                return Err(AgeTableError::Band { at });
            }
            if band.every_ms < last.every_ms {
                return Err(AgeTableError::Shrinks { at });
            }
            last = *band;
        }
        let skew_ms = skew_ms.max(0);
        Ok(Self { bands, skew_ms })
    }

    /// The bands, youngest first.
    pub fn bands(&self) -> &[AgeBand] {
        &self.bands
    }

    /// The tolerance for a creation time in the future, which counts as now, in ms.
    pub fn skew_ms(&self) -> i64 {
        self.skew_ms
    }

    /// The due time of a post that was created at `created_at_ms` and last refreshed at
    /// `refreshed_ms`, both in Unix ms. For a post that was never refreshed, `refreshed_ms` is the
    /// time of its first storage, and it is due one interval later.
    ///
    /// The interval is that of the post's age at its last refresh. The seed computes its delay the
    /// same way when it queues a post again.
    pub fn due(&self, created_at_ms: Option<i64>, refreshed_ms: i64) -> Due {
        match self.wait_ms(created_at_ms, refreshed_ms) {
            Ok(wait_ms) => Due::At(refreshed_ms.saturating_add(wait_ms)),
            Err(due) => due,
        }
    }

    /// The time from the last refresh to the next in ms, as for [`AgeTable::due`].
    ///
    /// # Errors
    /// [`Due::Retired`] or [`Due::Never`] if there is no next refresh.
    pub(super) fn wait_ms(
        &self,
        created_at_ms: Option<i64>,
        refreshed_ms: i64,
    ) -> Result<i64, Due> {
        let created_at_ms = created_at_ms.ok_or(Due::Never)?;
        let age_ms = refreshed_ms.saturating_sub(created_at_ms);
        if age_ms < -self.skew_ms {
            return Err(Due::Never);
        }
        self.every_ms(age_ms.max(0)).ok_or(Due::Retired)
    }

    /// The time between two refreshes at this age, in ms; `None` if the post is retired.
    pub fn every_ms(&self, age_ms: i64) -> Option<i64> {
        Some(self.bands[self.band(age_ms)?].every_ms)
    }

    /// True if a post that was created at `created_at_ms` is still refreshed at `at_ms`, both in
    /// Unix ms.
    pub fn holds(&self, created_at_ms: Option<i64>, at_ms: i64) -> bool {
        matches!(self.due(created_at_ms, at_ms), Due::At(_))
    }

    /// The index of the band for this age, from 0; `None` if the post is retired. A creation time
    /// in the future belongs to the first band.
    pub fn band(&self, age_ms: i64) -> Option<usize> {
        self.bands.iter().position(|band| age_ms < band.below_ms)
    }
}

impl Default for AgeTable {
    /// The ages of the seed, with the intervals that its users chose.
    fn default() -> Self {
        let band = |below_ms, every_ms| AgeBand { below_ms, every_ms };
        Self {
            bands: vec![
                band(18 * MINUTE_MS, 3 * MINUTE_MS),
                band(HOUR_MS, 10 * MINUTE_MS),
                band(DAY_MS, 2 * HOUR_MS),
                band(7 * DAY_MS, 12 * HOUR_MS),
                band(30 * DAY_MS, 3 * DAY_MS),
            ],
            skew_ms: 5 * MINUTE_MS,
        }
    }
}

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
