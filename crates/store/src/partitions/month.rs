//! Calendar months, and which of them need a partition. Pure.

use std::fmt;

/// A calendar month, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    /// Months since January of the year 0.
    number: i64,
}

impl Month {
    /// The month of a time, Unix ms.
    #[must_use]
    pub const fn of(at_ms: i64) -> Month {
        // Years that begin in March end with the day that leap years add: a month's number then follows
        // from its day alone.
        let day = at_ms.div_euclid(DAY_MS) + DAYS_TO_1970;
        let era = day.div_euclid(ERA_DAYS);
        let day = day.rem_euclid(ERA_DAYS);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year + year / 4 - year / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        Month {
            number: (era * 400 + year) * 12 + month_from_march + 2,
        }
    }

    /// When it begins, Unix ms.
    #[must_use]
    pub const fn start_ms(self) -> i64 {
        let from_march = self.number - 2;
        let (year, month) = (from_march.div_euclid(12), from_march.rem_euclid(12));
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let day = of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5;
        (era * ERA_DAYS + day - DAYS_TO_1970).saturating_mul(DAY_MS)
    }

    /// The month that many months later.
    #[must_use]
    pub const fn plus(self, months: i64) -> Month {
        Month {
            number: self.number + months,
        }
    }

    /// The times in it.
    #[must_use]
    pub const fn span(self) -> Span {
        Span {
            from_ms: self.start_ms(),
            until_ms: self.plus(1).start_ms(),
        }
    }
}

/// `2026_03`, as in the names of partitions.
impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month) = (self.number.div_euclid(12), self.number.rem_euclid(12) + 1);
        write!(f, "{year:04}_{month:02}")
    }
}

/// Times, Unix ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first of them; the smallest number for all before.
    pub from_ms: i64,
    /// The first that is none of them; the greatest number for all after.
    pub until_ms: i64,
}

impl Span {
    /// Of a partition, by its bound as PostgreSQL writes it; `None` for the default partition, which has none.
    ///
    /// # Errors
    /// The text, if it is no range of numbers.
    pub fn of_bound(bound: &str) -> Result<Option<Span>, String> {
        if bound == "DEFAULT" {
            return Ok(None);
        }
        let number = |text: &str| match text {
            "MINVALUE" => Some(i64::MIN),
            "MAXVALUE" => Some(i64::MAX),
            quoted => quoted.trim_matches('\'').parse().ok(),
        };
        let read = || {
            let range = bound.strip_prefix("FOR VALUES FROM (")?.strip_suffix(')')?;
            let (from, until) = range.split_once(") TO (")?;
            Some(Span {
                from_ms: number(from)?,
                until_ms: number(until)?,
            })
        };
        read().map(Some).ok_or_else(|| bound.to_owned())
    }

    const fn overlaps(self, other: Span) -> bool {
        self.from_ms < other.until_ms && other.from_ms < self.until_ms
    }
}

/// The months from the present one to the last of `ahead` more that have no partition, the latest first:
/// what waits in the default partition is of the first ones, so that moving it cannot keep the others
/// from being made. A month of which another partition has a part is left out.
#[must_use]
pub fn missing(partitions: &[Span], now_ms: i64, ahead: i64) -> Vec<Month> {
    let now = Month::of(now_ms);
    let wanted = (0..=ahead).rev().map(|months| now.plus(months));
    wanted
        .filter(|month| !partitions.iter().any(|span| span.overlaps(month.span())))
        .collect()
}

/// Until when every time from now on has a partition, Unix ms: now, if now has none.
#[must_use]
pub fn reach_ms(partitions: &[Span], now_ms: i64) -> i64 {
    let mut reach_ms = now_ms;
    while let Some(next) = partitions
        .iter()
        .find(|span| span.from_ms <= reach_ms && reach_ms < span.until_ms)
    {
        reach_ms = next.until_ms;
    }
    reach_ms
}

const DAY_MS: i64 = 86_400_000;
/// Of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// From the first of March of the year 0.
const DAYS_TO_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn months_have_their_names_and_bounds() {
        for (at_ms, name, start_ms) in [
            (0, "1970_01", 0),
            (-1, "1969_12", -2_678_400_000),
            (951_782_400_000, "2000_02", 949_363_200_000),
            (1_709_164_800_000, "2024_02", 1_706_745_600_000),
            (4_107_542_399_999, "2100_02", 4_105_123_200_000),
            (1_796_083_199_999, "2026_11", 1_793_491_200_000),
            (1_796_083_200_000, "2026_12", 1_796_083_200_000),
        ] {
            let month = Month::of(at_ms);
            assert_eq!(
                (month.to_string(), month.start_ms()),
                (name.to_owned(), start_ms)
            );
        }
    }

    #[test]
    fn bounds_are_read_as_postgresql_writes_them() {
        let span = |from_ms, until_ms| Ok(Some(Span { from_ms, until_ms }));
        for (bound, read) in [
            ("DEFAULT", Ok(None)),
            ("FOR VALUES FROM (MINVALUE) TO ('5')", span(i64::MIN, 5)),
            ("FOR VALUES FROM ('-7') TO ('5')", span(-7, 5)),
            ("FOR VALUES FROM ('5') TO (MAXVALUE)", span(5, i64::MAX)),
            ("FOR VALUES IN ('5')", Err("FOR VALUES IN ('5')".to_owned())),
        ] {
            assert_eq!(Span::of_bound(bound), read);
        }
    }

    #[test]
    fn a_month_that_another_partition_has_in_part_is_left_out() {
        let now = Month::of(1_796_083_200_000);
        let hour = 3_600_000;
        let own = Span {
            from_ms: now.plus(1).start_ms() + hour,
            until_ms: now.plus(1).start_ms() + 2 * hour,
        };
        let found = missing(&[own], now.start_ms(), 2);
        assert_eq!(found, [now.plus(2), now]);
    }

    proptest! {
        #[test]
        fn a_time_lies_in_its_month(at_ms in any::<i64>()) {
            let month = Month::of(at_ms);
            let Span { from_ms, until_ms } = month.span();
            prop_assert!(from_ms <= at_ms && (at_ms < until_ms || until_ms == i64::MAX));
            if i64::MIN < from_ms && until_ms < i64::MAX {
                prop_assert_eq!(Month::of(from_ms), month);
                prop_assert_eq!(Month::of(until_ms), month.plus(1));
                let days = (until_ms - from_ms) / DAY_MS;
                prop_assert!((28..=31).contains(&days));
            }
        }

        #[test]
        fn later_months_have_greater_names(at_ms in 0_i64..200_000_000_000_000, months in 1_i64..1_000) {
            let month = Month::of(at_ms);
            prop_assert!(month.to_string() < month.plus(months).to_string());
        }

        /// Whatever months there are, once the missing ones are made none is missing, none overlaps another,
        /// and all times up to the last of them have one.
        #[test]
        fn what_is_missing_closes_every_hole(
            now_ms in -4_000_000_000_000_i64..8_000_000_000_000,
            ahead in 0_i64..15,
            first_ends in proptest::option::of(-3_i64..5),
            known in proptest::collection::btree_set(-4_i64..20, 0..12),
        ) {
            let now = Month::of(now_ms);
            let mut partitions: Vec<Span> = Vec::new();
            if let Some(months) = first_ends {
                let until_ms = now.plus(months).start_ms();
                partitions.push(Span { from_ms: i64::MIN, until_ms });
            }
            let known = known.into_iter().filter(|months| first_ends.is_none_or(|end| *months >= end));
            partitions.extend(known.map(|months| now.plus(months).span()));
            let made = missing(&partitions, now_ms, ahead);
            prop_assert!(made.is_sorted_by(|a, b| a > b));
            for month in made {
                prop_assert!(partitions.iter().all(|span| !span.overlaps(month.span())));
                partitions.push(month.span());
            }
            prop_assert_eq!(missing(&partitions, now_ms, ahead), []);
            let reach_ms = reach_ms(&partitions, now_ms);
            prop_assert!(reach_ms >= now.plus(ahead + 1).start_ms());
            prop_assert!(partitions.iter().all(|span| span.from_ms != reach_ms));
        }
    }
}
