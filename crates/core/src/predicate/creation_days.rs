use jiff::{Timestamp, civil::Date, tz::Offset};

use super::condition::{Condition, When};

/// A range of days in UTC on which posts were created, as an index knows them.
///
/// Days before 1970 count as the first of these days, and days after 2099 as the last, so that an open range has few
/// labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreationDays {
    first: Date,
    /// The last day. The range is empty if it is before the first.
    last: Date,
}

impl CreationDays {
    /// The day of a time in Unix ms.
    pub fn containing(time_ms: i64) -> Self {
        let time = Timestamp::from_millisecond(time_ms.clamp(0, LAST_MS)).unwrap_or_default();
        Self::new(date(time), date(time))
    }

    /// The days on which all posts that meet a condition were created. `None` if it does not limit them.
    pub fn required_by(condition: &Condition) -> Option<Self> {
        let (first, last) = match condition {
            Condition::After(When::Date(date)) => (date.tomorrow().unwrap_or(*date), LAST_DAY),
            Condition::After(When::Time(time)) => (date(*time), LAST_DAY),
            Condition::Before(When::Date(date)) => (FIRST_DAY, date.yesterday().unwrap_or(*date)),
            Condition::Before(When::Time(time)) => (FIRST_DAY, date(*time)),
            Condition::During(date) => (*date, *date),
            _ => return None,
        };
        Some(Self::new(first, last))
    }

    /// The days that are in both ranges.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self {
            first: self.first.max(other.first),
            last: self.last.min(other.last),
        }
    }

    /// The labels of a post that was created on the first day.
    pub fn post_labels(self) -> impl Iterator<Item = String> {
        SPANS.into_iter().map(move |span| span.label(self.first))
    }

    /// Labels of which each post has one that was created on these days: those of whole decades, years, months and
    /// days. There are at most 40, so they may name more days than these at both ends.
    pub fn labels(self) -> Vec<String> {
        let mut labels = Vec::new();
        for finest in SPANS.into_iter().rev() {
            labels = Self::new(finest.first(self.first), finest.last(self.last)).cover();
            if labels.len() <= MAX_LABELS {
                break;
            }
        }
        labels
    }

    fn new(first: Date, last: Date) -> Self {
        Self {
            first: first.clamp(FIRST_DAY, LAST_DAY),
            last: last.clamp(FIRST_DAY, LAST_DAY),
        }
    }

    /// The labels of the longest spans that together are these days.
    fn cover(self) -> Vec<String> {
        let mut labels = Vec::new();
        let mut next = self.first;
        while next <= self.last {
            let fits = |span: &Span| span.first(next) == next && span.last(next) <= self.last;
            let span = SPANS.into_iter().find(fits).unwrap_or(Span::Day);
            labels.push(span.label(next));
            let Ok(day) = span.last(next).tomorrow() else {
                break;
            };
            next = day;
        }
        labels
    }
}

/// A span of days with a label.
#[derive(Debug, Clone, Copy)]
enum Span {
    Decade,
    Year,
    Month,
    Day,
}

/// All spans, the longest first.
const SPANS: [Span; 4] = [Span::Decade, Span::Year, Span::Month, Span::Day];

impl Span {
    /// The first day of the span that contains a day.
    fn first(self, day: Date) -> Date {
        match self {
            Self::Decade => Date::new(day.year() - day.year() % 10, 1, 1).unwrap_or(day),
            Self::Year => day.first_of_year(),
            Self::Month => day.first_of_month(),
            Self::Day => day,
        }
    }

    /// The last day of the span that contains a day.
    fn last(self, day: Date) -> Date {
        match self {
            Self::Decade => Date::new(day.year() - day.year() % 10 + 9, 12, 31).unwrap_or(day),
            Self::Year => day.last_of_year(),
            Self::Month => day.last_of_month(),
            Self::Day => day,
        }
    }

    /// The label of the span that contains a day: `created:202`, `created:2026`, `created:2026-01` or
    /// `created:2026-01-31`.
    fn label(self, day: Date) -> String {
        let text = day.to_string();
        let length = match self {
            Self::Decade => 3,
            Self::Year => 4,
            Self::Month => 7,
            Self::Day => text.len(),
        };
        format!("created:{}", &text[..length])
    }
}

fn date(time: Timestamp) -> Date {
    Offset::UTC.to_datetime(time).date()
}

const FIRST_DAY: Date = Date::constant(1970, 1, 1);
const LAST_DAY: Date = Date::constant(2099, 12, 31);
/// The last millisecond of the last day.
const LAST_MS: i64 = 4_102_444_799_999;
/// The largest number of labels of a range.
const MAX_LABELS: usize = 40;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::predicate::{Matcher, PostFacts, Predicate, Term, Tree};

    fn day_or_time() -> impl Strategy<Value = When> {
        let near = 1_760_000_000_000..1_780_000_000_000_i64;
        let times = prop_oneof![
            near.clone(),
            near,
            -100_000_000_000_000..200_000_000_000_000_i64
        ];
        let time = times.prop_map(|ms| Timestamp::from_millisecond(ms).unwrap());
        (time, any::<bool>()).prop_map(|(time, is_date)| match is_date {
            true => When::Date(date(time)),
            false => When::Time(time),
        })
    }

    fn condition() -> impl Strategy<Value = Condition> {
        (0..3, day_or_time()).prop_map(|(kind, when)| match (kind, when) {
            (0, when) => Condition::After(when),
            (1, when) => Condition::Before(when),
            (_, When::Date(date)) => Condition::During(date),
            (_, When::Time(time)) => Condition::During(date(time)),
        })
    }

    fn is_met(condition: &Condition, time_ms: i64) -> bool {
        let tree = Tree::atom(Term::Condition(condition.clone()));
        let predicate = Predicate::new(tree, crate::predicate::Folding::NEWEST).unwrap();
        Matcher::new(&predicate).matches(&PostFacts {
            created_at_ms: Some(time_ms),
            ..PostFacts::bare(1, "")
        })
    }

    proptest! {
        #[test]
        fn posts_that_meet_conditions_have_one_of_the_labels(
            one in condition(),
            other in condition(),
            times in prop::collection::vec(-100_000_000_000_000..200_000_000_000_000_i64, 8),
            around in -200_000_000..200_000_000_i64,
        ) {
            let [first, second] = [&one, &other].map(|of| CreationDays::required_by(of).unwrap());
            for days in [first, first.intersection(second)] {
                prop_assert!(days.labels().len() <= MAX_LABELS);
            }
            let ends = [&one, &other].map(|of| match of {
                Condition::After(When::Time(time)) | Condition::Before(When::Time(time)) => time.as_millisecond(),
                Condition::After(When::Date(date)) | Condition::Before(When::Date(date)) | Condition::During(date) => {
                    Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).unwrap().as_millisecond()
                }
                _ => 0,
            });
            let near = ends.into_iter().flat_map(|end| [end - 1, end, end + 1, end + around, end + 86_400_000]);
            for time_ms in near.chain(times).chain([i64::MIN, i64::MAX]) {
                let own: Vec<String> = CreationDays::containing(time_ms).post_labels().collect();
                let has_one = |days: CreationDays| days.labels().iter().any(|label| own.contains(label));
                if is_met(&one, time_ms) {
                    prop_assert!(has_one(first), "{one:?} {time_ms}");
                    if is_met(&other, time_ms) {
                        prop_assert!(has_one(first.intersection(second)), "{one:?} {other:?} {time_ms}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_range_has_the_labels_of_the_longest_spans() {
        let labels = |first: Date, last: Date| {
            let labels = CreationDays::new(first, last).labels();
            labels.join(" ").replace("created:", "")
        };
        let day = Date::constant;
        assert_eq!(labels(day(2026, 1, 31), day(2026, 1, 31)), "2026-01-31");
        assert_eq!(labels(day(2026, 1, 1), day(2026, 12, 31)), "2026");
        assert_eq!(
            labels(day(2025, 12, 31), day(2026, 2, 1)),
            "2025-12-31 2026-01 2026-02-01"
        );
        assert_eq!(
            labels(day(2026, 11, 30), day(2200, 1, 1)),
            "2026-11-30 2026-12 2027 2028 2029 203 204 205 206 207 208 209"
        );
        // 58 days are two months.
        assert_eq!(labels(day(2026, 1, 2), day(2026, 2, 27)), "2026-01 2026-02");
        assert_eq!(labels(day(2026, 1, 2), day(2026, 1, 1)), "");
    }
}
