//! Each boundary of the table, to the ms.

use driftline_core::refresh::{AgeBand, AgeTable, AgeTableError, Due};
use proptest::prelude::*;

const CREATED_AT_MS: i64 = 1_700_000_000_000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

#[test]
fn every_boundary_to_the_ms() {
    let table = AgeTable::default();
    let delay_at = |age_ms: i64| match table.due(Some(CREATED_AT_MS), CREATED_AT_MS + age_ms) {
        Due::At(due_ms) => Some(due_ms - CREATED_AT_MS - age_ms),
        Due::Retired => None,
        Due::Never => panic!("never"),
    };
    let intervals = [
        3 * MINUTE_MS,
        10 * MINUTE_MS,
        2 * HOUR_MS,
        12 * HOUR_MS,
        3 * DAY_MS,
    ];
    let ends = [18 * MINUTE_MS, HOUR_MS, DAY_MS, 7 * DAY_MS, 30 * DAY_MS];
    assert_eq!(delay_at(0), Some(intervals[0]));
    for (at, end) in ends.into_iter().enumerate() {
        assert_eq!(delay_at(end - 1), Some(intervals[at]));
        assert_eq!(delay_at(end), intervals.get(at + 1).copied());
        assert_eq!(delay_at(end + 1), intervals.get(at + 1).copied());
    }
}

#[test]
fn births_that_are_unknown_or_to_come() {
    let table = AgeTable::default();
    assert_eq!(table.due(None, CREATED_AT_MS), Due::Never);
    let skew_ms = 5 * MINUTE_MS;
    let due = |ahead_ms| table.due(Some(CREATED_AT_MS + ahead_ms), CREATED_AT_MS);
    assert_eq!(due(1), Due::At(CREATED_AT_MS + 3 * MINUTE_MS));
    assert_eq!(due(skew_ms), Due::At(CREATED_AT_MS + 3 * MINUTE_MS));
    assert_eq!(due(skew_ms + 1), Due::Never);
    assert_eq!(due(i64::MAX - CREATED_AT_MS), Due::Never);
    assert_eq!(table.due(Some(i64::MIN), CREATED_AT_MS), Due::Retired);
}

#[test]
fn tables_that_make_no_sense() {
    let table = |bands: &[(i64, i64)]| {
        let bands = bands
            .iter()
            .map(|&(below_ms, every_ms)| AgeBand { below_ms, every_ms });
        AgeTable::new(bands.collect(), 0).map(|_| ())
    };
    assert_eq!(table(&[]), Err(AgeTableError::Empty));
    assert_eq!(table(&[(0, 1)]), Err(AgeTableError::Band { at: 0 }));
    assert_eq!(table(&[(5, 0)]), Err(AgeTableError::Band { at: 0 }));
    assert_eq!(table(&[(5, 1), (5, 2)]), Err(AgeTableError::Band { at: 1 }));
    assert_eq!(
        table(&[(5, 2), (6, 1)]),
        Err(AgeTableError::Shrinks { at: 1 })
    );
    assert_eq!(table(&[(5, 2), (6, 2)]), Ok(()));
}

proptest! {
    /// Younger posts are never due later after a refresh than older ones.
    #[test]
    fn the_delay_grows_with_age(younger in 0..40 * DAY_MS, more in 0..40 * DAY_MS) {
        let table = AgeTable::default();
        let rank = |age_ms| table.every_ms(age_ms).unwrap_or(i64::MAX);
        prop_assert!(rank(younger) <= rank(younger + more));
    }
}
