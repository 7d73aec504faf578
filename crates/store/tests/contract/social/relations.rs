use driftline_core::social::{
    Direction, Nickname, Profile, Relation, RelationMove, RelationPair, RelationRefused,
};
use driftline_store::{
    AccountId, LocalAccountId, LocalId, Root, Store, StoreError, account_id,
    social::{
        local_account, profile,
        relation::{self, ChangeRefused, FollowOptions, RelationRow},
    },
    timeline::Range,
};
use strum::VariantArray as _;

use super::{account, at_once, on_both_with_two, read, write};
use crate::world::START_MS;

on_both!(
    a_locked_account_is_asked_and_a_copy_never_is,
    nobody_acts_on_themselves_or_on_who_is_gone,
    followers_and_the_like_are_paged_by_their_last_change,
);

const MOVES: [RelationMove; 8] = [
    RelationMove::Follow { auto_accept: true },
    RelationMove::Follow { auto_accept: false },
    RelationMove::Unfollow,
    RelationMove::AcceptFollow,
    RelationMove::RejectFollow,
    RelationMove::RemoveFollower,
    RelationMove::Block,
    RelationMove::Unblock,
];

/// A copy of an account of an instance.
const COPY: AccountId = AccountId::new(5_000_000_000_000_000_000);
/// One that an earlier version stored, which counted from 1.
const OLD_COPY: AccountId = AccountId::new(5);

fn pair(outgoing: Relation, incoming: Relation) -> RelationPair {
    RelationPair { outgoing, incoming }
}

fn turned(of: RelationPair) -> RelationPair {
    pair(of.incoming, of.outgoing)
}

fn pairs() -> Vec<RelationPair> {
    let all = Relation::VARIANTS.iter().copied();
    let pairs = all
        .clone()
        .flat_map(|out| all.clone().map(move |back| pair(out, back)));
    let is_follow = |of| matches!(of, Relation::RequestingFollow | Relation::Following);
    let is_possible = |of: &RelationPair| {
        let across = |block, follow| block == Relation::Blocking && is_follow(follow);
        !across(of.outgoing, of.incoming) && !across(of.incoming, of.outgoing)
    };
    pairs.filter(is_possible).collect()
}

/// How the first stands to the second, and whether the second's row says the same.
fn seen(store: &Store, first: LocalAccountId, second: LocalAccountId) -> RelationPair {
    let [one, other] = read(store, move |tx| {
        let one = relation::to(tx, first, &[account_id(second)])?.pop();
        let other = relation::to(tx, second, &[account_id(first)])?.pop();
        Ok([one, other].map(|row| row.map(|row| row.pair).unwrap_or_default()))
    });
    assert_eq!(turned(other), one, "both rows say the same");
    one
}

/// Puts two accounts into a pair of relations, whatever they were to each other.
fn force(store: &Store, first: LocalAccountId, second: LocalAccountId, to: RelationPair) {
    let [a, b] = [first, second].map(|id| i64::try_from(id).expect("an ID"));
    write(store, Root::none(), move |tx| {
        tx.execute("delete from relation", &[])?;
        for (account, other, pair) in [(a, b, to), (b, a, turned(to))] {
            if pair != RelationPair::default() {
                tx.execute(
                    "insert into relation values ($1, $2, $3, 1, $4, 1, true, null, null)",
                    &[
                        &account,
                        &other,
                        &pair.outgoing.name(),
                        &pair.incoming.name(),
                    ],
                )?;
            }
        }
        Ok(())
    });
}

fn act(
    store: &Store,
    account: LocalAccountId,
    other: AccountId,
    done: RelationMove,
) -> Result<RelationRow, ChangeRefused> {
    write(store, relation::root(account, other), move |tx| {
        relation::change(tx, account, other, done, START_MS)
    })
}

#[test]
fn two_moves_at_once_are_as_one_after_the_other() {
    on_both_with_two(|one, other| {
        let (ann, bob) = (account(one, "ann"), account(one, "bob"));
        for start in pairs() {
            for first in MOVES {
                for second in MOVES {
                    force(one, ann, bob, start);
                    let (a, b) = at_once(
                        || act(one, ann, account_id(bob), first),
                        || act(other, bob, account_id(ann), second),
                    );
                    let end = seen(one, ann, bob);
                    let (a, b) = (a.map(|row| row.pair), b.map(|row| row.pair));
                    let ann_first = {
                        let x = start.after(first).map(|(end, _)| end);
                        let between = turned(x.unwrap_or(start));
                        let y = between.after(second).map(|(end, _)| end);
                        (x, y, turned(y.unwrap_or(between)))
                    };
                    let bob_first = {
                        let y = turned(start).after(second).map(|(end, _)| end);
                        let between = turned(y.unwrap_or(turned(start)));
                        let x = between.after(first).map(|(end, _)| end);
                        (x, y, x.unwrap_or(between))
                    };
                    let is = |(x, y, to): (
                        Result<RelationPair, RelationRefused>,
                        Result<RelationPair, RelationRefused>,
                        RelationPair,
                    )| {
                        a == x.map_err(ChangeRefused::from)
                            && b == y.map_err(ChangeRefused::from)
                            && end == to
                    };
                    assert!(
                        is(ann_first) || is(bob_first),
                        "{first:?} and {second:?} from {start:?}: {a:?} {b:?} {end:?}"
                    );
                }
            }
        }
    });
}

fn a_locked_account_is_asked_and_a_copy_never_is(store: &Store) {
    let (ann, bob) = (account(store, "ann"), account(store, "bob"));
    let follow = |other: AccountId, options| {
        let followed = write(store, relation::root(ann, other), move |tx| {
            relation::follow(tx, ann, other, options, START_MS)
        });
        followed.expect("a follow")
    };
    let options = FollowOptions {
        show_boosts: Some(false),
        notify: Some(true),
    };
    let followed = follow(account_id(bob), options);
    assert_eq!(followed.pair.outgoing, Relation::Following);
    assert_eq!(
        (followed.show_boosts, followed.notified.is_some()),
        (false, true)
    );
    let again = follow(account_id(bob), FollowOptions::default());
    assert_eq!(again, followed, "what is not said stays");
    let stored = read(store, move |tx| relation::to(tx, ann, &[account_id(bob)]));
    assert_eq!(stored, [followed]);

    act(store, ann, account_id(bob), RelationMove::Unfollow).expect("an end");
    write(store, local_account::root(bob), move |tx| {
        let locked = Profile {
            locked: true,
            ..Profile::default()
        };
        profile::set(tx, bob, &Nickname::default(), &locked, START_MS)
    })
    .expect("a profile");
    let asked = follow(account_id(bob), FollowOptions::default());
    assert_eq!(asked.pair.outgoing, Relation::RequestingFollow);
    assert_eq!(
        (asked.show_boosts, asked.notified.is_some()),
        (true, false),
        "a new follow"
    );

    let copy = follow(COPY, FollowOptions::default());
    assert_eq!(copy.pair, pair(Relation::Following, Relation::None));
    let old = follow(OLD_COPY, FollowOptions::default());
    assert_eq!(old.pair, copy.pair);
    act(store, ann, COPY, RelationMove::Block).expect("a block");
    let rows = read(store, |tx| {
        let count = "select count(*) as rows from relation";
        Ok(tx.query_one(count, &[], |row| row.i64("rows"))?)
    });
    assert_eq!(
        rows, 4,
        "two for two accounts of this server, one for each copy"
    );
}

fn nobody_acts_on_themselves_or_on_who_is_gone(store: &Store) {
    let ann = account(store, "ann");
    let own = act(store, ann, account_id(ann), RelationMove::Block);
    assert_eq!(own, Err(ChangeRefused::Oneself));
    for nobody in [
        LocalAccountId::new(1 << 32),
        LocalAccountId::new(ann.raw() + 1),
    ] {
        let nobody = account_id(nobody);
        let refused = store.write_blocking(relation::root(ann, nobody), move |tx| {
            relation::change(tx, ann, nobody, RelationMove::Block, START_MS)
        });
        assert_eq!(refused, Err(StoreError::NoAccount));
    }
}

fn followers_and_the_like_are_paged_by_their_last_change(store: &Store) {
    let ann = account(store, "ann");
    let others: Vec<LocalAccountId> = (0..5)
        .map(|n| account(store, &format!("other{n}")))
        .collect();
    let follow = RelationMove::Follow { auto_accept: true };
    for other in &others {
        act(store, *other, account_id(ann), follow).expect("a follow");
    }
    act(store, ann, account_id(others[0]), follow).expect("a follow");
    act(store, ann, account_id(others[1]), RelationMove::Block).expect("a block");
    let page = |direction, relation, range: Range| {
        let rows = read(store, move |tx| {
            relation::page(tx, ann, direction, relation, &range)
        });
        let numbers = rows.iter().map(|row| {
            let at = others.iter().position(|id| account_id(*id) == row.other);
            (at.expect("one of them"), row.incoming_id)
        });
        numbers.collect::<Vec<(usize, LocalId)>>()
    };
    let all = Range {
        limit: 10,
        ..Range::default()
    };
    let numbers = |rows: &[(usize, LocalId)]| rows.iter().map(|row| row.0).collect::<Vec<_>>();
    let followers = page(Direction::Incoming, Relation::Following, all);
    // The block ended the second one's follow.
    assert_eq!(numbers(&followers), [4, 3, 2, 0]);
    assert_eq!(
        numbers(&page(Direction::Outgoing, Relation::Following, all)),
        [0]
    );
    assert_eq!(
        numbers(&page(Direction::Outgoing, Relation::Blocking, all)),
        [1]
    );
    let of = |at: usize| Some(followers[at].1);
    let (min, limit) = (of(3), 2);
    let (below, above) = (
        Range { max: of(1), ..all },
        Range {
            since: of(2),
            ..all
        },
    );
    for (range, expected) in [
        (Range { limit, ..all }, vec![4, 3]),
        (below, vec![2, 0]),
        (above, vec![4, 3]),
        (Range { min, limit, ..all }, vec![3, 2]),
    ] {
        let found = page(Direction::Incoming, Relation::Following, range);
        assert_eq!(numbers(&found), expected, "{range:?}");
    }
    let counted = read(store, move |tx| {
        relation::count(tx, ann, Direction::Incoming, Relation::Following)
    });
    assert_eq!(counted, 4);
}
