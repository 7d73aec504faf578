use driftline_core::social::{AccountState, Nickname, Profile, ProfileError, ProfileField, Role};
use driftline_store::{
    Store, StoreError, local_ids,
    social::{
        local_account::{self, AccountTaken, LocalAccount},
        profile,
    },
};

use super::{
    account, at_once, create, hash, mail, name, new_account, on_both_with_two, read, write,
};
use crate::world::START_MS;

on_both!(
    an_account_begins_with_an_empty_profile_and_a_library,
    names_and_addresses_are_unique_in_any_case,
    what_people_change_of_their_accounts_is_stored,
    accounts_are_listed_and_counted,
    what_is_not_there_is_not_written,
);

fn an_account_begins_with_an_empty_profile_and_a_library(store: &Store) {
    let created = create(store, &new_account("Ann")).expect("an account");
    let expected = LocalAccount {
        id: created.id,
        name: name("Ann"),
        nickname: Nickname::default(),
        state: AccountState::NotActivated,
        awaits_approval: false,
        role: Role::Member,
        mail: mail("Ann@mail.example"),
        mail_verified_at_ms: START_MS,
        created_at_ms: START_MS,
        last_login_at_ms: None,
        reason: String::new(),
        may_publish: false,
    };
    assert_eq!(created, expected);
    let id = created.id;
    let (passphrase, profile) = read(store, move |tx| {
        Ok((local_account::passphrase(tx, id)?, profile::load(tx, id)?))
    });
    assert_eq!((passphrase, profile), (Some(hash(1)), Profile::default()));
    let libraries = read(store, |tx| {
        let all = "select owner_kind, owner_id, update_count from library order by id";
        Ok(tx.query(all, &[], |row| {
            Ok((
                row.text("owner_kind")?,
                row.i64("owner_id")?,
                row.i64("update_count")?,
            ))
        })?)
    });
    let raw = i64::try_from(id).expect("an ID");
    assert_eq!(libraries, [("account".to_owned(), raw, 0)]);
    // IDs are of the local clock: later accounts have higher ones.
    assert!(account(store, "bob") > id && id.raw() >= local_ids::MIN_LOCAL_ID.unsigned_abs());
}

fn names_and_addresses_are_unique_in_any_case(store: &Store) {
    let ann = account(store, "ann");
    for (text, address, taken) in [
        ("ann", "other@mail.example", AccountTaken::Name),
        ("ANN", "other@mail.example", AccountTaken::Name),
        ("other", "Ann@Mail.Example", AccountTaken::Mail),
    ] {
        let mut new = new_account(text);
        new.mail = mail(address);
        assert_eq!(create(store, &new), Err(taken), "{text} {address}");
    }
    let found = read(store, move |tx| {
        let by_name = local_account::by_name(tx, &name("ANN"))?;
        let by_mail = local_account::by_mail(tx, &mail("ANN@mail.example"))?;
        let all = [by_name, by_mail, local_account::by_id(tx, ann)?];
        Ok(all.map(|found| found.map(|account| account.id)))
    });
    assert_eq!(found, [Some(ann); 3]);
    let missing = read(store, |tx| local_account::by_name(tx, &name("nobody")));
    assert_eq!(missing, None);
}

#[test]
fn of_two_that_want_one_name_or_address_one_has_it() {
    on_both_with_two(|one, other| {
        for round in 0..20 {
            let (mut first, mut second) = (new_account("x"), new_account("X"));
            (first.name, second.name) = (name(&format!("n{round}")), name(&format!("N{round}")));
            (first.mail, second.mail) = (
                mail(&format!("a{round}@mail.example")),
                mail("b@mail.example"),
            );
            if round % 2 == 0 {
                second.name = name(&format!("m{round}"));
                second.mail = first.mail.clone();
            } else {
                second.mail = mail(&format!("b{round}@mail.example"));
            }
            let (a, b) = at_once(|| create(one, &first), || create(other, &second));
            assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
        }
    });
}

#[test]
fn of_two_that_change_to_one_address_one_has_it() {
    on_both_with_two(|one, other| {
        let (ann, bob) = (account(one, "ann"), account(one, "bob"));
        let set = |store: &Store, id, text: &str| {
            let mail = mail(text);
            write(store, local_account::root(id), move |tx| {
                local_account::set_mail(tx, id, &mail, START_MS + 1)
            })
        };
        for round in 0..20 {
            let text = format!("new{round}@mail.example");
            let (a, b) = at_once(|| set(one, ann, &text), || set(other, bob, &text));
            assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
        }
        assert_eq!(set(one, ann, "Ann@mail.example"), Ok(()));
        assert_eq!(
            set(one, ann, "ann@mail.example"),
            Ok(()),
            "its own, in another case"
        );
    });
}

fn what_people_change_of_their_accounts_is_stored(store: &Store) {
    let id = account(store, "ann");
    let changed = Profile {
        bio: "two\nlines 猫".to_owned(),
        avatar: Some("https://files.example/a.webp".to_owned()),
        header: None,
        fields: vec![ProfileField {
            name: "home".to_owned(),
            value: "https://ann.example".to_owned(),
        }],
        locked: true,
        bot: true,
        discoverable: true,
    };
    let new = changed.clone();
    write(store, local_account::root(id), move |tx| {
        let nickname = Nickname::new("Ann ねこ").expect("a nickname");
        profile::set(tx, id, &nickname, &new, START_MS)?.expect("a good profile");
        local_account::set_role(tx, id, Role::Moderator)?;
        local_account::set_passphrase(tx, id, &hash(2))
    });
    let (found, profile, passphrase) = read(store, move |tx| {
        let found = local_account::by_ids(tx, &[id])?.pop();
        let profile = profile::by_ids(tx, &[id])?.pop();
        Ok((found, profile, local_account::passphrase(tx, id)?))
    });
    let found = found.expect("an account");
    assert_eq!(
        (found.nickname.as_str(), found.role),
        ("Ann ねこ", Role::Moderator)
    );
    assert_eq!(profile, Some((id, changed)));
    assert_eq!(passphrase, Some(hash(2)));
    let refused = write(store, local_account::root(id), move |tx| {
        let long = Profile {
            bio: "a".repeat(1025),
            ..Profile::default()
        };
        profile::set(tx, id, &Nickname::default(), &long, START_MS)
    });
    assert_eq!(refused, Err(ProfileError::LongBio));
}

fn accounts_are_listed_and_counted(store: &Store) {
    let ids = ["c", "a", "b"].map(|text| account(store, text));
    let page = |after, limit| {
        let accounts = read(store, move |tx| local_account::list(tx, after, limit));
        let names = accounts.iter().map(|account| account.name.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(page(None, 2), ["c", "a"]);
    assert_eq!(page(Some(ids[1]), 2), ["b"]);
    write(store, local_account::root(ids[0]), move |tx| {
        local_account::log_in(tx, ids[0], &hash(1), None, START_MS + 5)
    })
    .expect("a log-in");
    for (since_ms, expected) in [(None, 3), (Some(START_MS + 5), 1), (Some(START_MS + 6), 0)] {
        let counted = read(store, move |tx| local_account::count(tx, since_ms));
        assert_eq!(counted, expected);
    }
}

fn what_is_not_there_is_not_written(store: &Store) {
    let id = driftline_store::LocalAccountId::new(7);
    let written = store.write_blocking(local_account::root(id), move |tx| {
        local_account::set_role(tx, id, Role::Admin)
    });
    assert_eq!(written, Err(StoreError::NoAccount));
    let found = read(store, move |tx| local_account::passphrase(tx, id));
    assert_eq!(found, None);
}
