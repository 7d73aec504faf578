use driftline_store::{
    AccountId, Store, account_id,
    social::{local_account, mute},
    timeline::Range,
};

use super::{account, read, write};
use crate::world::START_MS;

on_both!(a_mute_ends_by_itself_or_by_hand);

fn a_mute_ends_by_itself_or_by_hand(store: &Store) {
    let ann = account(store, "ann");
    let [one, other] = [5_000_000_000_000_000_001, 5_000_000_000_000_000_002].map(AccountId::new);
    let set = |store: &Store, who, until_ms, now_ms| {
        write(store, local_account::root(ann), move |tx| {
            mute::set(tx, ann, who, true, until_ms, now_ms)
        })
    };
    let muted = |now_ms| {
        let page = Range {
            limit: 10,
            ..Range::default()
        };
        let (some, all) = read(store, move |tx| {
            let some = mute::of(tx, ann, &[one, other], now_ms)?;
            assert_eq!(mute::count(tx, ann, now_ms)?, some.len() as i64);
            Ok((some, mute::page(tx, ann, &page, now_ms)?))
        });
        assert_eq!(some.len(), all.len());
        all.iter()
            .map(|mute| (mute.other, mute.id))
            .collect::<Vec<_>>()
    };
    assert!(!set(store, account_id(ann), None, START_MS), "oneself");
    assert!(set(store, one, None, START_MS));
    assert!(set(store, other, Some(START_MS + 10), START_MS));
    let both = muted(START_MS + 9);
    assert_eq!(
        both.iter().map(|mute| mute.0).collect::<Vec<_>>(),
        [other, one]
    );
    assert_eq!(muted(START_MS + 10), both[1..]);
    // Muted for longer before it ends, it stays where it was in pages; afterwards it is new.
    assert!(set(store, other, Some(START_MS + 20), START_MS + 9));
    assert_eq!(muted(START_MS + 19), both);
    assert!(set(store, other, None, START_MS + 20));
    let again = muted(START_MS + 21);
    assert!(again[0].0 == other && again[0].1 > both[0].1);
    for expected in [true, false] {
        let removed = write(store, local_account::root(ann), move |tx| {
            mute::remove(tx, ann, one)
        });
        assert_eq!(removed, expected);
    }
    assert_eq!(muted(START_MS + 21).len(), 1);
}
