//! Typed IDs: what holds for every entity, and what is refused.

use std::collections::HashSet;

use driftline_id::{Id, IdRangeError, ParseIdError};
use proptest::prelude::*;

struct Post;

const FIRST: Id<Post> = Id::new(1);

#[test]
fn ids_need_nothing_of_their_entity() {
    fn check<I: Copy + Ord + std::hash::Hash + std::fmt::Debug + Send + Sync>(_: I) {}
    check(Id::<std::rc::Rc<Post>>::new(1));
    let copy = FIRST;
    assert_eq!(FIRST, copy);
    assert!(FIRST < Id::new(2));
    assert_eq!(HashSet::from([FIRST, copy]).len(), 1);
    assert_eq!(size_of::<Id<Post>>(), 8);
}

#[test]
fn ids_print_and_parse_as_decimal() {
    assert_eq!(format!("{FIRST} {FIRST:?} {FIRST:>3}"), "1 Id(1)   1");
    assert_eq!(
        "18446744073709551615".parse(),
        Ok(Id::<Post>::new(u64::MAX))
    );
    assert_eq!("01".parse::<Id<Post>>(), Err(ParseIdError::LeadingZero));
    assert_eq!("".parse::<Id<Post>>(), Err(ParseIdError::Empty));
}

#[test]
fn signed_integers_are_checked_both_ways() {
    assert_eq!(Id::<Post>::try_from(i64::MAX), Ok(Id::new((1 << 63) - 1)));
    assert_eq!(
        Id::<Post>::try_from(-1_i64),
        Err(IdRangeError::Negative { value: -1 })
    );
    assert_eq!(i64::try_from(Id::<Post>::new((1 << 63) - 1)), Ok(i64::MAX));
    assert_eq!(
        i64::try_from(Id::<Post>::new(1 << 63)),
        Err(IdRangeError::AboveSigned { raw: 1 << 63 })
    );
}

proptest! {
    #[test]
    fn conversions_round_trip(raw: u64) {
        let id = Id::<Post>::from(raw);
        prop_assert_eq!(u64::from(id), raw);
        prop_assert_eq!(id.raw(), raw);
        prop_assert_eq!(id.to_string().parse(), Ok(id));
    }
}
