use driftline_core::social::{AccountState, VerificationDigest, VerificationState};
use driftline_store::{
    LocalId, Store, local_ids,
    social::{
        local_account::{self, AccountTaken, LocalAccount},
        pending_account::{self, NewPending, NotVerified},
    },
};

use super::{account, create, hash, mail, name, new_account, read, write};
use crate::world::{START_MS, on_both};

fn state(byte: u8) -> VerificationState {
    VerificationState::new([byte; 32])
}

fn pending(text: &str, address: &str, byte: u8) -> NewPending {
    NewPending {
        name: name(text),
        mail: mail(address),
        passphrase: hash(byte),
        reason: "to read".to_owned(),
        locale: "ja".to_owned(),
        state: state(byte).digest(),
    }
}

fn add(store: &Store, new: &NewPending, now_ms: i64) -> Result<LocalId, AccountTaken> {
    let new = new.clone();
    write(store, local_ids::root(), move |tx| {
        pending_account::add(tx, &new, now_ms)
    })
}

fn verify(store: &Store, id: LocalId, byte: u8, now_ms: i64) -> Result<LocalAccount, NotVerified> {
    write(store, local_ids::root(), move |tx| {
        pending_account::verify(tx, id, Some(&state(byte)), true, now_ms)
    })
}

fn names(store: &Store, now_ms: i64) -> Vec<String> {
    let listed = read(store, move |tx| pending_account::list(tx, now_ms));
    listed.iter().map(|of| of.name.to_string()).collect()
}

#[test]
fn a_verified_address_makes_an_account_once() {
    on_both(|store| {
        let id = add(store, &pending("ann", "ann@mail.example", 1), START_MS).expect("pending");
        let other = add(store, &pending("ann2", "Ann@mail.example", 2), START_MS).expect("pending");
        assert_eq!(names(store, START_MS), ["ann", "ann2"]);
        let found = read(store, |tx| local_account::by_name(tx, &name("ann")));
        assert_eq!(found, None, "a pending account is no account");
        let created = verify(store, id, 1, START_MS + 5).expect("an account");
        assert_eq!(created.name, name("ann"));
        assert_eq!(created.state, AccountState::NotActivated);
        assert!(created.awaits_approval && created.reason == "to read");
        assert_eq!(created.mail_verified_at_ms, START_MS + 5);
        let kept = created.id;
        assert_eq!(kept, pending_account::account_id(id));
        let passphrase = read(store, move |tx| local_account::passphrase(tx, kept));
        assert_eq!(passphrase, Some(hash(1)));
        assert_eq!(
            verify(store, id, 1, START_MS + 6),
            Err(NotVerified::Invalid)
        );
        assert_eq!(
            verify(store, other, 2, START_MS + 6),
            Err(NotVerified::Invalid)
        );
        assert_eq!(names(store, START_MS), [] as [String; 0]);
    });
}

#[test]
fn wrong_states_are_counted() {
    on_both(|store| {
        let id = add(store, &pending("ann", "ann@mail.example", 1), START_MS).expect("pending");
        for _ in 0..VerificationDigest::MAX_ATTEMPTS {
            assert_eq!(names(store, START_MS), ["ann"]);
            assert_eq!(verify(store, id, 2, START_MS), Err(NotVerified::Invalid));
        }
        assert_eq!(verify(store, id, 1, START_MS), Err(NotVerified::Invalid));
        assert_eq!(names(store, START_MS), [] as [String; 0], "void");
        let again = pending("Ann", "ann@mail.example", 3);
        let id = add(store, &again, START_MS).expect("the name is free again");
        assert!(verify(store, id, 3, START_MS).is_ok());
    });
}

#[test]
fn a_pending_account_is_void_after_a_week() {
    on_both(|store| {
        let week_ms = VerificationDigest::LASTS_MS;
        let first = pending("ann", "ann@mail.example", 1);
        let id = add(store, &first, START_MS).expect("pending");
        let second = pending("ANN", "other@mail.example", 2);
        let before = START_MS + week_ms - 1;
        assert_eq!(add(store, &second, before), Err(AccountTaken::Name));
        let account = new_account("Ann");
        assert_eq!(create(store, &account), Err(AccountTaken::Name));
        let void = verify(store, id, 1, START_MS + week_ms);
        assert_eq!(void, Err(NotVerified::Invalid));
        assert_eq!(names(store, START_MS + week_ms), [] as [String; 0]);
        add(store, &second, START_MS + week_ms).expect("the name is free again");
        let rows = read(store, |tx| {
            let count = "select count(*) as rows from pending_account";
            Ok(tx.query_one(count, &[], |row| row.i64("rows"))?)
        });
        assert_eq!(rows, 1, "void ones are removed");
    });
}

#[test]
fn an_address_that_an_account_has_can_be_asked_for_and_not_had() {
    on_both(|store| {
        account(store, "ann");
        assert_eq!(
            add(store, &pending("ANN", "x@mail.example", 1), START_MS),
            Err(AccountTaken::Name)
        );
        let id = add(store, &pending("bob", "ann@mail.example", 1), START_MS).expect("pending");
        let taken = verify(store, id, 1, START_MS);
        assert_eq!(taken, Err(NotVerified::Taken(AccountTaken::Mail)));
        let nobody = verify(store, LocalId::new(7), 1, START_MS);
        assert_eq!(nobody, Err(NotVerified::Invalid));
    });
}

#[test]
fn a_state_that_is_mailed_again_replaces_the_one_before() {
    on_both(|store| {
        let id = add(store, &pending("ann", "ann@mail.example", 1), START_MS).expect("pending");
        let renew = |address: &'static str, byte| {
            write(store, local_ids::root(), move |tx| {
                pending_account::renew(tx, &mail(address), &state(byte).digest(), START_MS + 1)
            })
        };
        assert_eq!(renew("ben@mail.example", 2), None);
        let renewed = renew("ANN@mail.example", 2).expect("a pending account");
        assert_eq!((renewed.id, renewed.name), (id, name("ann")));
        assert_eq!(
            verify(store, id, 1, START_MS + 2),
            Err(NotVerified::Invalid)
        );
        assert!(verify(store, id, 2, START_MS + 2).is_ok());
        assert_eq!(renew("ann@mail.example", 3), None, "it is an account");
    });
}
