//! A post's refreshes so far.

use driftline_core::{post::Counts, refresh::RefreshHistory};

#[test]
fn counts_add_up_and_views_are_left_out() {
    let counts = Counts {
        replies: Some(1),
        boosts: Some(10),
        favourites: Some(100),
        quotes: None,
        views: Some(1_000_000),
    };
    assert_eq!(counts.total(), 111);
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
