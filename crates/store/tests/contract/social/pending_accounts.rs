use driftline_core::social::{AccountState, VerificationDigest, VerificationState};
use driftline_id::{Id, Layout};
use driftline_store::{
    LocalAccountId, LocalId, Root, Store, local_ids,
    social::{
        SecretHash,
        access_token::{self, NewToken},
        local_account::{self, AccountTaken, LocalAccount},
        log_ins,
        pending_account::{self, NewPending, NotVerified},
    },
};

use super::{account, create, hash, mail, name, new_account, read, write};
use crate::world::START_MS;

on_both!(
    a_verified_address_makes_an_account_once,
    an_account_takes_its_id_when_it_is_created_and_keeps_the_tokens_of_its_sign_up,
    a_sign_up_is_corrected_by_whoever_knows_its_passphrase,
    void_sign_ups_go_with_the_tokens_of_their_apps,
    a_pending_account_is_void_after_a_week,
    an_address_that_an_account_has_can_be_asked_for_and_not_had,
    a_state_that_is_mailed_again_replaces_the_one_before,
);

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
        continue_to: Some("/oauth/authorize?client_id=1".to_owned()),
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
        let verified = pending_account::verify(tx, id, Some(&state(byte)), true, now_ms)?;
        Ok(verified.map(|verified| verified.account))
    })
}

/// A token that an app was given at a sign-up.
fn token(store: &Store, pending: LocalId, byte: u8) -> SecretHash {
    let hash = SecretHash::new([byte; 32]);
    let new = NewToken {
        account: Some(pending_account::token_account(pending)),
        hash,
        app: Id::new(1),
        scopes: "read".to_owned(),
    };
    write(store, Root::none(), move |tx| {
        access_token::add(tx, &new, START_MS)
    });
    hash
}

/// Whom a token acts for that names a pending account.
fn holder(store: &Store, pending: LocalId, hash: SecretHash) -> Option<LocalAccountId> {
    let named = pending_account::token_account(pending);
    let found = read(store, move |tx| {
        access_token::find_with_holder(tx, named, &hash)
    });
    found.map(|(token, holder)| {
        assert_eq!(token.account, Some(holder.id));
        holder.id
    })
}

fn tokens(store: &Store) -> i64 {
    read(store, |tx| {
        let count = "select count(*) as rows from access_token";
        Ok(tx.query_one(count, &[], |row| row.i64("rows"))?)
    })
}

fn names(store: &Store, now_ms: i64) -> Vec<String> {
    let listed = read(store, move |tx| pending_account::list(tx, now_ms));
    listed.iter().map(|of| of.name.to_string()).collect()
}

fn a_verified_address_makes_an_account_once(store: &Store) {
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
}

fn an_account_takes_its_id_when_it_is_created_and_keeps_the_tokens_of_its_sign_up(store: &Store) {
    let id = add(store, &pending("ann", "ann@mail.example", 1), START_MS).expect("pending");
    let before = account(store, "ben");
    let hash = token(store, id, 9);
    assert_eq!(holder(store, id, hash), None);
    let later_ms = START_MS + 3_600_000;
    let ann = verify(store, id, 1, later_ms).expect("an account");
    assert_eq!(ann.created_at_ms, later_ms);
    let first = Layout::PULSATE.smallest_at(later_ms);
    assert_eq!(u128::from(u64::from(ann.id)), first);
    assert!(
        u64::from(ann.id) > u64::from(before),
        "in the order of creation"
    );
    assert_eq!(holder(store, id, hash), Some(ann.id));
    assert_eq!(holder(store, LocalId::new(7), hash), None);
    let ended = ann.id;
    write(store, local_account::root(ended), move |tx| {
        log_ins::end_all(tx, ended)
    });
    assert_eq!(holder(store, id, hash), None);
}

fn a_sign_up_is_corrected_by_whoever_knows_its_passphrase(store: &Store) {
    let id = add(store, &pending("ann", "amn@mail.example", 1), START_MS).expect("pending");
    let later_ms = START_MS + 3_600_000;
    let corrected = NewPending {
        continue_to: None,
        ..pending("ANN", "ann@mail.example", 3)
    };
    let correct = |verified: u8| {
        let corrected = corrected.clone();
        write(store, local_ids::root(), move |tx| {
            pending_account::correct(tx, id, &hash(verified), &corrected, later_ms)
        })
    };
    assert!(!correct(2), "another passphrase was compared");
    assert!(correct(1));
    let (found, passphrase) = read(store, move |tx| {
        pending_account::by_name(tx, &name("Ann"), later_ms)
    })
    .expect("pending");
    assert_eq!((found.id, passphrase), (id, hash(1)));
    assert_eq!(
        (found.mail, found.continue_to),
        (mail("ann@mail.example"), None)
    );
    assert_eq!(found.created_at_ms, later_ms);
    assert_eq!(verify(store, id, 1, later_ms), Err(NotVerified::Invalid));
    let ann = verify(store, id, 3, later_ms).expect("an account");
    assert_eq!(ann.mail, mail("ann@mail.example"));
}

fn void_sign_ups_go_with_the_tokens_of_their_apps(store: &Store) {
    let void = add(store, &pending("ann", "ann@mail.example", 1), START_MS).expect("pending");
    let later_ms = START_MS + VerificationDigest::LASTS_MS;
    let other = pending("ben", "ben@mail.example", 1);
    let kept = add(store, &other, later_ms - 1).expect("pending");
    token(store, void, 1);
    token(store, kept, 2);
    let sweep = || {
        write(store, local_ids::root(), move |tx| {
            pending_account::remove_void(tx, later_ms)
        })
    };
    assert_eq!((sweep(), sweep()), (1, 0));
    assert_eq!(
        (names(store, later_ms), tokens(store)),
        (vec!["ben".to_owned()], 1)
    );
    let remove = || {
        write(store, local_ids::root(), |tx| {
            pending_account::remove(tx, &name("BEN"))
        })
    };
    assert_eq!((remove(), remove()), (true, false));
    assert_eq!((names(store, later_ms), tokens(store)), (vec![], 0));
}

fn a_pending_account_is_void_after_a_week(store: &Store) {
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
}

fn an_address_that_an_account_has_can_be_asked_for_and_not_had(store: &Store) {
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
}

fn a_state_that_is_mailed_again_replaces_the_one_before(store: &Store) {
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
}
