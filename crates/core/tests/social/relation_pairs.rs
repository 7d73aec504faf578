//! What people do to each other's accounts, from every pair of relations.

use driftline_core::social::{
    Direction, Relation, RelationMove, RelationPair, RelationRefused, RelationStep,
};
use proptest::prelude::*;
use strum::VariantArray as _;

use Relation::{Blocking, Following, None, RequestingFollow};

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

fn pairs() -> impl Iterator<Item = RelationPair> {
    let all = Relation::VARIANTS.iter();
    all.clone().flat_map(move |outgoing| {
        all.clone().map(|incoming| RelationPair {
            outgoing: *outgoing,
            incoming: *incoming,
        })
    })
}

fn pair(outgoing: Relation, incoming: Relation) -> RelationPair {
    RelationPair { outgoing, incoming }
}

#[test]
fn every_move_is_made_of_legal_changes_in_order() {
    for start in pairs() {
        for done in MOVES {
            let Ok((end, steps)) = start.after(done) else {
                continue;
            };
            let mut now = start;
            for RelationStep {
                direction,
                from,
                to,
            } in steps
            {
                assert!(Relation::EDGES.contains(&(from, to)), "{from} to {to}");
                let changed = match direction {
                    Direction::Outgoing => &mut now.outgoing,
                    Direction::Incoming => &mut now.incoming,
                };
                assert_eq!(*changed, from, "{done:?} from {start:?}");
                *changed = to;
            }
            assert_eq!(now, end, "{done:?} from {start:?}");
        }
    }
}

#[test]
fn no_move_fails_for_want_of_an_edge() {
    for start in pairs() {
        for done in MOVES {
            let after = start.after(done);
            assert!(
                !matches!(after, Err(RelationRefused::NoEdge(_))),
                "{done:?} from {start:?}"
            );
        }
    }
}

#[test]
fn where_each_move_leads() {
    let request = RelationMove::Follow { auto_accept: false };
    let follow = RelationMove::Follow { auto_accept: true };
    for start in pairs() {
        let RelationPair { outgoing, incoming } = start;
        let followed = |reached: Relation| match (outgoing, incoming) {
            (Blocking, _) => Err(RelationRefused::Blocking),
            (_, Blocking) => Err(RelationRefused::BlockedBy),
            (Following, _) => Ok(start),
            _ => Ok(pair(reached, incoming)),
        };
        let keep = |of: Relation, kept: &[Relation]| if kept.contains(&of) { of } else { None };
        let expected = [
            (request, followed(RequestingFollow)),
            (follow, followed(Following)),
            (
                RelationMove::Unfollow,
                Ok(pair(keep(outgoing, &[Blocking]), incoming)),
            ),
            (
                RelationMove::AcceptFollow,
                match incoming {
                    RequestingFollow | Following => Ok(pair(outgoing, Following)),
                    _ => Err(RelationRefused::NotRequested),
                },
            ),
            (
                RelationMove::RejectFollow,
                match incoming {
                    RequestingFollow => Ok(pair(outgoing, None)),
                    _ => Err(RelationRefused::NotRequested),
                },
            ),
            (
                RelationMove::RemoveFollower,
                Ok(pair(outgoing, keep(incoming, &[Blocking]))),
            ),
            (
                RelationMove::Block,
                Ok(pair(Blocking, keep(incoming, &[Blocking]))),
            ),
            (
                RelationMove::Unblock,
                Ok(pair(
                    keep(outgoing, &[RequestingFollow, Following]),
                    incoming,
                )),
            ),
        ];
        for (done, expected) in expected {
            let after = start.after(done).map(|(end, _)| end);
            assert_eq!(after, expected, "{done:?} from {start:?}");
        }
    }
}

#[test]
fn what_has_no_edge_of_its_own_is_two_changes() {
    let steps = |start: RelationPair, done| start.after(done).unwrap().1;
    let out = |from, to| RelationStep {
        direction: Direction::Outgoing,
        from,
        to,
    };
    assert_eq!(
        steps(pair(None, None), RelationMove::Follow { auto_accept: true }),
        [
            out(None, RequestingFollow),
            out(RequestingFollow, Following)
        ]
    );
    assert_eq!(
        steps(pair(RequestingFollow, Following), RelationMove::Block),
        [
            out(RequestingFollow, None),
            out(None, Blocking),
            RelationStep {
                direction: Direction::Incoming,
                from: Following,
                to: None,
            },
        ]
    );
}

proptest! {
    /// Whatever two accounts do, nobody follows whom they block or who blocks them.
    #[test]
    fn nobody_follows_across_a_block(
        done in prop::collection::vec((any::<bool>(), 0..MOVES.len()), 0..40),
    ) {
        // As the first one sees it.
        let mut now = RelationPair::default();
        let turned = |of: RelationPair| pair(of.incoming, of.outgoing);
        for (is_first, at) in done {
            let seen = if is_first { now } else { turned(now) };
            let Ok((end, _)) = seen.after(MOVES[at]) else { continue };
            let again = end.after(MOVES[at]);
            if MOVES[at] != RelationMove::RejectFollow {
                prop_assert_eq!(again, Ok((end, Vec::new())));
            }
            now = if is_first { end } else { turned(end) };
            let is_follow = |of| matches!(of, RequestingFollow | Following);
            prop_assert!(now.outgoing != Blocking || !is_follow(now.incoming), "{:?}", now);
            prop_assert!(now.incoming != Blocking || !is_follow(now.outgoing), "{:?}", now);
        }
    }
}
