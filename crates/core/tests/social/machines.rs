//! Both machines: every ordered pair of states, legal and not.

use driftline_core::social::{
    AccountAction, AccountState, LogInRefused, Relation, RelationChangeError, Role,
    StateChangeError,
};
use strum::VariantArray as _;

#[test]
fn an_account_changes_along_the_seven_edges_alone() {
    use AccountState::{Active, Frozen, NotActivated, Silenced};
    // Written out once more: rows are from, columns to, in the order of `states`.
    let states = [NotActivated, Active, Frozen, Silenced];
    let legal = [
        [false, true, false, false],
        [false, false, true, true],
        [false, true, false, true],
        [false, true, true, false],
    ];
    assert_eq!(states.len(), AccountState::VARIANTS.len());
    for (row, from) in states.into_iter().enumerate() {
        for (column, to) in states.into_iter().enumerate() {
            let expected = match legal[row][column] {
                true => Ok(to),
                false => Err(StateChangeError { from, to }),
            };
            assert_eq!(from.change_to(to), expected, "{from} to {to}");
        }
    }
}

#[test]
fn a_relation_changes_along_the_seven_edges_alone() {
    use Relation::{Blocking, Following, None, RequestingFollow};
    let relations = [None, RequestingFollow, Following, Blocking];
    let legal = [
        [false, true, false, true],
        [true, false, true, false],
        [true, false, false, true],
        [true, false, false, false],
    ];
    assert_eq!(relations.len(), Relation::VARIANTS.len());
    for (row, from) in relations.into_iter().enumerate() {
        for (column, to) in relations.into_iter().enumerate() {
            let expected = match legal[row][column] {
                true => Ok(to),
                false => Err(RelationChangeError { from, to }),
            };
            assert_eq!(from.change_to(to), expected, "{from} to {to}");
        }
    }
}

#[test]
fn what_each_state_allows() {
    use AccountAction::{Act, LogIn, Post, PostPublicly, UseTokens};
    for (state, allowed) in [
        (AccountState::NotActivated, vec![LogIn]),
        (
            AccountState::Active,
            vec![LogIn, UseTokens, Act, Post, PostPublicly],
        ),
        (AccountState::Frozen, vec![]),
        (AccountState::Silenced, vec![LogIn, UseTokens, Act, Post]),
    ] {
        for action in AccountAction::VARIANTS {
            let expected = allowed.contains(action);
            assert_eq!(state.allows(*action), expected, "{state}: {action:?}");
        }
    }
}

#[test]
fn a_log_in_moves_along_an_edge_or_stays() {
    use AccountState::{Active, Frozen, NotActivated, Silenced};
    for (state, awaits, after) in [
        (NotActivated, false, Ok(Active)),
        (NotActivated, true, Err(LogInRefused::AwaitsApproval)),
        (Active, false, Ok(Active)),
        (Silenced, false, Ok(Silenced)),
        (Frozen, false, Err(LogInRefused::Frozen)),
    ] {
        assert_eq!(state.after_log_in(awaits), after, "{state}");
        if let Ok(after) = after {
            assert!(after == state || state.change_to(after).is_ok());
            assert!(state.allows(AccountAction::LogIn));
        }
    }
}

#[test]
fn names_in_the_store_can_be_read_back() {
    for state in AccountState::VARIANTS {
        assert_eq!(state.name().parse(), Ok(*state));
    }
    for relation in Relation::VARIANTS {
        assert_eq!(relation.name().parse(), Ok(*relation));
    }
    for role in Role::VARIANTS {
        assert_eq!(role.name().parse(), Ok(*role));
    }
    assert!(Role::Member < Role::Moderator && Role::Moderator < Role::Admin);
}
