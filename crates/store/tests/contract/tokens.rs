//! What acts for people: a code gives one token, a revoked token is gone, each refresh token of a family is used once.

use std::{sync::Barrier, thread};

use driftline_core::social::{AccountState, RefreshTokens};
use driftline_id::Id;
use driftline_store::{
    LocalAccountId, Root, Store, StoreError, Tx, local_ids,
    social::{
        SecretHash, TokenHolder,
        access_token::{self, AccessTokenId, NewToken, USED_PRECISION_MS},
        account_removal,
        app::{self, AppId, NewApp},
        authorization_code::{self, Exchange, ExchangeRefused, Exchanged, NewCode},
        local_account,
        log_ins::{self, LogIns},
        token_family::{self, LIFETIME_MS, Rotation, TokenFamilyId},
        web_session,
    },
    testing::new_account,
};

use crate::world::{self, ANN, BOB, START_MS};

on_both!(
    an_app_is_found_as_it_registered,
    a_code_gives_a_token_to_its_app_and_only_once,
    a_code_expires,
    of_two_exchanges_at_a_time_one_gives_a_token,
    a_token_is_found_by_its_secret_and_account_until_it_is_revoked,
    the_last_use_of_a_token_is_recorded_by_the_day,
    a_family_ends_when_a_used_refresh_token_comes_back_after_its_grace,
    a_family_ends_thirty_days_after_the_log_in_however_often_it_was_refreshed,
    of_two_refreshes_at_a_time_none_ends_the_family,
    a_session_is_found_until_it_ends,
    a_token_is_read_with_its_accounts_state_and_is_nobodys_once_the_account_goes,
    log_ins_of_every_kind_end_one_by_one_and_all_at_once,
    what_is_begun_beside_an_end_of_all_does_not_outlast_it,
);

fn write<T: Send + 'static>(
    store: &Store,
    job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
) -> T {
    world::write(store, Root::none(), job)
}

fn hash(byte: u8) -> SecretHash {
    SecretHash::new([byte; 32])
}

fn new_app(store: &Store, name: &str) -> AppId {
    let new = NewApp {
        client_id: format!("client-{name}"),
        secret_hash: hash(200),
        name: name.to_owned(),
        website: None,
        redirect_uris: vec!["urn:ietf:wg:oauth:2.0:oob".into(), "app://back".into()],
        scopes: "read write".to_owned(),
    };
    let added = store.write_blocking(local_ids::root(), move |tx| app::add(tx, &new, START_MS));
    added.expect("an app")
}

fn code_of(app: AppId, challenge: Option<&str>) -> NewCode {
    NewCode {
        account: ANN,
        hash: hash(1),
        app,
        redirect_uri: "app://back".to_owned(),
        scopes: "read".to_owned(),
        challenge: challenge.map(str::to_owned),
    }
}

fn exchange_of(app: AppId, challenge: Option<&str>, token: u8) -> Exchange {
    Exchange {
        account: ANN,
        hash: hash(1),
        app,
        redirect_uri: "app://back".to_owned(),
        challenge: challenge.map(str::to_owned),
        token: hash(token),
    }
}

fn exchange(store: &Store, try_of: Exchange, now_ms: i64) -> Result<Exchanged, ExchangeRefused> {
    write(store, move |tx| {
        authorization_code::exchange(tx, &try_of, now_ms)
    })
}

fn add_code(store: &Store, code: NewCode) {
    write(store, move |tx| {
        authorization_code::add(tx, &code, START_MS)
    });
}

/// Begins a family with that refresh token.
fn begin_family(store: &Store, of: LocalAccountId, first: u8) -> TokenFamilyId {
    let family = Id::new(7);
    write(store, move |tx| {
        token_family::begin(tx, of, "phone", family, &hash(first), START_MS)
    });
    family
}

fn add_token(
    store: &Store,
    account: Option<LocalAccountId>,
    hash: SecretHash,
    app: AppId,
) -> AccessTokenId {
    let scopes = "read".to_owned();
    let new = NewToken {
        account,
        hash,
        app,
        scopes,
    };
    write(store, move |tx| access_token::add(tx, &new, START_MS))
}

fn is_token(store: &Store, account: Option<LocalAccountId>, of: SecretHash) -> bool {
    write(store, move |tx| access_token::find(tx, account, &of)).is_some()
}

fn an_app_is_found_as_it_registered(store: &Store) {
    let id = new_app(store, "toot");
    let found = write(store, |tx| app::by_client_id(tx, "client-toot")).expect("an app");
    assert_eq!(found.id, id);
    assert_eq!(found.secret_hash, hash(200));
    assert_eq!(
        found.redirect_uris,
        ["urn:ietf:wg:oauth:2.0:oob", "app://back"]
    );
    assert_eq!((&*found.name, &*found.scopes), ("toot", "read write"));
    assert_eq!(found.created_at_ms, START_MS);
    assert_eq!(write(store, move |tx| app::by_id(tx, id)), Some(found));
    assert_eq!(write(store, |tx| app::by_client_id(tx, "nul\0")), None);
}

fn a_code_gives_a_token_to_its_app_and_only_once(store: &Store) {
    let (ours, theirs) = (new_app(store, "ours"), new_app(store, "theirs"));
    add_code(store, code_of(ours, Some("challenge")));
    let right = exchange_of(ours, Some("challenge"), 2);
    for wrong in [
        exchange_of(theirs, Some("challenge"), 2),
        exchange_of(ours, Some("another"), 2),
        exchange_of(ours, None, 2),
        Exchange {
            redirect_uri: "app://back/".to_owned(),
            ..right.clone()
        },
    ] {
        let refused = exchange(store, wrong.clone(), START_MS);
        assert_eq!(refused, Err(ExchangeRefused::Mismatch), "{wrong:?}");
    }
    let of_another = Exchange {
        account: BOB,
        ..right.clone()
    };
    assert_eq!(
        exchange(store, of_another, START_MS),
        Err(ExchangeRefused::Unknown)
    );
    let given = exchange(store, right.clone(), START_MS).expect("a token");
    assert_eq!(given.scopes, "read");
    assert!(is_token(store, Some(ANN), hash(2)));
    let again = Exchange {
        token: hash(3),
        ..right
    };
    assert_eq!(
        exchange(store, again, START_MS),
        Err(ExchangeRefused::Reused)
    );
    assert!(!is_token(store, Some(ANN), hash(3)));
    assert!(
        !is_token(store, Some(ANN), hash(2)),
        "somebody else may have it"
    );
}

fn a_code_expires(store: &Store) {
    let app = new_app(store, "toot");
    add_code(store, code_of(app, None));
    let late = START_MS + authorization_code::LIFETIME_MS;
    let refused = exchange(store, exchange_of(app, None, 2), late);
    assert_eq!(refused, Err(ExchangeRefused::Unknown));
    let ahead = exchange(store, exchange_of(app, None, 2), START_MS - 3_600_000);
    assert_eq!(
        ahead,
        Err(ExchangeRefused::Unknown),
        "given by a clock ahead"
    );
    let in_time = exchange(store, exchange_of(app, None, 2), late - 1);
    assert!(in_time.is_ok());
}

fn of_two_exchanges_at_a_time_one_gives_a_token(store: &Store) {
    let app = new_app(store, "toot");
    for round in 0..20_u8 {
        let code = NewCode {
            hash: hash(round),
            ..code_of(app, None)
        };
        add_code(store, code);
        let start = Barrier::new(2);
        let tries: Vec<Result<Exchanged, ExchangeRefused>> = thread::scope(|scope| {
            let tries = [100, 101].map(|token| {
                let (start, store) = (&start, store.clone());
                scope.spawn(move || {
                    start.wait();
                    let this = Exchange {
                        hash: hash(round),
                        ..exchange_of(app, None, token)
                    };
                    exchange(&store, this, START_MS)
                })
            });
            tries.map(|one| one.join().expect("no panic")).into()
        });
        let given = tries.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(given, 1, "{tries:?}");
        assert!(tries.contains(&Err(ExchangeRefused::Reused)), "{tries:?}");
    }
}

fn a_token_is_found_by_its_secret_and_account_until_it_is_revoked(store: &Store) {
    let app = new_app(store, "toot");
    let add = |account, of| add_token(store, account, of, app);
    let first = add(Some(ANN), hash(1));
    add(Some(ANN), hash(2));
    add(None, hash(3));
    assert!(is_token(store, Some(ANN), hash(1)) && is_token(store, None, hash(3)));
    assert!(!is_token(store, Some(BOB), hash(1)) && !is_token(store, None, hash(1)));
    assert!(
        !is_token(store, Some(ANN), hash(3)),
        "it is the app's alone"
    );
    let listed = write(store, |tx| access_token::list(tx, ANN));
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|one| one.app_name == "toot"));
    assert!(!write(store, move |tx| access_token::revoke(
        tx, BOB, first
    )));
    assert!(write(store, move |tx| access_token::revoke(tx, ANN, first)));
    assert!(!write(store, move |tx| access_token::revoke(
        tx, ANN, first
    )));
    assert!(!is_token(store, Some(ANN), hash(1)));
    let other = new_app(store, "other");
    let revoke = |app| {
        write(store, move |tx| {
            access_token::revoke_secret(tx, None, &hash(3), app)
        })
    };
    assert!(!revoke(other) && is_token(store, None, hash(3)));
    assert!(revoke(app) && !is_token(store, None, hash(3)));
    assert_eq!(write(store, |tx| access_token::revoke_all(tx, ANN)), 1);
    assert!(!is_token(store, Some(ANN), hash(2)));
}

fn the_last_use_of_a_token_is_recorded_by_the_day(store: &Store) {
    add_token(store, Some(ANN), hash(1), new_app(store, "toot"));
    let found = || write(store, |tx| access_token::find(tx, Some(ANN), &hash(1)));
    for (at_ms, expected_ms) in [
        (START_MS + USED_PRECISION_MS - 1, START_MS),
        (START_MS + USED_PRECISION_MS, START_MS + USED_PRECISION_MS),
    ] {
        let token = found().expect("a token");
        write(store, move |tx| access_token::used(tx, &token, at_ms));
        assert_eq!(found().expect("a token").used_at_ms, expected_ms);
    }
}

fn a_family_ends_when_a_used_refresh_token_comes_back_after_its_grace(store: &Store) {
    let family = begin_family(store, ANN, 1);
    let rotate = |used, next, now_ms| {
        write(store, move |tx| {
            token_family::rotate(tx, ANN, family, &hash(used), &hash(next), now_ms)
        })
    };
    let is_rotated = |rotation| matches!(rotation, Rotation::Rotated(_));
    assert!(is_rotated(rotate(1, 2, START_MS + 1_000)));
    // The answer was lost: the device has the old one.
    assert!(is_rotated(rotate(1, 3, START_MS + 2_000)));
    assert!(is_rotated(rotate(3, 4, START_MS + 3_000)));
    let late = START_MS + 3_000 + RefreshTokens::GRACE_MS;
    assert_eq!(rotate(3, 5, late), Rotation::Reused);
    assert_eq!(
        rotate(4, 5, late),
        Rotation::Ended,
        "nobody has it any more"
    );
    let left = write(store, move |tx| token_family::list(tx, ANN, late));
    assert_eq!(left, []);
}

fn a_family_ends_thirty_days_after_the_log_in_however_often_it_was_refreshed(store: &Store) {
    let family = begin_family(store, ANN, 0);
    let rotate = |used: u8, now_ms| {
        write(store, move |tx| {
            token_family::rotate(tx, ANN, family, &hash(used), &hash(used + 1), now_ms)
        })
    };
    for day in 1..30_u8 {
        let now_ms = START_MS + i64::from(day) * 86_400_000;
        let Rotation::Rotated(rotated) = rotate(day - 1, now_ms) else {
            panic!("day {day}");
        };
        assert_eq!(rotated.ends_at_ms, START_MS + LIFETIME_MS);
    }
    assert_eq!(rotate(29, START_MS + LIFETIME_MS), Rotation::Ended);
    let of_another = write(store, move |tx| {
        token_family::find(tx, BOB, family, START_MS)
    });
    assert_eq!(of_another, None);
}

fn of_two_refreshes_at_a_time_none_ends_the_family(store: &Store) {
    let family = begin_family(store, ANN, 1);
    let start = Barrier::new(2);
    let both: Vec<Rotation> = thread::scope(|scope| {
        let both = [2, 3].map(|next| {
            let (start, store) = (&start, store.clone());
            scope.spawn(move || {
                start.wait();
                write(&store, move |tx| {
                    token_family::rotate(tx, ANN, family, &hash(1), &hash(next), START_MS)
                })
            })
        });
        both.map(|one| one.join().expect("no panic")).into()
    });
    let is_rotated = |rotation: &Rotation| matches!(rotation, Rotation::Rotated(_));
    assert!(both.iter().all(is_rotated), "{both:?}");
}

fn account(store: &Store, name: &str) -> LocalAccountId {
    let new = new_account(name);
    let created = store.write_blocking(local_ids::root(), move |tx| {
        local_account::create(tx, &new, START_MS)
    });
    created.expect("a write").expect("an account").id
}

fn a_session_is_found_until_it_ends(store: &Store) {
    let (ann, ben) = (account(store, "ann"), account(store, "ben"));
    for (of, browser) in [(1, "Browser"), (2, "Another")] {
        write(store, move |tx| {
            web_session::begin(tx, ann, &hash(of), browser, START_MS)
        });
    }
    let find = |account, of, now_ms| {
        write(store, move |tx| {
            web_session::find_with_holder(tx, account, &hash(of), now_ms)
        })
    };
    let end_ms = START_MS + web_session::LIFETIME_MS;
    let (session, holder) = find(ann, 1, end_ms - 1).expect("a session");
    assert_eq!((&*session.browser, session.ends_at_ms), ("Browser", end_ms));
    assert_eq!((holder.id, holder.name.as_str()), (ann, "ann"));
    assert_eq!(find(ann, 1, end_ms), None);
    assert_eq!(find(ben, 1, START_MS), None);
    assert!(!write(store, move |tx| web_session::end(
        tx, ben, session.id
    )));
    assert!(write(store, move |tx| web_session::end(
        tx, ann, session.id
    )));
    assert_eq!(find(ann, 1, START_MS), None);
    let listed = write(store, move |tx| web_session::list(tx, ann, START_MS));
    assert_eq!(listed.len(), 1);
    assert_eq!(write(store, move |tx| web_session::end_all(tx, ann)), 1);
    assert_eq!(find(ann, 2, START_MS), None);
}

fn a_token_is_read_with_its_accounts_state_and_is_nobodys_once_the_account_goes(store: &Store) {
    let ann = account(store, "ann");
    add_token(store, Some(ann), hash(1), new_app(store, "toot"));
    let family = begin_family(store, ann, 1);
    let states = || {
        let token = write(store, move |tx| {
            access_token::find_with_holder(tx, ann, &hash(1))
        });
        let family = write(store, move |tx| {
            token_family::find_with_holder(tx, ann, family, START_MS)
        });
        let state = |holder: TokenHolder| holder.state;
        (token.map(|of| state(of.1)), family.map(|of| state(of.1)))
    };
    for to in [AccountState::Active, AccountState::Frozen] {
        let changed = store.write_blocking(local_account::root(ann), move |tx| {
            local_account::change_state(tx, ann, to)
        });
        assert!(changed.expect("a write").is_ok());
        assert_eq!(states(), (Some(to), Some(to)));
    }
    let begin = move |tx: &mut Tx<'_>| account_removal::begin(tx, ann);
    let begun = store.write_blocking(local_account::root(ann), begin);
    begun.expect("a write");
    assert_eq!(states(), (None, None));
    let remove = move |tx: &mut Tx<'_>| account_removal::remove_some(tx, ann);
    let removed = store.write_blocking(local_account::root(ann), remove);
    assert!(removed.expect("a write").is_done);
    assert!(!is_token(store, Some(ann), hash(1)));
    let left = write(store, move |tx| token_family::list(tx, ann, START_MS));
    assert_eq!(left, []);
}

/// Logs ann in by all means.
fn log_in(store: &Store, ann: LocalAccountId, app: AppId) {
    let code = NewCode {
        account: ann,
        ..code_of(app, None)
    };
    // One after the other: of each kind one takes its ID from its transaction.
    add_token(store, Some(ann), hash(1), app);
    add_code(store, code);
    begin_family(store, ann, 1);
    write(store, move |tx| {
        web_session::begin(tx, ann, &hash(1), "Browser", START_MS)
    });
}

fn ids(of: &LogIns) -> Vec<u64> {
    let tokens = of.tokens.iter().map(|listed| listed.token.id.raw());
    let families = of.families.iter().map(|family| family.id.raw());
    let sessions = of.sessions.iter().map(|session| session.id.raw());
    tokens.chain(families).chain(sessions).collect()
}

fn log_ins_of_every_kind_end_one_by_one_and_all_at_once(store: &Store) {
    let (ann, ben) = (account(store, "ann"), account(store, "ben"));
    let app = new_app(store, "toot");
    log_in(store, ann, app);
    let list = || write(store, move |tx| log_ins::list(tx, ann, START_MS));
    let all = ids(&list());
    assert_eq!(all.len(), 3);
    let end = |account, id| write(store, move |tx| log_ins::end(tx, account, id));
    for (count, id) in all.into_iter().enumerate() {
        assert!(!end(ben, id), "another account's");
        assert!(end(ann, id));
        assert!(!end(ann, id));
        assert_eq!(ids(&list()).len(), 2 - count);
    }
    let other = NewCode {
        account: ann,
        hash: hash(2),
        ..code_of(app, None)
    };
    write(store, move |tx| {
        authorization_code::revoke_all(tx, ann)?;
        authorization_code::add(tx, &other, START_MS)
    });
    log_in(store, ann, app);
    let end_all = move |tx: &mut Tx<'_>| log_ins::end_all(tx, ann);
    let ended = store.write_blocking(local_account::root(ann), end_all);
    ended.expect("a write");
    assert_eq!(ids(&list()), [0; 0]);
    for code in [1, 2] {
        let this = Exchange {
            account: ann,
            hash: hash(code),
            ..exchange_of(app, None, 9)
        };
        assert_eq!(
            exchange(store, this, START_MS),
            Err(ExchangeRefused::Unknown)
        );
    }
}

fn what_is_begun_beside_an_end_of_all_does_not_outlast_it(store: &Store) {
    let (ann, app) = (account(store, "ann"), new_app(store, "toot"));
    for round in 0..20 {
        let code = NewCode {
            account: ann,
            hash: hash(round),
            ..code_of(app, None)
        };
        add_code(store, code);
        let start = Barrier::new(2);
        let root = local_account::root(ann);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                let this = Exchange {
                    account: ann,
                    hash: hash(round),
                    ..exchange_of(app, None, 100 + round)
                };
                let tried = store.write_blocking(root, move |tx| {
                    authorization_code::exchange(tx, &this, START_MS)
                });
                tried.expect("a write")
            });
            scope.spawn(|| {
                start.wait();
                let ended = store.write_blocking(root, move |tx| log_ins::end_all(tx, ann));
                ended.expect("a write");
            });
        });
        let left = write(store, move |tx| log_ins::list(tx, ann, START_MS));
        assert_eq!(ids(&left), [0; 0]);
    }
}
