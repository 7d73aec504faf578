//! What counts add up to.

use driftline_core::{
    post::Counts,
    refresh::{EngagementWeights, RefreshHistory},
};
use proptest::prelude::*;

#[test]
fn counts_are_weighted_and_views_are_left_out() {
    let counts = Counts {
        replies: Some(1),
        boosts: Some(10),
        favourites: Some(100),
        quotes: None,
        views: Some(1_000_000),
    };
    assert_eq!(EngagementWeights::default().total(&counts), 111.0);
    let weights = EngagementWeights {
        boosts: 3.0,
        favourites: 0.5,
        ..EngagementWeights::default()
    };
    assert_eq!(weights.total(&counts), 81.0);
}

#[test]
fn weights_are_read_with_defaults() {
    let weights: EngagementWeights = serde_json::from_str(r#"{"replies": 2}"#).unwrap();
    assert_eq!((weights.replies, weights.boosts), (2.0, 1.0));
    assert!(serde_json::from_str::<EngagementWeights>(r#"{"views": 2}"#).is_err());
}

#[test]
fn a_refresh_moves_the_last_look_back() {
    let stored = RefreshHistory::stored(Some(0), 10, 1.0);
    assert_eq!(stored.growth(70, 4.0).unwrap().from_age_ms, 10);
    assert!(stored.growth(70, 4.0).unwrap().is_first);
    let refreshed = stored.refreshed(70, 4.0);
    assert_eq!((refreshed.refreshes, refreshed.refreshed_ms), (1, 70));
    assert_eq!(refreshed.before.map(|look| look.at_ms), Some(10));
    assert!(!refreshed.growth(90, 4.0).unwrap().is_first);
    assert_eq!(RefreshHistory::stored(None, 10, 1.0).growth(70, 4.0), None);
}

proptest! {
    #[test]
    fn a_total_is_a_number_from_zero_up(
        counts in proptest::array::uniform4(any::<Option<i64>>()),
        weight in any::<f64>(),
    ) {
        let [replies, boosts, favourites, quotes] = counts;
        let counts = Counts { replies, boosts, favourites, quotes, views: Some(1) };
        let weights = EngagementWeights { boosts: weight, ..EngagementWeights::default() };
        let total = weights.total(&counts);
        prop_assert!(total.is_finite() && total >= 0.0, "{total}");
    }
}
