use driftline_core::social::{AccountState, LogInRefused, StateChangeError};
use driftline_store::{
    LocalAccountId, Root, Store,
    social::local_account::{self, LogInFailed},
};
use strum::VariantArray as _;

use super::{account, at_once, hash, on_both_with_two, read, write};
use crate::world::START_MS;

on_both!(
    the_first_log_in_activates_what_waits_for_nothing,
    a_passphrase_that_was_replaced_while_it_was_compared_opens_nothing,
    approval_is_over_once_an_account_is_active,
);

/// Puts an account into a state, whatever it was.
fn force(store: &Store, id: LocalAccountId, state: AccountState) {
    let raw = i64::try_from(id).expect("an ID");
    write(store, Root::none(), move |tx| {
        let set = "update local_account set state = $2 where id = $1";
        Ok(tx.execute(set, &[&raw, &state.name()])?)
    });
}

fn state(store: &Store, id: LocalAccountId) -> AccountState {
    let found = read(store, move |tx| local_account::by_id(tx, id));
    found.expect("an account").state
}

fn change(
    store: &Store,
    id: LocalAccountId,
    to: AccountState,
) -> Result<AccountState, StateChangeError> {
    write(store, local_account::root(id), move |tx| {
        local_account::change_state(tx, id, to)
    })
}

#[test]
fn two_changes_at_once_are_as_one_after_the_other() {
    on_both_with_two(|one, other| {
        let id = account(one, "ann");
        for from in AccountState::VARIANTS.iter().copied() {
            for first in AccountState::VARIANTS.iter().copied() {
                for second in AccountState::VARIANTS.iter().copied() {
                    force(one, id, from);
                    let (a, b) = at_once(|| change(one, id, first), || change(other, id, second));
                    let end = state(one, id);
                    let serial = |first: AccountState, second: AccountState| {
                        let x = from.change_to(first);
                        let between = x.unwrap_or(from);
                        let y = between.change_to(second);
                        let end = y.unwrap_or(between);
                        (x.map(|_| from), y.map(|_| between), end)
                    };
                    let (x, y, ab) = serial(first, second);
                    let (v, u, ba) = serial(second, first);
                    assert!(
                        (a, b, end) == (x, y, ab) || (a, b, end) == (u, v, ba),
                        "{from} to {first} and {second}: {a:?} {b:?} {end}"
                    );
                }
            }
        }
    });
}

fn the_first_log_in_activates_what_waits_for_nothing(store: &Store) {
    let id = account(store, "ann");
    let log_in = move |now_ms, rehashed: bool| {
        let hash = rehashed.then(|| hash(9));
        write(store, local_account::root(id), move |tx| {
            let verified = local_account::passphrase(tx, id)?.expect("one");
            local_account::log_in(tx, id, &verified, hash.as_ref(), now_ms)
        })
    };
    let set_awaits = |awaits: bool| {
        write(store, Root::none(), move |tx| {
            Ok(tx.execute("update local_account set awaits_approval = $1", &[&awaits])?)
        })
    };
    let known = || {
        read(store, move |tx| {
            Ok((
                local_account::by_id(tx, id)?,
                local_account::passphrase(tx, id)?,
            ))
        })
    };
    set_awaits(true);
    let awaits = Err(LogInFailed::Refused(LogInRefused::AwaitsApproval));
    assert_eq!(log_in(START_MS, true), awaits);
    let (found, passphrase) = known();
    assert_eq!(found.expect("an account").last_login_at_ms, None);
    assert_eq!(passphrase, Some(hash(1)));
    set_awaits(false);
    assert_eq!(log_in(START_MS + 1, false), Ok(AccountState::Active));
    let (found, passphrase) = known();
    assert_eq!(
        found.expect("an account").last_login_at_ms,
        Some(START_MS + 1)
    );
    assert_eq!(passphrase, Some(hash(1)));
    assert_eq!(log_in(START_MS + 2, true), Ok(AccountState::Active));
    assert_eq!(known().1, Some(hash(9)));
    change(store, id, AccountState::Silenced).expect("an edge");
    assert_eq!(log_in(START_MS + 3, false), Ok(AccountState::Silenced));
    change(store, id, AccountState::Frozen).expect("an edge");
    let frozen = Err(LogInFailed::Refused(LogInRefused::Frozen));
    assert_eq!(log_in(START_MS + 4, true), frozen);
}

fn a_passphrase_that_was_replaced_while_it_was_compared_opens_nothing(store: &Store) {
    let id = account(store, "ann");
    // Somebody has read the hash, and compares; the operator replaces the passphrase meanwhile.
    let verified = read(store, move |tx| local_account::passphrase(tx, id)).expect("one");
    write(store, local_account::root(id), move |tx| {
        local_account::set_passphrase(tx, id, &hash(2))
    });
    let logged_in = write(store, local_account::root(id), move |tx| {
        local_account::log_in(tx, id, &verified, Some(&hash(3)), START_MS)
    });
    assert_eq!(logged_in, Err(LogInFailed::PassphraseChanged));
    let (found, passphrase) = read(store, move |tx| {
        let found = local_account::by_id(tx, id)?.expect("an account");
        Ok((found, local_account::passphrase(tx, id)?))
    });
    assert_eq!(passphrase, Some(hash(2)), "the replacement stays");
    assert_eq!(found.last_login_at_ms, None);
    assert_eq!(found.state, AccountState::NotActivated);
}

fn approval_is_over_once_an_account_is_active(store: &Store) {
    let mut new = super::new_account("ann");
    new.awaits_approval = true;
    let created = super::create(store, &new).expect("an account");
    assert!(created.awaits_approval);
    change(store, created.id, AccountState::Active).expect("an edge");
    let id = created.id;
    let found = read(store, move |tx| local_account::by_id(tx, id));
    assert!(!found.expect("an account").awaits_approval);
}
